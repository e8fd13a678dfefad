"""What tells apart errors in nearly the same words: what went wrong, and with what.

Normalisation takes a number for a value wherever it may be one, and of a long message the one word
that differs counts little. So what tells problems apart is also looked for in the error as it was
written. There are eleven kinds of such *particulars*:

* `code`: what the error ends in (`failed with E1234`), see `codes`;
* `status`: what a server answered (`returned error: 403`);
* `exit`: how a process ended (`exit code: 137`); 1, 2 and 255 only say that it failed;
* `port`: that of a well-known service in an address of Python (`('127.0.0.1', 5432)`), or in one
  that is listened at (`address already in use :::5432`);
* `bound`: between which versions something must be, by the major one (`'>=18'`);
* `package`: the one of Node.js that the first path leads into (`node_modules/got/index.js`), since
  of a path only the name at its end is compared;
* `thing`: of what kind it is that is missing, or there already (`no such table`);
* `reason`: what stands behind a colon, or in brackets at the end of a message, where the words
  before it are the same (`certificate verify failed: certificate has expired`), quoted ones aside;
* `system`: what the operating system answered (`Connection refused`, `ETIMEDOUT`);
* `test`: the test that failed (`tests/test_cart.py::test_total`), where the message names nothing
  else, or says only what was asserted;
* `values`: the numbers of a message that has no telling word of its own (`assert 3 == 4`,
  `KeyError: 17`, `expected 200, got 500`) and is said without a frame.

Two errors that state particulars of one kind, and none in common, are not the same. In one place of
a program tests do not count: there it is the same line that fails.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from stratagem.debugging.signatures import codes
from stratagem.debugging.signatures.headlines import Headline, split_type
from stratagem.debugging.signatures.placeholders import normalise, numbers
from stratagem.debugging.signatures.vocabulary import PORTS
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["are_others", "is_system_answer", "of_codes", "particulars"]

_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_ANSWER: Final = r"(?: (?:an?|by|code|error|http|response|status|with))"
_STATUS: Final = re.compile(
    rf"\b(?:(?:returned|responded|answered|replied){_ANSWER}{{0,4}}|failed{_ANSWER}{{1,4}}"
    r"|(?:error|status)(?: code)?)[:=]? ?([1-5]\d\d)(?![\w.%]|, \d)",
    re.IGNORECASE,
)
_PORT: Final = re.compile(
    r"\(['\"][^'\"\n]{0,100}['\"], (?P<python>\d{1,5})(?=[,)])"
    # Without a host, or with any: `in use :::5432`, `listen tcp [::]:5432`.
    r"|\b(?:in use|tcp[46]?|udp[46]?):? [\w.:*\[\]-]{0,60}:(?P<listening>\d{1,5})(?!\d)"
)
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
# The innermost of nested ones.
_NODE_PACKAGE: Final = re.compile(
    r"\bnode_modules[/\\](?![.])(?P<name>(?:@[\w.-]{1,100}+[/\\])?[\w.-]{1,100}+)"
    r"(?![^\s'\"]{0,300}[/\\]node_modules[/\\])"
)
# What may be missing, or there already, under one and the same name.
_THINGS: Final = (
    r"attribute|bucket|class|collection|column|constraint|container|database|directory|extension"
    r"|field|file|folder|function|image|index|method|namespace|network|node|pod|procedure|property"
    r"|queue|relation|role|schema|secret|sequence|service|table|topic|trigger|type|user|view|volume"
)
_OTHER_NAMES: Final = {
    "field": "column",
    "folder": "directory",
    "relation": "table",
    "user": "role",
}
_THING: Final = re.compile(
    rf"\b(?:[Nn]o such|[Uu]nknown|[Uu]ndefined|[Mm]issing) (?P<missing>{_THINGS})\b"
    rf"|\b(?P<named>{_THINGS}):? '[^'\n]{{1,200}}'"
    r" (?:(?:was |is )?not (?:found|defined)|does(?: not|n't) exist|already exists)"
)
# What the operating system answers, by the name of the errno, as systems and runtimes word it.
_SYSTEM: Final = {
    "resolve": (
        r"name or service not known|no such host|could not resolve host|getaddrinfo failed"
        r"|temporary failure in name resolution|nodename nor servname|enotfound|eai_again"
    ),
    "eacces": r"permission denied|eacces",
    "eaddrinuse": r"address already in use|eaddrinuse",
    "eaddrnotavail": r"cannot assign requested address|eaddrnotavail",
    "econnrefused": r"connection refused|actively refused|econnrefused",
    "econnreset": r"connection reset|forcibly closed|econnreset",
    "eexist": r"file exists|eexist",
    "ehostunreach": r"no route to host|host is unreachable|ehostunreach",
    "eisdir": r"is a directory|eisdir",
    "enetunreach": r"network is unreachable|enetunreach",
    "enoent": r"no such file or directory|enoent",
    "enoexec": r"exec format error|enoexec",
    "enospc": r"no space left on device|enospc",
    "enotdir": r"not a directory|enotdir",
    "enotempty": r"directory not empty|enotempty",
    "eperm": r"operation not permitted|eperm",
    "epipe": r"broken pipe|epipe",
    "erofs": r"read-only file system|erofs",
    "etimedout": r"connect(?:ion)? timed out|operation timed out|i/o timeout|etimedout",
}
_SYSTEM_ANSWER: Final = re.compile(
    rf"\b(?:{'|'.join(f'(?P<{name}>{words})' for name, words in _SYSTEM.items())})\b", re.IGNORECASE
)
_EXIT: Final = re.compile(
    r"\bexit(?:ed)? (?:with )?(?:code|status)[:=]? ?\(?(\d{1,3})(?!\d)", re.IGNORECASE
)
_EXIT_LINE: Final = re.compile(
    r"^[ \t]{0,40}exit (?:code|status):[ \t]{1,20}(\d{1,3})$", re.IGNORECASE | re.MULTILINE
)
# Programs that only say that they failed end so.
_ANY_FAILURE: Final = frozenset({"1", "2", "255"})
# At most 600 characters: a head is cut before it gets here.
_PLACE_BEHIND: Final = re.compile(r" \([\w/-]{0,120}(?:\.[a-z]{1,5}|<[a-z]{1,12}>)\)$")
_IN_BRACKETS: Final = re.compile(r"^(?P<front>.*\S) \((?P<reason>[^()]{1,300})\)$")
_LABEL_BEHIND: Final = re.compile(r"(?i)(?:: (?:fatal|error)){1,3}$")
_LABEL_BEFORE: Final = re.compile(r"(?i)^(?:(?:fatal|error): ){1,3}")
_COLON: Final = re.compile(": ")
_COLONS_MAX: Final = 6
_QUOTED: Final = re.compile(r"'[^']{0,400}'")
_REASON_WORD: Final = re.compile(r"[^\W\d_]\w++")
_REASON_WORDS_MAX: Final = 20
_DIGEST_CHARS: Final = 12
_FRONT_WORDS_MIN: Final = 2
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


def particulars(head: str, found: Headline, code_lines: str, text: str) -> frozenset[str]:
    """Return what an error states, each with its kind in front.

    `head` is its own message and `found` the headline of that; `code_lines` is what states its
    codes, and `text` all that was written.
    """
    stated = [*of_codes(code_lines)]
    stated += [f"status {status}" for status in _STATUS.findall(head)]
    stated += [f"port {port}" for port in _ports(head)]
    stated += [f"bound {bound}" for bound in _bounds(head)]
    # Those behind it ask for it.
    packages = [found["name"] for found in [_NODE_PACKAGE.search(head)] if found]
    stated += ["package " + name.replace("\\", "/") for name in packages]
    stated += [f"exit {status}" for status in _exits(head, text)]
    stated += [f"thing {thing}" for thing in _things(head)]
    stated += [f"system {found.lastgroup}" for found in _SYSTEM_ANSWER.finditer(head)]
    stated += _reasons(head)
    if not found.names or found.type == "assertionerror":
        stated += [f"test {test}" for test in _tests(text)]
    if _is_untelling(found) and not found.frame:
        stated += [f"values {' '.join(said)}" for said in [numbers(head)] if said]
    return frozenset(stated)


def is_system_answer(text: str) -> bool:
    """Say whether a text has nothing but what the operating system answered."""
    return _SYSTEM_ANSWER.fullmatch(text.strip().rstrip(".")) is not None


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
    for found in _PORT.finditer(head):
        port = found["python"] or found["listening"]
        yield port if int(port) in PORTS else "other"


def _bounds(head: str) -> Iterator[str]:
    for found in _BOUND.finditer(head):
        # What is at least 0 may be any.
        if found["sign"] not in _AT_LEAST or int(found["major"]):
            side = "below" if found["sign"] in _BELOW else "from"
            yield f"{side} {found['major']}"


def _exits(head: str, text: str) -> Iterator[str]:
    for status in [*_EXIT.findall(head), *_EXIT_LINE.findall(text)]:
        yield "failed" if status in _ANY_FAILURE else status


def _things(head: str) -> Iterator[str]:
    for found in _THING.finditer(normalise(head)):
        thing = found["missing"] or found["named"]
        yield _OTHER_NAMES.get(thing, thing)


def _reasons(head: str) -> Iterator[str]:
    """Yield the words of the reasons that a message ends in, each of a kind of what is before."""
    said = _PLACE_BEHIND.sub("", split_type(normalise(head).rstrip(" ."))[1])
    for front, reason in _split_reasons(said):
        # What it is about (`'a.txt'`) is no part of what went wrong.
        told = _telling_words(_LABEL_BEHIND.sub("", _QUOTED.sub(" ", front)))
        if len(told) < _FRONT_WORDS_MIN:
            continue
        known = {*told, *_telling_words(front)}
        said_behind = _telling_words(_LABEL_BEFORE.sub("", reason))
        words = [word for word in said_behind if word not in known]
        kind = hashlib.sha256(" ".join(told).encode("utf-8", "surrogatepass")).hexdigest()
        for word in words[:_REASON_WORDS_MAX]:
            yield f"reason:{kind[:_DIGEST_CHARS]} {word}"


def _split_reasons(said: str) -> Iterator[tuple[str, str]]:
    """Yield the front of a message and the reason behind it, for each place that may part them."""
    if found := _IN_BRACKETS.match(said):
        yield found["front"], found["reason"]
    for colon in islice(_COLON.finditer(said), _COLONS_MAX):
        yield said[: colon.start()], said[colon.end() :]


def _telling_words(text: str) -> list[str]:
    """Return the words of a text in small letters, each once, but for those that any text has."""
    words = _REASON_WORD.findall(_PLACEHOLDER.sub(" ", text).lower())
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS))


def _tests(text: str) -> Iterator[str]:
    for found in _TEST.finditer(text):
        yield f"{found['file']}::{found['name']}"


def _is_untelling(found: Headline) -> bool:
    """Whether a message has no word that tells it from others of its type."""
    return not found.names and _UNTELLING.union({found.type}).issuperset(found.words)
