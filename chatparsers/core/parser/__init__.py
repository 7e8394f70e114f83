"""The parser: the compiler, its machine, streams, turns."""
