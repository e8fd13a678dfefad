"""Who may do what: tokens, their scopes, the workspaces they open, and the record of refusals.

Tokens are records of the log, on the branch `default` of the database a server was started on.
Only the hash of a token's random secret is stored, so that nobody learns a token by reading the
database.
"""
