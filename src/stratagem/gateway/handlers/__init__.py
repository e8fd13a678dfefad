"""Runners: one for each type of handler."""
