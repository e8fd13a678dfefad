"""Analysed texts, as PostgreSQL keeps them.

A text is found by its terms and ranked by how often each occurs in its title, body and context.
The three counts are one number, because the number of a term is looked up for every text that
matches: `ts_rank` has no BM25 in it, and counting positions took five times as long.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import orjson

from stratagem.storage.contract import IndexedText

__all__ = ["query_terms", "term_query", "text_row", "workspace_term"]

# Where a term ends; the other store's tokenizer has the same rule.
_BETWEEN: Final = re.compile(r"[\x00-\x20\"'\\`\x7f]+")
_QUOTED: Final = re.compile(r'"([^"]*)"')
# Of each field, a byte: beyond it a term is no more telling.
_COUNT_MAX: Final = 255
_PLACES: Final = {"title": 16, "body": 0, "context": 8}


def text_row(
    workspace: int, sequence: int, document: IndexedText
) -> tuple[int, int, list[str], str]:
    """Return the row that a text is kept in."""
    counts: Counter[str] = Counter()
    tokens = 0
    for field, place in _PLACES.items():
        found = Counter(filter(None, _BETWEEN.split(getattr(document, field))))
        tokens += found.total()
        for term, count in found.items():
            counts[term] += min(count, _COUNT_MAX) << place
    terms = [workspace_term(workspace, term) for term in counts]
    return sequence, tokens, terms, orjson.dumps(counts).decode()


def query_terms(expression: str) -> list[str]:
    """Return the terms of a match expression: quoted, with OR between them."""
    return list(dict.fromkeys(filter(None, _QUOTED.findall(expression))))


def term_query(workspace: int, terms: list[str]) -> str:
    """Return the query that finds texts with any of some terms."""
    return " | ".join(f"'{workspace_term(workspace, term)}'" for term in terms)


def workspace_term(workspace: int, term: str) -> str:
    """Return a term as the index has it: a workspace finds only its own."""
    return f"{workspace}:{term}"
