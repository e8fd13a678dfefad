"""The rows of branches, spaces and transactions."""

from __future__ import annotations

from functools import partial
from typing import Any

from stratagem.developer.branches import BranchTools
from stratagem.developer.rows import TRANSACTION, fit_results, render_optional, row
from stratagem.developer.spaces import SpaceTools
from stratagem.developer.transactions import TransactionTools

__all__ = ["PLACE_OPERATIONS"]

_LIST = (TRANSACTION, "max_chars")
_branch = partial(row, service=BranchTools, group="branches")
_space = partial(row, service=SpaceTools, group="spaces")
_txn: Any = partial(
    row, service=TransactionTools, group="transactions", answer_options=(), part="transactions"
)

PLACE_OPERATIONS = (
    _branch(
        "strata_branch_create",
        BranchTools.create,
        "Create a branch",
        "Start an empty branch; fork starts one from what another shows.",
        positional=("name",),
        answer_options=(),
    ),
    _branch(
        "strata_branch_get",
        BranchTools.get,
        "Get a branch",
        "Return a branch by its name: where it comes from, and when it was made.",
        positional=("name",),
        render=render_optional,
        read_only=True,
        example={"name": "default"},
    ),
    _branch(
        "strata_branch_list",
        BranchTools.list,
        "List branches",
        "List every branch that is not deleted.",
        fit=fit_results,
        answer_options=_LIST,
        read_only=True,
        example={},
    ),
    _branch(
        "strata_branch_exists",
        BranchTools.exists,
        "Whether a branch exists",
        "Tell whether a branch of that name exists.",
        positional=("name",),
        read_only=True,
        example={"name": "default"},
    ),
    _branch(
        "strata_branch_delete",
        BranchTools.delete,
        "Delete a branch",
        "Hide a branch; `stratagem branch restore` brings it back.",
        positional=("name",),
        answer_options=(),
        idempotent=True,
    ),
    _branch(
        "strata_branch_fork",
        BranchTools.fork,
        "Fork a branch",
        "Start a branch from what another shows, now or at a past moment. Nothing is copied.",
        positional=("name",),
        answer_options=(),
    ),
    _branch(
        "strata_branch_diff",
        BranchTools.diff,
        "Compare branches",
        "How another branch differs from this one, and which of them made each change.",
        positional=("compare",),
        fit=fit_results,
        answer_options=_LIST,
        read_only=True,
        example={"compare": "default"},
    ),
    _branch(
        "strata_branch_merge",
        BranchTools.merge,
        "Merge a branch",
        "Merge a branch into the current one, or with `preview` say what that would do.",
        positional=("source",),
        fit=fit_results,
        answer_options=("max_chars",),
    ),
    _branch(
        "strata_branch_use",
        BranchTools.use,
        "Use a branch",
        "Make a branch the current one of this connection.",
        positional=("name",),
        answer_options=(),
        right="read",
        idempotent=True,
    ),
    _branch(
        "strata_branch_current",
        BranchTools.current,
        "Current branch",
        "The current branch of this connection.",
        read_only=True,
        example={},
    ),
    _space(
        "strata_space_create",
        SpaceTools.create,
        "Create a space",
        "Create a space (namespace), so that it exists while it is empty.",
        positional=("name",),
        idempotent=True,
        example={"name": "work"},
    ),
    _space(
        "strata_space_list",
        SpaceTools.list,
        "List spaces",
        "List the spaces (namespaces) with how much each holds.",
        fit=fit_results,
        answer_options=_LIST,
        read_only=True,
        example={},
    ),
    _space(
        "strata_space_exists",
        SpaceTools.exists,
        "Whether a space exists",
        "Tell whether a space was created or holds something.",
        positional=("name",),
        read_only=True,
        example={"name": "work"},
    ),
    _space(
        "strata_space_delete",
        SpaceTools.delete,
        "Delete a space",
        "Delete a space; with `force` also what it holds. Past moments still show it.",
        positional=("name",),
        destructive=True,
        idempotent=True,
    ),
    _space(
        "strata_space_use",
        SpaceTools.use,
        "Use a space",
        "Make a space the current one of this connection.",
        positional=("name",),
        answer_options=(),
        right="read",
        idempotent=True,
    ),
    _space(
        "strata_space_current",
        SpaceTools.current,
        "Current space",
        "The current space of this connection.",
        read_only=True,
        example={},
    ),
    _txn(
        "strata_txn_begin",
        TransactionTools.begin,
        "Begin a transaction",
        "Begin a transaction: pass its id as `transaction` to calls that belong to it, then "
        "commit or roll back. Others see nothing of it before the commit.",
        example={"read_only": True},
    ),
    _txn(
        "strata_txn_commit",
        TransactionTools.commit,
        "Commit a transaction",
        "Store everything that was written in a transaction, atomically. Refused if "
        "another caller changed one of its records meanwhile.",
        positional=("transaction",),
    ),
    _txn(
        "strata_txn_rollback",
        TransactionTools.rollback,
        "Roll back a transaction",
        "End a transaction without storing anything of it.",
        positional=("transaction",),
        idempotent=True,
    ),
    _txn(
        "strata_txn_info",
        TransactionTools.info,
        "About a transaction",
        "The branch of an open transaction, and when it is rolled back automatically.",
        positional=("transaction",),
        read_only=True,
    ),
    _txn(
        "strata_txn_is_active",
        TransactionTools.is_active,
        "Whether a transaction is open",
        "Tell whether a transaction is open.",
        positional=("transaction",),
        read_only=True,
        example={"transaction": "0-0"},
    ),
)
