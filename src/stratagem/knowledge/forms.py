"""The file formats that knowledge can be imported from.

Each reader reads and checks the whole input before anything is written, and returns the same
bundle: concepts by the names they have in it, and the relationships between them. A record that
cannot be imported is refused with the file, the line and the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
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
    "note_text",
    "read",
]

Form = Literal["jsonl", "mcp-memory", "markdown"]
FORMS: tuple[Form, ...] = get_args(Form)
FORMAT: Final = "stratagem-knowledge"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = (
    "name",
    "explanation",
    "area",
    "topic",
    "subtopic",
    "certainty_score",
    "source",
    "valid_from",
    "valid_to",
)
_PERIOD = ("valid_from", "valid_to")
_NO_LETTER = re.compile(r"[^a-z]+")
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
_OWN: Final = "stratagem: "
# From the first line on; the rest of the line is JSON.
_OWN_NOTE = re.compile(r"\A---\n" + _OWN + r"([^\n]*)\n---\n")
_RELATIONS: Final = "<!-- relations -->"
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
    period: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Bundle:
    """What a file or folder holds: concepts by their names in it, and relationships."""

    items: dict[str, ConceptToImport] = field(default_factory=dict)
    relations: list[RelationshipToImport] = field(default_factory=list)
    # Types of relationship that the file declares, and what they mean.
    labels: dict[str, str | None] = field(default_factory=dict)
    # What sources say about concepts, and what learners know of them.
    evidence: list[dict[str, Any]] = field(default_factory=list)
    known: list[dict[str, Any]] = field(default_factory=list)
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
        f"{path}: its first line does not show which format it has.",
        file=str(path),
        hint=f"Choose the format with --format: {', '.join(FORMS)}.",
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
            elif kind == "relationship_type":
                label = checks.label(record.get("name"), field="name")
                assert label is not None
                bundle.labels[label] = checks.description(record.get("description"))
            elif kind in {"evidence", "known"}:
                _add_fact(bundle, kind, record)
            elif record.get("format") != FORMAT:
                raise _InvalidRecord(f"its type is {kind!r}, not concept or relationship")
    return bundle


def _add_fact(bundle: Bundle, kind: str, record: Mapping[str, Any]) -> None:
    """Add what a source says about a concept, or that a learner knows it."""
    fact = {name: value for name, value in record.items() if name != "type"}
    (checks.evidence if kind == "evidence" else checks.known_concept)(fact)
    (bundle.evidence if kind == "evidence" else bundle.known).append(fact)


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
        {name: record[name] for name in _PERIOD if record.get(name) is not None},
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
    folded = {fold_name(name): name for name in bundle.items}
    for each in bundle.relations:
        if each.source not in bundle.items:
            each.source = folded.get(fold_name(each.source), each.source)
        if each.target not in bundle.items:
            each.target = folded.get(fold_name(each.target), each.target)
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
    known = bundle.items.get(name)
    if known is not None:
        given["explanation"] = f"{known.fields['explanation']}\n{given['explanation']}"
    bundle.items[name] = ConceptToImport(checks.fields(given))


def _add_relation(bundle: Bundle, ends: tuple[str, str], told: str, where: str) -> None:
    """Add a relationship under our name for it, or under a type of its own.

    What cannot be a type as it is written stands in the notes too.
    """
    word = "_".join(told.lower().split())
    plain = _NO_LETTER.sub("_", word).strip("_")[:50].strip("_") or "relates_to"
    label, turned = _SYNONYMS.get(word, (plain, False))
    source, target = reversed(ends) if turned else ends
    notes = None if word in _SYNONYMS or label == told else checks.notes(told)
    bundle.relations.append(RelationshipToImport(source, target, label, notes=notes, where=where))


def note_text(fields: Mapping[str, Any], explanation: str, links: Sequence[str]) -> str:
    """Return a note from which an import reads everything again, and a person what matters."""
    told = orjson.dumps(fields).decode()
    return "\n".join(["---", f"{_OWN}{told}", "---", f"{explanation}\n", _RELATIONS, *links, ""])


def _read_notes(path: Path) -> Bundle:
    """Read Markdown notes: each is a concept, and each wikilink a relationship.

    The folders that a note lies in are its area, topic and subtopic. A link in a list item that
    begins with a type and a colon is of that type; any other relates one note to another. A note
    that an export wrote says in its front matter what Markdown cannot, its relationships included.
    """
    files = NoteFiles(path)
    bundle = Bundle(skipped=files.skipped)
    # By folded name: what the note is called in the bundle.
    refs: dict[str, str] = {}
    texts: dict[str, tuple[Path, str]] = {}
    for below in files.paths:
        file, raw = files.full(below), files.text(below)
        name = fold_name(file.stem)
        with _refuse_with_location(str(file)):
            if name in refs:
                raise _InvalidRecord(f"there is another note named {file.stem!r}")
            if own := _OWN_NOTE.match(raw):
                refs[name] = _add_own_note(bundle, raw, own, str(file))
                continue
            text = _FRONT_MATTER.sub("", raw).strip()
            levels = dict(zip(("area", "topic", "subtopic"), below.parent.parts, strict=False))
            given = {"name": file.stem, "explanation": text or file.stem, **levels}
            bundle.items[name] = ConceptToImport(checks.fields(given))
        refs[name] = name
        texts[name] = (file, text)
    for ref, (file, text) in texts.items():
        for label, name in _WIKILINK.findall(text):
            target = refs.get(fold_name(name.strip().rsplit("/", 1)[-1]))
            if target is None:
                bundle.dangling += 1
            elif target != ref:
                _add_relation(bundle, (ref, target), label or "relates_to", str(file))
    return bundle


def _add_own_note(bundle: Bundle, raw: str, own: re.Match[str], where: str) -> str:
    """Add a note that an export wrote, and return what it is called in the bundle."""
    try:
        fields: Any = values.read_record(own[1].encode("utf-8", "surrogatepass"))
    except orjson.JSONDecodeError as error:
        raise _InvalidRecord(f"its front matter is not complete JSON ({error.msg})") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("relations", []), list):
        raise _InvalidRecord("its front matter is not what an export writes")
    explanation = raw[own.end() :].partition(f"\n\n{_RELATIONS}")[0]
    item = _item({**fields, "explanation": explanation})
    assert item.concept_id is not None
    bundle.items[item.concept_id] = item
    for each in fields.get("relations", []):
        if not isinstance(each, dict):
            raise _InvalidRecord("its front matter has a relation that is not an object")
        bundle.relations.append(_relation({**each, "source_id": item.concept_id}, where))
    return item.concept_id


class _InvalidRecord(Exception):
    """What is wrong with a record; `_refuse_with_location` adds where it is."""


@contextmanager
def _refuse_with_location(where: str) -> Iterator[None]:
    """Turn errors about a record into `ImportRefused` with its location."""
    try:
        yield
    except (StratagemError, _InvalidRecord) as error:
        raise ImportRefused.at(where, error, where=where) from error


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    # Not splitlines: a text may have U+2028 and the like in it, which JSON does not escape.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        with _refuse_with_location(f"{path}, line {number}"):
            try:
                record = values.read_record(line.encode("utf-8", "surrogatepass"))
            except orjson.JSONDecodeError as error:
                raise _InvalidRecord(f"it is not complete JSON ({error.msg})") from error
            if not isinstance(record, dict):
                raise _InvalidRecord("it is not a JSON object")
        yield number, record


def _text(record: Mapping[str, Any], name: str) -> str:
    text = record.get(name)
    if not isinstance(text, str):
        raise _InvalidRecord(f"its {name} is not text")
    return text


def _microseconds(text: object) -> int:
    try:
        moment = datetime.fromisoformat(str(text))
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, TypeError) as error:
        raise _InvalidRecord(f"{text!r} is not a time in ISO 8601 with an offset") from error
