"""Requests as people write them: misspelled, in other languages, and about nothing at all."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.gateway.advice.retrieval.index import Definition, ToolIndex, ToolMatch
from stratagem.gateway.advice.retrieval.requests import Vocabulary, read
from stratagem.gateway.advice.retrieval.spelling import Spelling
from stratagem.search.embedding import StaticEmbedder

TEXT = {"type": "string"}
NUMBER = {"type": "number"}


def tool(name: str, description: str, **properties: Any) -> Definition:
    schema = {"type": "object", "properties": properties}
    return Definition(name, 1, {"name": name, "description": description, "inputSchema": schema})


TOOLS = (
    tool("get_weather", "Current weather and temperature of a city.", city=TEXT),
    tool("rain_forecast", "Forecast of rain for the coming days.", city=TEXT),
    tool("book_flight", "Book a flight between two cities.", origin=TEXT, destination=TEXT),
    tool("translate_text", "Translate a text into another language.", text=TEXT, language=TEXT),
    tool("triangle_area", "Calculate the area of a triangle.", base=NUMBER, height=NUMBER),
    tool("send_email", "Send an email to somebody.", recipient=TEXT, text=TEXT),
    tool("roll_die", "Roll a die and give the number.", sides=NUMBER),
    tool("get_clothes", "Clothes to wear.", occasion=TEXT),
)


@pytest.fixture(params=["words", "meaning"])
def index(request: pytest.FixtureRequest) -> ToolIndex:
    made = ToolIndex(StaticEmbedder() if request.param == "meaning" else None)
    made.update(TOOLS)
    return made


def best(index: ToolIndex, request: str) -> ToolMatch:
    return index.search(request)[0]


@pytest.mark.parametrize(
    ("request_", "name"),
    [
        ("Wie ist das Wetter in Berlin?", "get_weather"),
        ("Regenvorhersage für Köln", "rain_forecast"),
        ("Buche einen Flug von Berlin nach Rom", "book_flight"),
        ("Berechne die Fläche eines Dreiecks mit Basis 5 und Höhe 10", "triangle_area"),
        ("¿Qué tiempo hace en Madrid hoy?", "get_weather"),
        ("Quiero reservar un vuelo a Lima", "book_flight"),
        ("Quel temps fait-il à Paris ?", "get_weather"),
        ("Traduis ce texte en anglais", "translate_text"),
        ("Thời tiết Hà Nội", "get_weather"),
        ("погода в Москве", "get_weather"),
        ("北京今天天气怎么样", "get_weather"),
        ("翻译这段文字", "translate_text"),
        ("計算底邊5高度10的三角形面積", "triangle_area"),
        ("東京の天気を教えて", "get_weather"),
        ("ボブにメールを送信", "send_email"),
        ("서울 날씨를 알려줘", "get_weather"),
    ],
)
def test_other_languages_are_understood(index: ToolIndex, request_: str, name: str) -> None:
    assert best(index, request_).name == name


@pytest.mark.parametrize(
    ("request_", "name", "said"),
    [
        ("wheather in Oslo", "get_weather", "wheather (weather)"),
        ("forcast for tomorrow", "rain_forecast", "forcast (forecast)"),
        ("calcualte teh area of a trangle", "triangle_area", "trangle (triangle)"),
    ],
)
def test_misspelled_words_are_understood_and_named(
    index: ToolIndex, request_: str, name: str, said: str
) -> None:
    match = best(index, request_)

    assert match.name == name
    assert said in match.matching_words()


def test_a_word_is_not_taken_for_another_one_of_english(index: ToolIndex) -> None:
    # A sweater is no weather, and a die no article.
    assert not any(match.matching_words() for match in index.search("knit a sweater"))
    assert best(index, "roll a die").name == "roll_die"
    assert best(index, "roll a die").matching_words() == ["roll", "die"]


def test_words_that_only_build_sentences_are_left_out(index: ToolIndex) -> None:
    request = best(index, "Berechne die Fläche des Dreiecks mit der Basis 5").request

    assert [word.said for word in request.words] == ["Berechne", "Fläche", "Dreiecks", "Basis", "5"]


@pytest.mark.parametrize(
    ("request_", "asked"),
    [
        ("flight Los Angeles La Paz", ["flight", "los", "angel", "la", "paz"]),
        ("locales: en, de, fr", ["local", "en", "de", "fr"]),
    ],
)
def test_names_and_lists_do_not_make_a_request_foreign(request_: str, asked: list[str]) -> None:
    request = read(request_, Vocabulary(lambda _term: True, lambda _word: None))

    assert [term for word in request.words for term in word.terms] == asked
    assert request.text == request_


def test_a_tool_in_the_language_of_the_request_comes_first(index: ToolIndex) -> None:
    index.update([*TOOLS, tool("wetter", "Das Wetter einer Stadt."), tool("tq", "城市的天气")])

    assert best(index, "Wie ist das Wetter in Berlin?").name == "wetter"
    assert best(index, "北京的天气怎么样").name == "tq"


def test_everyday_words_count_where_no_tool_uses_them(index: ToolIndex) -> None:
    diary = tool("create_event", "Add an event to a calendar.", title=TEXT)
    index.update([*TOOLS, diary])
    assert best(index, "my diary").name == "create_event"

    index.update([*TOOLS, diary, tool("keep_diary", "Write a page of a diary.", text=TEXT)])
    assert best(index, "my diary").name == "keep_diary"


def test_words_are_shown_as_they_were_written(index: ToolIndex) -> None:
    assert best(index, "Translating texts").matching_words() == ["Translating", "texts"]


def test_what_no_tool_does_is_not_relevant() -> None:
    index = ToolIndex(StaticEmbedder())
    index.update(TOOLS)

    asked = best(index, "what is the weather in Oslo")
    # To share one word is not enough.
    for request in ("unclog the kitchen sink", "who are you", "another brick in the wall"):
        found = index.search(request)
        assert not found or found[0].score < asked.score / 3


def test_words_of_removed_tools_are_no_longer_near() -> None:
    spelling = Spelling()
    spelling.add("weather of a city")
    spelling.add("the weather")
    spelling.remove("the weather")
    assert spelling.nearest("wether") == "weather"

    spelling.remove("weather of a city")

    assert spelling.nearest("wether") is None


def test_spelling_follows_the_tools(index: ToolIndex) -> None:
    assert "frobnicte (frobnicate)" not in str(
        [match.matching_words() for match in index.search("frobnicte")]
    )

    index.update([*TOOLS, tool("frob", "To frobnicate things.")])
    added = best(index, "frobnicte")
    index.update(TOOLS)

    assert added.matching_words() == ["frobnicte (frobnicate)"]
    assert "frob" not in [match.name for match in index.search("frobnicte")]
    assert best(index, "frobnicte weather").request.text == "frobnicte weather"


def test_a_copy_changes_by_itself(index: ToolIndex) -> None:
    other = index.copy()
    other.update([*TOOLS[1:], tool("peel", "Peel potatoes.")])

    assert best(other, "peel potatoes").name == "peel"
    assert "peel" not in [match.name for match in index.search("peel potatoes")]
    assert best(index, "current temperature").name == "get_weather"
    assert "get_weather" not in [match.name for match in other.search("current temperature")]


@pytest.mark.parametrize("text", ["", "?", "\x00", "。", "🦄", "a" * 100_000, "的" * 50_000])
def test_anything_can_be_read(text: str) -> None:
    request = read(text, Vocabulary(lambda _term: False, lambda _word: None))

    assert len(request.words) <= 256
    assert len(request.text) <= 20_000
