"""22. No stored value makes a page of the console take long."""

from __future__ import annotations

import time
from contextvars import copy_context

import pytest

from stratagem.surfaces.console.value_views import begin_page, markdown, text_changes

# Each of these took minutes or hours for a value of the largest size.
PUMPS = ["[", "[a](", "*a_ ", "![[]()", "<", "`a``b```", "|a|b|\n|-|-|\n", "> ", "- ", "[a]: b\n"]
VALUE_CHARS = 4_000_000
# A busy machine takes several times as long as a quiet one, and without a bound it is hours.
SECONDS_MAX = 20


@pytest.mark.parametrize("pump", PUMPS)
@pytest.mark.parametrize("chars", [4_000, 40_000, VALUE_CHARS])
def test_markdown_of_any_kind_and_size_is_shown_soon(pump: str, chars: int) -> None:
    text = f"# x\n\n{pump * (chars // len(pump))}"
    begin = time.process_time()

    shown = copy_context().run(render, text)

    assert time.process_time() - begin < SECONDS_MAX
    assert "x" in shown


def render(text: str) -> str:
    begin_page()
    return str(markdown(text))


def test_many_fields_of_alike_words_are_compared_soon() -> None:
    before = "a " * 990
    after = " ".join(f"a x{number}" for number in range(500))
    begin = time.process_time()

    def compare() -> list[str]:
        begin_page()
        return [str(text_changes(before, after)) for _ in range(100)]

    shown = copy_context().run(compare)

    assert time.process_time() - begin < SECONDS_MAX
    assert all("<ins>" in each for each in shown)


def test_a_long_word_is_compared_soon() -> None:
    before, after = "a" * VALUE_CHARS, "b" * VALUE_CHARS
    begin = time.process_time()

    shown = str(text_changes(before, after))

    assert time.process_time() - begin < SECONDS_MAX
    assert shown == f"<del>{before}</del><ins>{after}</ins>"


def test_an_edit_of_a_long_text_is_shown_word_by_word() -> None:
    words = [f"word{number % 300} the" for number in range(5_000)]
    changed = [*words[:2_500], "another", *words[2_501:]]

    shown = copy_context().run(text_changes, " ".join(words), " ".join(changed))

    assert "<ins>another " in shown
    assert shown.count("<del>") == 1
    assert len(shown) < len(" ".join(words)) + 100


def test_every_page_begins_with_all_of_its_steps() -> None:
    def exhaust_and_begin() -> tuple[str, str]:
        begin_page()
        # Ten steps for each letter, of ten million.
        markdown("a" * 999_999)
        first = str(markdown("**a**"))
        begin_page()
        return first, str(markdown("**a**"))

    plain, parsed = copy_context().run(exhaust_and_begin)

    assert "**a**" in plain
    assert "<strong>a</strong>" in parsed
