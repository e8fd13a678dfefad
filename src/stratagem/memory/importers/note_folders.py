"""Folders in which agents and tools keep notes as Markdown: one entry for each note.

| format | folder | key | tags |
|---|---|---|---|
| claude-memory | `~/.claude/projects/<project>/memory` | `claude/<name>` | its type |
| codex-memory | `~/.codex/memories` | `codex/<name>` | |
| gemini-memory | `GEMINI.md`, or `~/.gemini` | `gemini/<number>` | |
| basic-memory | a project of basic-memory | its permalink | its own, and its type |
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.memory.importers.foreign_source import ForeignSource
from stratagem.memory.importers.front_matter import NotePage, read_page, time_of
from stratagem.memory.sources import (
    Format,
    Position,
    bounded_tags,
    entry_draft,
    refuse_with_location,
)
from stratagem.note_files import NoteFiles

__all__ = [
    "BasicMemoryFolder",
    "ClaudeMemoryFolder",
    "CodexMemoryFolder",
    "GeminiMemoryFile",
    "is_note_of_claude",
]

# What Claude Code says a note is about.
CLAUDE_TYPES: Final = frozenset({"user", "feedback", "project", "reference"})
_INDEX: Final = "MEMORY.md"
# A line of an index: a list item that links to a file beside it.
_INDEX_LINE: Final = re.compile(r"^[-*] .*\]\([^()\s]+\.md\)")
_HEADING: Final = re.compile(r"^# +(\S.*)$", re.MULTILINE)
_GEMINI_HEADING: Final = "## Gemini Added Memories"
_NEXT_HEADING: Final = re.compile(r"^#{1,2} ", re.MULTILINE)
_NOT_LETTERS: Final = re.compile(r"[^\w]+")
_SLUG_CHARS: Final = 60


class _Note(NamedTuple):
    """One entry that a file makes."""

    key: str
    text: str
    tags: list[str]
    origin: dict[str, Any]


class _NoteFolder(ForeignSource):
    """Markdown files below a folder, each read into notes by the tool's own rules."""

    format: Format = "markdown"

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        files = NoteFiles(self._path)
        self.skipped = list(files.skipped)
        for done, path in enumerate(files.paths, 1):
            with refuse_with_location(files.full(path), None):
                drafts = [
                    entry_draft(
                        note.key,
                        note.text,
                        self._namespace,
                        tags=bounded_tags([self.format, *note.tags]),
                        origin={"format": self.format, **note.origin},
                    )
                    for note in self._notes(path, read_page(files.text(path)), files)
                ]
            yield from drafts
            position(done, len(files.paths))

    def _notes(self, path: Path, page: NotePage, files: NoteFiles) -> list[_Note]:
        raise NotImplementedError


class ClaudeMemoryFolder(_NoteFolder):
    """What Claude Code keeps for itself: one file for each memory, and an index of them."""

    format: Format = "claude-memory"

    def _notes(self, path: Path, page: NotePage, files: NoteFiles) -> list[_Note]:
        if path.name == _INDEX and _is_index(page.text):
            self._skip(files.full(path), "it is an index of the other files")
            return []
        kind = _claude_type(page)
        description = page.text_of("description")
        text = page.text
        if description and description not in text:
            text = f"{description}\n\n{text}"
        parts = [part for part in path.with_suffix("").parts if part != "memory"]
        origin = _origin(path, page, "modified")
        return [_Note("/".join(["claude", *parts]), text, [kind] if kind else [], origin)]


class CodexMemoryFolder(_NoteFolder):
    """What Codex keeps: a handbook in parts, a summary, and one note for each session."""

    format: Format = "codex-memory"

    def _notes(self, path: Path, page: NotePage, files: NoteFiles) -> list[_Note]:
        if path.name == "raw_memories.md":
            self._skip(files.full(path), "it is a source of the handbook")
            return []
        if path.parts[0] == "skills":
            self._skip(files.full(path), "it is a skill")
            return []
        key = "/".join(["codex", *path.with_suffix("").parts])
        if path.name != _INDEX:
            return [_Note(key, page.text, [], _origin(path, page, "updated_at"))]
        return [
            _Note(f"codex/{_slug(title)}", text, [], _origin(path, page, "updated_at"))
            for title, text in _chapters(page.text)
        ]


class BasicMemoryFolder(_NoteFolder):
    """The notes of a project of basic-memory; observations and relations stay in the text."""

    format: Format = "basic-memory"

    def _notes(self, path: Path, page: NotePage, files: NoteFiles) -> list[_Note]:
        del files
        key = page.text_of("permalink") or path.with_suffix("").as_posix()
        title, text = page.text_of("title"), page.text
        if title and not text.startswith(f"# {title}"):
            text = f"# {title}\n\n{text}"
        tags = [*page.texts("tags"), *page.texts("type")]
        origin = _origin(path, page, "modified", "created")
        return [_Note(key, text, tags, {**origin, "id": key})]


class GeminiMemoryFile(_NoteFolder):
    """What Gemini CLI was told to remember: the list in `GEMINI.md`, one entry for each item."""

    format: Format = "gemini-memory"

    def _notes(self, path: Path, page: NotePage, files: NoteFiles) -> list[_Note]:
        if path.name.upper() != "GEMINI.MD":
            key = "/".join(["gemini", *(part for part in path.with_suffix("").parts)])
            return [_Note(key, page.text, [], _origin(path, page, "modified"))]
        _, found, rest = page.text.partition(_GEMINI_HEADING)
        if not found:
            self._skip(files.full(path), f"it has no section {_GEMINI_HEADING[3:]!r}")
            return []
        section = _NEXT_HEADING.split(rest, maxsplit=1)[0]
        facts = [line[2:].strip() for line in section.splitlines() if line[:2] in {"- ", "* "}]
        return [
            _Note(f"gemini/{_number(fact)}", fact, [], {"id": str(path)}) for fact in facts if fact
        ]


def is_note_of_claude(text: str) -> bool:
    """Whether a file is one that Claude Code wrote for itself."""
    return bool(_claude_type(read_page(text)))


def _claude_type(page: NotePage) -> str:
    """Return what a note is about; newer releases keep that among its metadata."""
    more = page.fields.get("metadata")
    kind = page.text_of("type") or (str(more.get("type")) if isinstance(more, dict) else "")
    return kind if kind in CLAUDE_TYPES else ""


def _is_index(text: str) -> bool:
    lines = [line.strip() for line in text.splitlines()]
    items = [line for line in lines if line and not line.startswith("#")]
    return all(_INDEX_LINE.match(line) for line in items)


def _chapters(text: str) -> Iterator[tuple[str, str]]:
    """Return the parts of a text below its headings of the first rank."""
    starts = [*_HEADING.finditer(text)]
    if not starts or text[: starts[0].start()].strip():
        yield "memory", text[: starts[0].start()].strip() if starts else text
    for at, heading in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        yield heading[1], text[heading.start() : end].strip()


def _origin(path: Path, page: NotePage, *times: str) -> dict[str, Any]:
    origin: dict[str, Any] = {"id": path.as_posix()}
    found = next(filter(None, (time_of(page.fields.get(name)) for name in times)), None)
    return origin | ({"timestamp": found} if found else {})


def _slug(title: str) -> str:
    return _NOT_LETTERS.sub("-", title.lower()).strip("-")[:_SLUG_CHARS] or _number(title)


def _number(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
