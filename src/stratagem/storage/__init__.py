"""Where events live: one contract, and the stores that keep it."""
