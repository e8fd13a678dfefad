"""What is said beside the answer of a search: why nothing was found, and what else answers.

A search without a hit is explained: which filter is wrong, or what was too weak. Beside hits little
is said, so that they take no longer: what lists standing instructions, times and incidents, to who
asks for these. What is named is always something that the caller would have been shown: it is
looked up in the view of the search.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final

from stratagem.answers import NOTHING_MATCHES
from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import View, is_transaction
from stratagem.memory.answer_text import USUAL_PLACE
from stratagem.memory.kinds import ENTRY, EVENT, UNTRUSTED, entries, logged_events
from stratagem.memory.listing import live_namespaces
from stratagem.memory.models import Hit
from stratagem.storage.contract import Reader

__all__ = [
    "SearchedPart",
    "asks_for_fix",
    "asks_for_instructions",
    "asks_for_own_instructions",
    "explain_nothing",
    "find_period",
    "has_word",
    "say_earlier",
    "say_found_without",
    "say_kinds_that_match",
    "say_no_match",
    "say_on_branch",
    "say_period",
]

_NAMES_SAID: Final = 5
_TAGS_COMPARED: Final = 500
# Hits that a search without its filters has, as they are named where it has none with them.
_HITS_SAID: Final = 3
# Other marks may be searched for: an emoji stands for something.
_WORDLIKE: Final = re.compile(r"[a-zA-Z0-9]|[^\x00-\x7f]")
# How one asks for standing instructions, which rarely have these words themselves.
_INSTRUCTIONS: Final = deferred_pattern(
    r"\b(?:instructions?|preferences?|you(?: to)? always|always do)\b", re.IGNORECASE
)
_WISHES: Final = r"(?:conventions|guidelines|instructions|preferences|rules)"
# The same, where nothing else is asked for: "instructions of the printer" are no wishes.
_OWN_INSTRUCTIONS: Final = deferred_pattern(
    r"\b(?:standing (?:instructions|orders|preferences|rules)\b"
    rf"|(?:my|our|(?:the )?user(?:['’]s)?) {_WISHES}(?: (?:and|are|here)\b|[?.!]?$)"
    rf"|(?:my|our|(?:the )?user(?:['’]s)?) {_WISHES} (?:for|in) (?:the|this) (?:project|repo)"
    rf"|(?:what|which) {_WISHES} (?:apply|are there|(?:do|must|should) (?:i|we|you))\b"
    rf"|{_WISHES} (?:that )?(?:i|we|you) (?:have to|must|need to|should) (?:follow|know|obey)\b"
    r"|how (?:am i|must i|should (?:i|an agent|you)) (?:to )?(?:act|behave|work)\b"
    r"|what (?:must|should) (?:i|you) (?:always|never)\b|you to always do\b)",
    re.IGNORECASE,
)
# What asks how an error was got rid of, which incidents tell and the memory of a session rarely.
_FIXES: Final = deferred_pattern(
    r"\b(?:error|exception|fix(?:ed|es)?|(?:re)?solved?|traceback|work(?:ed)? ?around)\b",
    re.IGNORECASE,
)
# What a query says of the time that it asks about, and since when that may have been.
_PERIODS: Final = (
    (
        deferred_pattern(r"\b(?:today|tonight|this (?:morning|afternoon))\b", re.IGNORECASE),
        "24h ago",
    ),
    (deferred_pattern(r"\b(?:yesterday|last night)\b", re.IGNORECASE), "48h ago"),
    (deferred_pattern(r"\b(?:this|last|past) week\b", re.IGNORECASE), "14d ago"),
    (deferred_pattern(r"\b(?:this|last|past) month\b", re.IGNORECASE), "62d ago"),
)
# What asks for the newest of all, whatever it says.
_NEWEST: Final = deferred_pattern(
    r"\b(?:recently|lately|le(?:ft|ave) off|(?:last|latest|newest|most recent) (?:change|"
    r"conversation|decision|discussion|entry|event|message|note|session|step|task|thing)s?)\b",
    re.IGNORECASE,
)
_SHOWN_KINDS: Final = {ENTRY: "entries", EVENT: "logged events"}


class SearchedPart(NamedTuple):
    """The part of a memory that was searched: what a view shows, filtered."""

    view: View
    namespace: str | None
    tags: Sequence[str]
    kinds: Collection[str]


def explain_nothing(reader: Reader, part: SearchedPart) -> str | None:
    """Say why nothing could be found, whatever was searched for; None where something could."""
    shown = _shown_kinds(reader, part.view, part.namespace)
    if part.namespace is not None and not shown:
        return _say_namespaces(reader, part.view, part.namespace)
    if not shown:
        return None
    if shown.isdisjoint(part.kinds):
        (there,) = shown
        (wanted,) = part.kinds
        only = f"There are no {_SHOWN_KINDS[wanted]} here, only {_SHOWN_KINDS[there]}"
        return f"{only}: leave `kinds` out."
    if part.tags and (said := _say_tags(reader, part)):
        return said
    if ENTRY not in shown:
        place = f" and namespace {part.namespace!r}" if part.namespace is not None else ""
        return (
            f"There are logged events only: strata_history with order 'newest'{place} lists them."
        )
    return None


def asks_for_instructions(query: str) -> bool:
    """Whether a query asks what the user wants from now on, whatever that is."""
    return _INSTRUCTIONS.search(query) is not None


def asks_for_own_instructions(query: str) -> bool:
    """Whether a query asks for nothing but what the user wants from now on."""
    return _OWN_INSTRUCTIONS.search(query) is not None


def asks_for_fix(query: str) -> bool:
    """Whether a query asks how an error was got rid of."""
    return _FIXES.search(query) is not None


def find_period(query: str) -> str | None:
    """Return since when what a query asks for may have been logged, "" for the newest of all.

    None for one that does not ask about a time.
    """
    for pattern, since in _PERIODS:
        if pattern.search(query):
            return since
    return "" if _NEWEST.search(query) else None


def say_period(since: str, namespace: str | None, kinds: Collection[str]) -> str:
    """Say what lists records of some kinds by time: a search goes by what texts say."""
    place = "" if namespace is None else f" and namespace {namespace!r}"
    wanted = f"since '{since}'" if since else "order 'newest'"
    lists = {
        EVENT: f"strata_history with {wanted}{place} lists what was logged",
        ENTRY: f"strata_recall with order 'newest'{place} lists what is stored",
    }
    return f"By time: {', '.join(said for kind, said in lists.items() if kind in kinds)}."


def say_earlier(key: str, namespace: str, branch: str | None, *, is_hit: bool) -> str:
    """Say that an entry said something else before, and what shows it."""
    on = "" if branch is None else f" and branch {branch!r}"
    history = f"strata_history with key {key!r} and namespace {namespace!r}{on}"
    if is_hit:
        return f"{key!r} was changed: {history} shows what it said before."
    return f"An earlier version of {key!r} matches more of the query: {history} shows it."


def say_on_branch(key: str, namespace: str, branch: str) -> str:
    """Say that another branch shows what matches better, and what reads it."""
    read = f"strata_recall with key {key!r} and namespace {namespace!r} and branch {branch!r}"
    return f"On the branch {branch!r} {key!r} matches more of the query: {read} shows it."


def has_word(query: str) -> bool:
    """Whether a query has anything that a text could be found by."""
    return _WORDLIKE.search(query) is not None


def say_found_without(filters: Sequence[str], found: Sequence[Hit]) -> str | None:
    """Say what the same search finds without its filters; None where it finds nothing.

    Names are said without being marked as data, so an untrusted text must not choose them.
    """
    trusted = [hit for hit in found if hit.trust != UNTRUSTED][:_HITS_SAID]
    if not trusted:
        return None
    left_out = " and ".join(f"`{name}`" for name in filters)
    names = (hit.key if hit.key is not None else f"@{hit.sequence}" for hit in trusted)
    places = (
        f"{name!r} (namespace {hit.namespace!r})" for name, hit in zip(names, trusted, strict=True)
    )
    return f"Without {left_out} this search finds {', '.join(places)}."


def say_kinds_that_match(kinds: Sequence[str]) -> list[str]:
    """Say how records of other systems are found that a search of entries and events leaves out."""
    if not kinds:
        return []
    names = " and ".join(f"{kind}s" for kind in kinds)
    listed = ", ".join(f'"{kind}"' for kind in kinds)
    return [f"There are {names} that match: kinds=[{listed}] searches them."]


def say_no_match(branch: str, namespace: str | None, as_of: Any) -> str:
    """Say that nothing matches, and how to see what there is in the part that was searched."""
    unusual = branch not in {"", USUAL_PLACE} and not is_transaction(branch)
    options = {"namespace": namespace, "branch": branch if unusual else None, "as_of": as_of}
    given = "".join(f" and {name} '{each}'" for name, each in options.items() if each is not None)
    return (
        f"{NOTHING_MATCHES}: try fewer or other words. "
        f"strata_recall with order 'newest'{given} lists what is stored."
    )


def _shown_kinds(reader: Reader, view: View, namespace: str | None) -> set[str]:
    """Return of which kinds a view shows anything, in the namespace if one is named."""
    if namespace is None:
        return {kind for kind in (ENTRY, EVENT) if reader.records.count(view, kind)}
    shown = set()
    if reader.listing.by_key(view, entries(namespace), limit=1):
        shown.add(ENTRY)
    if reader.listing.stream(view, logged_events(namespace), limit=1):
        shown.add(EVENT)
    return shown


def _say_namespaces(reader: Reader, view: View, empty: str) -> str | None:
    names = {
        space.namespace
        for space in reader.records.spaces().values()
        if space.kind in _SHOWN_KINDS and space.namespace != empty
    }
    alike = [
        name for name in nearest(empty, names, _NAMES_SAID) if _shown_kinds(reader, view, name)
    ]
    others = islice(live_namespaces(reader, view, besides=empty), _NAMES_SAID)
    said = _some_of(alike, others)
    return f"The namespace {empty!r} is empty. Namespaces in use: {said}." if said else None


def _say_tags(reader: Reader, part: SearchedPart) -> str | None:
    spaces = [
        number
        for number, space in reader.records.spaces().items()
        if space.kind in part.kinds and part.namespace in {None, space.namespace}
    ]
    counts = reader.listing.tag_counts(part.view, spaces, limit=_TAGS_COMPARED)
    in_use = [each.tag for each in counts]
    unknown = [tag for tag in part.tags if tag not in in_use]
    if not unknown or len(in_use) == _TAGS_COMPARED:
        return None
    alike = [each for tag in unknown for each in nearest(tag, in_use, _NAMES_SAID)]
    known = _some_of(alike, in_use)
    said = f"Nothing here has the tag {unknown[0]!r}."
    return f"{said} Tags in use: {known}." if known else said


def _some_of(first: Iterable[str], others: Iterable[str]) -> str:
    return ", ".join(list(dict.fromkeys([*first, *others]))[:_NAMES_SAID])
