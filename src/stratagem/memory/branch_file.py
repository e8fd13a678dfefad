"""The portable file of a branch.

Lines of JSON: a header, one line for each entry, each logged event and each record of another kind
that is portable, and an end with the number of lines before it and their SHA-256, so that a file
that was cut or altered is known.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, get_args

import orjson

from stratagem import limits
from stratagem.engine import values
from stratagem.engine.events import Draft, Space
from stratagem.engine.records import Kinds
from stratagem.errors import StorageFull, StorageUnavailable
from stratagem.memory.entries import check_names
from stratagem.memory.kinds import TRUST, UNTRUSTED
from stratagem.memory.kinds import Source as RecordSource
from stratagem.memory.sources import (
    ORIGIN_FIELDS,
    Format,
    InvalidRecord,
    JsonLine,
    Position,
    entry_draft,
    event_draft,
    field_of,
    read_lines,
    refuse_with_location,
)
from stratagem.storage.scratch import scratch_folder

__all__ = ["FORMAT", "VERSION", "BranchFile", "write_branch_file"]

FORMAT = "stratagem-branch"
VERSION = 1


class BranchFile:
    """A branch that was exported. A file that was cut or altered is refused at its end."""

    format: Format = "stratagem"

    def __init__(self, path: Path, namespace: str | None, kinds: Kinds) -> None:
        self._path = path
        self._namespace = namespace
        self._kinds = kinds

    def drafts(self, position: Position) -> Iterator[Draft]:
        """See `stratagem.memory.sources.Source`."""
        seal = _Seal()
        for line in read_lines(self._path, position):
            with refuse_with_location(self._path, line.number):
                draft = self._draft(line.record) if seal.read(line) else None
            if draft is not None:
                yield draft
        with refuse_with_location(self._path, None):
            seal.close()

    def _draft(self, record: Mapping[str, Any]) -> Draft:
        namespace = self._namespace or record.get("namespace")
        if record["type"] == "event":
            return _with_origin(event_draft(record, namespace), record)
        if record["type"] == "record":
            return self._record_draft(record)
        options = {name: record.get(name) for name in ("tags", "session", "index", "expires")}
        origin = record.get("imported")
        draft = entry_draft(
            field_of(record, "key"),
            field_of(record, "value"),
            namespace,
            origin=origin if isinstance(origin, Mapping) else None,
            **options,
        )
        return _with_origin(draft, record)

    def _record_draft(self, record: Mapping[str, Any]) -> Draft:
        """Return the event that writes a record of a portable kind, as it was exported."""
        if self._namespace is not None:
            raise InvalidRecord("a state cell or vector keeps its own namespace; choose no other")
        kind = self._kinds.find_record(field_of(record, "kind"))
        if kind is None or not kind.portable or kind.writes is None:
            raise InvalidRecord(f"its kind {record['kind']!r} cannot be imported")
        content = field_of(record, "content")
        key = check_names(field_of(record, "key"), field="key", chars_max=limits.KEY_CHARS_MAX)
        # A collection is part of the namespace of its vectors.
        chars_max = 2 * limits.NAMESPACE_CHARS_MAX
        namespace = check_names(
            field_of(record, "namespace"), field="namespace", chars_max=chars_max
        )
        if not isinstance(content, Mapping):
            raise InvalidRecord("its content is not an object")
        values.encode(content, field="content")
        try:
            self._kinds.project(kind.writes, content, key)
            if kind.validate is not None:
                kind.validate(content)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidRecord(f"it is not a {kind.name}: {error}") from error
        return Draft(kind.writes, dict(content), Space(kind.name, namespace), key)


def _with_origin(draft: Draft, record: Mapping[str, Any]) -> Draft:
    """Return a draft that says where its record came from and how far it is trusted."""
    given = {name: record[name] for name in ORIGIN_FIELDS if name in record}
    allowed = {"source": get_args(RecordSource), TRUST: (UNTRUSTED,)}
    for name, value in given.items():
        if value not in allowed[name]:
            raise InvalidRecord(f"its {name} is {value!r}")
    return replace(draft, content={**draft.content, **given}) if given else draft


def write_branch_file(
    path: Path, header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> tuple[int, str]:
    """Write a branch into a file; return its size and the hash it ends with.

    It is written under another name and renamed when it is durable, so that an incomplete file
    never has its final name.
    """
    try:
        with scratch_folder(f".{path.name}.", path.parent) as folder:
            aside = folder / "export"
            # Readable by its owner alone: an export holds all that the memory holds.
            handle = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            size, digest = _write(handle, {"format": FORMAT, "version": VERSION, **header}, lines)
            aside.replace(path)
    except OSError as error:
        kind = StorageFull if error.errno == errno.ENOSPC else StorageUnavailable
        raise kind(f"{path} cannot be written: {error.strerror}.", path=str(path)) from error
    return size, digest


class _Seal:
    """Reads an exported file along, and knows whether it is the one that was written."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._counts = {"entry": 0, "event": 0, "record": 0}
        self._header: Mapping[str, Any] | None = None
        self._ended = False

    def read(self, line: JsonLine) -> bool:
        """Check a line; say whether it is a record."""
        kind = line.record.get("type")
        if self._ended:
            raise InvalidRecord("something follows the end of the export")
        if self._header is None:
            self._header = _check_header(line.record)
        elif kind == "end":
            self._end(line)
        elif kind in self._counts:
            self._counts[kind] += 1
        else:
            raise InvalidRecord(f"its type is {kind!r}, not entry, event, record or end")
        self._digest.update(line.data)
        return kind in self._counts

    def close(self) -> None:
        """Check that nothing is missing."""
        if self._header is None or not self._ended:
            raise InvalidRecord("it was cut short: its last line is missing")
        header = self._header
        said = (header.get("entries"), header.get("events"), header.get("records", 0))
        if said != tuple(self._counts.values()):
            raise InvalidRecord("it does not hold as many entries and events as its last line says")

    def _end(self, line: JsonLine) -> None:
        said, found = line.record.get("lines"), line.number - 1
        if said != found:
            raise InvalidRecord(f"{said} lines were exported, {found} are here")
        if line.record.get("sha256") != self._digest.hexdigest():
            raise InvalidRecord("the lines above it were altered since the export")
        self._ended = True


def _check_header(record: Mapping[str, Any]) -> Mapping[str, Any]:
    if record.get("format") != FORMAT:
        raise InvalidRecord(f"it is not the first line of an export: its format is not {FORMAT!r}")
    version = record.get("version")
    if version != VERSION:
        raise InvalidRecord(
            f"it is version {version!r} of the format; this Stratagem reads {VERSION}"
        )
    return record


def _write(
    handle: int, header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]
) -> tuple[int, str]:
    digest, count = hashlib.sha256(), 0
    with os.fdopen(handle, "wb") as file:
        for line in chain([header], lines):
            data = orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
            digest.update(data)
            file.write(data)
            count += 1
        end = {"type": "end", "lines": count, "sha256": digest.hexdigest()}
        file.write(orjson.dumps(end, option=orjson.OPT_APPEND_NEWLINE))
        file.flush()
        os.fsync(file.fileno())
        return file.tell(), digest.hexdigest()
