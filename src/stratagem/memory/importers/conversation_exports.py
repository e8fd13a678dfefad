"""What people download from ChatGPT and Claude: their conversations, as logged events.

Each message is an event `message` of the session that has the conversation's id, with the time it
had; each conversation has an entry with its title, under `conversations/<id>`. If a conversation
was edited, only the displayed branch is imported. Tool output and content without text (pictures)
are left out.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.engine import values
from stratagem.engine.events import Draft
from stratagem.errors import ImportRefused
from stratagem.memory.importers.foreign_source import ForeignSource
from stratagem.memory.importers.front_matter import time_of
from stratagem.memory.messages import block_words
from stratagem.memory.sources import (
    Format,
    Position,
    entry_draft,
    event_draft,
    read_whole,
    refuse_with_location,
)

__all__ = ["ChatGptExport", "ClaudeExport", "read_conversations"]

_CONVERSATIONS: Final = "conversations"
_MEMORIES: Final = "memories.json"
# Sequences of events are whole numbers; 13 digits of a hash are one that JSON keeps exactly.
_DIGITS: Final = 13
_EPOCH: Final = "1970-01-01T00:00:00+00:00"

Message = tuple[str, str, str, str | None]


class _ConversationExport(ForeignSource):
    """An export as it was downloaded (.zip), as a folder, or its `conversations.json` alone."""

    format: Format = "chatgpt"

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        self.skipped = []
        found = read_conversations(self._path)
        for done, conversation in enumerate(found, 1):
            with refuse_with_location(self._path, None):
                drafts = [*self._drafts_of(conversation)]
            yield from drafts
            position(done, len(found))
        yield from self._more()

    def _drafts_of(self, conversation: Mapping[str, Any]) -> Iterator[Draft]:
        messages = [each for each in self._messages(conversation) if each[2].strip()]
        identity = str(
            conversation.get("conversation_id")
            or conversation.get("id")
            or conversation.get("uuid")
            # An older export names its messages only.
            or (messages[0][0] if messages else "")
        )
        title = str(conversation.get("title") or conversation.get("name") or "").strip()
        at = time_of(conversation.get("create_time") or conversation.get("created_at")) or _EPOCH
        if not messages:
            self._skip(title or identity or "a conversation", "it has no text")
            return
        session = identity[: limits.SESSION_CHARS_MAX]
        yield entry_draft(
            f"{_CONVERSATIONS}/{session}",
            {"title": title, "messages": len(messages), "started": at},
            self._namespace,
            tags=[self.format],
            origin={"format": self.format, "id": identity, "timestamp": at},
        )
        for message, role, text, sent in messages:
            at = sent or at
            if len(text.encode()) > limits.VALUE_BYTES_MAX // 2:
                self._skip(f"{title}: {message}", "it is too long")
                continue
            record = {
                "event": "message",
                "data": {"role": role, "content": text},
                "session": session,
                "tags": [self.format],
                "timestamp": at,
                "sequence": _number(identity, message),
            }
            yield event_draft(record, self._namespace, source="import")

    def _messages(self, conversation: Mapping[str, Any]) -> Iterator[Message]:
        """Return the id, role, words and time of each message, in order."""
        raise NotImplementedError

    def _more(self) -> Iterator[Draft]:
        """Return what an export has besides conversations."""
        return iter(())


class ChatGptExport(_ConversationExport):
    """The data export of ChatGPT."""

    format: Format = "chatgpt"

    def _messages(self, conversation: Mapping[str, Any]) -> Iterator[Message]:
        nodes = conversation.get("mapping")
        if not isinstance(nodes, dict):
            return
        for node in _branch_shown(nodes, conversation.get("current_node")):
            message = node.get("message")
            if not isinstance(message, dict):
                continue
            author = message.get("author")
            role = author.get("role") if isinstance(author, dict) else None
            more = message.get("metadata")
            hidden = isinstance(more, dict) and more.get("is_visually_hidden_from_conversation")
            if role in {"user", "assistant"} and not hidden:
                words = _words(message.get("content"))
                yield str(message.get("id")), role, words, time_of(message.get("create_time"))


class ClaudeExport(_ConversationExport):
    """The data export of Claude, with what Claude remembers of the account."""

    format: Format = "claude-export"

    def _messages(self, conversation: Mapping[str, Any]) -> Iterator[Message]:
        listed = conversation.get("chat_messages")
        for message in listed if isinstance(listed, list) else ():
            if not isinstance(message, dict):
                continue
            role = {"human": "user", "assistant": "assistant"}.get(str(message.get("sender")))
            if role is not None:
                at = time_of(message.get("created_at"))
                yield str(message.get("uuid")), role, _blocks(message), at

    def _more(self) -> Iterator[Draft]:
        for text, name in _memories(_documents(self._path, _MEMORIES)):
            with refuse_with_location(self._path, None):
                draft = entry_draft(
                    f"claude/{name}",
                    text,
                    self._namespace,
                    tags=[self.format],
                    origin={"format": self.format, "id": name},
                )
            yield draft


def read_conversations(path: Path) -> list[Mapping[str, Any]]:
    """Return the conversations of an export, however it is packed.

    Raises:
        ImportRefused: There are none, or they cannot be read.
    """
    found: list[Mapping[str, Any]] = [
        each
        for document in _documents(path, _CONVERSATIONS)
        for each in (document if isinstance(document, list) else [])
        if isinstance(each, dict)
    ]
    if not found:
        raise ImportRefused(f"{path} has no conversations.", file=str(path))
    return found


def _documents(path: Path, name: str) -> list[Any]:
    """Return the JSON documents of an export whose names begin so."""
    if path.is_dir():
        files = sorted(path.glob(f"{name.removesuffix('.json')}*.json"))
        return [_loads(read_whole(file), file) for file in files]
    if zipfile.is_zipfile(path):
        return _zipped_documents(path, name)
    return [_loads(read_whole(path), path)] if name == _CONVERSATIONS else []


def _zipped_documents(path: Path, name: str) -> list[Any]:
    found = []
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                own = Path(info.filename).name
                if own.startswith(name.removesuffix(".json")) and own.endswith(".json"):
                    if info.file_size > limits.IMPORT_BYTES_MAX:
                        raise ImportRefused(f"{path}: {own} is too large.", file=str(path))
                    found.append(_loads(archive.read(info), path))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise ImportRefused(f"{path} cannot be decompressed: {error}.", file=str(path)) from error
    return found


def _loads(data: bytes, path: Path) -> Any:
    try:
        return values.read(data)
    except orjson.JSONDecodeError as error:
        raise ImportRefused(
            f"{path} is not complete JSON ({error.msg}).", file=str(path)
        ) from error


def _branch_shown(nodes: Mapping[str, Any], last: Any) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the one that is shown last."""
    if last not in nodes:
        last = next((name for name, node in nodes.items() if not node.get("children")), None)
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while last in nodes and last not in seen:
        seen.add(last)
        node = nodes[last]
        if not isinstance(node, dict):
            break
        found.append(node)
        last = node.get("parent")
    return found[::-1]


def _words(content: Any) -> str:
    """Return what a message says; its pictures and files have no words."""
    if not isinstance(content, dict):
        return ""
    parts = content.get("parts")
    if isinstance(parts, list):
        return block_words(parts)
    text = content.get("text") if content.get("content_type") == "text" else None
    return text if isinstance(text, str) else ""


def _blocks(message: Mapping[str, Any]) -> str:
    """Return the text of a message of Claude: its blocks of text, or what older exports have."""
    whole = message.get("text")
    return block_words(message.get("content")) or (whole if isinstance(whole, str) else "")


def _memories(documents: list[Any]) -> Iterator[tuple[str, str]]:
    for document in documents:
        for account in document if isinstance(document, list) else [document]:
            if not isinstance(account, dict):
                continue
            if isinstance(text := account.get("conversations_memory"), str) and text.strip():
                yield text, "memory"
            projects = account.get("project_memories")
            for name, text in (projects if isinstance(projects, dict) else {}).items():
                if isinstance(text, str) and text.strip():
                    yield text, f"projects/{name}"


def _number(conversation: str, message: str) -> int:
    """Return a number that a message is known by when it comes again."""
    digest = hashlib.sha256(f"{conversation}/{message}".encode()).hexdigest()
    return int(digest[:_DIGITS], 16) + 1
