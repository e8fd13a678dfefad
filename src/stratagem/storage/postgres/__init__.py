"""The store in PostgreSQL: many servers, many workspaces, one log for each workspace."""
