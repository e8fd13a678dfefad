"""Several processes that are one server: what they tell one another, and how."""
