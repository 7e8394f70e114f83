"""One writer for each dialect of grammars: GBNF, Lark, structural tags."""
