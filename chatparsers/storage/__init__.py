"""Where the gateway's store lives: rows in SQLite, for one machine, or in PostgreSQL, for several.

    store (chatparsers.gateway) ──SQL, written once──> Database ──> Sqlite | Postgresql

`database` says what both promise, `rows` which tables there are and how a row is known to be whole. `sqlite` also looks
whether its file is what was written, and `mending` makes a damaged one anew of its sound rows.
"""
