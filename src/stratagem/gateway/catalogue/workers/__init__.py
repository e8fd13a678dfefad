"""Scripts that are run by path, in processes of their own: each imports only what it needs."""
