"""Tools, secrets, resources and sources as records of the log."""
