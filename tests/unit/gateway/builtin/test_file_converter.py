"""Conversions: every pair that has a meaning, and what a hostile text cannot do."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem.errors import StratagemError, ValidationFailed
from stratagem.gateway.builtin import file_converter, html_text
from stratagem.gateway.builtin.file_converter import CONVERTS, DATA, DOCUMENTS, convert_text
from tests.unit.gateway.attempts import attempt

ROWS = [{"name": "Ada", "age": "36"}, {"name": "Bo | Co", "age": "28"}]
TABLE = {
    "json": json.dumps(ROWS),
    "yaml": "- name: Ada\n  age: '36'\n- name: Bo | Co\n  age: '28'\n",
    "csv": "name,age\nAda,36\nBo | Co,28\n",
    "markdown": "| name | age |\n| --- | --- |\n| Ada | 36 |\n| Bo \\| Co | 28 |\n",
    "html": "<table>\n<thead>\n<tr><th>name</th><th>age</th></tr>\n</thead>\n<tbody>\n"
    "<tr><td>Ada</td><td>36</td></tr>\n<tr><td>Bo | Co</td><td>28</td></tr>\n</tbody>\n</table>\n",
}


def convert(content: str, source: str, target: str, **options: Any) -> str:
    arguments = {"content": content, "from": source, "to": target, "options": options}
    text = convert_text(arguments)["content"]
    assert isinstance(text, str)
    return text


def value(content: str, source: str, **options: Any) -> Any:
    return json.loads(convert(content, source, "json", **options))


def test_all_pairs_that_have_a_meaning_are_in_the_table() -> None:
    formats = (*DATA, *DOCUMENTS)

    assert set(CONVERTS) == {
        (one, other) for one in formats for other in formats if one != other or one in DATA
    }


@pytest.mark.parametrize("source", TABLE)
@pytest.mark.parametrize("target", TABLE)
def test_rows_go_from_each_format_to_each(source: str, target: str) -> None:
    if (source, target) not in CONVERTS:
        with pytest.raises(ValidationFailed, match="already"):
            convert(TABLE[source], source, target)
        return

    made = convert(TABLE[source], source, target)

    if target in DOCUMENTS or target == "csv":
        assert value(made, target) == ROWS
    else:
        assert json.loads(convert(made, target, "json")) == ROWS


@pytest.mark.parametrize("source", DATA)
@pytest.mark.parametrize("target", DATA)
def test_an_object_goes_from_each_data_format_to_each(source: str, target: str) -> None:
    if "csv" in (source, target):
        return
    data = {"server": {"port": "80", "tags": ["a", "b"], "name": "é & <x>"}}
    text = convert(json.dumps(data), "json", source)

    made = convert(text, source, target)

    assert value(made, target) == data


def test_each_pair_of_the_table_can_be_made() -> None:
    single = {"toml": 'a = "1"\n', "xml": "<r><a>1</a></r>"}
    for source, target in CONVERTS:
        content = TABLE.get(source) or single[source]
        if (source, target) == ("xml", "csv"):
            assert convert("<r>1</r>", source, target) == "r\n1\n"
        else:
            assert convert(content, source, target).strip()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "a: no\nb: 012\nc: 0o14\nd: 0x1f\ne: 1e3\nf: ~\ng: 2026-01-01\nh: 12:30",
            {
                "a": "no",
                "b": 12,
                "c": 12,
                "d": 31,
                "e": 1000.0,
                "f": None,
                "g": "2026-01-01",
                "h": "12:30",
            },
        ),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        (
            "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3",
            {"x": {"a": 1, "b": 2}, "y": {"b": 3, "a": 1}},
        ),
        (
            "x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny: {<<: [*x, *z]}",
            {"x": {"a": 1}, "z": {"a": 2, "c": 3}, "y": {"a": 1, "c": 3}},
        ),
        ("- &a [1]\n- *a", [[1], [1]]),
        ("", None),
    ],
)
def test_yaml_is_read_as_1_2(text: str, found: Any) -> None:
    assert value(text, "yaml") == found


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "? [1]\n: 2",
        "a: [",
        "--- 1\n--- 2",
        "!!python/object/apply:os.system ['id']",
        "a: .inf",
        "a: !!binary aGk=",
        "{<<: 1}",
        "[" * 5_000,
        "a: &a {<<: *a}",
        "&a [*a]",
    ],
)
def test_yaml_that_is_wrong_or_dangerous_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        value(text, "yaml")

    assert refused.value.details["field"] == "content"


def test_yaml_cannot_multiply() -> None:
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
    )
    merges = "a0: &a0 {k: 1}\n" + "".join(
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 3_000)}], k{n}: 1}}\n" for n in range(1, 9)
    )

    for bomb in (laughs, merges):
        with pytest.raises(ValidationFailed) as refused:
            value(bomb, "yaml")
        assert refused.value.details["field"] == "content"


def test_xml_by_its_rule() -> None:
    text = '<a x="1"><b>one</b><b>two</b><c/>tail</a>'

    assert value(text, "xml") == {"a": {"@x": "1", "b": ["one", "two"], "c": "", "#text": "tail"}}
    assert value("<a><![CDATA[<b>]]>&amp;&#65;</a>", "xml") == {"a": "<b>&A"}
    assert value(convert(convert(text, "xml", "json"), "json", "xml"), "xml") == value(text, "xml")


@pytest.mark.parametrize(
    "text",
    [
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        '<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;">]><a>&y;</a>',
        '<!DOCTYPE a SYSTEM "http://example.com/a.dtd"><a/>',
        "<a>&undefined;</a>",
        "<a><b></a>",
        "<a/><b/>",
        "",
        "<a>" * 1_000,
    ],
)
def test_xml_that_is_wrong_or_dangerous_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        value(text, "xml")

    assert refused.value.details["field"] == "content"


@pytest.mark.parametrize(
    "data", [{"a b": 1}, {"a": {"@x y": 1}}, {"a": "\x00"}, {"a": {"#text": [1]}}]
)
def test_what_xml_has_no_place_for_is_refused(data: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        convert(json.dumps(data), "json", "xml")

    assert refused.value.details["field"] == "to"


def test_csv_cells_are_texts_unless_asked() -> None:
    text = "a,b,c,d,e\n1,1.50,true,,007\n"

    assert value(text, "csv") == [{"a": "1", "b": "1.50", "c": "true", "d": "", "e": "007"}]
    assert value(text, "csv", inferTypes=True) == [
        {"a": 1, "b": 1.5, "c": True, "d": None, "e": "007"}
    ]
    assert value("1;2\n3;4\n", "csv", header=False, delimiter=";") == [["1", "2"], ["3", "4"]]
    assert value('a,b\n"x\ny","say ""hi"""\n', "csv") == [{"a": "x\ny", "b": 'say "hi"'}]
    assert value("", "csv") == []


@pytest.mark.parametrize("text", ["a,b\n1\n", "a,b\n1,2,3\n", "a,a\n1,2\n", 'a\n"x'])
def test_csv_that_is_ragged_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        value(text, "csv")


@pytest.mark.parametrize("data", ["text", 5, [1, 2], [{"a": {"b": 1}}], [[1], {"a": 1}]])
def test_what_is_no_table_cannot_be_csv(data: Any) -> None:
    with pytest.raises(ValidationFailed, match="flat") as refused:
        convert(json.dumps(data), "json", "csv")

    assert "data_transformer" in refused.value.hint


@pytest.mark.parametrize("data", [5, None, {"a": None}, {"a": [None]}, [None]])
def test_what_toml_has_no_place_for_is_refused(data: Any) -> None:
    with pytest.raises(ValidationFailed):
        convert(json.dumps(data), "json", "toml")


def test_a_list_gets_a_name_in_toml() -> None:
    made = convert(TABLE["markdown"], "markdown", "toml", root="people")

    assert value(made, "toml") == {"people": ROWS}


def test_toml_dates_become_texts() -> None:
    assert value("a = 2026-01-01\nb = 2026-01-01T10:00:00Z\nc = 07:30:00", "toml") == {
        "a": "2026-01-01",
        "b": "2026-01-01T10:00:00+00:00",
        "c": "07:30:00",
    }


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[NaN]", "{", "[" * 100_000, "1" * 5_000])
def test_json_that_is_wrong_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        value(text, "json")


def test_markdown_becomes_html_without_its_markup() -> None:
    html = convert("# A\n\n<script>x</script>\n\n[l](javascript:alert(1)) `c`", "markdown", "html")

    assert "<h1>A</h1>" in html
    assert "<script>" not in html
    assert "href" not in html
    assert "<code>c</code>" in html


def test_html_becomes_markdown() -> None:
    html = """<!doctype html><html><head><title>T</title><style>p{}</style></head><body>
    <h2>A <b>bold</b> title</h2><p>Some <em>text</em> with <code>a`b</code>,<br>a
    <a href="https://example.com/x">link</a> and <a href="javascript:x()">none</a>.</p>
    <ul><li>one<li>two <ol><li>inner</li></ol></ul><hr><blockquote><p>said</p></blockquote>
    <pre><code class="language-python">x = 1
    y = 2</code></pre><img src="a.png" alt="pic"><script>alert(1)</script> 2 * 3 &lt; 7
    <table><tr><th>a<th>b<tr><td>1<td>2</table></body></html>"""

    assert convert(html, "html", "markdown") == (
        "## A **bold** title\n\n"
        "Some *text* with ``a`b``,  \na [link](https://example.com/x) and none.\n\n"
        "- one\n- two\n  1. inner\n\n---\n\n> said\n\n"
        "```python\nx = 1\n    y = 2\n```\n\n"
        "![pic](a.png)\n\n2 \\* 3 \\< 7\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n"
    )


def test_a_document_with_several_tables_asks_which() -> None:
    text = "| a |\n|---|\n| 1 |\n\ntext\n\n| b |\n|---|\n| 2 |\n"

    with pytest.raises(ValidationFailed, match="2 tables"):
        value(text, "markdown")
    assert value(text, "markdown", table=1) == [{"b": "2"}]
    with pytest.raises(ValidationFailed, match="only 2"):
        value(text, "markdown", table=2)
    with pytest.raises(ValidationFailed, match="no table"):
        value("plain", "markdown")


def test_data_that_is_no_table_becomes_lists() -> None:
    data = json.dumps({"a": {"b": [1, True]}, "c": "<x>", "d": []})

    assert convert(data, "json", "html") == (
        "<dl><dt>a</dt><dd><dl><dt>b</dt><dd><ul><li>1</li><li>true</li></ul></dd></dl></dd>"
        "<dt>c</dt><dd>&lt;x&gt;</dd><dt>d</dt><dd><ul></ul></dd></dl>\n"
    )
    assert convert(data, "json", "markdown") == (
        "- **a**:\n  - **b**:\n    - 1\n    - true\n- **c**: \\<x\\>\n- **d**:\n"
    )
    assert convert("[[1, 2]]", "json", "markdown") == "|  |  |\n| --- | --- |\n| 1 | 2 |\n"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"from": "json", "to": "yaml"}, "content"),
        ({"content": "1", "from": "json", "to": "pdf"}, "to"),
        ({"content": "1", "from": "doc", "to": "json"}, "from"),
        ({"content": "1", "from": "markdown", "to": "markdown"}, "to"),
        ({"content": "a" * 1_000_001, "from": "json", "to": "yaml"}, "content"),
        (
            {"content": "a", "from": "csv", "to": "json", "options": {"delimiter": ";;"}},
            "options.delimiter",
        ),
        ({"content": "<![bad[", "from": "html", "to": "markdown"}, "content"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(StratagemError) as refused:
        convert_text(arguments)

    assert refused.value.details["field"] == field


def test_it_runs_away_from_the_event_loop() -> None:
    arguments = {"content": "[1]", "from": "json", "to": "yaml"}

    assert asyncio.run(file_converter.run(arguments, attempt())) == {
        "content": "- 1\n",
        "format": "yaml",
    }


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_json_through_yaml_comes_back(data: Any) -> None:
    text = json.dumps(data)

    assert value(convert(text, "json", "yaml"), "yaml") == data


@given(
    st.text(max_size=60),
    st.sampled_from(["markdown", "html", "csv", "xml", "yaml", "toml", "json"]),
    st.sampled_from(["json", "html", "markdown"]),
)
def test_any_text_is_converted_or_refused(text: str, source: str, target: str) -> None:
    try:
        convert(text, source, target)
    except ValidationFailed as refused:
        assert refused.details["field"] in {"content", "to"}


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<!-- >", "</a", "<?"])
def test_html_that_never_ends_is_read_in_linear_time(piece: str) -> None:
    text = piece * (60_000 // len(piece))
    began = time.thread_time()

    html_text.parse(text)

    assert time.thread_time() - began < 1


def test_what_begins_in_html_and_never_ends_is_text() -> None:
    root = html_text.parse("<p>tea &amp; milk</p> 1 &lt; 2 <b")

    assert html_text.to_markdown(root) == "tea & milk\n\n1 \\< 2 \\<b\n"
