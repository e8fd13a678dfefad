"""One spelling for all spellings, and the kinds of characters."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.search.characters import fold, shape


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("Zürich", "Zurich"),
        ("Zu\u0308rich", "Zurich"),
        ("naïve", "naive"),
        ("Łódź", "Lodz"),
        ("Smørrebrød", "Smorrebrod"),
        ("Encyclopædia", "Encyclopaedia"),
        ("ﬁne", "fine"),
        ("ＡＢＣ１", "ABC1"),
        ("Ελλάδα", "Ελλαδα"),
        ("שָׁלוֹם", "שלום"),
        ("العَرَبِيَّة", "العربية"),
        ("it’s", "it's"),
        ("soft\u00adhyphen", "softhyphen"),
        ("zero\u200bwidth", "zero width"),
        ("❤\ufe0f", "❤"),
        ("x\ud800y", "xy"),
    ],
)
def test_spellings_of_one_word_become_one(written: str, folded: str) -> None:
    assert fold(written) == folded


@pytest.mark.parametrize("word", ["йод", "ёлка", "ドイツ", "हिन्दी", "한국어", "เมือง"])
def test_a_mark_that_makes_another_letter_stays(word: str) -> None:
    assert fold(word) == unicodedata.normalize("NFC", word)


def test_case_is_kept() -> None:
    assert fold("ÉcoleNormale") == "EcoleNormale"


@given(st.text())
def test_composed_and_decomposed_text_fold_alike(text: str) -> None:
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("getUserName2", "aaaAaaaAaaa0"),
        ("a.b_c-d/e:f@g'h&i+j#k", "a.a_a-a/a:a@a'a&a+a#a"),
        ("C:\\x", "A:/a"),
        ('("x", y)', "  a   a "),
        ("東京ひらカタ", "cccccc"),
        ("ไทย", "ccc"),
        ("한국", "kk"),
        ("Ёлка", "Aaaa"),
        ("हिन्दी", "aaaaaa"),
        ("😀€→", "sss"),
        ("\x00\t\x1b", "   "),
    ],
)
def test_every_character_has_a_shape(text: str, shapes: str) -> None:
    assert shape(text) == shapes


@given(st.text())
def test_shapes_stand_in_the_place_of_their_characters(text: str) -> None:
    shapes = shape(text)

    assert len(shapes) == len(text)
    assert set(shapes) <= set("Aa0cks -._/:@'&+#")
