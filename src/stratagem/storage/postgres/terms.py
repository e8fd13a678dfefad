"""Analysed texts, as PostgreSQL keeps them.

A text is found by its terms and ranked by how often each occurs in its title, body and context.
The three counts are one number, because the number of a term is looked up for every text that
matches: `ts_rank` has no BM25 in it, and counting positions took five times as long.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.storage.contract import IndexedText

__all__ = ["PassageRow", "term_query", "text_rows", "workspace_term"]

# Where a term ends; the other store's tokenizer has the same rule.
_BETWEEN: Final = re.compile(r"[\x00-\x20\"'\\`\x7f]+")
# Of each field, a byte: beyond it a term is no more telling.
_COUNT_MAX: Final = 255
_TITLE, _CONTEXT = 16, 8


class PassageRow(NamedTuple):
    """A row of the table of texts."""

    sequence: int
    passage: int
    tokens: int
    # With a space between any two: no term has one in it.
    terms: str
    frequencies: str


def text_rows(workspace: int, sequence: int, document: IndexedText) -> Iterator[PassageRow]:
    """Yield the rows that a text is stored in: one for each passage."""
    title, context = _count_terms(document.title), _count_terms(document.context)
    prefix = workspace_term(workspace, "")
    for place, passage in enumerate(document.passages):
        body = _count_terms(passage)
        counts = {term: min(count, _COUNT_MAX) for term, count in body.items()}
        for found, shift in (title, _TITLE), (context, _CONTEXT):
            for term, count in found.items():
                counts[term] = counts.get(term, 0) + (min(count, _COUNT_MAX) << shift)
        tokens = title.total() + body.total() + context.total()
        terms = f" {prefix}".join(["", *counts])[1:]
        yield PassageRow(sequence, place, tokens, terms, orjson.dumps(counts).decode())


def _count_terms(field: str) -> Counter[str]:
    return Counter(filter(None, _BETWEEN.split(field)))


def term_query(workspace: int, terms: list[str]) -> str:
    """Return the query that finds texts with any of some terms."""
    return " | ".join(f"'{workspace_term(workspace, term)}'" for term in terms)


def workspace_term(workspace: int, term: str) -> str:
    """Return a term as the index has it: a workspace finds only its own."""
    return f"{workspace}:{term}"
