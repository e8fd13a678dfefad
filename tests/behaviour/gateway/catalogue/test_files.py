"""Files of granted folders, and files that are converted and written."""

from __future__ import annotations

import base64
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def sheet(*rows: list[Any]) -> str:
    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    assert page is not None
    for row in rows:
        page.append(row)
    made = io.BytesIO()
    book.save(made)
    return encoded(made.getvalue())


@proves("standard:files")
def test_a_file_is_written_read_edited_and_deleted(desk: Desk, folder: Path) -> None:
    desk.connect("files", "folder", path=str(folder), writable=True)

    written = desk.call("write_file", path="notes/day.md", content="one\ntwo\nthree\n")
    desk.call("edit_file", path="notes/day.md", oldText="two", newText="2")
    part = desk.call("read_file", path="notes/day.md", startLine=2, lineCount=1)

    assert written == {"path": "notes/day.md", "bytes": 14, "created": True}
    assert part["content"] == "2\n"
    assert (part["totalLines"], part["nextLine"]) == (3, 3)
    listed = desk.call("read_file", path="notes/")["entries"]
    assert listed == [{"name": "day.md", "kind": "file", "bytes": 12}]
    assert desk.call("delete_file", path="notes/day.md")["deleted"]
    assert list((folder / "notes").iterdir()) == []


@proves("standard:files")
def test_nothing_is_overwritten_or_deleted_unasked(desk: Desk, folder: Path) -> None:
    desk.connect("files", "folder", path=str(folder), writable=True)
    (folder / "a.txt").write_text("first x x")
    (folder / "sub").mkdir()
    (folder / "sub" / "b.txt").write_text("b")

    assert desk.refusal("write_file", path="a.txt", content="second").code == "validation_error"
    assert (
        desk.refusal("edit_file", path="a.txt", oldText="x", newText="y").details["field"]
        == "oldText"
    )
    assert (
        desk.refusal("edit_file", path="a.txt", oldText="z", newText="y").details["field"]
        == "oldText"
    )
    assert desk.refusal("delete_file", path="sub").details["field"] == "path"
    assert desk.refusal("delete_file", path="sub", directory=True).details["field"] == "path"
    assert (folder / "a.txt").read_text() == "first x x"
    assert (
        desk.call("write_file", path="a.txt", content="second", overwrite=True)["created"] is False
    )
    assert desk.call("create_directory", path="x/y/z")["created"] is True
    assert desk.call("create_directory", path="x/y/z")["created"] is False


@proves("standard:files")
def test_nothing_outside_of_the_folder_is_reached(desk: Desk, folder: Path, tmp_path: Path) -> None:
    desk.connect("files", "folder", path=str(folder), writable=True)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (folder / "link.txt").symlink_to(secret)
    (folder / "out").symlink_to(tmp_path)

    for path in (
        "../secret.txt",
        "a/../../secret.txt",
        "link.txt",
        "out/secret.txt",
        "..\\secret.txt",
    ):
        refused = desk.refusal("read_file", path=path)
        assert refused.code in {"permission_denied", "validation_error"}, path
        rewritten = desk.refusal("write_file", path=path, content="x", overwrite=True)
        assert rewritten.code in {"permission_denied", "validation_error"}, path
    assert desk.call("delete_file", path="link.txt")["kind"] == "file"
    assert secret.read_text() == "secret"


@proves("standard:files")
def test_folders_are_listed_by_any_name(desk: Desk, folder: Path) -> None:
    (folder / ".hidden").mkdir()
    (folder / ".hidden" / "a.txt").write_text("a", "utf-8")
    (folder / "hidden").mkdir()
    desk.connect("files", "folder", path=str(folder))

    for path in (".hidden", ".hidden/", "./.hidden", "/.hidden"):
        told = desk.call("read_file", path=path)
        assert [each["name"] for each in told["entries"]] == ["a.txt"]
    assert desk.call("read_file", path=".")["kind"] == "folder"


@proves("standard:files")
def test_what_is_no_file_is_neither_waited_for_nor_an_error_of_ours(
    desk: Desk, folder: Path
) -> None:
    os.mkfifo(folder / "pipe")
    desk.connect("files", "folder", path=str(folder), writable=True)
    long, too_long = "n" * 255, "n" * 256

    pipe = desk.refusal("read_file", path="pipe")
    refused = [
        desk.refusal("read_file", path=too_long),
        desk.refusal("write_file", path=too_long, content="x"),
        desk.refusal("create_directory", path=too_long),
    ]

    assert "is not a file" in pipe.message
    assert {each.code for each in refused} == {"validation_error"}
    assert {each.details["limit"] for each in refused} == {255}
    assert desk.call("write_file", path=long, content="x")["created"] is True


@proves("standard:files")
def test_a_folder_for_reading_is_only_read(desk: Desk, folder: Path) -> None:
    (folder / "a.txt").write_text("a")
    desk.connect("files", "folder", path=str(folder))

    assert desk.call("read_file", path="a.txt")["content"] == "a"
    for tool, given in (
        ("write_file", {"path": "b.txt", "content": "x"}),
        ("edit_file", {"path": "a.txt", "oldText": "a", "newText": "b"}),
        ("delete_file", {"path": "a.txt"}),
        ("create_directory", {"path": "d"}),
    ):
        assert desk.refusal(tool, **given).details["reason"] == "read_only"


@proves("standard:files")
def test_what_is_no_text_is_read_as_base64(desk: Desk, folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"\xff\x00")
    desk.connect("files", "folder", path=str(folder))

    assert "base64" in desk.refusal("read_file", path="a.bin").hint
    assert desk.call("read_file", path="a.bin", encoding="base64")["base64"] == encoded(b"\xff\x00")


@proves("standard:convert")
def test_a_sheet_becomes_data_with_its_types(desk: Desk) -> None:
    content = sheet(["name", "code", "price"], ["Ada", "007", 3.5], ["Bo", None, 4])

    told = desk.call(
        "file_converter",
        content=content,
        options={"compact": True},
        **{"from": "xlsx", "to": "json"},
    )

    assert told["content"] == (
        '[{"name":"Ada","code":"007","price":3.5},{"name":"Bo","code":null,"price":4}]'
    )


@proves("standard:convert")
def test_data_becomes_a_sheet_and_markdown_a_document(desk: Desk) -> None:
    import docx
    import openpyxl

    made = desk.call(
        "file_converter", content='[{"a": 1, "b": "=1+1"}]', **{"from": "json", "to": "xlsx"}
    )
    page = desk.call(
        "file_converter",
        content="# Title\n\nSome *text*.\n\n- one\n",
        **{"from": "markdown", "to": "docx"},
    )

    book = openpyxl.load_workbook(io.BytesIO(base64.b64decode(made["content"])))
    assert book.active is not None
    # A formula in the data stays text.
    assert [[cell.value for cell in row] for row in book.active.rows] == [["a", "b"], [1, "'=1+1"]]
    document = docx.Document(io.BytesIO(base64.b64decode(page["content"])))
    assert [each.text for each in document.paragraphs] == ["Title", "Some text.", "one"]
    assert page["encoding"] == "base64"
    text = desk.call("file_converter", content=page["content"], **{"from": "docx", "to": "text"})
    assert text["content"] == "Title\n\nSome text.\n\n- one\n"


@proves("standard:convert")
@pytest.mark.parametrize(
    ("source", "content", "text"),
    [
        ("markdown", "# A\n\nb **c**", "A\n\nb c\n"),
        ("html", "<h1>A</h1><script>x</script><p>b</p>", "A\n\nb\n"),
        ("csv", "a,b\n1,2\n", "| a | b |\n| --- | --- |\n| 1 | 2 |\n"),
        ("json", '{"a": 1}', "- **a**: 1\n"),
        ("yaml", "a: 1\n", "- **a**: 1\n"),
    ],
)
def test_every_format_becomes_text(desk: Desk, source: str, content: str, text: str) -> None:
    told = desk.call("file_converter", content=content, **{"from": source, "to": "text"})

    assert told == {"content": text, "format": "text"}


@proves("standard:convert")
def test_bombs_and_broken_files_are_refused(desk: Desk) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"<a>" * 40_000_000)
    laughs = io.BytesIO()
    with zipfile.ZipFile(laughs, "w", zipfile.ZIP_DEFLATED) as archive:
        entities = "".join(f'<!ENTITY l{at} "{f"&l{at - 1};" * 10}">' for at in range(1, 12))
        archive.writestr(
            "[Content_Types].xml", f'<!DOCTYPE x [<!ENTITY l0 "ha">{entities}]><x>&l11;</x>'
        )
    for kind, data in (
        ("xlsx", bomb.getvalue()),
        ("docx", bomb.getvalue()),
        ("docx", laughs.getvalue()),
        ("xlsx", laughs.getvalue()),
        ("pdf", b"%PDF-1.4 broken"),
        ("xlsx", b"no archive"),
    ):
        refused = desk.refusal(
            "file_converter", content=encoded(data), **{"from": kind, "to": "text"}
        )
        assert refused.code in {"validation_error", "execution_error"}, kind
    plain = desk.refusal("file_converter", content="no base64!", **{"from": "pdf", "to": "text"})
    assert plain.details["field"] == "content"


@proves("standard:report")
@pytest.mark.parametrize("format_", ["markdown", "html", "text", "docx", "pdf"])
def test_a_report_is_written_in_every_format(desk: Desk, format_: str) -> None:
    import docx
    import pypdf

    content = "Some *text* with <b>marks</b>.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"

    told = desk.call("report_generator", title="Sales & more", content=content, format=format_)

    assert told["format"] == format_
    if format_ == "pdf":
        reader = pypdf.PdfReader(io.BytesIO(base64.b64decode(told["base64"])))
        text = reader.pages[0].extract_text()
    elif format_ == "docx":
        document = docx.Document(io.BytesIO(base64.b64decode(told["base64"])))
        text = "\n".join(each.text for each in document.paragraphs)
    else:
        text = told["report"]
    assert "Sales" in text
    assert "Some" in text
    assert "<b>marks" not in text or format_ in {"markdown", "text", "docx", "pdf"}


@proves("standard:report")
def test_a_report_of_data_is_saved_in_a_folder(desk: Desk, folder: Path) -> None:
    desk.connect("files", "folder", path=str(folder), writable=True)

    told = desk.call(
        "report_generator", title="Rows", content=[{"a": 1}], format="html", path="rows.html"
    )

    assert told["path"] == "rows.html"
    assert "<td>1</td>" in (folder / "rows.html").read_text()
