"""A format's tree read as a grammar: the turn, its calls, the triggers, what the prompt already wrote."""
