"""The commands of the command line, one module each; ``chatparsers.cli.main`` is the entry point."""
