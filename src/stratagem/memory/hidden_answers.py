"""What answers a query better than its hits do, and is hidden: said earlier, or on another branch.

A search sees what a view shows, so that a decision that was revised, or an entry that has expired,
is not found by what it said. Who asks why something was rejected may ask just for that; and who
has stored something on a fork may search without naming the branch. A word that none of the hits
has, and few texts of the whole log have, is looked up among all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import orjson

from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import values
from stratagem.engine.lineage import View
from stratagem.memory.hits import Page, is_doubtful
from stratagem.memory.kinds import ENTRY, EVENT, entries
from stratagem.memory.models import Hit
from stratagem.search import analysis, ranking, relevance
from stratagem.search.index import Index
from stratagem.storage.contract import EventContent, Reader
from stratagem.storage.views import Views, other_branches

__all__ = ["HiddenAnswer", "asks_what_was", "find_changed_hit", "find_hidden_answer"]

# So many terms that no hit has are looked up, which at most so many texts have.
_TERMS_MAX: Final = 8
_TEXTS_MAX: Final = 16
# So many hits may be what was asked for.
_HITS_READ: Final = 3
# So many other branches are looked at, the newest first.
_BRANCHES_READ: Final = 20
# How one asks for what was so, and may be so no more.
_PAST: Final = deferred_pattern(
    r"\b(?:before|chang(?:e|ed|es)|earlier|former(?:ly)?|initial(?:ly)?|no longer"
    r"|original(?:ly)?|previous(?:ly)?|used to|was|were)\b",
    re.IGNORECASE,
)


class HiddenAnswer(NamedTuple):
    """What is hidden, and the branch that shows it; None where this one showed it earlier."""

    event: EventContent
    branch: str | None


def asks_what_was(query: str) -> bool:
    """Whether a query asks for something that may have changed since."""
    return _PAST.search(query) is not None


def find_changed_hit(reader: Reader, view: View, hits: Sequence[Hit]) -> Hit | None:
    """Return the first of the best hits whose entry answers, and said something else before."""
    return next(
        (
            hit
            for hit in hits[:_HITS_READ]
            if hit.kind == ENTRY
            and hit.score >= relevance.UNSURE
            and _was_changed(reader, view, hit)
        ),
        None,
    )


def _was_changed(reader: Reader, view: View, hit: Hit) -> bool:
    assert hit.key is not None, "an entry has a key"
    before = reader.records.history(
        view.lineage, entries(hit.namespace), hit.key, before=hit.version, limit=1
    )
    content = orjson.loads(before[0].payload) if before and before[0].payload else {}
    return "value" in content and content["value"] != hit.value


def find_hidden_answer(
    reader: Reader,
    views: Views,
    view: View,
    rarity: Mapping[str, float],
    page: Page,
    *,
    index: Index,
    namespace: str | None,
    other_branches: bool,
) -> HiddenAnswer | None:
    """Return what has more of a query's words than any hit answers of it, and a view hides.

    That is an earlier version of an entry, or what another branch shows. `rarity` is the weight of
    each term of the query. None where there is no such text.
    """
    least = max((hit.score for hit in page.hits), default=relevance.UNSURE)
    unseen = [term for term in rarity if term not in page.terms] if least < 1.0 else []
    counts = index.rare_terms(reader, unseen[:_TERMS_MAX], _TEXTS_MAX) if unseen else {}
    missing = [term for term, count in counts.items() if 0 < count <= _TEXTS_MAX]
    if not missing:
        return None
    asked = analysis.AskedTerms(rarity)
    coverage = relevance.Coverage(rarity)
    best = None
    for event in _hidden_texts(reader, view, missing):
        covered = coverage.of(analysis.find_terms(_text_of(event), asked))
        if covered <= least or namespace not in {None, event.space.namespace}:
            continue
        if _was_replaced(reader, views, view, event):
            best, least = HiddenAnswer(event, None), covered
        elif other_branches and (name := _branch_with(reader, views, view, event)):
            best, least = HiddenAnswer(event, name), covered
    return best


def _hidden_texts(reader: Reader, view: View, terms: Sequence[str]) -> Iterator[EventContent]:
    """Yield entries and logged events with any of some terms that a view does not show."""
    found = reader.search.passages(
        analysis.match_expression(terms),
        weights=ranking.FIELD_WEIGHTS,
        limit=_TEXTS_MAX * len(terms),
    )
    sequences = [each for each in dict.fromkeys(found.sequences.tolist()) if each <= view.limit]
    shown = reader.search.shown_traits(view, sequences, "", spaces=None, tags=())
    hidden = [sequence for sequence in sequences if sequence not in shown]
    for event in reader.log.contents(hidden).values() if hidden else ():
        # Its key is said without being marked as data, so an untrusted text must not choose it.
        if _value_of(event) is not None and not is_doubtful(reader, view, event):
            yield event


def _value_of(event: EventContent) -> Any:
    """Return the value of an entry or the data of a logged event; None of what is neither."""
    content: dict[str, Any] = orjson.loads(event.payload)
    return content.get({ENTRY: "value", EVENT: "data"}.get(event.space.kind, ""))


def _text_of(event: EventContent) -> str:
    return f"{event.key or ''} {values.text_of(_value_of(event))}"


def _was_replaced(reader: Reader, views: Views, view: View, event: EventContent) -> bool:
    """Whether the branch of a view showed an entry's version, and nobody wanted it forgotten."""
    if event.key is None or reader.records.current(view.lineage, event.space, event.key) is None:
        return False
    then = views.view(reader, view.branch.name, f"@{event.sequence}")
    return event.sequence in reader.records.visible_among(then, [event.sequence])


def _branch_with(reader: Reader, views: Views, view: View, event: EventContent) -> str | None:
    """Return a live branch that shows a text, the newest of those that do."""
    others = (branch.name for branch in other_branches(reader.branches, view.branch))
    return next(
        (
            name
            for name in islice(others, _BRANCHES_READ)
            if event.sequence
            in reader.records.visible_among(views.view(reader, name), [event.sequence])
        ),
        None,
    )
