"""What a shell offers when the tab key is pressed. Whatever goes wrong, it offers nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from stratagem.surfaces.cli.session import Options, Session

if TYPE_CHECKING:
    from stratagem.bootstrap import Runtime

__all__ = ["branches", "keys", "namespaces"]

_OFFERED_MAX = 50


def branches(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the live branches whose names begin like this."""
    return _complete(ctx, incomplete, _branch_names)


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the namespaces in use that begin like this."""
    return _complete(
        ctx,
        incomplete,
        lambda runtime, _session, _begin: sorted(
            {
                space.namespace
                for space in runtime.foundation.store.reader().records.spaces().values()
            }
        ),
    )


def keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return keys that begin like this."""
    return _complete(ctx, incomplete, _keys)


def _complete(
    ctx: typer.Context, incomplete: str, find: Callable[[Runtime, Session, str], list[str]]
) -> list[str]:
    session = _session(ctx)
    # Only to look: a tab must not create a database, nor bring one up to date.
    if not Path(session.database).is_file():
        return []
    with suppress(Exception), session.runtime(read_only=True) as runtime:
        found = find(runtime, session, incomplete)
        return [name for name in found if name.startswith(incomplete)][:_OFFERED_MAX]
    return []


def _session(ctx: typer.Context) -> Session:
    """Return the session of the command line as far as it was typed."""
    given: dict[str, Any] = {}
    context: Any = ctx
    while context is not None:
        given = {**context.params, **{name: each for name, each in given.items() if each}}
        context = context.parent
    wanted = {name: given[name] for name in ("db", "namespace", "branch") if given.get(name)}
    return Session(Options(**wanted, auto_embed=False))


def _branch_names(runtime: Runtime, _session: Session, _begin: str) -> list[str]:
    found = runtime.foundation.store.reader().branches.all()
    return sorted({branch.name for branch in found if branch.deleted_sequence is None})


def _keys(runtime: Runtime, session: Session, begin: str) -> list[str]:
    from stratagem.memory.kinds import entries

    with runtime.foundation.store.snapshot() as reader:
        view = runtime.foundation.views.view(reader, session.branch)
        page, _ = reader.records.page(
            view.lineage, entries(session.namespace), after=begin, limit=_OFFERED_MAX
        )
    return [key for key, _version in page]
