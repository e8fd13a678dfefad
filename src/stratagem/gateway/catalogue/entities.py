"""`entity_extraction`: dates, money, addresses, versions, paths and names, by rules and lists.

What has a form of its own (an e-mail address, a version) is found by that form. Names are found by
what stands around them (a title, "Inc."), by lists of places, organizations and first names, and
last by their shape: two capitalised words within a sentence. `confidence` says by which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.gateway.catalogue import gazetteer
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define

__all__ = ["TOOLS", "find_entities"]

_MONTH: Final = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?"
)
_DAY: Final = r"(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)"
_AMOUNT: Final = r"\d{1,3}(?:[,.' ]\d{3}){0,5}(?:[.,]\d{1,2})?(?!\d)|\d{1,15}(?:[.,]\d{1,2})?(?!\d)"
_SCALE: Final = r"(?: ?(?:thousand|million|billion|trillion|[kKmMbB]n?)\b)?"
_CURRENCY: Final = r"(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|BRL|dollars?|euros?|pounds?|francs?|yen)\b"
_UNIT: Final = (
    r"(?:kg|mg|g|t|km/h|km|cm|mm|nm|m|ms|ns|µs|s|min|h|hours?|minutes?|seconds?|days?|weeks?|months?"
    r"|years?|[KMGT]i?B|kB|bytes?|[kMG]?bit/s|[kMG]?Hz|[kM]?W|kWh|V|°C|°F|miles?|feet|pounds|litres?"
    r"|liters?|l|ml)(?![\w/])"
)

# In this order: what was found by an earlier form is not found again by a later one.
_FORMS: Final[tuple[tuple[str, str, re.Pattern[str]], ...]] = tuple(
    (kind, group, re.compile(pattern))
    for kind, group, pattern in (
        ("url", "", r"\bhttps?://[^\s<>\"'`]{1,2000}+"),
        (
            "email",
            "",
            r"\b[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}\b",
        ),
        ("uuid", "", r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
        ("cve", "", r"\bCVE-\d{4}-\d{4,7}\b"),
        ("iban", "", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"),
        ("hash", "", r"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})\b"),
        (
            "date",
            "",
            r"\b\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2})?(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?)?(?![\w-])",
        ),
        (
            "ip",
            "",
            r"(?<![\w.:])(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{1,4}:[0-9a-fA-F:]{2,40})(?![\w:]|\.\d)",
        ),
        ("date", "", rf"\b\d{{1,2}}(?:st|nd|rd|th)? {_MONTH}(?: \d{{4}})?\b"),
        ("date", "", rf"\b{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:, ?\d{{4}})?\b"),
        ("date", "", rf"\b{_MONTH} \d{{4}}\b"),
        ("date", "", r"\b\d{1,2}[./]\d{1,2}[./]\d{4}\b"),
        ("date", "", rf"\b(?:next|last|this) (?:{_DAY}|week|month|year|quarter)\b"),
        ("date", "", rf"\b(?:today|tomorrow|yesterday|{_DAY})\b"),
        ("time", "", r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m\b)?|\b\d{1,2} ?[ap]m\b"),
        (
            "money",
            "",
            rf"[$€£¥] ?(?:{_AMOUNT}){_SCALE}|(?<![\w.,])(?:{_AMOUNT}){_SCALE} ?(?:[€£¥]|{_CURRENCY})",
        ),
        ("percent", "", r"(?<![\w.,])\d{1,9}(?:[.,]\d{1,6})? ?(?:%|percent\b)"),
        ("phone", "", r"(?<![\w.])\+\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,6}(?!\w)"),
        (
            "path",
            "",
            r"(?<![\w/.:~])(?:[A-Za-z]:\\[^\s\"'<>|*?]{1,400}+|(?:~|\.{1,2})?/[\w.@+-]{1,200}(?:/[\w.@+-]{1,200}){0,30}/?"
            r"|[\w.@+-]{1,100}(?:/[\w.@+-]{1,100}){1,30}\.[A-Za-z0-9]{1,8})(?![\w/])",
        ),
        (
            "version",
            "",
            r"(?<![\w.])v\d{1,6}(?:\.\d{1,6}){0,3}(?:-[0-9A-Za-z.-]{1,40})?\b|(?<![\w.,])\d{1,6}\.\d{1,6}\.\d{1,6}(?:-[0-9A-Za-z.]{1,40})?(?![\w]|\.\d)",
        ),
        (
            "version",
            "at",
            r"\b(?:[Vv]ersion|[Rr]elease|Python|SQLite|Node|Java|PHP|Ruby|Go|Rust|PostgreSQL|Ubuntu|Debian|macOS|Windows|iOS|Android|HTTP|TLS)[ /](?P<at>\d{1,6}(?:\.\d{1,6}){0,2})(?![\w]|\.\d)",
        ),
        (
            "host",
            "",
            r"\b(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}(?:com|org|net|io|dev|ai|gov|edu|co|eu|de|uk|fr|ch|jp|cn|internal|local|example)\b(?!@)",
        ),
        ("ticket", "", r"\b[A-Z][A-Z0-9]{1,9}-\d{1,7}\b"),
        ("quantity", "", rf"(?<![\w.,])\d{{1,12}}(?:[.,]\d{{1,6}})? ?{_UNIT}"),
        ("handle", "", r"(?<![\w@.])@[A-Za-z_]\w{1,38}\b"),
        ("hashtag", "", r"(?<![\w&#])#[A-Za-z]\w{1,60}\b"),
        (
            "date",
            "at",
            r"\b(?:in|since|until|by|from|of|to|before|after|around|founded) (?P<at>(?:1[5-9]|20)\d{2})\b(?![\d.,]\d)",
        ),
    )
)

_CAPITAL: Final = r"[A-ZÀ-ÖØ-Þ][\w'’-]{0,40}+"
_NAME_SPAN: Final = re.compile(
    rf"(?<![\w@#/.-])(?:[A-ZÀ-Þ]\.){{0,3}}{_CAPITAL}(?: (?:(?:of|the|de|da|van|von|der|for|and)\b )?(?:the )?{_CAPITAL}){{0,6}}"
)
_TITLE: Final = re.compile(
    r"\b(?:Mr|Mrs|Ms|Dr|Prof|Sir|Lady|President|Chancellor|Judge|Captain)\.? $"
)
_SUFFIX: Final = re.compile(
    r"(?:,? ?(?:Inc|Corp|Ltd|LLC|GmbH|AG|SA|SE|PLC|Co|Group|Foundation|Association)\b\.?)"
)
_ORGANIZATION_WORDS: Final = frozenset(
    "University Institute Ministry Bank Agency Council Court Committee Department "
    "Foundation Association "
    "Union Organization Organisation Commission Company Corporation College School "
    "Laboratory Museum "
    "Hospital Party Society Federation Group".split()
)
_CONNECTING: Final = frozenset({"of", "the", "de", "da", "van", "von", "der", "for", "and"})
_NOT_NAMES: Final = frozenset(
    "I The A An In On At By For And Or But If It This That These Those There Here "
    "We You He She They My Our "
    "Your His Her Their As To From With Of Not No Yes When While Where Who What "
    "Why How All Some Any Each Use "
    "See Open Read Write Send Contact Mail Call Follow Version Release Errors Sales "
    "Ship Upgrade Error Note "
    "Please Both After Before Since Until Also Then Now Dr Mr Mrs Ms Prof Sir January "
    "February March April May "
    "June July August September October November December Monday Tuesday Wednesday "
    "Thursday Friday Saturday "
    "Sunday Emperor Cable Python RFC IBAN CVE PDF HTML JSON API URL HTTP SQL CPU RAM OK".split()
)


_TITLED_WORDS_MAX: Final = 3
_PERSON_WORDS_MAX: Final = 4


class _Span(NamedTuple):
    kind: str
    start: int
    end: int
    confidence: float


async def _extract(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    found = await run.in_thread(lambda: find_entities(given["text"]))
    wanted = frozenset(given.get("types") or ())
    entities = [each for each in found if not wanted or each["type"] in wanted]
    counts: dict[str, int] = {}
    for each in entities:
        counts[each["type"]] = counts.get(each["type"], 0) + 1
    shown = entities[: limits.ENTITIES_MAX]
    return {"entities": shown, "counts": counts, "total": len(entities)}


def find_entities(text: str) -> list[dict[str, Any]]:
    """Return the entities of a text in the order of their places."""
    taken = bytearray(len(text))
    spans = sorted([*_by_form(text, taken), *_by_name(text, taken)], key=lambda span: span.start)
    return [
        {
            "type": span.kind,
            "text": text[span.start : span.end],
            "start": span.start,
            "end": span.end,
            "confidence": span.confidence,
        }
        for span in spans
    ]


def _by_form(text: str, taken: bytearray) -> Iterator[_Span]:
    for kind, group, pattern in _FORMS:
        for found in pattern.finditer(text):
            start, end = found.span(group or 0)
            end = _end_of(kind, text, start, end)
            if any(taken[start:end]) or not _holds(kind, text[start:end]):
                continue
            taken[start:end] = b"\x01" * (end - start)
            yield _Span(kind, start, end, 0.95)


def _end_of(kind: str, text: str, start: int, end: int) -> int:
    """Return where a form ends without the punctuation of the sentence around it."""
    if kind in {"url", "path"}:
        while end > start and text[end - 1] in ".,;:!?)]}":
            # A bracket that was opened within belongs to it.
            if text[end - 1] == ")" and "(" in text[start:end]:
                break
            end -= 1
    return end


def _holds(kind: str, found: str) -> bool:
    """Whether what looks like a form is one."""
    if kind == "ip":
        try:
            ip_address(found)
        except ValueError:
            return False
    if kind == "iban":
        return _is_iban(found.replace(" ", ""))
    return bool(found)


def _is_iban(code: str) -> bool:
    turned = code[4:] + code[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _by_name(text: str, taken: bytearray) -> Iterator[_Span]:
    for found in _NAME_SPAN.finditer(text):
        # Words that another form has taken part the span.
        for start, end in _free_parts(text, found.start(), found.end(), taken):
            yield from _names_in(text, start, end)


def _free_parts(text: str, start: int, end: int, taken: bytearray) -> Iterator[tuple[int, int]]:
    begin = start
    for word in re.finditer(r"\S+", text[start:end]):
        first, last = start + word.start(), start + word.end()
        if any(taken[first:last]):
            if begin < first:
                yield begin, first
            begin = last + 1
    if begin < end:
        yield begin, end


def _names_in(text: str, start: int, end: int) -> Iterator[_Span]:
    """Yield the names in words that are capitalised, the longest known one first."""
    words = [
        (start + each.start(), start + each.end()) for each in re.finditer(r"\S+", text[start:end])
    ]
    at = 0
    while at < len(words):
        length, span = _name_at(text, words, at)
        if span is not None:
            yield span
        at += length


def _name_at(text: str, words: list[tuple[int, int]], at: int) -> tuple[int, _Span | None]:
    """Return how many words a name at a place takes, and the name."""
    for count in range(min(len(words) - at, 6), 0, -1):
        first, last = words[at][0], words[at + count - 1][1]
        name = text[first:last].rstrip("'’").removesuffix("'s").removesuffix("’s")
        kind, confidence = _kind_of(text, first, name, name.split())
        if kind:
            stop = first + len(name)
            suffix = _SUFFIX.match(text, stop) if kind == "organization" else None
            return count, _Span(kind, first, suffix.end() if suffix else stop, confidence)
    return 1, None


def _kind_of(text: str, first: int, name: str, words: list[str]) -> tuple[str, float]:
    if name in gazetteer.organizations():
        return "organization", 0.85
    if name in gazetteer.places():
        return "place", 0.85
    if words[0] in _NOT_NAMES or {words[0], words[-1]} & _CONNECTING:
        return "", 0.0
    return _by_surroundings(text, first, name, words)


def _by_surroundings(text: str, first: int, name: str, words: list[str]) -> tuple[str, float]:
    if words[0] in gazetteer.first_names() and _CONNECTING & set(words):
        # "Ada Lovelace of Acme Corp." is a person and a company.
        return "", 0.0
    if _SUFFIX.match(text, first + len(name)):
        return "organization", 0.9
    if len(words) > 1 and {words[0], words[-1]} & _ORGANIZATION_WORDS:
        return "organization", 0.8
    capitals = [word for word in words if word[0].isupper()]
    if (
        _TITLE.search(text, max(0, first - 12), first)
        and len(capitals) == len(words) <= _TITLED_WORDS_MAX
    ):
        return "person", 0.9
    return _person(words, capitals)


def _person(words: list[str], capitals: list[str]) -> tuple[str, float]:
    if words[0] not in gazetteer.first_names() or len(words) > _PERSON_WORDS_MAX:
        return "", 0.0
    particles = {"de", "da", "van", "von", "der"}
    if len(capitals) < len([word for word in words if word not in particles]):
        return "", 0.0
    return ("person", 0.8) if len(words) > 1 else ("person", 0.6)


_TYPES: Final = (
    *dict.fromkeys(kind for kind, _group, _pattern in _FORMS),
    "person",
    "organization",
    "place",
)

TOOLS: Final = (
    StandardTool(
        define(
            "entity_extraction",
            "Find dates, times, money, e-mail addresses, URLs, versions, paths, identifiers and "
            "names of people, organizations and places in a text.",
            category="analysis",
            details=(
                "Runs locally, without a model. Dates, money, addresses, versions, paths and the "
                "like are found by their form (confidence 0.95); names by what stands beside them "
                "and by lists of places, organizations and first names (0.6 to 0.9). The "
                "lists are for English: other names are not found. `start` and `end` "
                "count characters."
            ),
            takes={
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": limits.ANALYSED_CHARS_MAX,
                    "description": "The text to look through",
                },
                "types": {
                    "type": "array",
                    "items": {"type": "string", "enum": list(_TYPES)},
                    "minItems": 1,
                    "description": "Only these",
                },
            },
            required=("text",),
            gives={
                "entities": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "type": {"type": "string"},
                            "text": {"type": "string"},
                            "start": {"type": "integer"},
                            "end": {"type": "integer"},
                            "confidence": {"type": "number"},
                        },
                        "required": ["type", "text"],
                    },
                },
                "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                "total": {"type": "integer"},
            },
            gives_always=("entities", "counts", "total"),
            tags=("text", "names", "ner", "extract"),
            shown=[
                {
                    "description": "A sentence",
                    "input": {"text": "Ada Lovelace paid $12 in London on 2026-03-01."},
                    "output": {
                        "entities": [
                            {
                                "type": "person",
                                "text": "Ada Lovelace",
                                "start": 0,
                                "end": 12,
                                "confidence": 0.8,
                            },
                            {
                                "type": "money",
                                "text": "$12",
                                "start": 18,
                                "end": 21,
                                "confidence": 0.95,
                            },
                            {
                                "type": "place",
                                "text": "London",
                                "start": 25,
                                "end": 31,
                                "confidence": 0.85,
                            },
                            {
                                "type": "date",
                                "text": "2026-03-01",
                                "start": 35,
                                "end": 45,
                                "confidence": 0.95,
                            },
                        ],
                        "counts": {"person": 1, "money": 1, "place": 1, "date": 1},
                        "total": 4,
                    },
                }
            ],
            cache=True,
        ),
        _extract,
        packages=("faker",),
    ),
)
