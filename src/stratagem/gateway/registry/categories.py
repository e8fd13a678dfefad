"""Which category a tool of another server is of: guessed from what is said of it, and editable.

Servers say no category. The words of the name count most, then those of the description; where no
word decides, the annotations do. `tool_update` sets another, which a refresh leaves alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from stratagem.gateway.registry.tools import CATEGORY_DEFAULT

__all__ = ["guess_category"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "search": frozenset({"search", "find", "lookup", "query", "browse", "crawl", "scrape", "grep"}),
    "analysis": frozenset(
        {"analyze", "analyse", "analysis", "classify", "detect", "extract", "summarize", "inspect",
         "compare", "statistics", "sentiment", "lint", "scan"}
    ),
    "generation": frozenset(
        {"generate", "compose", "draft", "render", "synthesize", "image", "draw", "paint"}
    ),
    "filesystem": frozenset({"file", "files", "directory", "directories", "folder", "path"}),
    "data": frozenset({"table", "sql", "database", "rows", "csv", "dataset", "record", "records"}),
    "integration": frozenset(
        {"api", "webhook", "email", "mail", "slack", "github", "issue", "calendar", "message",
         "send", "post", "publish", "ticket", "repository", "request"}
    ),
}  # fmt: skip
_NAME_WEIGHT: Final = 3
# Further words of a description are about details.
_DESCRIPTION_WORDS: Final = 40


def guess_category(name: str, description: str, annotations: Mapping[str, Any]) -> str:
    """Return the category that a tool most likely is of."""
    scores: Counter[str] = Counter()
    texts = ((name, _NAME_WEIGHT, None), (description, 1, _DESCRIPTION_WORDS))
    for text, weight, most in texts:
        for word in _WORD.findall(text[:2000])[:most]:
            for category, words in _WORDS.items():
                if word.casefold() in words:
                    scores[category] += weight
    if scores:
        return max(scores, key=lambda each: (scores[each], each))
    return "integration" if annotations.get("openWorldHint") is True else CATEGORY_DEFAULT
