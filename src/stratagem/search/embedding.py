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
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, repeat
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
    chunk_ids,
    count_tokens,
)
from stratagem.search.wordpiece import WordPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

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

    def usual_vectors(self) -> VectorMoments | None:
        """Return the moments of the vectors of random texts.

        None if they would cost too much to compute.
        """


class VectorMoments(NamedTuple):
    """The mean of some vectors, and their covariance: enough for those of any products of them."""

    mean: NDArray[np.float32]
    covariance: NDArray[np.float32]


class _Model(NamedTuple):
    words: WordPiece
    chunks: FunctionCache[str, tuple[int, ...]]
    table: NDArray[np.int8]
    scale: NDArray[np.float32]


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
        counts = [
            _token_counts(text, model, title)
            for text, title in zip(texts, titles or repeat(""), strict=False)
        ]
        if len(texts) == 1:
            _embed_one(rows[0], counts[0], model)
            return rows
        for begin in range(0, len(texts), _TEXTS_TOGETHER):
            end = begin + _TEXTS_TOGETHER
            _embed_group(rows[begin:end], counts[begin:end], model)
        return rows

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the same for words and keys, all at once: they have a token or two each."""
        return _embed_together(words, self._ready())

    def rank(self, word: str) -> int | None:
        """Return the place of a word in the vocabulary, which is in order of frequency."""
        return self._ready().words.whole(word)

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


# Of the ways to write these in NumPy they take the least for the few tokens of a text.
def _embed_one(row: NDArray[np.float32], counts: Mapping[int, int], model: _Model) -> None:
    """Put the vector of a text, given by its tokens and how often each occurs, into a row."""
    if not counts:
        return
    ids = np.fromiter(counts, np.intp, len(counts))
    roots = np.array([ROOTS[count] for count in counts.values()], np.float32)
    np.dot(roots * model.scale[ids], model.table.take(ids, axis=0).astype(np.float32), out=row)
    row /= math.sqrt(row.dot(row)) or 1.0


def _embed_group(
    rows: NDArray[np.float32], texts: Sequence[Mapping[int, int]], model: _Model
) -> None:
    """Put the same vectors of some texts into rows, reading the table once for all of them."""
    ids = np.array([*chain.from_iterable(texts)], np.intp)
    roots = np.array([ROOTS[count] for text in texts for count in text.values()], np.float32)
    weights = roots * model.scale[ids]
    table = model.table.take(ids, axis=0).astype(np.float32)
    begin = 0
    for row, text in zip(rows, texts, strict=True):
        end = begin + len(text)
        np.dot(weights[begin:end], table[begin:end], out=row)
        begin = end
    lengths = [math.sqrt(row.dot(row)) or 1.0 for row in rows]
    rows /= np.array(lengths, np.float32)[:, np.newaxis]


def _embed_together(texts: Sequence[str], model: _Model) -> NDArray[np.float32]:
    """Return the vectors of texts of few tokens: one pass over all, and not one for each."""
    tokens: list[int] = []
    roots: list[float] = []
    # Where the tokens of each text begin, and which texts have any.
    starts: list[int] = []
    places: list[int] = []
    for place, text in enumerate(texts):
        single = model.chunks[text] if text.isalpha() else ()
        if len(single) == 1 and single[0] != model.words.unknown_id:
            places.append(place)
            starts.append(len(tokens))
            tokens += single
            roots.append(1.0)
        elif counts := _token_counts(text, model):
            places.append(place)
            starts.append(len(tokens))
            tokens += counts
            roots += [ROOTS[count] for count in counts.values()]
    if not places:
        return np.zeros((len(texts), DIMENSIONS), np.float32)
    ids = np.array(tokens)
    weights = np.array(roots, np.float32) * model.scale[ids]
    sums: NDArray[np.float32] = model.table.take(ids, axis=0) * weights[:, np.newaxis]
    if len(starts) < len(tokens):
        sums = np.add.reduceat(sums, starts)
    lengths = np.sqrt(np.vecdot(sums, sums))
    sums /= np.where(lengths > 0, lengths, 1.0)[:, np.newaxis]
    if len(places) == len(texts):
        return sums
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    rows[places] = sums
    return rows


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


def _token_counts(text: str, model: _Model, title: str = "") -> dict[int, int]:
    known, unknown_id = model.chunks.__getitem__, model.words.unknown_id
    if not title:
        return count_tokens(text, known, unknown_id)
    # As if they stood in one text, with a line break between them.
    rest = text[: max(TEXT_CHARS_MAX - len(title) - 1, 0)]
    return count_tokens(rest, known, unknown_id, _title_ids(title, model))


def _title_ids(title: str, model: _Model) -> Iterator[int]:
    """Return the tokens of a title.

    Most titles are keys, which come once each. They are looked up and not remembered, or they would
    push all words out.
    """
    known, words = model.chunks.get, model.words
    chunks = title[:TEXT_CHARS_MAX].split()
    return chain.from_iterable([known(chunk) or chunk_ids(chunk, words) for chunk in chunks])


# Once in a process: the databases that it has open share the vocabulary and what was read of it.
@cache
def _read_model() -> _Model:
    words = WordPiece.read(Path(MODEL_TOKENIZER))
    chunks = FunctionCache[str, tuple[int, ...]](
        partial(chunk_ids, words=words), entries_max=_CHUNKS_MAX, chars_max=_CHUNK_CHARS_MAX
    )
    archive = Path(MODEL_ARCHIVE)
    table, scale = _map_array(archive, "table"), _map_array(archive, "scale")
    return _Model(words, chunks, table, scale)


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
