"""The rules: what events are, what a branch can see, how two branches merge, what time words mean.

Nothing here reads a clock, draws a random number or opens a file: time, ids and stored
facts come in as arguments, so that every rule can be tested by the thousand.
"""
