"""Which formats can be imported, and how each is recognized."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem.errors import ImportRefused
from stratagem.memory.branch_file import FORMAT
from stratagem.memory.importers.conversation_exports import (
    ChatGptExport,
    ClaudeExport,
    read_conversations,
)
from stratagem.memory.importers.foreign_sqlite import is_sqlite, table_names
from stratagem.memory.importers.front_matter import read_page
from stratagem.memory.importers.note_folders import (
    BasicMemoryFolder,
    ClaudeMemoryFolder,
    CodexMemoryFolder,
    GeminiMemoryFile,
    is_note_of_claude,
)
from stratagem.memory.importers.record_files import (
    ChromaFolder,
    Mem0File,
    MemoryServiceFile,
    mem0_records,
)
from stratagem.memory.markdown import MarkdownFolder
from stratagem.memory.server_file import MemoryServerFile
from stratagem.memory.sources import FORMATS, Format, Source, read_lines, read_whole
from stratagem.note_files import NoteFiles, read_text

__all__ = ["SOURCES", "recognize_format"]

# What reads each format, but for an exported branch, which names its namespaces itself.
SOURCES: Final[Mapping[str, Callable[[Path, str], Source]]] = {
    "mcp-memory": MemoryServerFile,
    "markdown": MarkdownFolder,
    "claude-memory": ClaudeMemoryFolder,
    "codex-memory": CodexMemoryFolder,
    "gemini-memory": GeminiMemoryFile,
    "basic-memory": BasicMemoryFolder,
    "mem0": Mem0File,
    "mcp-memory-service": MemoryServiceFile,
    "chroma": ChromaFolder,
    "chatgpt": ChatGptExport,
    "claude-export": ClaudeExport,
}
# Notes of a folder that are looked at: its first ones say what wrote them.
_NOTES_READ: Final = 20
_JSON: Final = frozenset({".json", ".zip"})


def recognize_format(path: Path) -> Format:
    """Return the format of a file or folder.

    Raises:
        ImportRefused: It cannot be told, or read.
    """
    if path.is_dir():
        return _format_of_folder(path)
    if path.name.upper() == "GEMINI.MD" and "## Gemini Added Memories" in read_text(path):
        return "gemini-memory"
    if path.suffix.lower() == ".md":
        return _format_of_note(read_text(path))
    if is_sqlite(path):
        return _format_of_database(path)
    if path.suffix.lower() in _JSON:
        found = _format_of_json(path)
        if found is not None:
            return found
    return _format_of_lines(path)


def _format_of_folder(path: Path) -> Format:
    if (path / "chroma.sqlite3").is_file():
        return "chroma"
    if any(path.glob("conversations*.json")):
        return _format_of_conversations(read_conversations(path)[0])
    if (path / "memory_summary.md").is_file() or (path / "rollout_summaries").is_dir():
        return "codex-memory"
    files = NoteFiles(path)
    for note in files.paths[:_NOTES_READ]:
        found = _format_of_note(files.text(note))
        if found != "markdown":
            return found
    is_memory = (path / "MEMORY.md").is_file() and path.name == "memory"
    return "claude-memory" if is_memory else "markdown"


def _format_of_note(text: str) -> Format:
    if is_note_of_claude(text):
        return "claude-memory"
    return "basic-memory" if read_page(text).text_of("permalink") else "markdown"


def _format_of_database(path: Path) -> Format:
    tables = table_names(path)
    if "embedding_metadata" in tables:
        return "chroma"
    if "memories" in tables:
        return "mcp-memory-service"
    raise ImportRefused(
        f"{path} is an SQLite database of another program.",
        file=str(path),
        hint="Databases of mcp-memory-service and Chroma can be imported.",
    )


def _format_of_json(path: Path) -> Format | None:
    """Return the format of a JSON document or an archive; None where it may be lines of JSON."""
    if zipfile.is_zipfile(path):
        return _format_of_conversations(read_conversations(path)[0])
    try:
        document = orjson.loads(read_whole(path))
    except orjson.JSONDecodeError:
        return None
    first = document[0] if isinstance(document, list) and document else document
    if isinstance(first, dict) and ("mapping" in first or "chat_messages" in first):
        return _format_of_conversations(first)
    records = mem0_records(document)
    is_mem0 = records and "memory" in records[0] and ("id" in records[0] or "hash" in records[0])
    return "mem0" if is_mem0 else None


def _format_of_conversations(first: Mapping[str, Any]) -> Format:
    return "claude-export" if "chat_messages" in first else "chatgpt"


def _format_of_lines(path: Path) -> Format:
    line = next(read_lines(path, lambda _done, _total: None), None)
    first = line.record if line else {}
    if first.get("format") == FORMAT:
        return "stratagem"
    if first.get("type") in {"entity", "relation"}:
        return "mcp-memory"
    raise ImportRefused(
        f"{path}: its first line does not show which format it has.",
        file=str(path),
        line=1,
        hint=f"Choose the format with --format: {', '.join(FORMATS)}.",
    )
