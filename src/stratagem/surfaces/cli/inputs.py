"""What people type, and what it means: values, files, standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

from stratagem.errors import InvalidInput, ValidationFailed

__all__ = ["looks_like_json", "read_bytes", "read_items", "read_json", "read_value"]

# What objects and lists begin with, wherever they break off.
_BEGINNINGS: Final = ('{"', '["', "[{")


def read_value(given: str, *, text: bool = False) -> Any:
    """Return the value that was given: JSON where it is JSON, else text; `-` reads stdin.

    `text` takes it as it is, whatever it looks like.
    """
    from_stdin = given == "-"
    words = _decode(read_bytes("-")) if from_stdin else given
    if text:
        return words
    try:
        return _parse(words)
    except ValueError:
        # `echo hello |` means hello.
        return words.removesuffix("\n") if from_stdin else words


def looks_like_json(value: object) -> bool:
    """Whether a value that was read as text was probably meant as an object or a list."""
    if not isinstance(value, str):
        return False
    words = value.strip()
    if words.startswith(_BEGINNINGS):
        return True
    return words[:1] + words[-1:] in {"{}", "[]"} and len(words) > len("[]")


def read_json(given: str, *, field: str) -> Any:
    """Return the JSON that was given; `-` reads stdin.

    Raises:
        InvalidInput: It is no JSON.
    """
    words = _decode(read_bytes("-")) if given == "-" else given
    try:
        return _parse(words)
    except ValueError as error:
        raise InvalidInput(
            f"`{field}` is not JSON: {error}.",
            field=field,
            hint='Quote it for the shell, as in \'{"key": "a"}\', or give - and pipe it in.',
        ) from error


def read_items(given: str) -> list[Any]:
    """Return the items of a file: a JSON array, or a line of JSON for each."""
    words = _decode(read_bytes(given))
    if words.lstrip().startswith("["):
        return list(_parse_item(words, "The items are no JSON array"))
    # Not splitlines: U+2028 and the like may stand within a text of JSON.
    lines = enumerate(words.split("\n"), 1)
    return [_parse_item(line, f"Line {at} is no JSON") for at, line in lines if line.strip()]


def _parse_item(words: str, problem: str) -> Any:
    try:
        return _parse(words)
    except ValueError as error:
        raise InvalidInput(
            f"{problem}: {getattr(error, 'msg', error)}.",
            field="items",
            hint="Items are a JSON array, or one object on each line.",
        ) from error


def read_bytes(given: str) -> bytes:
    """Return what is in a file; `-` is stdin."""
    if given == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(given).read_bytes()
    except OSError as error:
        raise ValidationFailed(
            f"{given} cannot be read: {error.strerror}.",
            file=given,
            hint="Check the path and its permissions.",
        ) from error


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationFailed("The input is not text in UTF-8.") from error


def _parse(words: str) -> Any:
    """Parse JSON to the letter: large integers stay exact, and NaN is not a number of JSON."""
    try:
        return json.loads(words, parse_constant=_refuse, parse_int=_integer)
    except RecursionError as error:
        raise ValidationFailed("The value is nested too deeply.", field="value") from error


def _integer(digits: str) -> int:
    # Python reads no longer ones, and its own error speaks of a setting of the interpreter.
    if len(digits) > (most := sys.get_int_max_str_digits()) > 0:
        raise ValidationFailed(
            f"A number has {len(digits):,} digits; the limit is {most:,}.",
            limit=most,
            hint="Send it as text, in quotes.",
        )
    return int(digits)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
