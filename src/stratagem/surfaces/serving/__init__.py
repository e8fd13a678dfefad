"""Shared parts of all surfaces of a server: settings, databases, bodies, responses, request ids."""
