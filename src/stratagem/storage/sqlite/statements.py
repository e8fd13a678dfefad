"""The SQL of this store."""

from __future__ import annotations

from stratagem.storage.relational.statements import Statements

__all__ = ["SQL", "STATEMENTS", "migrations", "script", "statement"]

assert __package__ is not None
STATEMENTS = Statements(__package__, mark="?")
SQL = STATEMENTS.queries
statement = STATEMENTS.statement
script = STATEMENTS.script
migrations = STATEMENTS.migrations
