"""Vectors for texts, so that search finds texts by meaning as well as by words.

An embedder turns a text into a direction: texts with similar meaning have similar directions. Its
`name` says exactly which function that is; vectors of different names must never be compared, so
the name is kept with the vectors, and another name means embedding anew.

The default has no network to run. Each token has one learned vector, whose length is the
token's weight; a text is the sum of its tokens' vectors, normalised. A token that occurs
n times counts √n times: repetition is emphasis, but not proportionally so. Identifiers
are read as the words they are made of. Scripts without tokens (anything but Latin) give
a zero vector, which means "no opinion", and are left to lexical search.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Sequence
from functools import cache, partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ServiceUnavailable, ValidationFailed
from stratagem.function_cache import FunctionCache
from stratagem.search.static_tokens import (
    DIMENSIONS,
    MODEL_ARCHIVE,
    MODEL_NAME,
    MODEL_TOKENIZER,
    ROOTS,
    TEXT_CHARS_MAX,
    TOKENS_MAX,
    chunk_ids,
)
from stratagem.search.wordpiece import WordPiece

if TYPE_CHECKING:
    from typing import TypeVar

    from numpy.typing import NDArray

    _Number = TypeVar("_Number", np.int32, np.int64)

__all__ = [
    "EMBEDDERS",
    "Embedder",
    "StaticEmbedder",
    "VectorMoments",
    "choose",
    "is_ours",
    "recognise",
]

# The names that `choose` takes, the default first.
EMBEDDERS: Final = ("static", "minilm", "none")

_MODEL_FAMILY: Final = "stratagem-static-"
# Chunks between spaces, seen again, are looked up. 131,072 of them take about 18 MB.
_CHUNKS_MAX: Final = 131_072
_CHUNK_CHARS_MAX: Final = 64
# So many texts are embedded at once: the numbers of their tokens stay in the processor's cache.
_TEXTS_TOGETHER: Final = 16
# A token is kept as a number of so many bytes: joining bytes takes a third of the time of chaining
# tuples, and NumPy reads them as they are.
_TOKEN_TYPE: Final = "i"
_TOKEN_BYTES: Final = array(_TOKEN_TYPE).itemsize
_BYTES_MAX: Final = TOKENS_MAX * _TOKEN_BYTES
# Tokens of several texts are told apart by bits above those of the token.
_TEXT_SHIFT: Final = 24
# Texts that say nothing: three of the frequent words each, by strides that share no factor.
_RANDOM_TEXTS: Final = 1_024
_FREQUENT_FROM: Final = 500
_FREQUENT_WORDS: Final = 8_000
_STRIDES: Final = (7_919, 5_471, 3_491)


class Embedder(Protocol):
    """Turns texts into vectors, always the same text into the same vector."""

    @property
    def name(self) -> str:
        """The exact function, with its version; two names, two incomparable spaces."""

    @property
    def dimensions(self) -> int:
        """How many numbers a vector has."""

    @property
    def is_loaded(self) -> bool:
        """Whether the next `embed` starts at once."""

    def load(self) -> None:
        """Read the model if it was not read yet; harmless to repeat, from any thread."""

    def embed(
        self, texts: Sequence[str], titles: Sequence[str] | None = None
    ) -> NDArray[np.float32]:
        """Return one row for each text: of length one, or zeros where there is no opinion.

        `titles`: a line that stands before each text, if it is not empty.
        """

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the same for several words or keys, which are short."""

    def rank(self, word: str) -> int | None:
        """Return the place of a word, in lower case, among all by how frequent they are.

        None for one that has no meaning of its own, only that of its pieces.
        """

    def knows(self, words: Sequence[str], count: float) -> bool:
        """Whether so many of some words, in lower case, have a meaning of their own."""

    def usual_vectors(self) -> VectorMoments | None:
        """Return the moments of the vectors of random texts.

        None if they would cost too much to compute.
        """


class VectorMoments(NamedTuple):
    """The mean of some vectors, and their covariance: enough for those of any products of them."""

    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]


class _Model(NamedTuple):
    """The vocabulary, the tokens of chunks, and the vector of each token: its row times its scale.

    `roots` is what a token counts that occurs so many times.
    """

    words: WordPiece
    chunks: FunctionCache[str, bytes]
    table: NDArray[np.int8]
    scale: NDArray[np.float32]
    roots: NDArray[np.float32]


class StaticEmbedder:
    """The embedder that comes with Stratagem. Safe to share between threads.

    Nothing is read before the first `load` or `embed`. The table stays on disk, mapped, so
    that processes share it and only the pages of words that occur are ever in memory.
    """

    name: Final = MODEL_NAME
    dimensions: Final = DIMENSIONS

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether the next `embed` starts at once."""
        return self._model is not None

    def load(self) -> None:
        """Read the model if it was not read yet; harmless to repeat, from any thread."""
        self._ready()

    def embed(
        self, texts: Sequence[str], titles: Sequence[str] | None = None
    ) -> NDArray[np.float32]:
        """Return one row for each text: of length one, or zeros where no token is known."""
        model = self._ready()
        rows = np.zeros((len(texts), DIMENSIONS), np.float32)
        tokens = [
            _read_tokens(text, model, title)
            for text, title in zip(texts, titles or repeat(""), strict=False)
        ]
        if len(texts) == 1:
            _embed_one(rows[0], tokens[0], model)
            return rows
        for begin in range(0, len(texts), _TEXTS_TOGETHER):
            end = begin + _TEXTS_TOGETHER
            _embed_group(rows[begin:end], tokens[begin:end], model)
        return rows

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the same for words and keys, all at once: they have a token or two each."""
        return _embed_together(words, self._ready())

    def rank(self, word: str) -> int | None:
        """Return the place of a word in the vocabulary, which is in order of frequency."""
        return self._ready().words.whole(word)

    def knows(self, words: Sequence[str], count: float) -> bool:
        """Whether so many of some words are in the vocabulary."""
        return self._ready().words.has_whole(words, count)

    def usual_vectors(self) -> VectorMoments:
        """Return the moments of the vectors of random texts, always the same texts."""
        return _measure_random_texts()

    def _ready(self) -> _Model:
        if self._model is None:
            with self._lock:
                self._model = self._model or _read_model()
        return self._model


def choose(name: str) -> Embedder | None:
    """Return the embedder of that name, not yet loaded; None for "none".

    Raises:
        ServiceUnavailable: The weights of that embedder are not installed.
        ValidationFailed: There is no embedder of that name.
    """
    if name == "none":
        return None
    if name == "static":
        return StaticEmbedder()
    if name == "minilm":
        from stratagem.search.minilm import MiniLmEmbedder

        return MiniLmEmbedder()
    known = ", ".join(EMBEDDERS)
    raise ValidationFailed(
        f"There is no embedder named {name!r}.", hint=f"Choose one of: {known}.", embedder=name
    )


def is_ours(made_by: str) -> bool:
    """Whether a name is that of our own embedder, in any version."""
    return made_by.startswith(_MODEL_FAMILY)


def recognise(made_by: str) -> Embedder | None:
    """Return the embedder that has exactly that name, or None where it is not installed."""
    if made_by == StaticEmbedder.name:
        return StaticEmbedder()
    try:
        other = choose("minilm")
    except ServiceUnavailable:
        return None
    return other if other is not None and other.name == made_by else None


# Of the ways to write these in NumPy they take the least for the few tokens of a text. All of them
# add up the tokens of a text in the order of their numbers, so that its vector depends on no other.
def _embed_one(row: NDArray[np.float32], tokens: bytes, model: _Model) -> None:
    """Put the vector of a text, given by its tokens, into a row."""
    if not tokens:
        return
    ids, counts = _count_sorted(np.sort(np.frombuffer(tokens, _TOKEN_TYPE)))
    weights = model.roots[counts] * model.scale[ids]
    np.dot(weights, model.table.take(ids, axis=0).astype(np.float32), out=row)
    row /= math.sqrt(row.dot(row)) or 1.0


def _embed_group(rows: NDArray[np.float32], texts: Sequence[bytes], model: _Model) -> None:
    """Put the same vectors of some texts into rows, reading the table once for all of them."""
    ids, weights, starts = _weigh_tokens(texts, model)
    table = model.table.take(ids, axis=0).astype(np.float32)
    begins = starts.tolist()
    for row, begin, end in zip(rows, begins, [*begins[1:], len(ids)], strict=True):
        np.dot(weights[begin:end], table[begin:end], out=row)
    lengths = [math.sqrt(row.dot(row)) or 1.0 for row in rows]
    rows /= np.array(lengths, np.float32)[:, np.newaxis]


def _embed_together(texts: Sequence[str], model: _Model) -> NDArray[np.float32]:
    """Return the vectors of texts of few tokens: one pass over all, and not one for each."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    found = [
        model.chunks[text][:_BYTES_MAX] if text.isalpha() else _read_tokens(text, model)
        for text in texts
    ]
    places = [place for place, tokens in enumerate(found) if tokens]
    if not places:
        return rows
    ids, weights, starts = _weigh_tokens([found[place] for place in places], model)
    sums: NDArray[np.float32] = model.table.take(ids, axis=0) * weights[:, np.newaxis]
    if len(starts) < len(ids):
        sums = np.add.reduceat(sums, starts)
    lengths = np.sqrt(np.vecdot(sums, sums))
    sums /= np.where(lengths > 0, lengths, 1.0)[:, np.newaxis]
    if len(places) == len(texts):
        return sums
    rows[places] = sums
    return rows


def _weigh_tokens(
    texts: Sequence[bytes], model: _Model
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.intp]]:
    """Return the distinct tokens of each text, their weights, and where each text begins."""
    numbers = np.arange(len(texts)) << _TEXT_SHIFT
    keys = np.repeat(numbers, [len(tokens) // _TOKEN_BYTES for tokens in texts])
    keys |= np.frombuffer(b"".join(texts), _TOKEN_TYPE)
    keys.sort()
    keys, counts = _count_sorted(keys)
    ids = keys & ((1 << _TEXT_SHIFT) - 1)
    return ids, model.roots[counts] * model.scale[ids], np.searchsorted(keys, numbers)


def _count_sorted(numbers: NDArray[_Number]) -> tuple[NDArray[_Number], NDArray[np.intp]]:
    """Return the distinct ones of sorted numbers, and how often each occurs."""
    # `np.unique` does the same in three times the time.
    is_first = np.ones(len(numbers) + 1, np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:-1])
    borders = is_first.nonzero()[0]
    return numbers[borders[:-1]], borders[1:] - borders[:-1]


@cache
def _measure_random_texts() -> VectorMoments:
    texts = _make_random_texts(_read_model())
    mean = texts.mean(axis=0)
    centred = texts - mean
    return VectorMoments(mean, centred.T @ centred / np.float32(len(texts)))


def _make_random_texts(model: _Model) -> NDArray[np.float32]:
    places = np.arange(1, _RANDOM_TEXTS + 1)[:, None] * np.array(_STRIDES)
    # The vocabulary is in order of frequency.
    ids = _FREQUENT_FROM + places % _FREQUENT_WORDS
    rows = (model.table[ids].astype(np.float32) * model.scale[ids][:, :, None]).sum(axis=1)
    texts: NDArray[np.float32] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return texts


def _read_tokens(text: str, model: _Model, title: str = "") -> bytes:
    """Return the first tokens of a text, with its title before it as if on a line of its own."""
    known = model.chunks.__getitem__
    if not title:
        return b"".join(map(known, text[:TEXT_CHARS_MAX].split()))[:_BYTES_MAX]
    rest = text[: max(TEXT_CHARS_MAX - len(title) - 1, 0)]
    return b"".join([*_title_tokens(title, model), *map(known, rest.split())])[:_BYTES_MAX]


def _title_tokens(title: str, model: _Model) -> list[bytes]:
    """Return the tokens of a title.

    Most titles are keys, which come once each. They are looked up and not remembered, or they would
    push all words out.
    """
    known, words = model.chunks.get, model.words
    chunks = title[:TEXT_CHARS_MAX].split()
    return [known(chunk) or _encode(chunk, words) for chunk in chunks]


def _encode(chunk: str, words: WordPiece) -> bytes:
    return array(_TOKEN_TYPE, chunk_ids(chunk, words)).tobytes()


# Once in a process: the databases that it has open share the vocabulary and what was read of it.
@cache
def _read_model() -> _Model:
    words = WordPiece.read(Path(MODEL_TOKENIZER))
    chunks = FunctionCache[str, bytes](
        partial(_encode, words=words), entries_max=_CHUNKS_MAX, chars_max=_CHUNK_CHARS_MAX
    )
    archive = Path(MODEL_ARCHIVE)
    scale = _map_array(archive, "scale").copy()
    # What no word stands for has no weight.
    scale[words.unknown_id] = 0.0
    return _Model(words, chunks, _map_array(archive, "table"), scale, np.array(ROOTS, np.float32))


def _map_array(archive: Path, name: str) -> NDArray[Any]:
    """Map an array of an uncompressed .npz file, which `numpy.load` can only copy."""
    import zipfile

    with zipfile.ZipFile(archive) as members:
        member = members.getinfo(f"{name}.npy")
        assert member.compress_type == zipfile.ZIP_STORED
    with archive.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(30)
        # The local header ends in the lengths of the name and of the extra field after it.
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        file.seek(member.header_offset + 30 + names)
        version = np.lib.format.read_magic(file)
        assert version == (1, 0)
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        # A plain view of the map: indexing a `memmap` itself runs Python code each time.
        return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape))
