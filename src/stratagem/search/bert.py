"""A BERT encoder: from tokens to one vector for their text.

Every token begins as its own vector plus one for its position. Each layer applies self-attention
over all tokens and then a feed-forward network to each of them; the vector of the text is the mean
of the final token vectors. Twenty-odd matrix products, which need no machine-learning runtime:
NumPy does them about as fast as any.

The folder is one that sentence-transformers writes: `config.json` says how many heads look
there are, `model.safetensors` has the weights, which name their own layers and sizes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

__all__ = ["Bert"]

_Array = NDArray[np.float32]

_ONE: Final = np.float32(1.0)
_HALF: Final = np.float32(0.5)
_ROOT_HALF: Final = np.float32(math.sqrt(0.5))


class Bert:
    """The network of one folder. Never changes; safe to share between threads."""

    def __init__(self, weights: dict[str, _Array], *, heads: int, epsilon: float) -> None:
        self._weights = weights
        self._heads = heads
        self._epsilon = np.float32(epsilon)
        names = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
        self._layers = [f"encoder.layer.{number}" for number in sorted(names, key=int)]

    @classmethod
    def read(cls, folder: Path) -> Bert:
        """Map the weights of a folder; they are paged in as they are used."""
        config = orjson.loads((folder / "config.json").read_bytes())
        return cls(
            _map_weights(folder / "model.safetensors"),
            heads=config["num_attention_heads"],
            epsilon=config["layer_norm_eps"],
        )

    def mean(self, ids: list[int]) -> NDArray[np.float32]:
        """Return the vector, of length one, of a text given by its tokens, at least one."""
        tokens = self._weights["embeddings.word_embeddings.weight"][ids]
        tokens = tokens + self._weights["embeddings.position_embeddings.weight"][: len(ids)]
        tokens += self._weights["embeddings.token_type_embeddings.weight"][0]
        tokens = self._layer_norm(tokens, "embeddings.LayerNorm")
        for layer in self._layers:
            tokens = self._layer(tokens, layer)
        mean = tokens.mean(axis=0)
        return np.asarray(mean / (math.sqrt(mean @ mean) or 1.0), np.float32)

    def _layer(self, tokens: _Array, layer: str) -> _Array:
        seen = self._attention(tokens, f"{layer}.attention.self")
        seen = self._linear(seen, f"{layer}.attention.output.dense")
        tokens = self._layer_norm(tokens + seen, f"{layer}.attention.output.LayerNorm")
        inner = _gelu(self._linear(tokens, f"{layer}.intermediate.dense"))
        outer = self._linear(inner, f"{layer}.output.dense")
        return self._layer_norm(tokens + outer, f"{layer}.output.LayerNorm")

    def _attention(self, tokens: _Array, part: str) -> _Array:
        count, width = tokens.shape
        query, key, value = (
            self._linear(tokens, f"{part}.{each}").reshape(count, self._heads, -1).swapaxes(0, 1)
            for each in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(1, 2) / np.float32(math.sqrt(width // self._heads))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed: _Array = (shares @ value).swapaxes(0, 1).reshape(count, width)
        return mixed

    def _linear(self, tokens: _Array, part: str) -> _Array:
        product: _Array = tokens @ self._weights[f"{part}.weight"].T
        product += self._weights[f"{part}.bias"]
        return product

    def _layer_norm(self, tokens: _Array, part: str) -> _Array:
        centred = tokens - tokens.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._epsilon)
        scaled: _Array = centred / spread * self._weights[f"{part}.weight"]
        scaled += self._weights[f"{part}.bias"]
        return scaled


def _map_weights(path: Path) -> dict[str, _Array]:
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


def _gelu(inner: _Array) -> _Array:
    return _HALF * inner * (_ONE + _erf(inner * _ROOT_HALF))


def _erf(values: _Array) -> _Array:
    """Return the error function to seven places (Abramowitz and Stegun 7.1.26)."""
    size = np.abs(values)
    step = _ONE / (_ONE + np.float32(0.3275911) * size)
    tail = np.zeros_like(size)
    for factor in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
        tail = (tail + np.float32(factor)) * step
    signed: _Array = np.copysign(_ONE - tail * np.exp(-size * size), values)
    return signed
