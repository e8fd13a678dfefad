"""Remembered answers of a function."""

import sys
import threading

import pytest

from stratagem.function_cache import FunctionCache, cache_texts, clear_text_caches


def test_the_function_is_asked_once_for_each_argument() -> None:
    asked: list[int] = []

    def double(key: int) -> int:
        asked.append(key)
        return key * 2

    memo = FunctionCache[int, int](double, entries_max=10)

    answers = [memo[3], memo[4], memo[3]]

    assert answers == [6, 8, 6]
    assert asked == [3, 4]


def test_it_never_holds_more_than_its_bound_and_stays_right() -> None:
    memo = FunctionCache[int, int](lambda key: key + 1, entries_max=8)

    for key in range(100):
        assert memo[key] == key + 1
        assert len(memo) <= 8


def test_an_error_of_the_function_is_not_remembered() -> None:
    memo = FunctionCache[str, int](int, entries_max=8)

    with pytest.raises(ValueError, match="invalid literal"):
        memo["x"]

    assert memo["7"] == 7
    assert list(memo) == ["7"]


def test_long_arguments_are_answered_and_not_remembered() -> None:
    memo = FunctionCache[str, int](len, entries_max=8, chars_max=3)

    answers = [memo["abc"], memo["abcd"]]

    assert answers == [3, 4]
    assert list(memo) == ["abc"]


def test_what_is_asked_for_again_and_again_is_not_forgotten() -> None:
    asked: list[int] = []

    def note(key: int) -> int:
        asked.append(key)
        return key

    memo = FunctionCache[int, int](note, entries_max=8)

    for key in range(1, 100):
        assert memo[0] == 0
        assert memo[key] == key

    assert asked.count(0) == 1


def test_clearing_drops_the_cached_texts_of_every_cache() -> None:
    asked: list[str] = []

    def note(text: str) -> str:
        asked.append(text)
        return text.upper()

    by_key = FunctionCache[str, str](note, entries_max=4)
    by_call = cache_texts(4)(note)
    for text in ("a", "b", "c", "a"):
        assert by_key[text] == by_call(text) == text.upper()
    asked.clear()

    clear_text_caches()

    assert len(by_key) == 0
    assert by_key["a"] == by_call("a") == "A"
    assert asked == ["a", "a"]


def test_a_result_that_was_being_computed_during_a_purge_is_not_cached() -> None:
    def purge_meanwhile(text: str) -> str:
        if text == "secret":
            clear_text_caches()
        return text.upper()

    memo = FunctionCache[str, str](purge_meanwhile, entries_max=4)

    assert [memo["a"], memo["secret"]] == ["A", "SECRET"]

    assert list(memo) == []


def test_caches_are_cleared_while_another_thread_makes_more() -> None:
    ended = threading.Event()

    def make_caches() -> list[FunctionCache[str, str]]:
        return [FunctionCache[str, str](str.upper, entries_max=4) for _ in range(50)]

    def make_many() -> None:
        while not ended.is_set():
            make_caches()

    lasting = make_caches()
    thread = threading.Thread(target=make_many)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(1_000):
            clear_text_caches()
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not any(lasting)
