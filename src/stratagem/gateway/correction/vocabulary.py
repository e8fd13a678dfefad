"""Which words there are: a name made of them is no misspelling of another, however near it is.

The words are those of the embedder in `search/model`, numbered by how common they are: first those
of general English, then those of programming. They are read when the first name is compared with
another, which takes about 20 ms; nothing else about a correction depends on a file.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import orjson

__all__ = ["is_common", "is_word"]

_FILE: Final = Path(__file__).parents[2] / "search" / "model" / "tokenizer.json"
# Beyond are rare words, and misspellings that are met often.
_WORDS_MAX: Final = 28_700
# Most short tokens beyond are abbreviations and pieces of names.
_SHORT_WORDS_MAX: Final = 3_000
_SHORT_CHARS: Final = 3
# Others are made of these.
_COMMON_MAX: Final = 8_000
# What the vocabulary lacks: short names of quantities, and words that are a letter away from
# others with another meaning (`assignor`, `assignee`).
_TERMS: Final = frozenset(
    """
    a acc ace add aim alt an api app arg as asc assignee assignor at ate avg bake bathe bet bid bin
    bolder borrower bot buy by calc cap capo caption cat celsius cod col collage consignee
    consignor cpe cpu crm cry csm cve cwe deceive decrement denominator desc dest dev devise
    dine dir dividend divisor docket dot egg env equip expend fan faq fat fax fee fit fix freq
    gap geo go gpu grantee grantor ham hat hay hen hip id idp ids idx if in inn inst int invoice
    is it jam jar jaw jet joy kilogram kit lab lander lap lat len lender lessee lessor lid lip
    lng log lon mac map mentee min mod mol mols mud mug net no num numerator nut oak odd of on
    or pad pan payee payees payout pen pend pet pig pin pint pit pod postfix pot prev prob prod
    pub purl racket radium raw ref repaid row rrule rub sad scaler sec semicolon sender sine ski
    spy sql src ssid ssl stationery sub subtract sum tag tap tea tenet ticker tie tint tip tls
    to toe toy untied up uri url us var vender vocation wet x y yearn z zip
    """.split()
)


@cache
def _ranks() -> dict[str, int]:
    vocabulary: dict[str, int] = orjson.loads(_FILE.read_bytes())["model"]["vocab"]
    return dict.fromkeys(_TERMS, 0) | {
        word: number
        for word, number in vocabulary.items()
        if number <= (_WORDS_MAX if len(word) > _SHORT_CHARS else _SHORT_WORDS_MAX)
        and len(word) >= _SHORT_CHARS
        and word.isalpha()
    }


def is_word(word: str) -> bool:
    """Tell whether a word, in lower case, is a real one."""
    return word in _ranks()


def is_common(word: str) -> bool:
    """Tell whether a word, in lower case, is one that others are made of."""
    return _ranks().get(word, _WORDS_MAX) <= _COMMON_MAX
