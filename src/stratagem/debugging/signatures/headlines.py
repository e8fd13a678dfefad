"""The headline of a signature: the message of an error without its source and place.

A full signature has frames and causes in it, so the last line of a traceback has another one than
the whole. The headline is what both have in common. Its *key* is made of the normalised head:

1. codes in front stay as the bare code (`ERROR 1045 (28000): ` is `1045 `);
2. `Type (message):` and `message (Type)` become `Type: message`;
3. the file in front goes, once: what stands there later is part of the message;
4. labels (`error:`, `panic:`, `Caused by:`), whoever passes it on, and types go; the last type is
   kept beside the key;
5. places at the end go, and of several sentences the first stays, if it says something and names
   what the others name;
6. placeholders go, and what is left is put into lower case.

*Names* are the words that tell one problem from another in the same words: what stands in quotes,
what the rules know to be the name of a module, a command or a library, codes, what is written like
a symbol (`users_pkey`, `com.acme.Foo`, `EADDRINUSE`), packages by what is asked of them
(`chalk@5`) or by their address, and what stands alone behind the last colon. *Words* are the rest.
*Packages* are those that the lines around an error name: two errors that name packages, and none in
common, are two problems, whatever else they say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

from stratagem.debugging.signatures.error_chain import ParsedError
from stratagem.debugging.signatures.placeholders import named_parts, normalise
from stratagem.deferred_tuples import NamedTuple
from stratagem.search.stopwords import STOP_WORDS

__all__ = ["Agreement", "Headline", "agreement", "headline_of", "names_something", "split_type"]

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
    r"|cs|fs|vb|php|swift|dart|exs?|erl|hs|lua|pl|pm|cgi|r|jl|zig|o|a|s|sql|sh|bash|ps|ya?ml|json|toml|tf|xml|gradle)"
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
    rf"^(?:[\w@+~%<>-][\w.@+~%<>-]{{0,120}}\.{_EXTENSIONS}(?:<n>)?(?: -| ?:) )(?=\S)"
)
_LABEL: Final = re.compile(
    r"^(?:(?:fatal )?error: |(?:Fatal |FATAL )?(?:ERROR|Error): |FATAL: |fatal: |panic: |panicked: "
    r"|Error response from daemon: "
    r"|(?:npm )?(?:ERR!|error) (?=code |[A-Z])|Uncaught |Unhandled |Caused by: "
    r"|[A-Z]{3,20} FAILED: |\[\w{3,40}\]: "
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
        r"[.;,] ?(?:For more (?:information|details|help)|Learn more|Read more|See \S).{0,500}$",
        r" in \S{1,200} on line <n>$",
        r" at \S{1,200} line <n>$",
        r" \(required by .{1,200}\)$",
        r" \[[\w.<>-]{1,120}\.\w{2,8}proj\]$",
        r" \{? ?code:? '[A-Z][A-Z_]{2,40}' ?\}?$",
        r" or its corresponding type declarations$",
        r",? or may require '(?:docker|podman) login'.{0,300}$",
    )
)
_SENTENCE: Final = re.compile(r"(?<=[\w'\")!])[.;](?= )|! (?=[A-Z])")
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_CODE: Final = re.compile(r"(?<![\w@.])\d{3,5}(?![\w.])")
_EDGES: Final = "'\",;:()[]{}.!?"
_QUOTED: Final = re.compile(r"(?<!\w)'(?P<said>[^']{0,200})'")
_TOKEN: Final = re.compile(r"(?!#)[\w$@+#]+(?:(?:\.|::|/|\\|-)[\w$@+#]+)*")
# A package with its major version, as `normalise` writes it.
_VERSIONED: Final = re.compile(
    r"(?P<package>@?[^\s'\",;()@]{1,200})@(?P<major>\d{1,9}|\*)(?!\w|\.\w)"
)
_LEVELS: Final = frozenset({"ERROR", "FATAL", "FAILED", "WARNING", "CRITICAL", "SEVERE", "PANIC"})
# Parts of words that are written with a hyphen and name nothing.
_COMPOUND: Final = frozenset(
    {
        *("non", "pre", "post", "re", "un", "sub", "multi", "self", "semi", "anti", "co"),
        *("inter", "over", "under", "read", "write", "only", "built", "in", "out", "of", "up"),
        *("to", "on", "off", "by", "end", "side", "based", "level", "party", "wide", "way"),
        *("time", "run", "null", "zero", "one", "two", "first", "third", "single", "double"),
        *("half", "well", "ill", "so", "all", "auto", "case", "sensitive", "like", "free"),
        *("safe", "aware", "existing", "defined", "specific", "related", "length", "size", "bit"),
        *("byte", "line", "word", "high", "low", "long", "short", "full", "empty", "hard"),
        *("soft", "left", "right", "open", "closed"),
    }
)
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
    # The major versions in which a name is asked for: `react` in 17 is not `react` in 18.
    versions: tuple[tuple[str, str], ...] = ()
    # What the lines around it name, where it is the newest error of a text.
    packages: tuple[str, ...] = ()

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
            "versions": [list(each) for each in self.versions],
            "packages": list(self.packages),
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
            tuple((name, major) for name, major in kept.get("versions", ())),
            tuple(kept.get("packages", ())),
        )

    def says_the_same_as(self, other: Headline) -> bool:
        """Whether both have one key, and types that do not contradict each other."""
        if not self.key or self.key != other.key:
            return False
        return self.type == other.type or not self.type or not other.type

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
    # Whatever they say, they say it of other packages.
    OF_OTHERS = auto()


def agreement(asked: Sequence[Headline], known: Sequence[Headline]) -> Agreement:
    """Compare two errors, each with its causes, newest first."""
    if _are_of_others(asked, known):
        return Agreement.OF_OTHERS
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


def _are_of_others(asked: Sequence[Headline], known: Sequence[Headline]) -> bool:
    """Say whether both name packages, and not one of them is the same."""
    one = {package for each in asked for package in each.packages}
    if not one:
        return False
    other = {package for each in known for package in each.packages}
    return bool(other) and one.isdisjoint(other)


def headline_of(error: ParsedError, *, names_a_cause: bool = True) -> Headline:
    """Return the headline of one error; one that names no cause has no key."""
    said = normalise(error.head).rstrip(" .")
    kind, message = split_type(said)
    # Of the whole head: the type may be what says that a name follows.
    named = named_parts(said)
    marked = {token for each in (*named.names, *named.resources) for token in _split(each)}
    names, words = _tokens(_VERSIONED.sub(r"\g<package>", message), marked)
    if not names and not words and kind:
        words = (kind.lower(),)
    # Of all frames the newest one of the program itself, if there is any.
    place = next((frame for frame in error.frames if not frame.system), None)
    return Headline(
        key=_key(message, names) if names_a_cause else "",
        type=kind.lower(),
        frame=str(place).strip() if place else "",
        is_named=bool(named.names),
        names=names,
        words=words,
        versions=tuple(dict.fromkeys(_versions(message))),
    )


def names_something(head: str) -> bool:
    """Say whether what an error says of itself names anything; a code (`404`) does not."""
    codes = {token.lower() for token in _split(head) if token.isupper() or token.isdigit()}
    return any(name not in codes for name in headline_of(ParsedError(head, [])).names)


def _versions(message: str) -> Iterator[tuple[str, str]]:
    """Yield the packages of a message with the major version that each is asked for in."""
    for found in _VERSIONED.finditer(message):
        tokens = _split(found["package"].lower())
        if tokens and found["major"] != "*":
            yield tokens[-1], found["major"]


def split_type(said: str) -> tuple[str, str]:
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


def _key(message: str, names: Sequence[str]) -> str:
    found = _SENTENCE.search(message)
    # A number that is still there is a code, and tells problems apart wherever it stands.
    if found is None or _CODE.search(message, found.end()):
        return " ".join(_key_words(message))[:_KEY_CHARS_MAX]
    first = message[: found.start()]
    words = _key_words(first)
    says_little = sum(word not in STOP_WORDS for word in words) < _SAID_WORDS_MIN
    telling = [name for name in names if not name.isdigit()]
    if says_little or (telling and not any(name in first.lower() for name in telling)):
        words = _key_words(message)
    return " ".join(words)[:_KEY_CHARS_MAX]


def _key_words(text: str) -> list[str]:
    parts = _PLACEHOLDER.sub(" ", text).lower().split()
    return [word for part in parts if (word := part.strip(_EDGES)) and word not in "-#|="]


def _tokens(message: str, named: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names and the other words of a message, each once."""
    plain = _PLACEHOLDER.sub(" ", message)
    marked = {each for found in _QUOTED.finditer(plain) for each in _split(found["said"])} | named
    outer, _, last = plain.rstrip().rpartition(": ")
    # What stands alone behind the last colon is what it is all about: `no match for: htop`.
    if " " in outer.strip() and " " not in last:
        marked.update(_split(last))
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
    if "-" in token and not (set(token.lower().split("-")) & _COMPOUND):
        return True
    return token.isupper() and len(token) >= _CAPITALS_MIN and not shouted and token not in _LEVELS
