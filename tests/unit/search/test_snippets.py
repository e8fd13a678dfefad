"""The part of a text that shows why it was found."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.search.analysis import AskedTerms, query_terms
from stratagem.search.passages import WHOLE_CHARS_MAX, span_of
from stratagem.search.snippets import excerpt, snippet

FILLER = "lorem ipsum dolor sit amet "


def shown(text: str, query: str) -> str:
    return snippet(text, query_terms(query))


@pytest.mark.parametrize(
    ("text", "query", "expected"),
    [
        ("Groups of people", "group", "**Groups** of people"),
        ("I propose **PostgreSQL**, at once", "postgresql", "I propose **PostgreSQL**, at once"),
        ("**Decision:** use *tabs* (**always**)", "tabs", "Decision: use ***tabs*** (always)"),
        ("all of src/**/x/** and 2**3**4", "src", "all of **src**/**/x/** and 2**3**4"),
        ("f(**given, **more) of **words", "words", "f(**given, **more) of ****words**"),
        ("Was it you, Caroline?", "caroline", "Was it you, **Caroline**?"),
        ("call getUserName()", "user", "call get**User**Name()"),
        ("call getUserName()", "getUserName", "call **getUserName**()"),
        ("open src/main_loop.py now", "main_loop.py", "open src/**main_loop.py** now"),
        ("see a-b.c/d", "ab.c", "see **a-b.c**/d"),
        ("the boss's hat, l'homme", "boss homme", "the **boss**'s hat, l'**homme**"),
        ("an e-mail came", "email", "an **e-mail** came"),
        ("up to 12,000.", "12000", "up to **12,000**."),
        ("needs Python3.12", "3.12 python", "needs **Python3.12**"),
        ("E4018, not E4019", "E4019", "E4018, not **E4019**"),
        ("I use C++ daily", "c++", "I use **C++** daily"),
        ("私は東京都に住む", "東京", "私は**東京**都に住む"),
        ("私は東京都に住む", "東京都", "私は**東京都**に住む"),
        ("私は東京都に住む", "都", "私は東京**都**に住む"),
        ("학교에서 만나", "학교", "**학교**에서 만나"),
        ("In Zürich, naturally", "zurich", "In **Zürich**, naturally"),
        ("party 🎉 time", "🎉", "party **🎉** time"),
        ("to be or not", "to be", "**to** **be** or not"),
        ("several\n\n  lines\there", "lines", "several **lines** here"),
    ],
)
def test_matches_are_marked(text: str, query: str, expected: str) -> None:
    assert shown(text, query) == expected


def test_without_a_match_it_is_the_beginning() -> None:
    text = FILLER * 100

    result = shown(text, "needle")

    assert result.endswith("…")
    assert text.startswith(result[:-1])


def test_a_short_text_is_shown_whole() -> None:
    assert shown("nothing to see", "needle") == "nothing to see"


@pytest.mark.parametrize("text", ["", "   \n\t "])
def test_an_empty_text_has_an_empty_snippet(text: str) -> None:
    assert shown(text, "needle") == ""


def test_the_window_with_most_of_the_terms_wins() -> None:
    text = f"{FILLER * 20} support {FILLER * 20} support group stories {FILLER * 20}"

    assert "**support** **group** **stories**" in shown(text, "support group stories")


def test_of_equal_windows_the_first_wins() -> None:
    text = f"first needle {FILLER * 40} second needle {FILLER * 40}"

    assert "first **needle**" in shown(text, "needle")


def test_cuts_are_shown_and_spare_words() -> None:
    text = f"{FILLER * 50}needle {FILLER * 50}"

    result = shown(text, "needle")

    assert result.startswith("…")
    assert result.endswith("…")
    words = set(result.strip("…").replace("**", "").split())
    assert words <= {"needle", *FILLER.split()}


def test_a_match_near_the_end_is_shown_to_the_end_with_what_comes_before() -> None:
    result = shown(f"{FILLER * 50}the needle at last", "needle")

    assert result.endswith("the **needle** at last")
    assert len(result) > limits.SNIPPET_CHARS * 0.8


def test_what_is_not_indexed_is_not_looked_at() -> None:
    text = f"{'x ' * limits.INDEXED_CHARS_MAX}needle"

    result = shown(text, "needle")

    assert "needle" not in result
    assert result.endswith("…")


@pytest.mark.parametrize("passage", [0, 100, 255])
def test_of_a_passage_of_several_pages_the_part_with_most_of_the_words_is_shown(
    passage: int,
) -> None:
    text = "Here is a needle. " + FILLER * 150_000
    begin, end = span_of(text, passage)
    there = (begin + end) // 2
    text = f"{text[:there]} the needle and the thread {text[there:]}"

    found = excerpt(text, AskedTerms(query_terms("needle thread")), passage)

    assert found.passage is not None
    assert "the needle and the thread" in found.passage
    assert text[found.begin :].startswith(found.passage)
    assert len(found.passage) <= WHOLE_CHARS_MAX
    assert found.terms == {"needl", "thread"}


@pytest.mark.parametrize("unit", ["東京", "needle ", "needle_", "needleX1", "a", " \n", "**"])
def test_any_mass_of_text_gives_a_bounded_snippet(unit: str) -> None:
    result = shown(unit * (limits.VALUE_BYTES_MAX // len(unit)), "needle 東京 a")

    assert len(result) <= limits.SNIPPET_CHARS


WORDS = st.sampled_from(
    ["needle", "Needles,", "hay", "get_needle", "東京タワー", "x" * 50, "é", "😀", "…", "**", "\n"]
)


@given(
    st.lists(WORDS, max_size=120), st.sampled_from(["", " "]), st.sampled_from(["needle", "東京"])
)
def test_a_snippet_is_a_part_of_the_text_within_the_limit(
    words: list[str], glue: str, query: str
) -> None:
    text = glue.join(words)

    result = shown(text, query)

    assert len(result) <= limits.SNIPPET_CHARS
    assert result == shown(text, query)
    plain = " ".join(text.split()).replace("**", "")
    assert result.replace("**", "").removeprefix("…").removesuffix("…") in plain


@given(st.text(max_size=600), st.text(max_size=20))
def test_no_text_breaks_it(text: str, query: str) -> None:
    assert len(shown(text, query)) <= limits.SNIPPET_CHARS


def test_every_mark_is_closed() -> None:
    result = shown(" ".join(f"needle{n} needle" for n in range(200)), "needle")

    assert re.fullmatch(r"(?:[^*]|\*\*[^*]+\*\*)*", result)
