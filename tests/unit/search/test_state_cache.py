"""Results that are cached until the log has moved on."""

import weakref

import stratagem
from stratagem.search.state_cache import StateCache


class Result:
    """Something that was computed."""


def test_a_result_is_made_once_for_each_state() -> None:
    cache = StateCache()

    first = cache.get("name", 1, Result)

    assert cache.get("name", 1, Result) is first
    assert cache.get("name", 2, Result) is not first
    assert cache.get("other", 2, Result) is not first


def test_nothing_that_was_computed_outlives_a_purge() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("secret", "x")
        computed = weakref.ref(db.runtime.foundation.cache.get("name", 1, Result))
        assert computed() is not None

        db.memory.purge(key="secret")

        assert computed() is None


def test_what_was_asked_for_least_recently_goes_first() -> None:
    cache = StateCache()
    first = cache.get(0, 1, Result)
    second = cache.get(1, 1, Result)
    for name in range(2, 16):
        cache.get(name, 1, Result)

    assert cache.get(0, 1, Result) is first
    cache.get(16, 1, Result)

    assert cache.get(0, 1, Result) is first
    assert cache.get(1, 1, Result) is not second
