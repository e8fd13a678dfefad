"""The SQL of this store. The first parameter of every statement is the workspace."""

from __future__ import annotations

from stratagem.storage.relational.statements import Statements

__all__ = ["SQL", "STATEMENTS", "migrations", "statement"]

assert __package__ is not None
STATEMENTS = Statements(__package__, mark="$", shift=1)
SQL = STATEMENTS.queries
statement = STATEMENTS.statement
migrations = STATEMENTS.migrations
