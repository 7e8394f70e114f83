"""Asks an engine for a value of a Python type, or lets it call Python functions: `Chat.ask` and `Chat.run`.

`loops` has the two loops without I/O: they say what is to be generated or called next, and take what came of it.
`drive` runs them, at once or with ``await``. `engines` knows how each kind of engine generates.
"""
