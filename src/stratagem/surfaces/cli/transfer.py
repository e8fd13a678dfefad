"""export and import: a branch as one file, and files of several forms in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.console import Console

from stratagem.errors import ImportRefused, ValidationFailed
from stratagem.surfaces.cli.exports import export_place, import_name, import_place, is_standard
from stratagem.surfaces.cli.moment_option import AsOf
from stratagem.surfaces.cli.progress import progress
from stratagem.surfaces.cli.rescue import RescueOption, end_rescue, loss_report, show_losses
from stratagem.surfaces.cli.session import Session, command

if TYPE_CHECKING:
    from stratagem.bootstrap import Runtime
    from stratagem.memory.transfer import BranchExport, BranchImport
    from stratagem.storage.contract import Progress

__all__ = ["app"]

app = typer.Typer()
PANEL = "Maintenance of a database"

Form = Literal[
    "auto",
    "stratagem",
    "mcp-memory",
    "markdown",
    "claude-memory",
    "codex-memory",
    "gemini-memory",
    "basic-memory",
    "mem0",
    "mcp-memory-service",
    "chroma",
    "chatgpt",
    "claude-export",
]


# Formats that are one file of JSON; the others are folders, notes or databases.
_ONE_DOCUMENT: Final = ("auto", "stratagem", "mcp-memory", "mem0", "chatgpt", "claude-export")


@app.command("export", rich_help_panel=PANEL)
@command
def _export(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write; - is stdout.")],
    as_of: AsOf = None,
    force: Annotated[bool, typer.Option("--force", metavar="", help="Replace a file.")] = False,
    rescue: RescueOption = False,
) -> None:
    """Write a branch into one portable file: its entries and its logged events."""
    from stratagem.memory.transfer import export_branch

    def export(runtime: Runtime, report: Progress, place: Path = file) -> BranchExport:
        return export_branch(
            runtime.foundation,
            place,
            branch=session.branch,
            as_of=as_of,
            overwrite=force,
            progress=report,
        )

    if rescue and is_standard(file):
        raise ValidationFailed(
            "What a rescue could not read is told on stdout.", field="file", hint="Name a file."
        )
    if rescue:
        _export_rescued(session, export)
        return
    with (
        export_place(file) as place,
        session.runtime(must_exist=True) as runtime,
        progress(session.output) as report,
    ):
        done = export(runtime, report, place)
    if not is_standard(file):
        session.output.answer(asdict(done), _show_export)


def _export_rescued(session: Session, export: Callable[[Runtime, Progress], BranchExport]) -> None:
    """Export from a healthy database that is made of what can be read of a damaged one."""
    from stratagem.bootstrap import Settings, built_in, rescue, scratch_folder, start

    with scratch_folder("stratagem-export-") as folder, progress(session.output) as report:
        made = str(folder / "rescued.db")
        rescued = rescue(session.database, made, report)
        with closing(start(Settings(made, deliver=False, external=built_in()))) as runtime:
            done = export(runtime, report)
    losses = loss_report(rescued)
    session.output.answer({**asdict(done), **losses}, _show_rescued_export)
    end_rescue([losses])


@app.command("import", rich_help_panel=PANEL)
@command
def _import(
    session: Session,
    *,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file, or a folder; - is stdin.")],
    form: Annotated[Form, typer.Option("--format", help="auto: detected from the file.")] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Check everything without writing.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", metavar="", help="Import again whenever it changes, until Ctrl-C."),
    ] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, max=3600, help="How often to check.")
    ] = 2.0,
) -> None:
    """Read an exported branch, or the memories of another tool.

    Of Claude Code, Codex, Gemini CLI, mem0, basic-memory, mcp-memory-service, the MCP memory
    server, Chroma, conversations of ChatGPT and Claude, or a folder of Markdown.

    Everything is checked before anything is written, and importing the same again changes
    nothing.
    """
    if watch and dry_run:
        raise ValidationFailed("--watch and --dry-run exclude each other.", field="watch")
    if is_standard(file):
        _check_from_stdin(form, watch=watch)

    def read(runtime: Runtime, report: Progress, place: Path = file) -> BranchImport:
        return import_from(
            runtime.foundation,
            session.caller,
            place,
            form=None if form == "auto" else form,
            namespace=session.options.namespace if session.options.namespace_asked else None,
            preview=dry_run,
            progress=report,
        )

    from stratagem.memory.transfer import import_from

    with (
        _interruptible(session),
        import_place(file) as place,
        session.runtime() as runtime,
    ):
        embedder = runtime.foundation.index.embedder
        if embedder is not None and not dry_run:
            # Loaded now, each batch is embedded as it is written.
            embedder.load()
        if watch:
            _watch(session, file, every, lambda: read(runtime, lambda *_: None))
            return
        with progress(session.output) as report:
            done = read(runtime, report, place)
    session.output.answer({**asdict(done), "file": import_name(file)}, _show_import)


def _check_from_stdin(form: Form, *, watch: bool) -> None:
    """Refuse what stdin cannot be: something that changes, or a folder of notes."""
    if watch:
        raise ValidationFailed(
            "Stdin cannot be watched.", field="watch", hint="Name a file or a folder."
        )
    if form not in _ONE_DOCUMENT:
        raise ValidationFailed(
            f"{form} is not read from stdin.",
            field="format",
            allowed=list(_ONE_DOCUMENT),
            hint=f"Name its file or folder. From stdin come {', '.join(_ONE_DOCUMENT[1:])}.",
        )


def _watch(session: Session, path: Path, every: float, read: Callable[[], BranchImport]) -> None:
    """Import what changes of a file or folder, until somebody interrupts it."""
    from stratagem.memory.importers.watch import changes

    session.output.note(f"Watching {path}; Ctrl-C ends it.")
    try:
        for _ in changes(path, every):
            try:
                done = read()
            except ImportRefused as error:
                # Half of a file, perhaps: its writer is not done yet.
                session.output.note(f"{error.message} {error.hint or ''}".strip())
                continue
            if done.created or done.updated or done.logged:
                session.output.answer(asdict(done), _show_import)
                sys.stdout.flush()
    except KeyboardInterrupt:
        session.output.note("Stopped watching. What was imported stays.")


@contextmanager
def _interruptible(session: Session) -> Iterator[None]:
    """Say what an interruption leaves behind."""
    try:
        yield
    except KeyboardInterrupt:
        session.output.note("Interrupted. What was written stays; import again to complete it.")
        raise


def _show_export(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import plural

    what = f"{plural(answer['entries'], 'entry')} and {plural(answer['events'], 'event')}"
    console.print(
        f"Exported {what} of {answer['branch']} to {answer['file']} ({answer['bytes']:,} bytes).",
        soft_wrap=True,
    )


def _show_rescued_export(console: Console, answer: Mapping[str, Any]) -> None:
    _show_export(console, answer)
    show_losses(console, answer, of="the log")


def _show_import(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show_import

    show_import(
        console,
        answer,
        (
            ("created", "new entry", ""),
            ("updated", "changed entry", ""),
            ("unchanged", "entry", " unchanged"),
            ("logged", "new event", ""),
            ("known", "event", " known already"),
        ),
    )
