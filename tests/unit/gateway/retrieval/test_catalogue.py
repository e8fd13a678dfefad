"""Which embedder tools are compared by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

import stratagem
from stratagem.search import embedding


class OnlyTides:
    """An embedder for which everything about tides means the same, and nothing else anything."""

    name = "only-tides"
    dimensions = 2
    is_loaded = True

    def load(self) -> None:
        """There is nothing to read."""

    def embed(
        self, texts: Sequence[str], _titles: Sequence[str] | None = None
    ) -> NDArray[np.float32]:
        about = [("ebb" in text or "tide" in text) for text in texts]
        return np.array([[float(each), 0.0] for each in about], np.float32)


def test_the_chosen_embedder_is_asked_what_tools_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "choose", lambda _name: OnlyTides())
    with stratagem.open(":memory:", embedder="minilm") as db:
        db.gateway.register(
            name="tide_table",
            description="Times of the tide.",
            input_schema={"type": "object"},
            handler={"type": "webhook", "url": "https://tides.example.com"},
        )

        told = db.gateway.recommend("when is ebb")

    assert [each["name"] for each in told["recommendedTools"]] == ["tide_table"]
