"""The network of MiniLM, compared with one written out number by number."""

import math
from pathlib import Path

import numpy as np
import orjson
import pytest

from stratagem.search.bert import Bert

WIDTH, HEADS, INNER, LAYERS, WORDS = 8, 2, 12, 2, 20

Vector = list[float]
Weights = dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]]


def shapes() -> dict[str, tuple[int, ...]]:
    linear = {
        "attention.self.query": (WIDTH, WIDTH),
        "attention.self.key": (WIDTH, WIDTH),
        "attention.self.value": (WIDTH, WIDTH),
        "attention.output.dense": (WIDTH, WIDTH),
        "intermediate.dense": (INNER, WIDTH),
        "output.dense": (WIDTH, INNER),
    }
    found: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (16, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        for name, (rows, columns) in linear.items():
            found[f"encoder.layer.{layer}.{name}.weight"] = (rows, columns)
            found[f"encoder.layer.{layer}.{name}.bias"] = (rows,)
        norms += [
            f"encoder.layer.{layer}.{part}.LayerNorm" for part in ("attention.output", "output")
        ]
    for norm in norms:
        found[f"{norm}.weight"] = found[f"{norm}.bias"] = (WIDTH,)
    return found


@pytest.fixture(scope="module")
def weights() -> Weights:
    generator = np.random.default_rng(7)
    return {
        name: generator.normal(0, 1, size).astype(np.float32) for name, size in shapes().items()
    }


@pytest.fixture
def folder(tmp_path: Path, weights: Weights) -> Path:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    blob = b""
    for name, array in weights.items():
        offsets = [len(blob), len(blob) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": offsets}
        blob += array.tobytes()
    # Positions are stored as integers, and are none of the weights.
    header["embeddings.position_ids"] = {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}
    head = orjson.dumps(header)
    head += b" " * (-len(head) % 8)
    (tmp_path / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + blob)
    config = {"num_attention_heads": HEADS, "layer_norm_eps": 1e-12}
    (tmp_path / "config.json").write_bytes(orjson.dumps(config))
    return tmp_path


def linear(weights: Weights, part: str, token: Vector) -> Vector:
    rows, bias = weights[f"{part}.weight"].tolist(), weights[f"{part}.bias"].tolist()
    return [
        math.fsum(a * b for a, b in zip(row, token, strict=True)) + add
        for row, add in zip(rows, bias, strict=True)
    ]


def normalised(weights: Weights, part: str, token: Vector) -> Vector:
    mean = math.fsum(token) / len(token)
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in token) / len(token))
    gain, bias = weights[f"{part}.weight"].tolist(), weights[f"{part}.bias"].tolist()
    return [(each - mean) / spread * g + b for each, g, b in zip(token, gain, bias, strict=True)]


def attended(weights: Weights, part: str, tokens: list[Vector]) -> list[Vector]:
    asked, keys, values = (
        [linear(weights, f"{part}.{each}", token) for token in tokens]
        for each in ("query", "key", "value")
    )
    size = WIDTH // HEADS
    result: list[Vector] = [[] for _ in tokens]
    for at, query in enumerate(asked):
        for low in range(0, WIDTH, size):
            near = [
                math.exp(sum(query[i] * key[i] for i in range(low, low + size)) / math.sqrt(size))
                for key in keys
            ]
            result[at] += [
                sum(share * value[i] for share, value in zip(near, values, strict=True)) / sum(near)
                for i in range(low, low + size)
            ]
    return result


def added(one: Vector, other: Vector) -> Vector:
    return [a + b for a, b in zip(one, other, strict=True)]


def by_the_book(weights: Weights, ids: list[int]) -> Vector:
    tokens: list[Vector] = []
    for place, id_ in enumerate(ids):
        word = weights["embeddings.word_embeddings.weight"][id_]
        token = word + weights["embeddings.position_embeddings.weight"][place]
        token = token + weights["embeddings.token_type_embeddings.weight"][0]
        tokens.append(normalised(weights, "embeddings.LayerNorm", token.tolist()))
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        seen = attended(weights, f"{layer}.attention.self", tokens)
        for at, token in enumerate(tokens):
            taken = added(token, linear(weights, f"{layer}.attention.output.dense", seen[at]))
            kept = normalised(weights, f"{layer}.attention.output.LayerNorm", taken)
            inner = [
                0.5 * each * (1 + math.erf(each / math.sqrt(2)))
                for each in linear(weights, f"{layer}.intermediate.dense", kept)
            ]
            outer = added(kept, linear(weights, f"{layer}.output.dense", inner))
            tokens[at] = normalised(weights, f"{layer}.output.LayerNorm", outer)
    mean = [math.fsum(each) / len(ids) for each in zip(*tokens, strict=True)]
    length = math.sqrt(math.fsum(each * each for each in mean))
    return [each / length for each in mean]


@pytest.mark.parametrize("ids", [[3], [1, 5, 5, 2], list(range(16))])
def test_it_computes_what_the_book_says(folder: Path, weights: Weights, ids: list[int]) -> None:
    network = Bert.read(folder)

    assert network.mean(ids).tolist() == pytest.approx(by_the_book(weights, ids), abs=1e-4)
