"""The core: nodes and builder, the compiler and its machine, value syntaxes, events, messages, streams.

It imports the standard library alone and knows no format by name.
"""
