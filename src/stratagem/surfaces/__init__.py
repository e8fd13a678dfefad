"""Ways in: each a thin translation of the table of operations."""
