"""Debugging: incidents, the fixes that were tried, and the evidence for each."""
