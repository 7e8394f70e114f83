"""The commands of the command line, one module each; ``chatparsers.cli`` is the entry point."""
