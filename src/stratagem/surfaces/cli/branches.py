"""branch, with its actions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from stratagem import limits
from stratagem.errors import MergeConflict, SwitchUnavailable, ValidationFailed
from stratagem.surfaces.cli.inputs import read_json
from stratagem.surfaces.cli.memory import AsOf, Cursor, RequestId
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
branch = typer.Typer(
    help="Work in isolation: fork, try something, compare, merge it back or delete it.",
)
app.add_typer(branch, name="branch", rich_help_panel="Memory")


def _complete(ctx: typer.Context, incomplete: str) -> list[str]:
    from stratagem.surfaces.cli.completion import branches

    return branches(ctx, incomplete)


Named = Annotated[str, typer.Argument(metavar="NAME", autocompletion=_complete, help="Which.")]
NewName = Annotated[
    str | None, typer.Argument(metavar="NAME", help="Its name; one is made up without it.")
]
Source = Annotated[
    str, typer.Argument(metavar="SOURCE", autocompletion=_complete, help="The branch to merge.")
]
Compare = Annotated[
    str, typer.Argument(metavar="OTHER", autocompletion=_complete, help="What to compare with.")
]


@command
def _default(session: Session) -> None:
    """Work in isolation: fork, try something, compare, merge it back or delete it."""
    _list(session)


branch.callback(invoke_without_command=True)(_default)


@branch.command("list")
@command
def _list_command(session: Session) -> None:
    """List the branches."""
    _list(session)


@branch.command("create")
@command
def _create(session: Session, *, name: NewName = None, request_id: RequestId = None) -> None:
    """Start an empty branch."""
    _act(session, "create", name=name, request_id=request_id)


@branch.command("fork")
@command
def _fork(
    session: Session, *, name: NewName = None, as_of: AsOf = None, request_id: RequestId = None
) -> None:
    """Start a branch from --branch, now or at a past moment. Nothing is copied."""
    _act(session, "fork", name=name, as_of=as_of, request_id=request_id)


@branch.command("switch")
@command
def _switch(session: Session, *, name: Named) -> None:
    """Say how to work on another branch: a command remembers none."""
    try:
        session.call("strata_branch", action="switch", name=name)
    except SwitchUnavailable as error:
        raise SwitchUnavailable(
            "Each command is a process of its own and remembers no branch.",
            hint=f"Add --branch {name}, or set STRATAGEM_BRANCH={name} for this shell.",
        ) from error


@branch.command("merge")
@command
def _merge(
    session: Session,
    *,
    source: Source,
    strategy: Annotated[
        Literal["source_wins", "target_wins"] | None,
        typer.Option(help="Who wins conflicts. Without it they are shown, and nothing merged."),
    ] = None,
    preview: Annotated[bool, typer.Option("--preview", metavar="", help="Change nothing.")] = False,
    decide: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONFLICT=WHAT",
            help='source, target, or JSON like {"value": 1}; repeat for several.',
        ),
    ] = None,
    request_id: RequestId = None,
) -> None:
    """Merge a branch into --branch."""
    from stratagem.surfaces.cli.tables import show_merge

    try:
        answer = _call(
            session,
            "merge",
            source=source,
            strategy=strategy,
            preview=preview or None,
            decisions=dict(_decision(each) for each in decide) if decide else None,
            request_id=request_id,
        )
    except MergeConflict as error:
        error.hint = "Add --decide CONFLICT=source (or =target) for each, or --strategy."
        raise
    session.output.answer(answer, show_merge)


@branch.command("diff")
@command
def _diff(session: Session, *, other: Compare, as_of: AsOf = None, cursor: Cursor = None) -> None:
    """Show what another branch has that differs from --branch."""
    from stratagem.surfaces.cli.tables import show_diff

    answer = _call(session, "diff", compare=other, as_of=as_of, cursor=cursor)
    session.output.answer(answer, show_diff)


@branch.command("delete")
@command
def _delete(session: Session, *, name: Named, request_id: RequestId = None) -> None:
    """Hide a branch. It can be restored."""
    _act(session, "delete", name=name, request_id=request_id)


@branch.command("restore")
@command
def _restore(session: Session, *, name: Named, request_id: RequestId = None) -> None:
    """Bring back a deleted branch."""
    _act(session, "restore", name=name, request_id=request_id)


def _list(session: Session) -> None:
    from stratagem.surfaces.cli.tables import show_branches

    session.output.answer(_call(session, "list"), show_branches)


def _act(session: Session, action: str, **arguments: Any) -> None:
    """Run an action that answers with the branch it was done to."""
    answer = _call(session, action, **arguments)
    if session.output.json:
        session.output.data(answer)
    else:
        session.output.line(_sentence(answer))


def _call(session: Session, action: str, **arguments: Any) -> dict[str, Any]:
    return session.call(
        "strata_branch", action=action, max_chars=limits.ANSWER_CHARS_MAX, **arguments
    )


def _sentence(answer: dict[str, Any]) -> str:
    name = answer["name"]
    if answer["action"] == "fork":
        return f"Forked {name} from {answer['parent']} at @{answer['forked_at']}."
    done = {
        "create": f"Created {name}, empty.",
        "delete": f"Deleted {name}. `stratagem branch restore {name}` brings it back.",
        "restore": f"Restored {name}.",
    }
    return done[answer["action"]]


def _decision(given: str) -> tuple[str, Any]:
    # A key may hold a =, so the decision is what follows the last one, unless it is JSON.
    conflict, separator, what = given.partition("={") if "={" in given else given.rpartition("=")
    if not separator:
        raise ValidationFailed(
            f"{given!r} is no decision.", field="decisions", hint="Write CONFLICT=source."
        )
    if separator == "={":
        return conflict, read_json("{" + what, field="decisions")
    return conflict, what
