"""Naming, reading and changing one place in a document."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.engine.paths import Steps, get, parse, put, render
from stratagem.engine.values import Json, same
from stratagem.errors import ValidationFailed

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
STEPS = st.lists(NAMES | st.integers(-5, 5), max_size=6).map(tuple)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
)
SHORT_STEPS = st.lists(st.sampled_from("abc") | st.integers(-2, 2), max_size=4).map(tuple)


def refusal(path: object) -> ValidationFailed:
    with pytest.raises(ValidationFailed, match=r"^`where` ") as caught:
        parse(path, field="where")  # type: ignore[arg-type]
    assert caught.value.details["field"] == "where"
    return caught.value


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("$", ()),
        ("$.a.b", ("a", "b")),
        ("$['a b'][0]", ("a b", 0)),
        ('$["x"]', ("x",)),
        ("$[ 'a' ][ 2 ]", ("a", 2)),
        ("$[-1].a", (-1, "a")),
        ("$.first-name._x9", ("first-name", "_x9")),
        ("$.größe.名前.😀", ("größe", "名前", "😀")),
        ("a.b[0]", ("a", "b", 0)),
        ("['a']", ("a",)),
        ("[0]", (0,)),
        (".a", ("a",)),
        ("  $.a  ", ("a",)),
        ("$['']", ("",)),
        ("$['0']", ("0",)),
        ("$['*..?:,']", ("*..?:,",)),
        (r"$['it\'s'][" + r'"say \"hi\""]', ("it's", 'say "hi"')),
        (r"$['\b\f\n\r\t\/\\']", ("\b\f\n\r\t/\\",)),
        (r"$['\u00e9\uD83D\uDE00']", ("é😀",)),
    ],
)
def test_a_path_is_read_into_its_steps(path: str, steps: Steps) -> None:
    assert parse(path) == steps


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("$.*", "wildcard"),
        ("*", "wildcard"),
        ("$.a[*].b", "wildcard"),
        ("$..a", "descendant"),
        ("$.a..b", "descendant"),
        ("$.a[?@.b == 1]", "filter"),
        ("$.a[?(@.b)]", "filter"),
        ("$.a[(@.length-1)]", "filter"),
        ("$.a[0:2]", "slice"),
        ("$.a[:]", "slice"),
        ("$.a[0,1]", "list of places"),
        ("$['a','b']", "list of places"),
    ],
)
def test_a_path_that_may_match_several_places_is_refused_by_name(path: str, name: str) -> None:
    error = refusal(path)

    assert name in error.message
    assert "Name one place" in error.hint


@pytest.mark.parametrize(
    "path",
    ["$ref", "$.", "$.a.", "a b", "$[", "$[]", "$['a]", "$[01]", "$[-0]", "$[1.5]", "/a/b", "$[a]"],
)
def test_a_malformed_path_is_refused_from_where_it_breaks(path: str) -> None:
    assert "cannot be read from" in refusal(path).message


def test_a_number_after_a_dot_is_refused_with_both_spellings() -> None:
    error = refusal("$.items.0.name")

    assert error.hint == "Write [0] for the element, ['0'] for the field."


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        (5, "must be text, not int"),
        ("$['a\nb']", "control character"),
        ("$.\ud800", "surrogate"),
        (r"$['\ud800']", "surrogate"),
        (r"$['\x41']", r"unknown escape, \x"),
        (r"$['\u00e']", r"unknown escape, \u"),
    ],
)
def test_what_cannot_be_a_path_is_refused_in_words(path: object, words: str) -> None:
    assert words in refusal(path).message


def test_a_path_is_taken_to_the_limits_and_no_further() -> None:
    depth, chars = limits.VALUE_DEPTH_MAX, limits.JSONPATH_CHARS_MAX

    assert len(parse("$" + "[0]" * depth)) == depth
    assert refusal("$" + "[0]" * (depth + 1)).details["limit"] == depth
    assert parse("a" * chars) == ("a" * chars,)
    assert refusal("a" * (chars + 1)).details["limit"] == chars


@pytest.mark.parametrize(
    ("steps", "path"),
    [
        ((), "$"),
        (("a", 0, "b c", -1), "$.a[0]['b c'][-1]"),
        (("it's", "a\\b", "tab\t", "\x01"), r"$['it\'s']['a\\b']['tab\t']['\u0001']"),
        (("0", "", "a-b", "é"), "$['0']['']['a-b'].é"),
    ],
)
def test_steps_have_one_spelling(steps: Steps, path: str) -> None:
    assert render(steps) == path


@given(STEPS)
def test_a_rendered_path_reads_back(steps: Steps) -> None:
    assert parse(render(steps)) == steps


@given(st.text(st.sampled_from("$.[]'\"\\*?:,0-1ab u"), max_size=12))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    try:
        steps = parse(text)
    except ValidationFailed:
        return

    assert parse(render(steps)) == steps


def test_a_place_is_read() -> None:
    document: Json = {"a": {"b": [10, {"c": None}]}}

    assert get(document, ()) == (True, document)
    assert get(document, ("a", "b", 0)) == (True, 10)
    assert get(document, ("a", "b", -1, "c")) == (True, None)


@pytest.mark.parametrize(
    "steps", [("x",), ("a", 0), ("b", "a"), ("b", 2), ("b", -3), ("b", 0, "x"), ("c", "x")]
)
def test_a_place_that_does_not_exist_reads_as_missing(steps: Steps) -> None:
    document: Json = {"a": {"b": 1}, "b": ["text", 1], "c": None}

    assert get(document, steps) == (False, None)


@pytest.mark.parametrize(
    ("document", "steps", "after"),
    [
        ({"a": 1}, (), "new"),
        ({"a": 1}, ("a",), {"a": "new"}),
        ({"a": 1, "c": 2}, ("b",), {"a": 1, "c": 2, "b": "new"}),
        ({}, ("a", "b", "c"), {"a": {"b": {"c": "new"}}}),
        ({}, ("a", 0, "b"), {"a": [{"b": "new"}]}),
        ([1, 2], (0,), ["new", 2]),
        ([1, 2], (-1,), [1, "new"]),
        ([1, 2], (2,), [1, 2, "new"]),
        ([[1], 2], (0, 1), [[1, "new"], 2]),
    ],
)
def test_a_place_is_changed(document: Json, steps: Steps, after: Json) -> None:
    assert put(document, steps, "new") == after


@pytest.mark.parametrize(
    ("steps", "place", "words"),
    [
        (("text", "x"), "$.text", "is text"),
        (("flag", "x"), "$.flag", "is a boolean"),
        (("number", 0), "$.number", "is a number"),
        (("nothing", "x"), "$.nothing", "is null"),
        (("list", "x"), "$.list", "is an array, which has no .x"),
        (("list", 3), "$.list", "has a length of 1, so there is no place [3]"),
        (("list", -2), "$.list", "has a length of 1"),
        ((0,), "$", "is an object, which has no [0]"),
        (("list", 0, "in", "deep"), "$.list[0].in", "is text"),
        (("made", 1), "$.made", "has a length of 0"),
    ],
)
def test_a_step_that_leads_nowhere_is_refused_with_its_place(
    steps: Steps, place: str, words: str
) -> None:
    document: Json = {
        "text": "t",
        "flag": True,
        "number": 1.5,
        "nothing": None,
        "list": [{"in": "s"}],
    }

    with pytest.raises(ValidationFailed) as caught:
        put(document, steps, 1, field="where")

    assert caught.value.message.startswith(f"`where` cannot be followed: {place} {words}")
    assert caught.value.details == {"field": "where", "place": place}


@given(DOCUMENTS, SHORT_STEPS, DOCUMENTS)
def test_what_was_put_is_got_and_nothing_given_changes(
    document: Json, steps: Steps, value: Json
) -> None:
    before = copy.deepcopy(document)

    try:
        after = put(document, steps, value)
    except ValidationFailed:
        assert not get(document, steps)[0]
    else:
        found, got = get(after, steps)
        assert found
        assert same(got, value)

    assert same(document, before)


def test_what_did_not_change_is_shared() -> None:
    document: dict[str, Json] = {"big": {"x": 1}, "a": {"b": 1, "c": [1]}}

    after = put(document, ("a", "b"), 2)

    assert isinstance(after, dict)
    assert after["big"] is document["big"]
    assert get(after, ("a", "c"))[1] is get(document, ("a", "c"))[1]
