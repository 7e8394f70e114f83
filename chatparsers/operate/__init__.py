"""Runs a gateway for others: from flags, environment variables and one file.

`chatparsers.operate.config` reads the file, `chatparsers.operate.team` makes models and keys of it, and
`chatparsers.operate.serve` runs them until a signal ends it, or has the file read again.
"""
