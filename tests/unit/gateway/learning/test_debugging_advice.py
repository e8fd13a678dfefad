"""What the debugging memory is told of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.learning.debugging_advice import hide_arguments


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("no user ann@x.org", {"user": "ann@x.org"}, "no user …"),
        ("12345 is no order, 1 is", {"order": 12345, "page": 1}, "… is no order, 1 is"),
        ("cannot find cat", {"word": "at"}, "cannot find cat"),
        ("the category", {"word": "cat"}, "the category"),
        ("x and xyz", {"a": ["xyz"], "b": {"c": "x and xyz"}}, "…"),
        ("as it was", "as it", "… was"),
    ],
)
def test_a_text_without_the_arguments(text: str, arguments: Any, told: str) -> None:
    assert hide_arguments(text, arguments) == told
