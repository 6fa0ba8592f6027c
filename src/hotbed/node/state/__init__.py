"""Where a node keeps what must outlive it: one database, SQLite in a file or PostgreSQL by its DSN."""
