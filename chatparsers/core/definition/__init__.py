"""The language of definitions: nodes, builder, idioms, checks, the writer of a turn."""
