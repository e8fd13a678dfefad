"""Patterns that are compiled when they are first used are used as patterns are."""

import copy
import pickle
import re
from collections.abc import Callable

import pytest

from stratagem.deferred_patterns import DeferredPattern


def _pickle(pattern: DeferredPattern) -> DeferredPattern:
    copied: DeferredPattern = pickle.loads(pickle.dumps(pattern))  # noqa: S301 -- our own
    return copied


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, _pickle])
def test_a_copy_matches_what_the_pattern_matches(
    duplicate: Callable[[DeferredPattern], DeferredPattern],
    is_used: bool,
) -> None:
    pattern = DeferredPattern("^a+$", re.IGNORECASE)
    if is_used:
        assert pattern.match("aA")

    copied = duplicate(pattern)

    assert copied.match("aA")
    assert not copied.match("b")
