"""The terms of texts and queries, and what an index finds with them."""

import threading
import unicodedata
from collections.abc import Iterator
from importlib import resources

import apsw
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.search import analysis
from stratagem.search.analysis import (
    AskedTerms,
    content_terms,
    leave_out,
    match_expression,
    query_terms,
    terms,
)

TABLE = f"""CREATE VIRTUAL TABLE texts USING fts5(
    body, content='', contentless_delete=1, tokenize="ascii tokenchars '{analysis.TOKEN_CHARS}'"
)"""

MIXED = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.text(alphabet="aB1._-/:@'&+#\\ \"*^(){}%€", max_size=16),
        st.from_regex(r"[a/$]?[0-9]{1,3}([,'_][0-9]{3}){1,3}[.,k]?", fullmatch=True),
        st.sampled_from(
            ["getUserName", "snake_case", "東京都", "학교에서", "ภาษาไทย", "naïve", "don't", "😀"]
        ),
    ),
    max_size=12,
).map(" ".join)


@pytest.fixture(scope="module")
def database() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLE)
    yield connection
    connection.close()


class Found:
    """Whether an index of one text finds it."""

    def __init__(self, database: apsw.Connection, text: str) -> None:
        self.database = database
        database.execute("DELETE FROM texts WHERE rowid = 1")
        database.execute("INSERT INTO texts(rowid, body) VALUES (1, ?)", (" ".join(terms(text)),))

    def by(self, asked: list[str]) -> bool:
        expression = match_expression(asked)
        rows = self.database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (expression,))
        return bool(list(rows))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Running quickly, he STUDIES", ["run", "quick", "he", "studi"]),
        ("getUserName", ["getusernam", "get", "user", "name"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("snake_case kebab-case", ["snakecas", "snake", "case", "kebabcas", "kebab", "case"]),
        ("a.b.c", ["a.b.c", "a", "b", "c"]),
        ("src/foo_bar.py", ["src/foobar.py", "src", "foobar.py", "foobar", "foo", "bar", "py"]),
        ("C:\\Temp\\x", ["c:/temp/x", "c", "temp", "x"]),
        ("std::vector", ["std::vector", "std", "vector"]),
        ("me@mail.org", ["me@mail.org", "me", "mail.org", "mail", "org"]),
        ("C++ C# c", ["c++", "c#", "c"]),
        ("2024-05-01", ["2024-05-01", "2024", "05", "01"]),
        ("utf-8 UTF8", ["utf8", "utf", "8", "utf8", "utf", "8"]),
        ("Caroline's boss's", ["carolin", "boss"]),
        ("don't I'm we'll", ["dont", "i", "we"]),
        ("O'Brien l’homme", ["obrien", "brien", "lhomm", "homm"]),
        ("R&D", ["r&d", "r", "d"]),
        ("wait...what", ["wait", "what"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("학교에", ["학", "교", "에", "학교", "교에", "학교에"]),
        ("😀👍🏽", ["😀", "👍"]),
        ("ÉCOLE Straße", ["ecol", "strass"]),
        ("a3f9c2e8b1d4", ["a3f9c2e8b1d4"]),
        ("<b>bold</b>", ["b", "bold", "b"]),
        ("nul\x00middle", ["nul", "middl"]),
        ("5,000 12'000 1\u2019000 1_000_000", ["5000", "12000", "1000", "1000000"]),
        ("(1,234.56)", ["1234.56", "1234", "56"]),
        (
            "v2.5 pkg-0.1.0",
            [
                *("v2.5", "2.5", "v2", "v", "2", "5"),
                *("pkg0.1.0", "0.1.0", "0.1", "pkg0", "pkg", "0", "1", "0"),
            ],
        ),
        (
            "5.488.000 1.234 192.168.100.200",
            [
                *("5488000", "1.234", "1", "234"),
                *("192.168.100.200", "192", "168", "100", "200"),
            ],
        ),
        ("1,000-2,000km", ["1000-2000km", "1000", "2000km", "2000", "km"]),
        ("$5,000 上限5,000行", ["5000", "上", "限", "上限", "5000", "行"]),
        ("1,20,000 0,500 8080,443", ["1", "20", "000", "0", "500", "8080", "443"]),
        ("12_34 v1_000", ["12_34", "12", "34", "v1_000", "v1", "v", "1", "000"]),
    ],
)
def test_a_text_has_these_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("def getUserName(self):", "getUserName"),
        ("def getUserName(self):", "get_user_name"),
        ("def getUserName(self):", "user"),
        ("see snake_case here", "snakeCase"),
        ("see a.b.c here", "a.b.c"),
        ("see a.b.c here", "b"),
        ("open /usr/lib/python3/os.py", "os.py"),
        ("open /usr/lib/python3/os.py", "/usr/lib/python3/os.py"),
        ("an e-mail", "emails"),
        ("Emails", "e-mail"),
        ("I live in Zürich", "ZURICH"),
        ("I live in Zurich", "zürich"),
        ("私は東京都に住んでいます", "東京"),
        ("私は東京都に住んでいます", "都"),
        ("私は東京都に住んでいます", "東京都"),
        ("ｶﾀｶﾅ", "カタカナ"),
        ("학교에서 만나요", "학교"),
        ("학교에서 만나요", "교"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("ភាសាខ្មែរ", "ខ្មែរ"),
        ("happy birthday 🎂", "🎂"),
        ("To be, or not to be", "to be or not to be"),
        ("I saw The Who live", "the who"),
        ("it", "It"),
        ("&&", "&&"),
        ("???", "???"),
        (":-)", ":-)"),
        ("it costs 5€", "€"),
        ("x" * 500, "x" * 500),
        ("limited to 5,000 rows", "5000"),
        ("capped at 12000 files", "12,000"),
        ("capped at 12'000 files", "12_000"),
        ("needs Python3.12", "3.12"),
        ("version 2.5", "v2.5"),
        ("3.5 km", "3.5km"),
        ("Anna: +47 22 33 44 55", "+4722334455"),
        ("Anna: +4722334455", "+47 22 33 44 55"),
        ("Anna: +47\u00a022\u00a033\u00a044\u00a055", "+47 22334455"),
        ("+1 (415) 555-2671", "whose is +1-415-555-2671?"),
        ("+49 (0)30 123456", "+4930123456"),
        ("plumber: +44 20 7946 0112", "020 7946 0112"),
        ("plumber: (020) 7946 0112", "02079460112"),
        ("call 22 33 44 55", "+47 22 33 44 55"),
        ("call +47 22 33 44 55", "22 33 44 55"),
        ("IBAN DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("IBAN DE89370400440532013000", "de89 3704 0044 0532 0130 00"),
        ("GB82 WEST 1234 5698 7654 32", "GB82WEST12345698765432"),
        ("due 01.02.2026", "01 02 2026"),
        ("10, 20, 30, 40", "10 20 30 40"),
    ],
)
def test_a_text_is_found(database: apsw.Connection, text: str, query: str) -> None:
    assert Found(database, text).by(query_terms(query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("the car is red", "caravan"),
        ("京東の都", "東京"),
        ("C++ only", "C#"),
        ("abc", "a.b.c"),
        ("plain words", "&&"),
        ("limited to 5,000 rows", "12,000"),
        ("error E4018 (E)", "E4019"),
        ("version 2.5", "3.5"),
        ("Anna: +47 22 33 44 55", "+47 22 99 98 97"),
        ("DE89 3704 0044 0532 0130 00", "DE12 3704 0044 0532 0130 00"),
        ("10 20 30 40 50 60 70 80 90", "203040506070"),
    ],
)
def test_a_text_is_not_found(database: apsw.Connection, text: str, query: str) -> None:
    assert not Found(database, text).by(query_terms(query))


@pytest.mark.parametrize(
    "query",
    [
        "red OR 1=1",
        'car" OR "x',
        "car*",
        "NEAR(car red)",
        "body:car",
        "^car",
        "car AND NOT red",
        "-",
    ],
)
def test_no_syntax_of_a_query_is_syntax(database: apsw.Connection, query: str) -> None:
    asked = query_terms(query)

    assert not Found(database, "something else").by([*asked, "nowhere"])
    assert all('"' not in term for term in asked)


@given(MIXED)
@example("".join(map(chr, range(0x250))))
@example("\ud800 \udfff x\x00y \u2028z\u3000")
@example("ήσαν ίσες")
def test_every_term_is_safe_and_finds_its_text(database: apsw.Connection, text: str) -> None:
    found = Found(database, text)

    for term in {*terms(text), *query_terms(text)}:
        assert 0 < len(term) <= analysis.TERM_CHARS_MAX
        assert term == term.casefold() or not term.isascii()
        assert not any(character.isspace() or character in "\"'`\\" for character in term)
        assert all(unicodedata.category(character) not in {"Cc", "Cs"} for character in term)
        assert found.by([term])


@given(st.text())
def test_whatever_can_be_asked_of_a_text_is_indexed_with_it(text: str) -> None:
    assert set(query_terms(text)) <= set(terms(text))


@given(st.one_of(st.text(), MIXED))
def test_a_title_has_the_terms_of_a_text(title: str) -> None:
    assert analysis.title_terms(title).split() == terms(title)


@given(
    st.lists(
        st.sampled_from(["user", "Running", "IDS", "the", "2024", "05", "x" * 40]), min_size=1
    ),
    st.sampled_from(["-", "_"]),
    st.sampled_from(["", ",", ".", "(", '"', "'", ":"]),
)
@example(["key", "1"], "-", "")
def test_a_key_has_the_terms_that_the_patterns_find(
    words: list[str], joint: str, edge: str
) -> None:
    key = edge + joint.join(words) + edge

    by_patterns = analysis._word_terms(key, singles=True)  # noqa: SLF001 -- keys take a shorter way

    assert terms(key) == by_patterns


@given(MIXED)
def test_composed_and_decomposed_texts_have_the_same_terms(text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)

    assert terms(decomposed) == terms(unicodedata.normalize("NFC", text))


@given(st.lists(st.text(min_size=1, max_size=8), max_size=8))
def test_terms_come_in_order_with_repeats(chunks: list[str]) -> None:
    pieces = [each for chunk in chunks for each in chunk.split()]
    separate = [term for each in pieces for term in terms(each) if each[0].isalnum()]
    together = terms(" ".join(each for each in pieces if each[0].isalnum()))

    assert together == separate


def test_stop_words_are_indexed_but_not_asked_for_beside_others() -> None:
    assert terms("the cat and the hat") == ["the", "cat", "and", "the", "hat"]
    assert query_terms("the cat and the hat") == ["cat", "hat"]
    assert content_terms("the cat and the hat") == ["cat", "hat"]


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("who owns billing?", ["own", "bill"]),
        ("Who owned it", ["own"]),
        ("how many cans do we own", ["can"]),
        ("its own isOwn", ["isown"]),
        ("is it her own?", ["is", "it", "her", "own"]),
    ],
)
def test_a_word_that_has_the_stem_of_a_stop_word_is_asked_for(query: str, asked: list[str]) -> None:
    assert query_terms(query) == asked


def test_a_query_has_each_term_once_and_not_too_many() -> None:
    asked = query_terms(" ".join(f"word{n} word{n}" for n in range(200)))

    assert len(asked) == len(set(asked)) == limits.QUERY_TERMS_MAX


def test_only_the_start_of_a_huge_text_is_indexed() -> None:
    text = "x " * limits.INDEXED_CHARS_MAX + "needle"

    assert len(terms(text)) == limits.INDEXED_CHARS_MAX // 2


@pytest.mark.parametrize("text", ["", "   ", "\x00\x01", "\"\" ''", "\u200b\u200d"])
def test_a_text_of_nothing_has_no_terms(text: str) -> None:
    assert terms(text) == []
    assert query_terms(text) == []
    assert match_expression(query_terms(text)) == ""


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("E4019", ["e4019", "4019"]),
        ("v2.5", ["v2.5", "2.5", "v2"]),
        ("3.0", ["3.0"]),
        ("errors/E5", ["errors/e5", "error", "e5"]),
        ("S3", ["s3"]),
        ("PROJ-123", ["proj123", "proj", "123"]),
        ("phase-1 7pm", ["phase1", "phase", "1", "7pm", "7", "pm"]),
        ("上限E5", ["上限", "e5"]),
    ],
)
def test_a_code_asks_for_itself(query: str, asked: list[str]) -> None:
    assert query_terms(query) == asked


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        ("tel. +47 22 33 44 55 (Anna)", "who has +4722334455", "+47 22 33 44 55"),
        ("tel. 4722334455 (Anna)", "+47 22 33 44 55", "4722334455"),
        ("NL91 ABNA 0417 1643 00 is for rent", "nl91 abna 0417 1643 00", "NL91 ABNA 0417 1643 00"),
    ],
)
def test_a_code_is_shown_as_it_is_written(text: str, query: str, shown: str) -> None:
    asked = AskedTerms(query_terms(query))

    found = analysis.find(text, asked, most=9)

    assert {text[place.start : place.end] for place in found.places} == {shown}
    assert found.terms == analysis.find_terms(text, asked) == set(asked)


@pytest.mark.parametrize(
    "text",
    [
        "2026-05-01 08:30 and 01.02.2026",
        "x5 +1 200",
        "0 12 34 56",
        "AB12 WITH SOME MORE WORDS",
        "12 34 56 78 90 12 34 56 78 90 12 34 56",
        "192.168.100.200 8080 443",
    ],
)
def test_other_numbers_are_no_codes(text: str) -> None:
    assert terms(text) == [term for chunk in text.split() for term in terms(chunk)]


def test_words_of_unwanted_terms_are_left_out_of_a_query() -> None:
    assert leave_out("What did Caroline paint?", {"carolin"}) == "What did paint?"


def test_a_query_of_unwanted_terms_alone_comes_back() -> None:
    assert leave_out("Caroline & Melanie", {"carolin", "melani"}) == "&"
    assert leave_out("Caroline", {"carolin"}) == "Caroline"


def test_threads_may_analyse_at_once() -> None:
    texts = [f"word{n} Running{n} studies getUser{n}Name 東京{n}" for n in range(300)]
    expected = [terms(text) for text in texts]
    results: list[list[list[str]]] = []

    def work() -> None:
        analysis._CHUNKS.clear()  # noqa: SLF001 -- threads must meet on texts not seen before
        results.append([terms(text) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [expected] * 4


@pytest.mark.parametrize("text", ["lamp lamp lamp", "the the the", "- -- - -- -", "灯 灯 灯"])
def test_each_term_is_asked_for_once(text: str) -> None:
    asked = query_terms(text)

    assert asked
    assert len(asked) == len(set(asked))


ENDINGS = (
    *(
        "",
        "s",
        "es",
        "ies",
        "ed",
        "ied",
        "ing",
        "ying",
        "y",
        "ly",
        "ably",
        "ness",
        "ment",
        "ousness",
    ),
    *("ation", "ational", "ization", "izer", "bility", "biliti", "ivity", "ality", "ency", "ogy"),
)


def test_words_begin_with_the_head_of_their_stem() -> None:
    path = resources.files("stratagem.search") / "model" / "tokenizer.json"
    known = orjson.loads(path.read_bytes())["model"]["vocab"]
    words = [word for word in known if word.isascii() and word.isalpha() and word.islower()]
    inflected = [*words, *(word + end for word in words[::20] for end in ENDINGS), "dying", "tying"]

    assert len(words) > 10_000
    for word in inflected:
        (head,) = AskedTerms(query_terms(word)).heads
        assert word.startswith(head), word


@given(text=MIXED, query=MIXED)
@example(text="send an e-mail to O'Brien's user_id", query="email obrien userId")
@example(text="aa a-aa aa", query="aaa aaaa")
@example(text="up to 12,000 of USD5,000, 12'000", query="12000 usd5000 5000 000")
@example(text="skies of a dying state-of-the-art", query="sky die stateoftheart")
def test_terms_are_found_in_ascii_texts_as_in_any(text: str, query: str) -> None:
    """A word of another script makes every word of a text be looked at."""
    asked = AskedTerms(query_terms(query.encode("ascii", "ignore").decode()))
    plain = " ".join(text.encode("ascii", "ignore").decode().split())
    found = analysis.find(plain, asked, most=1_000)

    # Of a text without any word its symbols are the terms.
    if not asked.are_symbols:
        assert found == analysis.find(f"{plain} \u0416", asked, most=1_000)
    assert analysis.find_terms(plain, asked) == found.terms
