"""Speed, as a ratio to plain SQLite doing the least that each job needs."""
