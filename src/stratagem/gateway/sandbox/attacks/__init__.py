"""The attacks that are tried on a wall before code of a caller runs behind it.

Each file here is code that runs inside, as a caller's would. Its result says of each attack
what got through, or null. `trial.py` plants the targets and looks at them afterwards.
"""
