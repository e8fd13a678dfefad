"""The file formats that knowledge can be imported from.

Each reader reads and checks the whole input before anything is written, and returns the same
bundle: concepts by the names they have in it, and the relationships between them. A record that
cannot be imported is refused with the file, the line and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson

from stratagem.errors import ImportRefused, StratagemError
from stratagem.knowledge import checks
from stratagem.knowledge.spaces import PREREQUISITE, TYPES, fold_name
from stratagem.note_files import NoteFiles, Skipped, read_text

__all__ = [
    "FORMAT",
    "FORMS",
    "Bundle",
    "ConceptToImport",
    "Form",
    "RelationshipToImport",
    "form_of",
    "read",
]

Form = Literal["jsonl", "mcp-memory", "markdown"]
FORMS: tuple[Form, ...] = get_args(Form)
FORMAT: Final = "stratagem-knowledge"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = ("name", "explanation", "area", "topic", "subtopic", "certainty_score")
# What other tools call our types; True where they say it from the other end.
_SYNONYMS: Final = {
    "requires": (PREREQUISITE, True),
    "depends_on": (PREREQUISITE, True),
    "prerequisite_of": (PREREQUISITE, False),
    "contains": ("includes", False),
    "part_of": ("includes", True),
    "replaces": ("supersedes", False),
    "supports": ("confirms", False),
    **{label: (label, False) for label in TYPES},
}
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_WIKILINK = re.compile(
    r"(?:^- (\w+): )?\[\[([^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]", re.MULTILINE
)


@dataclass(slots=True)
class ConceptToImport:
    """A concept to be imported; its id, where the format has one, is the same in every database."""

    fields: dict[str, Any]
    concept_id: str | None = None
    created_at: int | None = None


@dataclass(slots=True)
class RelationshipToImport:
    """A relationship to be imported, between names of the bundle."""

    source: str
    target: str
    label: str
    strength: float = 1.0
    notes: str | None = None
    where: str = ""


@dataclass(slots=True)
class Bundle:
    """What a file or folder holds: concepts by their names in it, and relationships."""

    items: dict[str, ConceptToImport] = field(default_factory=dict)
    relations: list[RelationshipToImport] = field(default_factory=list)
    # Links that lead to nothing in it; other notes are linked to before they are written.
    dangling: int = 0
    # Files of a folder that were not taken.
    skipped: Sequence[Skipped] = ()


def form_of(path: Path) -> Form:
    """Return the format of a file or folder."""
    if path.is_dir() or path.suffix.lower() == ".md":
        return "markdown"
    first = next((record for _, record in _lines(path)), {})
    if first.get("format") == FORMAT or first.get("type") in {"concept", "relationship"}:
        return "jsonl"
    if first.get("type") in {"entity", "relation"}:
        return "mcp-memory"
    raise ImportRefused(
        f"{path}: its first line does not tell which form it is in.",
        file=str(path),
        hint=f"Name the form with --format: {', '.join(FORMS)}.",
    )


def read(path: Path, form: Form) -> Bundle:
    """Read and check everything.

    Raises:
        ImportRefused: Something cannot be taken.
    """
    readers: dict[Form, Callable[[Path], Bundle]] = {
        "jsonl": _read_lines,
        "mcp-memory": _read_server_graph,
        "markdown": _read_notes,
    }
    bundle = readers[form](path)
    known = bundle.items.keys()
    for relation in bundle.relations:
        with _refuse_with_location(relation.where):
            for end in (relation.source, relation.target):
                if end not in known:
                    raise _InvalidRecord(f"it relates {end!r}, which is not in the file")
            if relation.source == relation.target:
                raise _InvalidRecord("it relates a concept to itself")
    return bundle


def _read_lines(path: Path) -> Bundle:
    bundle = Bundle()
    for number, record in _lines(path):
        where = f"{path}, line {number}"
        with _refuse_with_location(where):
            kind = record.get("type")
            if kind == "concept":
                item = _item(record)
                assert item.concept_id is not None
                bundle.items[item.concept_id] = item
            elif kind == "relationship":
                bundle.relations.append(_relation(record, where))
            elif record.get("format") != FORMAT:
                raise _InvalidRecord(f"its type is {kind!r}, not concept or relationship")
    return bundle


def _item(record: Mapping[str, Any]) -> ConceptToImport:
    given = {name: record[name] for name in _FIELDS if record.get(name) is not None}
    for name in ("name", "explanation"):
        if name not in given:
            raise _InvalidRecord(f"it has no {name}")
    created = record.get("created_at")
    return ConceptToImport(
        checks.fields(given),
        checks.concept_id(record.get("concept_id")),
        None if created is None else _microseconds(created),
    )


def _relation(record: Mapping[str, Any], where: str) -> RelationshipToImport:
    label = checks.label(record.get("relationship_type"))
    assert label is not None
    return RelationshipToImport(
        checks.concept_id(record.get("source_id"), field="source_id"),
        checks.concept_id(record.get("target_id"), field="target_id"),
        label,
        checks.strength(record.get("strength")),
        checks.notes(record.get("notes")),
        where,
    )


def _read_server_graph(path: Path) -> Bundle:
    """Read the graph of the official MCP memory server: entities and relations, line by line."""
    bundle = Bundle()
    for number, record in _lines(path):
        where = f"{path}, line {number}"
        with _refuse_with_location(where):
            kind = record.get("type")
            if kind == "entity":
                _add_entity(bundle, record)
            elif kind == "relation":
                ends = _text(record, "from"), _text(record, "to")
                _add_relation(bundle, ends, _text(record, "relationType"), where)
            else:
                raise _InvalidRecord(f"its type is {kind!r}, not entity or relation")
    return bundle


def _add_entity(bundle: Bundle, record: Mapping[str, Any]) -> None:
    name, of = _text(record, "name"), _text(record, "entityType")
    observations = record.get("observations", [])
    if not isinstance(observations, list):
        raise _InvalidRecord("its observations are not a list")
    told = "\n".join(str(each) for each in observations)
    given = {"name": name, "explanation": told or of or name}
    if of.strip():
        given["topic"] = of
    known = bundle.items.get(fold_name(name))
    if known is not None:
        given["explanation"] = f"{known.fields['explanation']}\n{given['explanation']}"
    bundle.items[fold_name(name)] = ConceptToImport(checks.fields(given))


def _add_relation(bundle: Bundle, ends: tuple[str, str], told: str, where: str) -> None:
    """Add a relationship under our name for it; one we have none for says it in its notes."""
    word = "_".join(told.lower().split())
    label, turned = _SYNONYMS.get(word, ("relates_to", False))
    source, target = (fold_name(end) for end in (reversed(ends) if turned else ends))
    notes = None if word in _SYNONYMS else checks.notes(told)
    bundle.relations.append(RelationshipToImport(source, target, label, notes=notes, where=where))


def _read_notes(path: Path) -> Bundle:
    """Read Markdown notes: each is a concept, and each wikilink a relationship.

    The folders that a note lies in are its area, topic and subtopic. A link in a list item that
    begins with a type and a colon is of that type; any other relates one note to another.
    """
    files = NoteFiles(path)
    bundle = Bundle(skipped=files.skipped)
    texts: dict[str, tuple[Path, str]] = {}
    for below in files.paths:
        file = files.full(below)
        text = _FRONT_MATTER.sub("", files.text(below)).strip()
        levels = dict(zip(("area", "topic", "subtopic"), below.parent.parts, strict=False))
        with _refuse_with_location(str(file)):
            given = {"name": file.stem, "explanation": text or file.stem, **levels}
            if fold_name(file.stem) in texts:
                raise _InvalidRecord(f"there is another note named {file.stem!r}")
            bundle.items[fold_name(file.stem)] = ConceptToImport(checks.fields(given))
        texts[fold_name(file.stem)] = (file, text)
    for ref, (file, text) in texts.items():
        for label, name in _WIKILINK.findall(text):
            target = fold_name(name.strip().rsplit("/", 1)[-1])
            if target not in texts:
                bundle.dangling += 1
            elif target != ref:
                ends = (file.stem, target)
                _add_relation(bundle, ends, label or "relates_to", str(file))
    return bundle


class _InvalidRecord(Exception):
    """What is wrong with a record; `_refuse_with_location` adds where it is."""


@contextmanager
def _refuse_with_location(where: str) -> Iterator[None]:
    """Turn errors about a record into `ImportRefused` with its location."""
    try:
        yield
    except (StratagemError, _InvalidRecord) as error:
        reason = error.message if isinstance(error, StratagemError) else str(error)
        raise ImportRefused(f"{where}: {reason.rstrip('.')}.", where=where) from error


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            continue
        with _refuse_with_location(f"{path}, line {number}"):
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise _InvalidRecord(f"it is not whole JSON ({error.msg})") from error
            if not isinstance(record, dict):
                raise _InvalidRecord("it is not a JSON object")
        yield number, record


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record.get(name)
    if not isinstance(text, str):
        raise _InvalidRecord(f"its {name} is no text")
    return text


def _microseconds(text: object) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError) as error:
        raise _InvalidRecord(f"{text!r} is no time in ISO 8601 with an offset") from error
