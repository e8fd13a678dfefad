"""Corrections at work: the policy that holds, the lessons of earlier calls, and reports on both."""
