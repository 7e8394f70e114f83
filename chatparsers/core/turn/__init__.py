"""The turn around calls, lowered once to rules that the parser reads: its table of tokens, its mends, its rows."""
