"""The machine: programs of instructions, and what runs them over text that arrives in pieces."""
