"""What an error says, without who says it and where: the headline of a signature.

A full signature has frames and causes in it, so the last line of a traceback has another one than
the whole. The headline is what both have in common. Its *key* is made of the normalised head:

1. codes in front stay as the bare code (`ERROR 1045 (28000): ` is `1045 `);
2. `Type (message):` and `message (Type)` become `Type: message`;
3. the file in front goes, once: what stands there later is part of the message;
4. labels (`error:`, `panic:`, `Caused by:`), whoever passes it on, and types go; the last type is
   kept beside the key;
5. places at the end go, and of several sentences the first stays, if it says
something; 6. placeholders go, and what is left is put into lower case.

*Names* are the words that tell one problem from another in the same words: what stands in quotes,
what the rules know to be the name of a module, a command or a library, codes, and what is written
like a symbol (`users_pkey`, `com.acme.Foo`, `EADDRINUSE`). *Words* are the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from stratagem.debugging.signatures.error_chain import ParsedError
from stratagem.debugging.signatures.placeholders import normalise, spans_of_names
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Agreement", "Headline", "agreement", "headline_of"]

_LABELS_MAX: Final = 4
_SAID_WORDS_MIN: Final = 2
# A key of fewer words, type included, is said of too many things.
_TELLING_WORDS_MIN: Final = 3
_CAPITALS_MIN: Final = 4
_KEY_CHARS_MAX: Final = 400
_TOKENS_MAX: Final = 80
_DIGEST_CHARS: Final = 24

_EXTENSIONS: Final = (
    r"(?:c|cc|cpp|cxx|h|hpp|hh|m|mm|go|rs|py|pyx|rb|erb|[cm]?js|[cm]?ts|jsx|tsx|vue|svelte|java|kts?|scala"
    r"|cs|fs|vb|php|swift|dart|exs?|erl|hs|lua|pl|pm|r|jl|zig|o|a|s|sql|sh|bash|ya?ml|json|toml|tf|xml|gradle)"
)
# At most 600 characters: a head is cut before it gets here. That goes for all of these.
_CODES: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"^(?:ERROR|Error|error) (\d{3,5})(?: \([0-9A-Z]{5}\))?: ", r"\1 "),
        (r"^SQLSTATE\[\w{5}\](?: \[(\d{1,5})\]|:)? ", r"\1 "),
        (r"^error\[(E\d{4})\]: ", r"\1 "),
        (r" \((?:code|Code|SQLSTATE) \w{1,40}\)$", ""),
        # Rails writes the frames below it, and the colon makes them look like a part of it.
        (r"^([A-Z]\w{2,80}(?:Error|Exception)) \((.{1,500}?)\):?(?= |$).*$", r"\1: \2"),
        (r"^(.{1,500}) \(([A-Z][\w:]{2,80}(?:Error|Exception))\)$", r"\2: \1"),
    )
)
_FILE: Final = re.compile(
    rf"^(?:[\w@+~%<>-][\w.@+~%<>-]{{0,120}}\.{_EXTENSIONS}(?:<n>)?(?: -|:) )(?=\S)"
)
_LABEL: Final = re.compile(
    r"^(?:(?:fatal )?error: |(?:Fatal |FATAL )?(?:ERROR|Error): |FATAL: |fatal: |panic: |panicked: "
    r"|Error response from daemon: "
    r"|(?:npm )?(?:ERR!|error) (?=code |[A-Z])|Uncaught |Unhandled |Caused by: "
    r"|error (?=[A-Z]{1,8}\d{3,5}: )"
    # Whoever passes it on: a tool, a step, a worker.
    r"|[\w.@/-]{1,60}: (?=(?:[a-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception): ))"
)
_TYPE: Final = re.compile(
    r"^\(?(?P<path>(?:[\w$]{1,80}(?:\.|::|\\|/)){0,12})(?P<name>[A-Za-z_$][\w$]{1,100})"
    r"(?: \[[\w-]{1,40}\])?(?:\)|:(?= |$)|$) ?"
)
_TYPE_NAME: Final = re.compile(
    r"(?:Error|Exception|Fault|Failure|Timeout|Interrupt|Exit|Warning|Group|Panic|Violation|Denied|Refused"
    r"|error|timeout|gaierror|exception)\d?$"
)
_CODE_IN_FRONT: Final = re.compile(r"^([A-Z]{1,8}-?\d{3,6}[A-Z]?): ")
_TAILS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r",? called in .{1,300}$",
        r" in \S{1,200} on line <n>$",
        r" \(required by .{1,200}\)$",
        r" \[[\w.<>-]{1,120}\.\w{2,8}proj\]$",
        r" \{? ?code:? '[A-Z][A-Z_]{2,40}' ?\}?$",
        r" or its corresponding type declarations$",
        r",? or may require '(?:docker|podman) login'.{0,300}$",
    )
)
_SENTENCE: Final = re.compile(r"(?<=[\w'\")!])[.;](?= )|! (?=[A-Z])")
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_EDGES: Final = "'\",;:()[]{}.!?"
_QUOTED: Final = re.compile(r"(?<!\w)'(?P<said>[^']{1,200})'")
_TOKEN: Final = re.compile(r"(?!#)[\w$@+#]+(?:(?:\.|::|/|\\|-)[\w$@+#]+)*")
_LEVELS: Final = frozenset({"ERROR", "FATAL", "FAILED", "WARNING", "CRITICAL", "SEVERE", "PANIC"})
_SYMBOL: Final = re.compile(r"\d|_|\.|::|/|\\|[a-z][A-Z]|^\$")


class Headline(NamedTuple):
    """What one error says: `names` and `words` are those of its message, or its type alone.

    `frame` is the newest frame of the program itself; `is_named`: the message names the very
    module, command, library or package that is missing, so that the place does not matter.
    """

    key: str
    type: str
    frame: str
    is_named: bool
    names: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def is_telling(self) -> bool:
        """Whether the key says enough to be taken for the same problem by itself."""
        count = len(self.key.split()) + bool(self.type)
        return count >= _TELLING_WORDS_MIN or bool(self.names)

    @property
    def digest(self) -> str:
        """A short form of the key; empty for an empty key."""
        if not self.key:
            return ""
        return hashlib.sha256(self.key.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]

    def as_dict(self) -> dict[str, Any]:
        """Return it as an incident keeps it."""
        return {
            "key": self.key,
            "type": self.type,
            "frame": self.frame,
            "named": self.is_named,
            "names": list(self.names),
            "words": list(self.words),
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Headline:
        """Return a headline as an incident keeps it."""
        return cls(
            kept["key"],
            kept["type"],
            kept["frame"],
            kept["named"],
            tuple(kept["names"]),
            tuple(kept["words"]),
        )

    def says_the_same_as(self, other: Headline) -> bool:
        """Whether both have one key, and types that do not contradict each other."""
        types = {self.type, other.type} - {""}
        return bool(self.key) and self.key == other.key and len(types) <= 1

    def is_elsewhere(self, other: Headline) -> bool:
        """Whether both say where they were, and it is not the same place."""
        if self.is_named or other.is_named or not self.frame or not other.frame:
            return False
        return self.frame != other.frame


class Agreement(Enum):
    """What two errors with one headline have to do with each other."""

    # Neither says one thing that the other says.
    NONE = auto()
    SAME = auto()
    # The same words, of another place or with another cause.
    ELSEWHERE = auto()
    # The same words, which are said of many a problem.
    UNTELLING = auto()


def agreement(asked: Sequence[Headline], known: Sequence[Headline]) -> Agreement:
    """Compare two errors, each with its causes, newest first."""
    pairs = [(one, other) for one in asked for other in known if one.says_the_same_as(other)]
    if not pairs:
        return Agreement.NONE
    has_causes = len(asked) > 1 and len(known) > 1
    if has_causes and not asked[-1].says_the_same_as(known[-1]):
        return Agreement.ELSEWHERE
    there = [(one, other) for one, other in pairs if not one.is_elsewhere(other)]
    if not there:
        return Agreement.ELSEWHERE
    telling = any(
        one.is_telling or (one.frame and one.frame == other.frame) for one, other in there
    )
    return Agreement.SAME if telling else Agreement.UNTELLING


def headline_of(error: ParsedError, *, names_a_cause: bool = True) -> Headline:
    """Return the headline of one error; one that names no cause has no key."""
    said = normalise(error.head).rstrip(" .")
    kind, message = _part(said)
    # Of the whole head: the type may be what says that a name follows.
    named = {each for begin, end in spans_of_names(said) for each in _split(said[begin:end])}
    names, words = _tokens(message, named)
    if not names and not words and kind:
        words = (kind.lower(),)
    # Of all frames the newest one of the program itself, if there is any.
    place = next((frame for frame in error.frames if not frame.system), None)
    return Headline(
        key=_key(message) if names_a_cause else "",
        type=kind.lower(),
        frame=str(place).strip() if place else "",
        is_named=bool(named),
        names=names,
        words=words,
    )


def _part(said: str) -> tuple[str, str]:
    """Return the type of an error, and what it says."""
    for pattern, replacement in _CODES:
        said = pattern.sub(replacement, said, count=1)
    said = _FILE.sub("", said, count=1)
    kind = ""
    for _ in range(_LABELS_MAX):
        shorter = _LABEL.sub("", said, count=1)
        found = _TYPE.match(shorter)
        # What stands alone behind a type is what it says: `ClassNotFoundException: com.acme.Cart`.
        alone = found is not None and found.end() == len(shorter) and bool(kind)
        if found is not None and _is_type(found) and not alone:
            kind, shorter = found["name"], shorter[found.end() :]
        if shorter == said:
            break
        said = shorter
    said = _CODE_IN_FRONT.sub(r"\1 ", said)
    for tail in _TAILS:
        said = tail.sub("", said)
    return kind, said


def _is_type(found: re.Match[str]) -> bool:
    """Say whether a word in front of a message is the type of an error."""
    if _TYPE_NAME.search(found["name"]):
        return found["name"].lower() not in {"error", "exception"} or bool(found["path"])
    return bool(found["path"]) and found["name"][0].isupper() and "." in found["path"]


def _key(message: str) -> str:
    first = message[: found.start()] if (found := _SENTENCE.search(message)) else message
    words = _key_words(first)
    if sum(word not in STOP_WORDS for word in words) < _SAID_WORDS_MIN:
        words = _key_words(message)
    return " ".join(words)[:_KEY_CHARS_MAX]


def _key_words(text: str) -> list[str]:
    parts = _PLACEHOLDER.sub(" ", text).lower().split()
    return [word for part in parts if (word := part.strip(_EDGES)) and word not in "-#|="]


def _tokens(message: str, named: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and the other words of a message, each once."""
    plain = _PLACEHOLDER.sub(" ", message)
    marked = {each for found in _QUOTED.finditer(plain) for each in _split(found["said"])} | named
    # Where all is in capitals, they tell nothing.
    shouted = plain.isupper()
    names: dict[str, None] = {}
    words: dict[str, None] = {}
    for token in _split(plain):
        lowered = token.lower()
        if token in marked or _is_symbol(token, shouted=shouted):
            names[lowered] = None
        elif lowered not in STOP_WORDS and len(lowered) > 1:
            words[lowered] = None
    others = [word for word in words if word not in names]
    return tuple(names)[:_TOKENS_MAX], tuple(others[:_TOKENS_MAX])


def _split(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _is_symbol(token: str, *, shouted: bool) -> bool:
    if _SYMBOL.search(token):
        return True
    return token.isupper() and len(token) >= _CAPITALS_MIN and not shouted and token not in _LEVELS
