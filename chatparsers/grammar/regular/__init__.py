"""Regular languages: automata, regular expressions, numbers, string formats."""
