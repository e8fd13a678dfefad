"""doctor, rebuild, embed and purge: looking after a database."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from stratagem import errors
from stratagem.errors import DatabaseCorrupt, ValidationFailed
from stratagem.places import shown_place
from stratagem.surfaces.cli.output import Output, confirmed
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
PANEL = "Looking after a database"
UNHEALTHY = errors.TABLE[DatabaseCorrupt.code].exit_code

_ANCHOR = re.compile(r"([0-9]+):([0-9a-f]{64})")


@app.command("doctor", rich_help_panel=PANEL)
@command
def _doctor(
    session: Session,
    *,
    expect: Annotated[
        str | None,
        typer.Option(metavar="SEQ:HASH", help="The head an earlier run printed: finds a cut."),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", metavar="", help="Rebuild what can be rebuilt from the log.")
    ] = False,
) -> None:
    """Check the file, the log's chain, the read models and the index."""
    anchor = _anchor(expect)
    report = _examined(session, anchor)
    if repair and report["findings"] and all(each["repairable"] for each in report["findings"]):
        found = report["findings"]
        _rebuilt(session)
        report = {**_examined(session, anchor), "repaired": found}
    session.output.answer(report, _show_report(session.output))
    if not report["healthy"]:
        raise typer.Exit(UNHEALTHY)


@app.command("rebuild", rich_help_panel=PANEL)
@command
def _rebuild(session: Session) -> None:
    """Make every read model and the index anew from the log."""
    answer = _rebuilt(session)
    session.output.answer(
        answer,
        lambda console, _: console.print(
            f"Rebuilt from {answer['events']:,} events; {answer['embedded']:,} texts embedded."
        ),
    )


@app.command("embed", rich_help_panel=PANEL)
@command
def _embed(session: Session) -> None:
    """Embed the texts that wait for it, so that they are found by meaning too."""
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        embedded = runtime.foundation.index.embed_waiting(report)
        usable = runtime.foundation.index.embedder is not None
    words = f"Embedded {embedded:,} texts." if usable else "No embedder is in use."
    session.output.answer({"embedded": embedded}, lambda console, _: console.print(words))


@app.command("purge", rich_help_panel=PANEL)
@command
def _purge(
    session: Session,
    *,
    key: Annotated[
        str | None, typer.Argument(help="The entry to erase, with every version on any branch.")
    ] = None,
    sequence: Annotated[int | None, typer.Option(help="The logged event to erase.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", metavar="", help="Do not ask.")] = False,
) -> None:
    """Erase an entry or a logged event for good. This cannot be undone."""
    from stratagem.operations import find

    what = f"{key!r} in namespace {session.namespace!r}" if key else f"the event @{sequence}"
    question = f"Erase {what} for good, from the log, every branch and every past moment?"
    named = key is not None or sequence is not None
    if named and not confirmed(session.output, question, yes=yes):
        raise typer.Abort
    answer = session.call("strata_purge", key=key, sequence=sequence)
    said = find("strata_purge").summarise(answer)
    if session.output.json:
        session.output.data(answer)
    else:
        session.output.line(said)


def _anchor(expect: str | None) -> tuple[int, str] | None:
    if expect is None:
        return None
    found = _ANCHOR.fullmatch(expect.strip().lower())
    if found is None:
        raise ValidationFailed(
            f"{expect!r} is no anchor.",
            field="expect",
            hint="It is what an earlier `stratagem doctor` or `stratagem status` gave as head.",
        )
    return int(found[1]), found[2]


def _examined(session: Session, anchor: tuple[int, str] | None) -> dict[str, Any]:
    # For reading only: opening for writing may rebuild, and hide what is to be found.
    with (
        session.runtime(must_exist=True, read_only=True) as runtime,
        progress(session.output) as report,
    ):
        findings = runtime.foundation.store.examine(report, anchor)
        head = runtime.foundation.store.reader().head()
        warning = runtime.clock_warning()
    return {
        "healthy": not findings,
        "database": shown_place(session.database),
        "events": head.sequence,
        "head": f"{head.sequence}:{head.hash.hex()}",
        "findings": [
            {"what": each.what, "where": each.where, "repairable": each.repairable}
            for each in findings
        ],
        "warnings": [warning] if warning else [],
    }


def _rebuilt(session: Session) -> dict[str, Any]:
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        runtime.foundation.store.rebuild(report)
        embedded = runtime.foundation.index.embed_waiting(report)
        events = runtime.foundation.store.reader().head().sequence
    return {"events": events, "embedded": embedded}


def _show_report(output: Output) -> Any:
    """Return how a report is shown: what is wrong, what to do, and the anchor for next time."""

    def show(_console: object, report: dict[str, Any]) -> None:
        output.line(report["database"], "bold")
        for finding in report.get("repaired", ()):
            output.line(f"repaired  {finding['what']} ({finding['where']})", "green")
        for finding in report["findings"]:
            kind = "repairable" if finding["repairable"] else "damaged"
            output.line(f"{kind}  {finding['what']} ({finding['where']})", "red")
        for warning in report["warnings"]:
            output.line(f"warning  {warning}", "yellow")
        output.line(_verdict(report))

    return show


def _verdict(report: dict[str, Any]) -> str:
    if report["healthy"]:
        return (
            f"Healthy: {report['events']:,} events, an unbroken chain, read models and index equal "
            f"to the log.\nTo find a cut next time:\n  stratagem doctor --expect {report['head']}"
        )
    if all(finding["repairable"] for finding in report["findings"]):
        return "The log is whole. `stratagem doctor --repair` makes the rest anew from it."
    return (
        "The log itself is damaged, and nothing can make it again: restore a backup, or an export "
        "with `stratagem import`. What can still be read, `stratagem export` saves."
    )
