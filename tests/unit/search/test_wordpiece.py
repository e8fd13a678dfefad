"""Our reader of tokenizer files, compared with the library that they were made for."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from stratagem.errors import InternalFault
from stratagem.search import embedding
from stratagem.search.wordpiece import WordPiece

FILE = Path(embedding.__file__).parent / "model" / "tokenizer.json"


# Read where they are needed: every worker of a test run imports this file.
@cache
def our_tokenizer() -> WordPiece:
    return WordPiece.read(FILE)


@cache
def their_tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(FILE))


# Characters whose category has not changed since the library's tables were made.
SETTLED = "".join(
    chr(code)
    for first, last in [
        (0x00, 0x377),
        (0x391, 0x3A1),
        (0x3B1, 0x482),
        (0x5D0, 0x5EA),
        (0x620, 0x64A),
        (0x904, 0x939),
        (0xE01, 0xE3A),
        (0x1E00, 0x1EFF),
        (0x2000, 0x2027),
        (0x2030, 0x205E),
        (0x20A0, 0x20B9),
        (0x2190, 0x21FF),
        (0x3001, 0x3020),
        (0x3041, 0x3096),
        (0x30A1, 0x30FA),
        (0x4E00, 0x4EFF),
        (0xAC00, 0xACFF),
        (0xE000, 0xE010),
        (0xFF01, 0xFF5E),
        (0x1F600, 0x1F640),
        (0x20000, 0x20010),
    ]
    for code in range(first, last + 1)
)


def theirs(text: str) -> list[int]:
    ids: list[int] = their_tokenizer().encode(text, add_special_tokens=False).ids
    return ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n\t ",
        "Hello, World! How's it going?",
        "getUserName(self) -> dict[str, Any]:  # snake_case",
        "unbelievably antidisestablishmentarianism qzxv",
        "Zürich naïve CAFÉ coöperate Łódź ŒUVRE İstanbul ﬁne",
        "e\u0301 e\u0300\u0301 \u0301alone",
        "東京都に住む mixed中文words 漢字カナ交じり",
        "Привет мир, ελληνικά, עברית, العربية, हिन्दी, ไทย, 한국어",
        "😀👍🏽 ❤️ family 👨‍👩‍👧 ok",
        "tab\there\r\nand\x0bthere\x0cnull\x00byte\x1funit\x7fdel\x85nel",
        "soft\u00adhyphen zero\u200bwidth \ufeffbom repl\ufffdacement \ue000private",
        "no\u00a0break em\u2003space ideographic\u3000space line\u2028sep",
        "«quotes» “curly” ‘single’ — dash … ellipsis ¿qué? ¡ay!",
        "£100 €20 $5 50% 1.5km² ½ cup #tag @user a+b=c `code` ~tilde^",
        "x" * 99 + " " + "x" * 100 + " " + "x" * 101,
        "https://example.com/a/b?c=d&e=f#g user@example.com C:\\Temp\\file.txt",
        "aGVsbG8gd29ybGQhIFRoaXMgaXMgYmFzZTY0IGVuY29kZWQgdGV4dA==",
        "!!!???...,,,;;;:::",
    ],
)
def test_it_reads_as_the_library_does(text: str) -> None:
    assert our_tokenizer().encode(text) == theirs(text)


@given(st.text(alphabet=SETTLED, max_size=60))
def test_it_reads_any_text_as_the_library_does(text: str) -> None:
    assert our_tokenizer().encode(text) == theirs(text)


@given(st.lists(st.sampled_from(["the", "ing", "Été", "42", "_", "-", " ", "un", "東", "#"])))
def test_it_reads_words_joined_anyhow_as_the_library_does(pieces: list[str]) -> None:
    text = "".join(pieces)

    assert our_tokenizer().encode(text) == theirs(text)


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    assert all(isinstance(each, int) for each in our_tokenizer().encode(text))


def test_a_word_that_cannot_be_covered_is_one_unknown_token() -> None:
    assert our_tokenizer().encode("Ωμέγα") == [our_tokenizer().unknown_id]


def test_lone_surrogates_are_nothing() -> None:
    assert our_tokenizer().encode("he\ud800llo") == our_tokenizer().encode("hello")


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document["model"].update(type="BPE"),
        lambda document: document["normalizer"].update(lowercase=False),
        lambda document: document["pre_tokenizer"].update(type="Whitespace"),
    ],
)
def test_a_file_with_rules_it_does_not_know_is_refused(
    tmp_path: Path, change: Callable[[dict[str, dict[str, object]]], None]
) -> None:
    document = orjson.loads(FILE.read_bytes())
    change(document)
    path = tmp_path / "tokenizer.json"
    path.write_bytes(orjson.dumps(document))

    with pytest.raises(InternalFault):
        WordPiece.read(path)
