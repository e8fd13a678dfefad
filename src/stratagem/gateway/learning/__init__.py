"""Corrections at work: the policy that holds, what calls have taught, and what is told of both."""
