"""Which earlier version of an entry answers a query, where no text says it any more.

A search sees what a view shows, so that a decision that was revised, or an entry that has expired,
is not found by what it said. Who asks why something was rejected may ask just for that. A word
that none of the hits has, and few texts of the whole log have, is looked up among all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import orjson

from stratagem.deferred_patterns import deferred_pattern
from stratagem.engine import values
from stratagem.engine.lineage import View
from stratagem.memory.hits import Page, is_doubtful
from stratagem.memory.kinds import ENTRY, entries
from stratagem.memory.models import Hit
from stratagem.search import analysis, ranking, relevance
from stratagem.search.index import Index
from stratagem.storage.contract import EventContent, Reader
from stratagem.storage.views import Views

__all__ = ["asks_what_was", "find_changed_hit", "find_earlier_version"]

# So many terms that no hit has are looked up, which at most so many texts have.
_TERMS_MAX: Final = 8
_TEXTS_MAX: Final = 16
# So many hits may be what was asked for.
_HITS_READ: Final = 3
# How one asks for what was so, and may be so no more.
_PAST: Final = deferred_pattern(
    r"\b(?:before|chang(?:e|ed|es)|earlier|former(?:ly)?|initial(?:ly)?|no longer"
    r"|original(?:ly)?|previous(?:ly)?|used to|was|were)\b",
    re.IGNORECASE,
)


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


def find_earlier_version(
    reader: Reader,
    views: Views,
    view: View,
    rarity: Mapping[str, float],
    page: Page,
    *,
    index: Index,
    namespace: str | None,
) -> EventContent | None:
    """Return the earlier version that has more of a query's words than any hit answers of it.

    `rarity` is the weight of each term of the query. None where there is no such version.
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
    for event in _hidden_entries(reader, view, missing):
        text = f"{event.key} {values.text_of(orjson.loads(event.payload)['value'])}"
        covered = coverage.of(analysis.find_terms(text, asked))
        if (
            covered > least
            and namespace in {None, event.space.namespace}
            and _was_replaced(reader, views, view, event)
        ):
            best, least = event, covered
    return best


def _hidden_entries(reader: Reader, view: View, terms: Sequence[str]) -> Iterator[EventContent]:
    """Yield the versions of entries with any of some terms that a view does not show."""
    found = reader.search.passages(
        analysis.match_expression(terms),
        weights=ranking.FIELD_WEIGHTS,
        limit=_TEXTS_MAX * len(terms),
    )
    sequences = [each for each in dict.fromkeys(found.sequences.tolist()) if each <= view.limit]
    shown = reader.search.shown_traits(view, sequences, "", spaces=None, tags=())
    hidden = [sequence for sequence in sequences if sequence not in shown]
    for event in reader.log.contents(hidden).values() if hidden else ():
        is_entry = event.space.kind == ENTRY and "value" in orjson.loads(event.payload)
        # Its key is said without being marked as data, so an untrusted text must not choose it.
        if is_entry and not is_doubtful(reader, view, event):
            yield event


def _was_replaced(reader: Reader, views: Views, view: View, event: EventContent) -> bool:
    """Whether the branch of a view showed a version, and nobody wanted it forgotten since."""
    assert event.key is not None, "an entry has a key"
    if reader.records.current(view.lineage, event.space, event.key) is None:
        return False
    then = views.view(reader, view.branch.name, f"@{event.sequence}")
    return event.sequence in reader.records.visible_among(then, [event.sequence])
