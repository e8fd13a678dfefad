"""JSON that people wrote, changed in one place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.clients.json_edit import JsonText
from stratagem.errors import InvalidInput

COMMENTED = """\
{
  // mine
  "a": 1, // one
  "b": {"x": [1, 2,],}, /* two */
}
"""
SERVER = {"command": "c", "args": ["mcp"]}


@pytest.mark.parametrize(
    "text",
    [
        COMMENTED,
        '{\n\t"a": 1 // one\n}\n',
        '{"a":1}',
        "{}",
        "// above\n{\n  /* nothing\n  yet */\n}\n",
        '{\n  "a": [\n    1\n  ]\n\n}',
    ],
)
def test_a_member_comes_and_goes_without_a_trace(text: str) -> None:
    document = JsonText(text)

    changed = document.with_value(("servers", "own"), SERVER)

    assert JsonText(changed).value == {**document.value, "servers": {"own": SERVER}}
    assert JsonText(JsonText(changed).without(("servers",))).value == document.value
    for comment in ("// mine", "// one", "/* two */", "// above", "yet */"):
        assert (comment in changed) == (comment in text)


@pytest.mark.parametrize("text", [COMMENTED, '{\n\t"a": 1 // one\n}\n', '{"a":1}', "{}"])
def test_what_is_added_and_removed_again_leaves_every_byte(text: str) -> None:
    changed = JsonText(text).with_value(("servers", "own"), SERVER)

    assert JsonText(changed).without(("servers",)) == text


def test_a_comment_stays_with_the_member_it_is_about() -> None:
    changed = JsonText('{\n  "a": 1 // about a\n}\n').with_value(("b",), 2)

    assert changed == '{\n  "a": 1, // about a\n  "b": 2\n}\n'


def test_elements_are_added_and_removed_by_their_number() -> None:
    text = '{"list": [1, 2]}'

    longer = JsonText(text).with_element(("list",), {"x": 1})

    assert JsonText(longer).value == {"list": [1, 2, {"x": 1}]}
    assert JsonText(JsonText(longer).without(("list", 0))).value == {"list": [2, {"x": 1}]}
    assert JsonText(longer).without(("list", 2)) == text


def test_of_a_name_that_occurs_twice_the_last_counts() -> None:
    document = JsonText('{"a": 1, "a": 2}')

    assert document.value == {"a": 2}
    assert JsonText(document.with_value(("a",), 3)).value == {"a": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a value was expected"),
        ('{"a": 1', "a comma or }"),
        ('{"a" 1}', "a colon"),
        ("{a: 1}", "a name in quotes"),
        ("{'a': 1}", "a name in quotes"),
        ('{"a": 1} x', "something after the end"),
        ('{"a": "x}', "Unterminated"),
        ('{\n"a": 1\n"b": 2}', "line 3"),
        ('{"a": /* open', "a value was expected"),
        ("[" * 300, "nested too deeply"),
        ('{"a": 01}', "a comma or }"),
    ],
)
def test_what_is_not_json_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        JsonText(text)

    assert words in caught.value.message


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(
    settings=st.dictionaries(st.text(), VALUES, max_size=5),
    key=st.text(),
    indent=st.sampled_from([None, 1, 2, "\t"]),
)
def test_any_document_is_changed_in_one_place(
    settings: dict[str, Any], key: str, indent: int | str | None
) -> None:
    text = json.dumps(settings, indent=indent)

    changed = JsonText(text).with_value((key,), SERVER)

    assert JsonText(text).value == settings
    assert JsonText(changed).value == {**settings, key: SERVER}
    rest = {name: value for name, value in settings.items() if name != key}
    assert JsonText(JsonText(changed).without((key,))).value == rest
