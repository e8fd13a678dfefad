"""Incidents, fixes and evidence as a file that another database can take in.

Lines of JSON: a header, then each incident followed by its solutions and their outcomes, and an
end with the number of lines before it. Ids are unique across databases, so that taking a file in
again changes nothing. An incident whose signature the database knows already is the same incident:
its fixes join those that are there. What came in says where it came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem.debugging import kinds
from stratagem.debugging.kinds import facet_incident, facet_signature, facet_solution
from stratagem.engine import values
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import View
from stratagem.errors import ImportRefused, StorageUnavailable, ValidationFailed
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Shared", "export_file", "import_file"]

FORMAT: Final = "stratagem-debugging"
VERSION: Final = 1
_REQUIRED: Final = {
    "incident": ("incident_id", "title"),
    "solution": ("solution_id", "incident_id", "steps", "steps_key"),
    "outcome": ("outcome_id", "solution_id", "incident_id", "worked"),
}
_BATCH: Final = 1_000


@dataclass(slots=True)
class Shared:
    """What was written to a file or taken from one."""

    file: str
    incidents: int = 0
    solutions: int = 0
    outcomes: int = 0
    known: int = 0
    joined: int = 0
    branch: str = field(default="")


def export_file(foundation: Foundation, path: Path, *, branch: str) -> Shared:
    """Write every incident that a branch shows, with its fixes and evidence, into a file."""
    done = Shared(str(path), branch=branch)
    source = next(foundation.store.log()).hash.hex()[:16]
    aside = path.with_name(f".{path.name}.part")
    try:
        with foundation.store.snapshot() as reader, aside.open("wb") as file:
            view = foundation.views.view(reader, branch)
            header = {"format": FORMAT, "version": VERSION, "source": source}
            count = _write(file, [header])
            count += _write(file, _lines(reader, view, done))
            _write(file, [{"type": "end", "lines": count}])
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise StorageUnavailable(f"{path} cannot be written: {error}.", path=str(path)) from error
    return done


def import_file(foundation: Foundation, caller: Caller, path: Path) -> Shared:
    """Take incidents, fixes and evidence from a file; all of it is checked first.

    Raises:
        ImportRefused: The file was cut, or a line of it is wrong. Nothing was written.
    """
    source, records = _read(path)
    done = Shared(str(path), branch=caller.branch)
    same: dict[str, str] = {}
    for begin in range(0, len(records), _BATCH):
        batch = records[begin : begin + _BATCH]

        def work(transaction: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            view = foundation.views.view(transaction, caller.branch)
            taking = _Taking(transaction, view, {"source": source, "file": path.name}, same, done)
            drafts = [draft for record in batch if (draft := taking.draft(record)) is not None]
            if drafts:
                transaction.append(view.branch, drafts)

        foundation.write(caller, work)
    return done


class _Taking:
    """One batch of records being taken in."""

    def __init__(
        self,
        reader: Reader,
        view: View,
        origin: Mapping[str, str],
        same: dict[str, str],
        done: Shared,
    ) -> None:
        self._reader = reader
        self._view = view
        self._origin = origin
        self._same = same
        self._done = done
        self._fresh: set[str] = set()

    def draft(self, record: dict[str, Any]) -> Draft | None:
        """Return the event for a record, or None where it is known."""
        kind = record["type"]
        content = {name: value for name, value in record.items() if name != "type"}
        if kind != "incident":
            owner = content["incident_id"]
            content["incident_id"] = self._same.get(owner, owner)
        known = getattr(self, f"_knows_{kind}")(content)
        if known:
            self._done.known += 1
            return None
        setattr(self._done, f"{kind}s", getattr(self._done, f"{kind}s") + 1)
        content.setdefault("origin", dict(self._origin))
        return _draft(kind, content)

    def _knows_incident(self, content: Mapping[str, Any]) -> bool:
        incident_id = content["incident_id"]
        if self._has(kinds.INCIDENTS, incident_id):
            return True
        fingerprint = content.get("fingerprint")
        twins = (
            self._reader.faceted(self._view, facet_signature(fingerprint)) if fingerprint else []
        )
        if not twins:
            self._fresh.add(incident_id)
            return False
        twin = orjson.loads(self._reader.hits(twins[:1])[twins[0]].payload)
        self._same[incident_id] = twin["incident_id"]
        self._done.joined += 1
        return True

    def _knows_solution(self, content: Mapping[str, Any]) -> bool:
        return self._has(kinds.SOLUTIONS, content["solution_id"])

    def _knows_outcome(self, content: Mapping[str, Any]) -> bool:
        sequences = self._reader.faceted(self._view, facet_solution(content["solution_id"]))
        wanted = content["outcome_id"]
        return any(
            orjson.loads(hit.payload)["outcome_id"] == wanted
            for hit in self._reader.hits(sequences).values()
        )

    def _has(self, space: Space, key: str) -> bool:
        return self._reader.current(self._view.lineage, space, key) is not None


def _draft(kind: str, content: dict[str, Any]) -> Draft:
    if kind == "incident":
        return Draft(kinds.INCIDENT_ADDED, content, kinds.INCIDENTS, content["incident_id"])
    if kind == "solution":
        return Draft(kinds.SOLUTION_ADDED, content, kinds.SOLUTIONS, content["solution_id"])
    # A lookup stays in the database that made it.
    content.pop("lookup_id", None)
    worked = bool(content["worked"])
    event = kinds.FIX_WORKED if worked else kinds.FIX_FAILED
    return Draft(event, content, kinds.outcomes(worked=worked))


def _lines(reader: Reader, view: View, done: Shared) -> Iterator[dict[str, Any]]:
    after: str | None = ""
    while after is not None:
        page, after = reader.records(view.lineage, kinds.INCIDENTS, after=after)
        for incident_id, version in page:
            done.incidents += 1
            yield {"type": "incident", **orjson.loads(version.payload or b"{}")}
            yield from _fixes(reader, view, incident_id, done)


def _fixes(reader: Reader, view: View, incident_id: str, done: Shared) -> Iterator[dict[str, Any]]:
    for _, solution in _contents(reader, view, facet_incident(incident_id)):
        done.solutions += 1
        yield {"type": "solution", **solution}
        for at, outcome in _contents(reader, view, facet_solution(solution["solution_id"])):
            done.outcomes += 1
            # When it happened, not when it was taken in: evidence ages.
            yield {"type": "outcome", "at": at, **outcome}


def _contents(reader: Reader, view: View, facet: str) -> Iterator[tuple[int, dict[str, Any]]]:
    sequences = reader.faceted(view, facet)
    hits = reader.hits(sequences)
    for sequence in sequences:
        yield hits[sequence].at, orjson.loads(hits[sequence].payload)


def _write(file: Any, lines: Any) -> int:
    count = 0
    for line in lines:
        file.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        count += 1
    return count


def _read(path: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return where a file comes from, and its records, all of them checked."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error}.", path=str(path)) from error
    parsed = [_parsed(path, number, line) for number, line in enumerate(lines, 1)]
    if not parsed or parsed[0].get("format") != FORMAT or parsed[0].get("version") != VERSION:
        raise _refused(path, 1, f"it does not begin a {FORMAT} file of version {VERSION}")
    if parsed[-1] != {"type": "end", "lines": len(parsed) - 1}:
        raise _refused(path, len(parsed), "the file was cut short or altered")
    records = parsed[1:-1]
    for number, record in enumerate(records, 2):
        _check(path, number, record)
    return str(parsed[0].get("source", "")), records


def _parsed(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _refused(path, number, f"it is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise _refused(path, number, "it is not an object")
    return record


def _check(path: Path, number: int, record: Mapping[str, Any]) -> None:
    required = _REQUIRED.get(record.get("type", ""))
    if required is None:
        raise _refused(path, number, "its type is not incident, solution or outcome")
    missing = [name for name in required if name not in record]
    if missing:
        raise _refused(path, number, f"it lacks {missing[0]}")
    try:
        values.encode(dict(record), field="line")
    except ValidationFailed as error:
        raise _refused(path, number, error.message) from error
    if record["type"] == "outcome" and not isinstance(record["worked"], bool):
        raise _refused(path, number, "worked is not true or false")
    if record["type"] == "solution" and not isinstance(record["steps"], list):
        raise _refused(path, number, "steps is not a list")


def _refused(path: Path, number: int, why: str) -> ImportRefused:
    return ImportRefused(f"{path}, line {number}: {why}.", path=str(path), line=number)
