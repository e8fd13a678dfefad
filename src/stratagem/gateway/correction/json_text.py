"""JSON as models write it.

Strict JSON is tried first, then this reader, then Python literals. The reader forgives
punctuation only: commas too many, quotes of the other kind, names without quotes, comments, the
spelling of true, false and null. It notes what it forgave. What it has to guess (text without
quotes, an end that is missing, a wrong escape) makes the reading doubtful, and a doubtful
reading is never applied. A name that occurs twice with different values is refused: JSON readers
differ in which one they keep.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from stratagem import limits

__all__ = [
    "DuplicateName",
    "Malformed",
    "Parsed",
    "fence_contents",
    "found_in",
    "parse",
    "strict",
    "writable",
]

_FENCE: Final = "```"
_FENCE_LINE: Final = re.compile(r"```[\w+-]*+[ \t]*+\n")
_INLINE: Final = re.compile(r"\s*+`([^`]++)`\s*+", re.DOTALL)
_SKIPPED: Final = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/|#[^\n]*+)*", re.DOTALL)
# A name without the braces around it.
_MEMBER: Final = re.compile(r"""["'“]?[A-Za-z_][\w -]*+["'”]?\s*+:""")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"
    r"(?=\s*(?:[,;\]}\n]|//|/\*|#|\Z))"
)
_WORD: Final = re.compile(r"[A-Za-z_$][\w$-]*")
_BARE: Final = re.compile(r"[^,\[\]{}\n:\"']+")
_CLEAR: Final = re.compile(r"\w[\w .@+/%&-]*")
_VARIABLE: Final = re.compile(r"(?=\w*+\Z)\w*?(?:[a-z][A-Z]|_)\w*+|\w++\.\w.*+")
_UNCLEAR: Final = frozenset({"none", "nan", "n/a", "inf", "infinity", "empty", "default"})
_WORDS: Final = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    "null": None, "None": None, "NULL": None, "undefined": None, "nil": None,
}  # fmt: skip
_LOW_HALF: Final = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HIGH_HALVES: Final = range(0xD800, 0xDC00)
_HALVES: Final = range(0xD800, 0xE000)
_CLOSING: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}  # noqa: RUF001 -- quotes of every kind
_ESCAPES: Final = {
    "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip


class Malformed(Exception):
    """The text cannot be read."""


class DuplicateName(Exception):
    """One name has two values."""

    def __init__(self, name: str, values: tuple[Any, Any]) -> None:
        super().__init__(name)
        self.name = name
        self.values = values


class Parsed:
    """What was read, and what had to be forgiven or guessed for it."""

    def __init__(self, value: Any, *, guessed: bool, bare: bool, left_open: int) -> None:
        self.value = value
        self.guessed = guessed
        # Whether texts of the outermost object have no quotes: its names say where they end.
        self.bare = bare
        # How many brackets were still open where the text ends.
        self.left_open = left_open


def strict(text: str) -> Any:
    """Read JSON as the standard has it.

    Raises:
        Malformed: It is not JSON.
        DuplicateName: A name has two values.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from error
    return writable(value)


def writable(value: Any) -> Any:
    """Return what was read, if it can be written again.

    Raises:
        Malformed: A number has more than 64 bits, or a text half a character.
    """
    try:
        orjson.dumps(value)
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise Malformed(str(error)) from error
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise DuplicateName(name, (found[name], value))
        found[name] = value
    return found


def fence_contents(text: str) -> str | None:
    """Return what a code fence encloses, when it encloses all of the text."""
    stripped = text.strip()
    first = _FENCE_LINE.match(stripped)
    if first and stripped.endswith(_FENCE) and len(stripped) >= first.end() + len(_FENCE):
        return stripped[first.end() : -len(_FENCE)].rstrip(" \t").removesuffix("\n")
    inline = _INLINE.fullmatch(text)
    return inline[1] if inline else None


def found_in(text: str) -> str | None:
    """Return the outermost braces with what they enclose, when other text surrounds them."""
    start, end = text.find("{"), text.rfind("}")
    inner = text[start : end + 1] if 0 <= start < end else ""
    return inner if inner and inner != text.strip() else None


def parse(text: str) -> Parsed:
    """Read JSON with its punctuation forgiven.

    Raises:
        Malformed: It cannot be read, or is too long to try.
        DuplicateName: A name has two values.
    """
    if len(text) > limits.CORRECTION_REPAIRED_CHARS_MAX:
        raise Malformed("too long")
    try:
        parsed = _Reader(text.strip().lstrip("\ufeff")).whole()
    except ValueError as error:
        # A number of thousands of digits.
        raise Malformed(str(error)) from error
    writable(parsed.value)
    return parsed


class _Reader:
    """A reader of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._guessed = False
        self._bare = False
        self._nothing = False
        self._quoted = any(quote in text for quote in _CLOSING)
        self._left_open = 0

    def whole(self) -> Parsed:
        self._skip()
        if _MEMBER.match(self._text, self._at):
            # The braces around it are missing.
            value: Any = self._members(closed=False)
        elif self._peek() in {"{", "["}:
            value = self._value()
        else:
            raise Malformed("neither an object nor a list")
        self._skip()
        rest = self._text[self._at :].strip()
        if rest.strip("}]; \n"):
            raise Malformed(f"text after the end: {rest[:20]!r}")
        return Parsed(
            value,
            guessed=self._guessed or (self._nothing and not self._quoted),
            bare=self._bare,
            left_open=self._left_open,
        )

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        found = _SKIPPED.match(self._text, self._at)
        assert found is not None
        self._at = found.end()

    def _take(self, char: str) -> bool:
        self._skip()
        if self._peek() == char:
            self._at += 1
            return True
        return False

    def _is_at_end(self) -> bool:
        """Tell whether the text ends where something should follow."""
        self._skip()
        return self._at >= len(self._text)

    def _value(self, *, named: bool = False) -> Any:
        self._skip()
        char = self._peek()
        if char in {"{", "["}:
            return self._container(char)
        if char in _CLOSING:
            return self._string(char)
        number = _NUMBER.match(self._text, self._at)
        if number:
            self._at = number.end()
            # A number at the very end may have had more digits.
            self._guessed |= self._at == len(self._text)
            return json.loads(number[0].removeprefix("+"))
        return self._word(named=named and self._depth <= 1)

    def _container(self, char: str) -> Any:
        self._depth += 1
        if self._depth > limits.VALUE_DEPTH_MAX:
            raise Malformed("too deep")
        self._at += 1
        value = self._members(closed=True) if char == "{" else self._elements()
        self._depth -= 1
        return value

    def _members(self, *, closed: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self._take("}"):
            if self._is_at_end():
                self._left_open += closed
                break
            name = self._name()
            if not self._take(":") and not self._arrow():
                raise Malformed(f"no colon after {name!r}")
            if self._is_at_end():
                raise Malformed(f"no value for {name!r}")
            value = self._value(named=True)
            if name in found and found[name] != value:
                raise DuplicateName(name, (found[name], value))
            found[name] = value
            self._separate("}")
            # Where names are given, a comma more leaves nothing out.
            while self._take(",") or self._take(";"):
                pass
        return found

    def _arrow(self) -> bool:
        """Go past what other languages have for a colon."""
        if not self._take("="):
            return False
        if self._peek() == ">":
            self._at += 1
        return True

    def _elements(self) -> list[Any]:
        found: list[Any] = []
        while not self._take("]"):
            if self._is_at_end():
                self._left_open += 1
                break
            found.append(self._value())
            # Two texts side by side may be one that has a quote in it.
            if not self._separate("]"):
                self._guessed = True
        return found

    def _separate(self, closing: str) -> bool:
        """Go past a comma and tell whether there was one, or none was needed."""
        if not self._take(","):
            self._skip()
            missing = self._at < len(self._text) and self._peek() != closing
            if missing and self._peek() in {"}", "]"}:
                raise Malformed("closed by the wrong bracket")
            return not missing
        # After a comma at the very end something was to follow.
        self._guessed |= self._is_at_end()
        return True

    def _name(self) -> str:
        if self._peek() in _CLOSING:
            return self._string(self._peek())
        found = _WORD.match(self._text, self._at)
        if not found:
            raise Malformed(f"no name at {self._at}")
        self._at = found.end()
        return found[0]

    def _string(self, quote: str) -> str:
        closing = _CLOSING[quote]
        parts: list[str] = []
        self._at += 1
        while True:
            char = self._peek()
            if not char:
                raise Malformed("a text does not end")
            self._at += 1
            if char == closing:
                return self._check_closing_quote("".join(parts))
            parts.append(self._escape() if char == "\\" else char)

    def _check_closing_quote(self, text: str) -> str:
        """Check that a text ends where its closing quote stands: an apostrophe is none."""
        following = self._text[self._at : self._at + 1]
        if following and following not in " \t\r\n,:}]=/#;":
            raise Malformed("a quote within a text")
        return text

    def _escape(self) -> str:
        char = self._peek()
        self._at += 1
        if char == "u":
            digits = self._text[self._at : self._at + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise Malformed("a wrong escape")
            self._at += 4
            return self._surrogates(int(digits, 16))
        if char in _ESCAPES:
            return _ESCAPES[char]
        self._guessed = True
        return "\\" + char

    def _surrogates(self, code: int) -> str:
        """Return a character, which two escapes may stand for."""
        pair = _LOW_HALF.match(self._text, self._at)
        if code in _HIGH_HALVES and pair:
            self._at = pair.end()
            return bytes.fromhex(f"{code:04x}{pair[1]}").decode("utf-16-be")
        if code in _HALVES:
            raise Malformed("half a character")
        return chr(code)

    def _word(self, *, named: bool) -> Any:
        found = _BARE.match(self._text, self._at)
        if not found or not found[0].strip():
            raise Malformed(f"no value at {self._at}")
        word = found[0].strip()
        self._at = found.end()
        if word in _WORDS:
            # Where no text has quotes, null may be one.
            self._nothing |= _WORDS[word] is None
            return _WORDS[word]
        if named and self._at < len(self._text) and self._is_clear(word):
            self._bare = True
        else:
            self._guessed = True
        return word

    def _is_clear(self, word: str) -> bool:
        """Tell whether a word without quotes is a text: it may name a variable, or nothing.

        Where other texts have quotes, the one that has none is meant to be something else.
        """
        odd = word.casefold() in _UNCLEAR or _VARIABLE.fullmatch(word)
        return not self._quoted and not odd and bool(_CLEAR.fullmatch(word))
