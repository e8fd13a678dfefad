"""WordPiece: from text to the numbers of the tokens that a model knows.

A model's vocabulary has whole words and pieces that continue one, marked by `##`. A text
is normalised (controls out, accents off, lower case), parted at white space, punctuation
and Chinese characters, and each word is then covered from the left with the longest
piece that fits. A word that cannot be covered is one unknown token.

The rules are those of `BertNormalizer`, `BertPreTokenizer` and `WordPiece` in a
`tokenizer.json`, which is read here because the library that usually reads it is larger
than all of Stratagem. Its tables are of an older Unicode: a few marks and symbols that
joined later are parted here by their present category.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from stratagem.function_cache import FunctionCache

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["WordPiece"]

# Words seen again are looked up. 16,384 of them take about 3 MB.
_WORDS_MAX: Final = 16_384
_WORD_CHARS_MAX: Final = 64
_CHARACTERS_MAX: Final = 4_096

# What `str.split` takes for white space and BERT takes for nothing at all.
_FALSE_SPACE: Final = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_ASCII_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_REPLACEMENT: Final = "\ufffd"
_CHINESE: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
_UNDERSTOOD: Final[dict[str, dict[str, Any]]] = {
    "normalizer": {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": True,
    },
    "pre_tokenizer": {"type": "BertPreTokenizer"},
}


class WordPiece:
    """A reader of text for one vocabulary. Safe to share between threads."""

    def __init__(
        self, vocabulary: Mapping[str, int], *, unknown: str, prefix: str, chars_max: int
    ) -> None:
        self.unknown_id: Final = vocabulary[unknown]
        self._vocabulary = vocabulary
        self._prefix = prefix
        self._chars_max = chars_max
        self._memo = FunctionCache(
            self._of_chunk, entries_max=_WORDS_MAX, chars_max=_WORD_CHARS_MAX
        )

    @classmethod
    def read(cls, path: Path) -> WordPiece:
        """Read a `tokenizer.json`.

        Raises:
            InternalFault: The file asks for a rule that is not known here.
        """
        import orjson

        document = orjson.loads(path.read_bytes())
        _check(document)
        model = document["model"]
        return cls(
            model["vocab"],
            unknown=model["unk_token"],
            prefix=model["continuing_subword_prefix"],
            chars_max=model["max_input_chars_per_word"],
        )

    def encode(self, text: str) -> list[int]:
        """Return the ids of the tokens of a text, in order, without special tokens."""
        chunks = _FALSE_SPACE.sub("", text).split()
        return list(chain.from_iterable(map(self._memo.__getitem__, chunks)))

    def whole(self, word: str) -> int | None:
        """Return the id of a word, already in lower case, that is a token by itself."""
        return self._vocabulary.get(word)

    def has_whole(self, words: Iterable[str], count: float) -> bool:
        """Whether so many of some words, already in lower case, are tokens by themselves."""
        found, vocabulary = 0, self._vocabulary
        for word in words:
            if word in vocabulary:
                found += 1
                if found >= count:
                    return True
        return False

    def _of_chunk(self, chunk: str) -> tuple[int, ...]:
        return tuple(id_ for word in _words(chunk) for id_ in self.encode_word(word))

    def encode_word(self, word: str) -> tuple[int, ...]:
        """Return the ids of a word in lower case, or of a single mark."""
        whole = self._vocabulary.get(word)
        if whole is not None:
            return (whole,)
        return self._pieces(word) if len(word) <= self._chars_max else (self.unknown_id,)

    def _pieces(self, word: str) -> tuple[int, ...]:
        pieces: list[int] = []
        start = 0
        while start < len(word):
            id_, start = self._longest(word, start)
            if id_ == self.unknown_id:
                return (self.unknown_id,)
            pieces.append(id_)
        return tuple(pieces)

    def _longest(self, word: str, start: int) -> tuple[int, int]:
        prefix = self._prefix if start else ""
        for end in range(len(word), start, -1):
            id_ = self._vocabulary.get(prefix + word[start:end])
            if id_ is not None:
                return id_, end
        return self.unknown_id, len(word)


def _check(document: dict[str, Any]) -> None:
    known = document["model"]["type"] == "WordPiece" and all(
        document[part] == rule for part, rule in _UNDERSTOOD.items()
    )
    if not known:
        from stratagem.errors import InternalFault

        message = "The tokenizer file uses rules that this reader does not support."
        raise InternalFault(message)


def _words(chunk: str) -> list[str]:
    if chunk.isascii():
        return _ASCII_WORD.findall(_ASCII_CONTROL.sub("", chunk).lower())
    return unicodedata.normalize("NFD", chunk).translate(_CHARACTERS).split()


def _character(code: int) -> str:
    """Return what stands for a character in a chunk: itself in lower case, set apart, nothing."""
    character = chr(code)
    category = unicodedata.category(character)
    if category in {"Mn", "Cc", "Cf", "Co", "Cs"} or character == _REPLACEMENT:
        return ""
    ascii_symbol = character.isascii() and not character.isalnum()
    if category[0] == "P" or ascii_symbol or _is_chinese(code):
        return f" {character} "
    return character.lower()


def _is_chinese(code: int) -> bool:
    return any(first <= code <= last for first, last in _CHINESE)


_CHARACTERS: Final = FunctionCache(_character, entries_max=_CHARACTERS_MAX)
