"""knowledge: concepts out, in, and as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from stratagem import limits
from stratagem.answers import plural
from stratagem.errors import ValidationFailed
from stratagem.surfaces.cli.exports import export_place, import_name, import_place, is_standard
from stratagem.surfaces.cli.moment_option import AsOf
from stratagem.surfaces.cli.session import Session, command

__all__ = ["app"]

app = typer.Typer()
knowledge = typer.Typer(
    help="Concepts and relationships: import, export, draw.", no_args_is_help=True
)
app.add_typer(knowledge, name="knowledge", rich_help_panel="Knowledge")

Form = Literal["jsonl", "mcp-memory", "markdown"]
Force = Annotated[bool, typer.Option("--force", metavar="", help="Replace what is there.")]


@knowledge.callback()
@command
def _knowledge(session: Session) -> None:
    """Concepts and relationships: import, export, draw."""
    del session  # It has actions only.


@knowledge.command("export")
@command
def _export(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where; for Markdown a folder; - is stdout.")
    ],
    form: Annotated[Form, typer.Option("--format", help="In which form.")] = "jsonl",
    as_of: AsOf = None,
    force: Force = False,
) -> None:
    """Write the concepts of a branch and the relationships between them."""
    from stratagem.knowledge.transfer import export_to

    if is_standard(file) and form == "markdown":
        raise ValidationFailed(
            "Markdown notes are files of a folder.", field="file", hint="Name a folder."
        )
    with export_place(file) as place, session.runtime(must_exist=True) as runtime:
        done = export_to(
            runtime.foundation,
            place,
            branch=session.branch,
            as_of=as_of,
            form=form,
            overwrite=force,
        )
    if not is_standard(file):
        session.output.answer(asdict(done), _show_export)


@knowledge.command("import")
@command
def _import(
    session: Session,
    *,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file, or a folder of Markdown; - is stdin.")
    ],
    form: Annotated[
        Literal["auto", "jsonl", "mcp-memory", "markdown"],
        typer.Option("--format", help="auto: detected from the file."),
    ] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", metavar="", help="Check everything without writing.")
    ] = False,
) -> None:
    """Read exported knowledge, the file of the MCP memory server, or notes with wikilinks.

    All of it is written, or nothing. Importing the same again changes nothing.
    """
    from stratagem.knowledge.transfer import import_from

    if is_standard(file) and form == "markdown":
        raise ValidationFailed(
            "Markdown notes are files of a folder.", field="file", hint="Name a folder."
        )
    with import_place(file) as place, session.runtime() as runtime:
        done = import_from(
            runtime.foundation,
            session.caller,
            place,
            form=None if form == "auto" else form,
            preview=dry_run,
        )
    session.output.answer({**asdict(done), "file": import_name(file)}, _show_import)


@knowledge.command("graph")
@command
def _graph(
    session: Session,
    *,
    concept: Annotated[
        str | None,
        typer.Argument(metavar="CONCEPT", help="Its id or name; default: the whole graph."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where to write the picture.")
    ] = Path("concepts.html"),
    depth: Annotated[
        int, typer.Option("--depth", min=1, max=5, help="How many steps from it.")
    ] = 2,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", min=1, max=limits.PICTURE_CONCEPTS_MAX, help="At most this many concepts."
        ),
    ] = limits.PICTURE_CONCEPTS_DEFAULT,
    as_of: AsOf = None,
    force: Force = False,
    show: Annotated[
        bool, typer.Option("--open", metavar="", help="Open it in the browser.")
    ] = False,
) -> None:
    """Draw the concepts, or those around one, as one HTML file that needs nothing else."""
    from stratagem.knowledge.picture import draw_graph

    if out.exists() and not force:
        raise ValidationFailed(
            f"There is a file at {out} already.",
            field="out",
            hint="Choose another name, or pass --force.",
        )
    with session.runtime(must_exist=True) as runtime:
        picture = draw_graph(
            runtime.foundation, session.caller, concept, depth=depth, nodes_max=nodes, as_of=as_of
        )
    out.write_text(picture.html, encoding="utf-8")
    answer = {
        "file": str(out),
        "bytes": len(picture.html.encode()),
        "concepts": picture.concepts,
        "relationships": picture.relationships,
        "left_out": picture.left_out,
    }
    session.output.answer(answer, _show_graph)
    if show:
        typer.launch(out.resolve().as_uri())


def _counts(answer: Mapping[str, Any]) -> tuple[str, str]:
    concepts = plural(answer["concepts"], "concept")
    return concepts, plural(answer["relationships"], "relationship")


def _show_export(console: Console, answer: Mapping[str, Any]) -> None:
    concepts, relationships = _counts(answer)
    console.print(
        f"Exported {concepts} and {relationships} of {answer['branch']} to {answer['file']}.",
        soft_wrap=True,
    )
    if answer["left_out"]:
        lost = ", ".join(f"{name} ({count:,})" for name, count in answer["left_out"].items())
        console.print(
            f"{answer['format']} cannot hold: {lost}. The format jsonl keeps everything.",
            soft_wrap=True,
        )


def _show_import(console: Console, answer: Mapping[str, Any]) -> None:
    from stratagem.surfaces.cli.tables import show_import

    show_import(
        console,
        answer,
        (
            ("created", "new concept", ""),
            ("updated", "changed concept", ""),
            ("unchanged", "unchanged concept", ""),
            ("related", "new relationship", ""),
            ("known", "relationship", " known already"),
            ("facts", "new verdict", " of sources and marks of learners"),
            ("declared", "new type", " of relationship"),
            ("circular", "prerequisite", " closing a cycle (get-prerequisites shows it)"),
            ("dangling", "link", " without a target"),
        ),
    )


def _show_graph(console: Console, answer: Mapping[str, Any]) -> None:
    console.print(f"Drawn: {answer['file']} ({', '.join(_counts(answer))}).", soft_wrap=True)
    if answer["left_out"]:
        console.print(
            f"{answer['left_out']:,} more are left out: --nodes draws up to "
            f"{limits.PICTURE_CONCEPTS_MAX:,}, CONCEPT draws what is near one.",
            soft_wrap=True,
        )
