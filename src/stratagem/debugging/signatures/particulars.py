"""What tells apart errors in the same words: values that say what went wrong, or with what.

Normalisation takes a number for a value wherever it may be one. Some of them are more than that,
and are looked for in the error as it was written. There are six kinds of such *particulars*:

* `code`: what the error ends in (`failed with E1234`), see `codes`;
* `status`: what a server answered (`returned error: 403`);
* `port`: that of a well-known service in an address of Python (`('127.0.0.1', 5432)`);
* `bound`: between which versions something must be, by the major one (`'>=18'`);
* `test`: the test that failed (`tests/test_cart.py::test_total`), where the message names nothing
  else, or says only what was asserted;
* `values`: the numbers of a message that has no telling word of its own (`assert 3 == 4`,
  `KeyError: 17`, `expected 200, got 500`) and is said without a frame.

Two errors that state particulars of one kind, and none in common, are not the same. In one place of
a program tests do not count: there it is the same line that fails.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from stratagem.debugging.signatures import codes
from stratagem.debugging.signatures.headlines import Headline
from stratagem.debugging.signatures.placeholders import numbers
from stratagem.debugging.signatures.vocabulary import PORTS

__all__ = ["are_others", "may_have", "of_codes", "particulars"]

_MAY_HAVE: Final = re.compile(r"\d|::")
_ANSWER: Final = r"(?: (?:an?|by|code|error|http|response|status|with))"
_STATUS: Final = re.compile(
    rf"\b(?:(?:returned|responded|answered|replied){_ANSWER}{{0,4}}|failed{_ANSWER}{{1,4}}"
    r"|(?:error|status)(?: code)?)[:=]? ?([1-5]\d\d)(?![\w.%]|, \d)",
    re.IGNORECASE,
)
_PORT: Final = re.compile(r"\(['\"][^'\"\n]{0,100}['\"], (\d{1,5})(?=[,)])")
_BOUND: Final = re.compile(
    r"(?:['\"(]|\b(?:versions?|requires?|required|needs?|wanted):? )"
    r"(?P<sign>>=?|<=?|\^|~[>=]?) ?v?(?P<major>\d{1,4})(?!\d)"
)
_AT_LEAST: Final = frozenset({">", ">="})
_BELOW: Final = frozenset({"<", "<="})
# By its id, or by its frame. Other runners name a test in the line that says that it failed.
_TEST: Final = re.compile(
    r"(?<![\w.-])(?P<file>[\w-]{1,100}\.py)"
    r"(?:::(?:\w{1,200}::){0,4}|:\d{1,7}: in |['\"], line \d{1,7}, in )(?P<name>test\w{0,200})"
)
# With a number these say that two things are not equal, whatever they are.
_UNTELLING: Final = frozenset(
    {
        *("actual", "assert", "asserted", "assertion", "be", "been", "but", "compared", "did"),
        *("equal", "equals", "error", "exception", "expect", "expected", "expecting", "fail"),
        *("failed", "failure", "false", "found", "get", "given", "got", "greater", "have"),
        *("instead", "left", "less", "match", "matched", "mismatch", "none", "not", "null"),
        *("obtained", "receive", "received", "result", "return", "returned", "right", "than"),
        *("true", "value", "values", "want", "wanted", "was", "were"),
    }
)


def may_have(text: str) -> bool:
    """Say whether a text may state anything: most that do not need not be read."""
    return _MAY_HAVE.search(text) is not None or codes.has_codes(text)


def particulars(head: str, found: Headline, code_lines: str, text: str) -> frozenset[str]:
    """Return what an error states, each with its kind in front.

    `head` is its own message and `found` the headline of that; `code_lines` is what states its
    codes, and `text` all that was written.
    """
    stated = [*of_codes(code_lines)]
    stated += [f"status {status}" for status in _STATUS.findall(head)]
    stated += [f"port {port}" for port in _ports(head)]
    stated += [f"bound {bound}" for bound in _bounds(head)]
    if not found.names or found.type == "assertionerror":
        stated += [f"test {test}" for test in _tests(text)]
    if _is_untelling(found) and not found.frame:
        stated += [f"values {' '.join(said)}" for said in [numbers(head)] if said]
    return frozenset(stated)


def of_codes(code_lines: str) -> frozenset[str]:
    """Return the codes that a text states, as particulars."""
    return frozenset(f"code {code}" for code in codes.codes_at_end(code_lines))


def are_others(one: Collection[str], other: Collection[str], *, in_one_place: bool) -> bool:
    """Say whether two errors state particulars of one kind, and none of it that both have."""
    shared = {_kind(each) for each in set(one).intersection(other)}
    stated = {_kind(each) for each in one} & {_kind(each) for each in other}
    return bool(stated - shared - ({"test"} if in_one_place else set()))


def _kind(particular: str) -> str:
    return particular.partition(" ")[0]


def _ports(head: str) -> Iterator[str]:
    """Yield the ports of addresses: a well-known one names the service, any other is a value."""
    for port in _PORT.findall(head):
        yield port if int(port) in PORTS else "other"


def _bounds(head: str) -> Iterator[str]:
    for found in _BOUND.finditer(head):
        # What is at least 0 may be any.
        if found["sign"] not in _AT_LEAST or int(found["major"]):
            side = "below" if found["sign"] in _BELOW else "from"
            yield f"{side} {found['major']}"


def _tests(text: str) -> Iterator[str]:
    for found in _TEST.finditer(text):
        yield f"{found['file']}::{found['name']}"


def _is_untelling(found: Headline) -> bool:
    """Whether a message has no word that tells it from others of its type."""
    return not found.names and _UNTELLING.union({found.type}).issuperset(found.words)
