"""Markdown files as entries: notes, a vault, the docs of a project.

The key is the path of a file below the folder, without its suffix; the value is its text.
Tags are those of the front matter. Front matter that says nothing beyond tags and a title is
left out of the text (the title becomes its first heading); any other is kept as it is, so
that nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused
from stratagem.memory.sources import Format, Position, entry_draft, refuse_with_location
from stratagem.note_files import NoteFiles, Skipped

__all__ = ["MarkdownFolder", "Note", "read_note"]

_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"^([A-Za-z_][\w -]*+):[ \t]*+(.*+)$")
_ITEM = re.compile(r"^[ \t]*+-[ \t](.+)$")
_HEADING = re.compile(r"\A\s*#\s+(.+)")
_UNDERSTOOD = frozenset({"tags", "tag", "title"})


class Note(NamedTuple):
    """What a Markdown file says."""

    text: str
    tags: list[str]


class MarkdownFolder:
    """The Markdown files below a folder, or a single one. Hidden folders are left out."""

    format: Format = "markdown"

    def __init__(self, path: Path, namespace: str) -> None:
        self._path = path
        self._namespace = namespace
        self.skipped: Sequence[Skipped] = ()

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        files = NoteFiles(self._path)
        self.skipped = files.skipped
        by_key = _by_key(files)
        for done, (key, path) in enumerate(by_key.items(), 1):
            with refuse_with_location(files.full(path), None):
                note = read_note(files.text(path))
                draft = entry_draft(key, note.text, self._namespace, tags=note.tags)
            yield draft
            position(done, len(by_key))


def read_note(text: str) -> Note:
    """Part a Markdown text from its front matter."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return Note(text, [])
    fields = _fields(found[1])
    tags = [*fields.get("tags", ()), *fields.get("tag", ())]
    if not fields.keys() <= _UNDERSTOOD:
        return Note(text, tags)
    body = text[found.end() :].lstrip("\r\n")
    return Note(_with_title(body, " ".join(fields.get("title", ()))), tags)


def _with_title(body: str, title: str) -> str:
    heading = _HEADING.match(body)
    if not title or (heading and heading[1].strip() == title):
        return body
    return f"# {title}\n\n{body}"


def _fields(front_matter: str) -> dict[str, list[str]]:
    """Return each field of a front matter with its words; of its values no more is understood."""
    fields: dict[str, list[str]] = {}
    name = ""
    for line in front_matter.splitlines():
        if field := _FIELD.match(line):
            name = field[1].strip().lower()
            fields[name] = _words(name, field[2])
        elif (item := _ITEM.match(line)) and name:
            fields[name].append(_bare(item[1]))
        elif line.strip() and not line.lstrip().startswith("#"):
            # Something deeper than a list: not ours to take apart.
            fields["?"] = []
    return fields


def _words(name: str, value: str) -> list[str]:
    value = value.strip()
    if name == "title":
        return [_bare(value)] if value else []
    listed = value.removeprefix("[").removesuffix("]")
    return [word for part in listed.split(",") if (word := _bare(part))]


def _bare(text: str) -> str:
    """Return a YAML scalar without its quotes, and a tag without its sign."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    return text.lstrip("#").strip()


def _by_key(files: NoteFiles) -> dict[str, Path]:
    """Return the files by the keys of their entries, in order."""
    by_key: dict[str, Path] = {}
    for path in files.paths:
        key = path.with_suffix("").as_posix()
        if key in by_key:
            twins = files.full(by_key[key]), files.full(path)
            raise ImportRefused(
                f"{twins[0]} and {twins[1]} would be the same entry.", file=str(twins[1]), key=key
            )
        by_key[key] = path
    return by_key
