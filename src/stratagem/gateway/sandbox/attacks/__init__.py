"""The attacks that are tried on a layer before code of a caller runs in it.

Each file here is code that runs inside, as a caller's would. Its result says for each attack what
it achieved, or null. `trial.py` plants the targets and checks them afterwards.
"""
