"""The tool gateway: one registry, and one safe path for every call."""
