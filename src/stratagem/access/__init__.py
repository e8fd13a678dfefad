"""Who may do what: tokens, their scopes, the workspaces they open, and the record of refusals.

Tokens are records of the log, on the branch `default` of the database a server was started on.
What is kept of a token is the hash of a secret that nobody can guess, so that whoever reads the
database learns no token from it.
"""
