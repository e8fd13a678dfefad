"""The file that debug memory is shared in: JSON, one object in a line.

A header with where it comes from; incidents, each followed by its solutions, each followed by
its outcomes; an end with the number of lines before it and their digest. Whoever edits a file
by hand leaves the digest out.

A file comes from somebody else, so nothing in it is believed: every field is checked as if a
caller had sent it, what follows from other fields is computed anew, and what is not known is
left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, Final

import orjson

from stratagem import limits
from stratagem.debugging import checks
from stratagem.debugging.signatures import signature_fields
from stratagem.engine import values
from stratagem.errors import ImportRefused, ValidationFailed
from stratagem.redaction import Level, mask

__all__ = ["read", "write"]

FORMAT: Final = "stratagem-debugging"
VERSION: Final = 1

Content = dict[str, Any]
Record = tuple[str, Content]


def write(file: IO[bytes], source: str, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records into a file, between a header and an end."""
    digest, count = hashlib.sha256(), 0
    header = {"format": FORMAT, "version": VERSION, "source": source}
    for record in (header, *records):
        line = orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
        digest.update(line)
        file.write(line)
        count += 1
    end = {"type": "end", "lines": count, "sha256": digest.hexdigest()}
    file.write(orjson.dumps(end, option=orjson.OPT_APPEND_NEWLINE))


def read(path: Path, redaction: Level) -> tuple[str, list[Record]]:
    """Return where a file comes from, and its records, all of them checked and masked.

    Raises:
        ImportRefused: The file cannot be read, was cut or altered, or a line of it is wrong.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ImportRefused(
            f"{path} cannot be read: {error.strerror}.", path=str(path), hint="Check the path."
        ) from error
    lines = data.splitlines()
    parsed = [_parse_line(path, number, line) for number, line in enumerate(lines, 1)]
    header = parsed[0] if parsed else {}
    if header.get("format") != FORMAT or header.get("version") != VERSION:
        raise _refusal(path, 1, f"it is not the first line of a {FORMAT} file of version {VERSION}")
    _check_end(path, lines, parsed[-1])
    reader = _LineReader(redaction)
    records = []
    for number, record in enumerate(parsed[1:-1], 2):
        try:
            records.append(reader.read_record(record))
        except ValidationFailed as error:
            raise _refusal_of_record(path, number, error) from error
    return str(header.get("source", ""))[: limits.TITLE_CHARS_MAX], records


class _LineReader:
    """The lines of a file so far: what they say, and what later ones may refer to."""

    def __init__(self, redaction: Level) -> None:
        self._redaction = redaction
        self._incidents: set[str] = set()
        self._solutions: dict[str, str] = {}

    def read_record(self, record: Mapping[str, Any]) -> Record:
        """Return the kind of a line, and its content as it may be kept."""
        readers: Mapping[Any, Callable[[Mapping[str, Any]], Content]] = {
            "incident": self._incident,
            "solution": self._solution,
            "outcome": self._outcome,
        }
        kind = record.get("type")
        if not isinstance(kind, str) or kind not in readers:
            raise ValidationFailed("its type is not incident, solution or outcome")
        content = readers[kind](record)
        origin = record.get("origin")
        if isinstance(origin, dict):
            content["origin"] = {
                name: checks.line(text, f"origin.{name}", limits.TITLE_CHARS_MAX)
                for name in ("source", "file")
                if (text := origin.get(name))
            }
        return kind, {name: value for name, value in content.items() if value not in (None, "", [])}

    def _incident(self, record: Mapping[str, Any]) -> Content:
        incident_id = _id(record, "incident_id")
        self._incidents.add(incident_id)
        signature = checks.optional(
            record.get("error_signature"), "error_signature", limits.SIGNATURE_CHARS_MAX
        )
        title = checks.line(record.get("title"), "title", limits.TITLE_CHARS_MAX)
        masked = self._mask(signature or "")
        return {
            "incident_id": incident_id,
            "title": self._mask(title),
            "error_signature": masked,
            **signature_fields(signature or "", masked),
            "summary": self._text(record, "summary", limits.SUMMARY_CHARS_MAX),
            "tags": sorted({self._mask(tag) for tag in checks.tags(record.get("tags"))}),
        }

    def _solution(self, record: Mapping[str, Any]) -> Content:
        solution_id, incident_id = _id(record, "solution_id"), _id(record, "incident_id")
        if incident_id not in self._incidents:
            raise ValidationFailed(f"no earlier line has the incident {incident_id!r}")
        self._solutions[solution_id] = incident_id
        steps = [self._mask(step) for step in checks.steps(record.get("steps"))]
        return {
            "solution_id": solution_id,
            "incident_id": incident_id,
            "steps": steps,
            **self._place(record),
        }

    def _outcome(self, record: Mapping[str, Any]) -> Content:
        solution_id = _id(record, "solution_id")
        if solution_id not in self._solutions:
            raise ValidationFailed(f"no earlier line has the solution {solution_id!r}")
        checks.boolean(record.get("worked"), field="worked")
        at = record.get("at")
        if not isinstance(at, int) or isinstance(at, bool) or at < 0:
            raise ValidationFailed("`at` is not a time in microseconds")
        return {
            "outcome_id": _id(record, "outcome_id"),
            "solution_id": solution_id,
            "incident_id": self._solutions[solution_id],
            "worked": record["worked"],
            "at": at,
            **self._place(record),
            "notes": self._text(record, "notes", limits.NOTES_CHARS_MAX),
            # Its lookup stays where it was made; its id tells which reports are one report.
            "lookup_id": _id(record, "lookup_id") if "lookup_id" in record else None,
            "repeats": _id(record, "repeats") if "repeats" in record else None,
            "claim": record.get("claim") is True or None,
            "relevance": _probability(record.get("relevance")),
        }

    def _place(self, record: Mapping[str, Any]) -> Content:
        place = checks.place(
            record.get("env", {}), record.get("env_bucket"), local=False, redaction=self._redaction
        )
        return dict(place.content)

    def _text(self, record: Mapping[str, Any], field: str, chars_max: int) -> str | None:
        text = checks.optional(record.get(field), field, chars_max)
        return None if text is None else self._mask(text)

    def _mask(self, text: str) -> str:
        return mask(text, self._redaction)


def _probability(given: object) -> float | None:
    if given is None:
        return None
    if not isinstance(given, int | float) or isinstance(given, bool) or not 0 <= given <= 1:
        raise ValidationFailed("`relevance` is not a number from 0 to 1")
    return float(given)


def _id(record: Mapping[str, Any], field: str) -> str:
    return values.check_text(record.get(field), field=field, chars_max=limits.KEY_CHARS_MAX)


def _parse_line(path: Path, number: int, line: bytes) -> Content:
    try:
        record = values.read_record(line)
    except orjson.JSONDecodeError as error:
        raise _refusal(path, number, f"it is not JSON: {error}") from error
    except ValidationFailed as error:
        raise _refusal_of_record(path, number, error) from error
    if not isinstance(record, dict):
        raise _refusal(path, number, "it is not an object")
    return record


def _check_end(path: Path, lines: list[bytes], end: Mapping[str, Any]) -> None:
    before = len(lines) - 1
    if end.get("type") != "end" or end.get("lines") != before:
        raise _refusal(path, len(lines), "the file was cut short or altered")
    digest = hashlib.sha256(b"".join(line + b"\n" for line in lines[:-1])).hexdigest()
    if end.get("sha256", digest) != digest:
        raise _refusal(path, len(lines), "the lines before it were altered")


def _refusal_of_record(path: Path, number: int, error: ValidationFailed) -> ImportRefused:
    return ImportRefused.at(f"{path}, line {number}", error, path=str(path), line=number)


def _refusal(path: Path, number: int, why: str) -> ImportRefused:
    return ImportRefused(f"{path}, line {number}: {why}.", path=str(path), line=number)
