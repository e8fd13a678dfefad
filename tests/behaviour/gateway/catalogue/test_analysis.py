"""Reading texts and code."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves
from tests.surfaces.serving import Service

PYTHON = """import os
import subprocess

PASSWORD = "hunter2-hunter2"


class Shop:
    def total(self, items):
        result = 0
        for item in items:
            if item.price > 0 and item.count > 0:
                result += item.price
        return result


def run(command):
    unused = 1
    return subprocess.call(command, shell=True)
"""


@proves("standard:sentiment")
def test_sentiment_is_told_with_its_strength(desk: Desk) -> None:
    good = desk.call("sentiment_analysis", text="I love it, great work!", sentences=True)
    bad = desk.call("sentiment_analysis", text="It is not good. I hate the crashes.")
    plain = desk.call("sentiment_analysis", text="The server listens on port 80.")

    assert (good["sentiment"], bad["sentiment"], plain["sentiment"]) == (
        "positive",
        "negative",
        "neutral",
    )
    assert good["score"] > 0.5
    assert good["sentences"][0]["text"] == "I love it, great work!"
    assert "sentences" not in bad


@proves("standard:sentiment")
def test_other_languages_are_said_to_be_unknown(desk: Desk) -> None:
    told = desk.call(
        "sentiment_analysis", text="Das neue Programm gefällt mir sehr gut und läuft schnell."
    )

    assert "English" in told["warning"]
    assert told["confidence"] <= 0.5
    assert desk.refusal("sentiment_analysis", text="Gut", language="de").code == "validation_error"


@proves("standard:entities")
def test_entities_have_a_type_and_a_place(desk: Desk) -> None:
    text = (
        "Ada Lovelace of Acme Corp. paid €12.50 in Paris on 3 March 2026 (see /etc/hosts, v2.1.0)."
    )

    found = desk.call("entity_extraction", text=text)

    assert {(each["type"], each["text"]) for each in found["entities"]} == {
        ("person", "Ada Lovelace"),
        ("organization", "Acme Corp."),
        ("money", "€12.50"),
        ("place", "Paris"),
        ("date", "3 March 2026"),
        ("path", "/etc/hosts"),
        ("version", "v2.1.0"),
    }
    assert all(text[each["start"] : each["end"]] == each["text"] for each in found["entities"])
    only = desk.call("entity_extraction", text=text, types=["money"])
    assert [each["text"] for each in only["entities"]] == ["€12.50"]


@proves("standard:summary")
def test_a_summary_covers_both_halves_of_a_text_and_repeats_nothing(desk: Desk) -> None:
    text = (
        "The database lost power at noon. Power was lost in the whole building at noon. "
        "The database came back without losing a write. Nobody had to restore a backup. "
        "In other news the canteen serves soup again. The soup of the canteen is tomato soup."
    )

    told = desk.call("summarization", text=text, sentences=2)

    assert told["sentences"] == 2
    assert told["ofSentences"] == 6
    assert "database" in told["summary"]
    assert "canteen" in told["summary"]
    assert all(each in text for each in told["summary"].split(". "))


@proves("standard:summary")
@pytest.mark.parametrize("length", [30, 80, 200, 5000])
def test_a_summary_keeps_within_its_length(desk: Desk, length: int) -> None:
    text = "The first sentence says something of note. " * 3 + "Then another thing happens here."

    told = desk.call("summarization", text=text, maxLength=length)

    assert 0 < len(told["summary"]) <= length
    assert told["method"] == "extractive"


@proves("standard:summary")
def test_a_summary_by_a_model_needs_one(desk: Desk) -> None:
    refused = desk.refusal("summarization", text="A text.", method="model")

    assert refused.details["field"] == "method"


@proves("standard:code")
def test_code_is_analysed_whole(desk: Desk) -> None:
    told = desk.call("code_analysis", code=PYTHON, language="python", threshold=3)

    [file] = told["files"]
    assert {(each["kind"], each["name"]) for each in file["symbols"]} == {
        ("class", "Shop"),
        ("method", "total"),
        ("function", "run"),
    }
    assert file["imports"] == ["import os", "import subprocess"]
    assert told["summary"]["exceeding"] == 1
    assert {each["rule"] for each in file["issues"]} >= {"F401", "F841"}
    by = {each["rule"]: each for each in file["security"]}
    assert by["B602"]["owasp"] == "A03:2021 Injection"
    assert by["secret"]["line"] == 4
    assert "hunter2" not in told["content"]
    assert "# Code analysis" in told["content"]


@proves("standard:code")
@pytest.mark.parametrize(
    ("language", "code", "symbol"),
    [
        (
            "javascript",
            "import a from 'b';\nconst f = (x) => { if (x) { return 1 } return 2 };",
            "f",
        ),
        (
            "typescript",
            "interface Shape { area(): number }\nfunction f(a: number) { return a }",
            "Shape",
        ),
        ("java", "import java.util.List;\nclass Shop { int total(int x) { return x; } }", "total"),
        ("go", 'package main\nimport "fmt"\nfunc main() { fmt.Println("hi") }', "main"),
        ("rust", "use std::io;\nfn main() { if true {} }", "main"),
        ("c", "#include <stdio.h>\nchar *name(int x) { return x ? 0 : 0; }", "name"),
        ("cpp", "#include <vector>\nclass Shop { int total() { return 1; } };", "Shop"),
        ("csharp", "using System;\nclass Shop { int Total(int x) { return x; } }", "Total"),
        ("ruby", "require 'json'\nclass Shop\n  def total(x)\n    x if x\n  end\nend", "total"),
        ("php", "<?php\nuse App\\Shop;\nfunction total($x) { return $x; }", "total"),
    ],
)
def test_every_language_has_symbols_imports_and_complexity(
    desk: Desk, language: str, code: str, symbol: str
) -> None:
    [file] = desk.call("code_analysis", code=code, language=language)["files"]

    assert symbol in {each["name"] for each in file["symbols"]}
    assert file["imports"] or language == "typescript"
    assert file["functions"] or language == "typescript"
    assert file["syntaxErrors"] == []


@proves("standard:code")
def test_a_repository_is_read_from_its_archive(desk: Desk, service: Service) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in (("repo-1/src/a.py", "def f(): pass\n"), ("repo-1/x/b.txt", "no code")):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("repo-1/link.py")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    service.answers["/r.tar.gz"] = lambda _said: (200, "application/gzip", packed.getvalue())

    told = desk.call("code_parser", repository=service.url("/r.tar.gz"))

    assert [each["path"] for each in told["files"]] == ["src/a.py"]
    assert told["languages"] == {"python": 1}


@proves("standard:code")
def test_a_folder_is_read_without_following_links(desk: Desk, folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "main.go").write_text("package main\nfunc main() {}\n")
    (folder / "src" / "evil.py").symlink_to("/etc/passwd")
    desk.connect("project", "folder", path=str(folder))

    told = desk.call("code_parser", folder="project/src", includeContent=False)

    assert [each["path"] for each in told["files"]] == ["src/main.go"]
    assert "content" not in told["files"][0]


@proves("standard:code")
def test_complexity_and_security_take_what_the_parser_gives(desk: Desk) -> None:
    files = desk.call("code_parser", code=PYTHON, path="shop.py", language="python")["files"]

    measured = desk.call("complexity_analyzer", files=files, threshold=3)
    scanned = desk.call("security_scanner", files=measured["files"], rules="owasp-top-10")

    assert [each["name"] for each in measured["exceeding"]] == ["total"]
    assert scanned["byCategory"]["A03:2021 Injection"] >= 1
    assert all("owasp" in each for each in scanned["issues"])
    assert "## Complexity" in scanned["content"]
    assert "## Security" in scanned["content"]


@proves("standard:code")
def test_what_is_no_code_is_refused(desk: Desk) -> None:
    assert desk.refusal("code_parser").details["field"] == "code"
    both = desk.refusal("code_parser", code="x", files=[{"path": "a.py", "content": ""}])
    assert both.details["field"] == "files"
    assert desk.refusal("code_parser", code="x = 1").details["field"] == "language"
    unknown = desk.refusal("code_parser", files=[{"path": "a.zig", "content": "x"}])
    assert "python" in unknown.details["allowed"]


@proves("standard:data")
def test_a_table_is_described_and_queried(desk: Desk) -> None:
    table = "city;price;rooms\nOslo;10;1\nOslo;20;2\nBergen;30;3\nBergen;;4\nVoss;900;5\n"

    told = desk.call(
        "data_analyzer",
        content=table,
        query="SELECT city, count(*) AS n FROM data GROUP BY city ORDER BY n DESC, city LIMIT 1",
    )

    price = next(each for each in told["columns"] if each["name"] == "price")
    assert told["rowCount"] == 5
    assert price["missing"] == 1
    assert price["outliers"]["values"] == [900]
    assert (price["minimum"], price["maximum"], price["median"]) == (10, 900, 25)
    assert told["query"]["rows"] == [{"city": "Bergen", "n": 2}]
    assert "| price | number |" in told["content"]


@proves("standard:data")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "COPY data TO '/tmp/stratagem-should-not-be-there'",
        "ATTACH '/tmp/x.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "DROP TABLE data",
    ],
)
def test_a_query_over_a_table_reaches_nothing_else(desk: Desk, query: str) -> None:
    refused = desk.refusal("data_analyzer", content=[{"a": 1}], query=query)

    assert refused.code in {"permission_denied", "validation_error", "execution_error"}
    assert "root:" not in refused.message
