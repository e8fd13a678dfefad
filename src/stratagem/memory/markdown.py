"""Markdown files as entries: notes, a vault, the docs of a project.

The key is the path of a file below the folder, without its suffix; the value is its text.
Tags are those of the front matter. Front matter that says nothing beyond tags and a title is
left out of the text (the title becomes its first heading); any other is kept as it is, so
that nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused
from stratagem.memory.sources import Format, Position, entry_draft, refusing

__all__ = ["MarkdownFolder", "Note", "read_note"]

_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"^([A-Za-z_][\w -]*):[ \t]*(.*)$")
_ITEM = re.compile(r"^[ \t]*-[ \t]+(.+)$")
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

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        files = self._files()
        for done, (key, path) in enumerate(files.items(), 1):
            with refusing(path, None):
                note = read_note(_text(path))
                draft = entry_draft(key, note.text, self._namespace, tags=note.tags)
            yield draft
            position(done, len(files))

    def _files(self) -> dict[str, Path]:
        """Return the files by key, in order."""
        if not self._path.exists():
            raise ImportRefused(f"There is nothing at {self._path}.", file=str(self._path))
        if self._path.is_file():
            return {self._path.stem: self._path}
        files: dict[str, Path] = {}
        for path in sorted(self._path.rglob("*")):
            below = path.relative_to(self._path)
            hidden = any(part.startswith(".") for part in below.parts)
            if path.suffix.lower() == ".md" and not hidden and path.is_file():
                key = below.with_suffix("").as_posix()
                _refuse_twin(files, key, path)
                files[key] = path
        if not files:
            raise ImportRefused(
                f"There is no Markdown file below {self._path}.", file=str(self._path)
            )
        return files


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


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ImportRefused(f"{path} is not text in UTF-8.", file=str(path)) from error
    except OSError as error:
        raise ImportRefused(f"{path} cannot be read: {error.strerror}.", file=str(path)) from error


def _refuse_twin(files: dict[str, Path], key: str, path: Path) -> None:
    if key in files:
        raise ImportRefused(
            f"{files[key]} and {path} would be the same entry.", file=str(path), key=key
        )
