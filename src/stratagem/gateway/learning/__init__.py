"""Corrections in use: the policy in force, the lessons of earlier calls, and reports on both."""
