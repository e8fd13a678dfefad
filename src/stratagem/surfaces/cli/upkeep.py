"""doctor, rebuild, embed and purge: looking after a database."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stratagem import errors
from stratagem.errors import DatabaseCorrupt, ValidationFailed
from stratagem.places import display_place, is_address
from stratagem.surfaces.cli.output import confirm
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.sandbox_check import begin_sandbox_check, show_sandbox
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from stratagem.storage.contract import Finding

__all__ = ["app"]

app = typer.Typer()
PANEL = "Maintenance of a database"
UNHEALTHY = errors.TABLE[DatabaseCorrupt.code].exit_code

# What a file of SQLite's begins with, and what a Stratagem writes into that header.
_SQLITE = b"SQLite format 3\0"
_STRATAGEM = b"STRA"
_HEADER_BYTES = 100
_ANCHOR = re.compile(r"([0-9]+):([0-9a-f]{64})")


@app.command("doctor", rich_help_panel=PANEL)
@command
def _doctor(
    session: Session,
    *,
    expect: Annotated[
        str | None,
        typer.Option(
            metavar="SEQ:HASH",
            help="The head that an earlier run printed: detects a truncated log.",
        ),
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", metavar="", help="Rebuild what can be rebuilt from the log.")
    ] = False,
) -> None:
    """Check the file, the log's chain, the read models and the index; try the sandbox."""
    anchor = _anchor(expect)
    sandbox = begin_sandbox_check()
    report = _examine(session, anchor)
    if repair and report["findings"] and all(each["repairable"] for each in report["findings"]):
        found = report["findings"]
        _repair(session)
        report = {**_examine(session, anchor), "repaired": found}
    report["sandbox"] = sandbox.result()
    session.output.answer(report, _show_report(session))
    if not report["healthy"]:
        raise typer.Exit(UNHEALTHY)


@app.command("rebuild", rich_help_panel=PANEL)
@command
def _rebuild(session: Session) -> None:
    """Rebuild every read model and the index from the log."""
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
    """Embed the texts that have no vector yet, so that they are found by meaning too."""
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
    if named and not confirm(session.output, question, yes=yes):
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
            f"{expect!r} is not a head.",
            field="expect",
            hint="It is what an earlier `stratagem doctor` or `stratagem status` gave as head.",
        )
    return int(found[1]), found[2]


def _examine(session: Session, anchor: tuple[int, str] | None) -> dict[str, Any]:
    try:
        return _examined_open(session, anchor)
    except DatabaseCorrupt:
        if is_address(session.database) or not _is_ours(session.database):
            raise
        return _examined_unopened(session)


def _examined_open(session: Session, anchor: tuple[int, str] | None) -> dict[str, Any]:
    from stratagem.bootstrap import clock_warning, hidden_warning, index_warning

    # For reading only: opening for writing may rebuild, and hide what is to be found.
    with session.store(read_only=True) as store, progress(session.output) as report:
        findings = store.examine(report, anchor)
        found = _report(session, findings)
        with suppress(DatabaseCorrupt):
            head = store.reader().log.head()
            found |= {"events": head.sequence, "head": f"{head.sequence}:{head.hash.hex()}"}
            warnings = (clock_warning(store), index_warning(store), hidden_warning(store))
            found["warnings"] += [each for each in warnings if each]
    return found


def _report(session: Session, findings: list[Finding]) -> dict[str, Any]:
    return {
        "healthy": not findings,
        "verdict": _verdict_of(findings),
        "database": display_place(session.database),
        "findings": [asdict(each) for each in findings],
        "warnings": [],
    }


def _examined_unopened(session: Session) -> dict[str, Any]:
    """Report on a file that cannot be opened, page by page."""
    from stratagem.bootstrap import examine_unopened

    with progress(session.output) as report:
        return _report(session, examine_unopened(session.database, report))


def _is_ours(database: str) -> bool:
    """Whether a file is a database at all, and one of Stratagem's."""
    with Path(database).open("rb") as file:
        header = file.read(_HEADER_BYTES)
    return header.startswith(_SQLITE) and header[68:72] == _STRATAGEM


def _verdict_of(findings: list[Finding]) -> str:
    """Say in a word what is damaged: nothing, what is made from the log, the file, or the log."""
    parts = {each.part for each in findings}
    for part in ("log", "file", "derived"):
        if part in parts:
            return f"{part} damaged"
    return "healthy"


def _repair(session: Session) -> None:
    with session.store(read_only=False) as store, progress(session.output) as report:
        store.repair(report)
    # The settings that an embedder is chosen by may be new, and some vectors to be made again.
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        runtime.foundation.index.embed_waiting(report)


def _rebuilt(session: Session) -> dict[str, Any]:
    with session.runtime(must_exist=True) as runtime, progress(session.output) as report:
        runtime.foundation.store.rebuild(report)
        embedded = runtime.foundation.index.embed_waiting(report)
        events = runtime.foundation.store.reader().log.head().sequence
    return {"events": events, "embedded": embedded}


def _show_report(session: Session) -> Any:
    """Return how a report is shown: what is wrong, what to do, and the anchor for next time."""
    output = session.output

    def show(_console: object, report: dict[str, Any]) -> None:
        output.line(report["database"], "bold")
        for finding in report.get("repaired", ()):
            output.line(f"repaired  {finding['what']} ({finding['where']})", "green")
        for finding in report["findings"]:
            kind = "repairable" if finding["repairable"] else "damaged"
            output.line(f"{kind}  {finding['what']} ({finding['where']})", "red")
        for warning in report["warnings"]:
            output.line(f"warning  {warning}", "yellow")
        output.line(_verdict(report, session.command))
        show_sandbox(output, report["sandbox"])

    return show


def _verdict(report: dict[str, Any], command: str) -> str:
    """Say how the database is, and which command is next: one to be pasted as it stands."""
    if report["healthy"]:
        return (
            f"Healthy: {report['events']:,} events, an unbroken chain, read models and index equal "
            f"to the log.\nTo detect a truncated log next time:\n  {command} doctor --expect "
            f"{report['head']}"
        )
    if all(finding["repairable"] for finding in report["findings"]):
        return f"The log is complete. This rebuilds the rest from it:\n  {command} doctor --repair"
    if report["verdict"] == "file damaged":
        return f"Every event can still be read. {_rescue(command)}"
    return f"The log itself is damaged and cannot be rebuilt: restore a backup. {_rescue(command)}"


def _rescue(command: str) -> str:
    return (
        "This saves everything that can still be read, with its history:\n"
        f"  {command} backup --rescue FILE\n"
        "and this the entries and logged events of one branch:\n"
        f"  {command} export --rescue FILE\n"
        "Both list what is lost. Read them into a new database:\n"
        "  stratagem --db NEW.db restore FILE\n"
        "  stratagem --db NEW.db import FILE"
    )
