"""Read models outside of the database: how the outbox feeds them, and the two there are."""
