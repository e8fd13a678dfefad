"""`read_file`, `write_file`, `edit_file`, `delete_file`, `create_directory`, in granted folders."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin import office_files
from stratagem.gateway.catalogue.folders import GrantedFolder, open_folder
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples

__all__ = ["TOOLS"]

_OFFICE: Final = ("pdf", "docx", "xlsx")


async def _read(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    folder = open_folder(run, given.get("folder"))
    path = given["path"]
    if path.endswith("/") or await run.in_thread(lambda: folder.is_folder(path)):
        entries = await run.in_thread(lambda: folder.entries(path))
        return {"path": path, "kind": "folder", "entries": entries}
    data: bytes = await run.in_thread(lambda: folder.read_bytes(path, limits.FILE_BYTES_MAX))
    suffix: Any = path.rpartition(".")[2].casefold()
    if given.get("encoding") == "base64":
        return {"path": path, "kind": "file", "bytes": len(data), "base64": _encode(data)}
    if suffix in _OFFICE:
        found = await office_files.read_file(data, suffix, seconds=run.seconds)
        text = found.get("text") or "\n".join(
            "\t".join("" if cell is None else str(cell) for cell in row) for row in found["rows"]
        )
    else:
        text = _decode(data, path)
    return {"path": path, "kind": "file", "bytes": len(data), **_lines(text, given)}


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValidationFailed(
            f"{path} is not text in UTF-8.",
            field="path",
            hint='Read it with encoding "base64", or convert it with file_converter.',
        ) from None


def _lines(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a text that was asked for, by lines."""
    lines = text.splitlines(keepends=True)
    start, count = given.get("startLine", 1), given.get("lineCount", limits.FILE_LINES_SHOWN_MAX)
    part = lines[start - 1 : start - 1 + count]
    shown = {"content": "".join(part), "totalLines": len(lines)}
    return shown if start - 1 + count >= len(lines) else {**shown, "nextLine": start + count}


async def _write(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    folder = open_folder(run, given.get("folder"), writes=True)
    data = _bytes_of(given)
    if given.get("createFolders", True) and "/" in given["path"].strip("/"):
        above = given["path"].strip("/").rpartition("/")[0]
        await run.in_thread(lambda: folder.make_folder(above))
    created = await run.in_thread(
        lambda: folder.write_bytes(given["path"], data, overwrite=given.get("overwrite", False))
    )
    return {"path": given["path"], "bytes": len(data), "created": created}


def _bytes_of(given: Mapping[str, Any]) -> bytes:
    if given.get("encoding") != "base64":
        data: bytes = given["content"].encode("utf-8", "surrogatepass")
    else:
        try:
            data = base64.b64decode(given["content"], validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValidationFailed("`content` is not base64.", field="content") from error
    if len(data) > limits.FILE_BYTES_MAX:
        raise ValidationFailed(
            f"A file has at most {limits.FILE_BYTES_MAX:,} bytes.",
            field="content",
            limit=limits.FILE_BYTES_MAX,
        )
    return data


async def _edit(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    folder = open_folder(run, given.get("folder"), writes=True)
    replaced: int = await run.in_thread(lambda: _replace(folder, given))
    return {"path": given["path"], "replaced": replaced}


def _replace(folder: GrantedFolder, given: Mapping[str, Any]) -> int:
    path, old, new = given["path"], given["oldText"], given["newText"]
    text = _decode(folder.read_bytes(path, limits.FILE_BYTES_MAX), path)
    count = text.count(old)
    if count == 0:
        raise ValidationFailed(
            f"{path} has no such text.",
            field="oldText",
            hint="Copy it from read_file exactly, with spaces and line ends.",
        )
    if count > 1 and not given.get("all"):
        raise ValidationFailed(
            f"{path} has that text {count} times.",
            field="oldText",
            hint="Give more of the text around it, or set `all`.",
        )
    folder.write_bytes(path, text.replace(old, new).encode("utf-8"), overwrite=True)
    return count


async def _delete(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    folder = open_folder(run, given.get("folder"), writes=True)
    kind = await run.in_thread(
        lambda: folder.remove(given["path"], folder=given.get("directory", False))
    )
    return {"path": given["path"], "deleted": True, "kind": kind}


async def _create(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    folder = open_folder(run, given.get("folder"), writes=True)
    created = await run.in_thread(lambda: folder.make_folder(given["path"]))
    return {"path": given["path"], "created": created}


_PATH: Final = {
    "type": "string",
    "minLength": 1,
    "maxLength": limits.FILE_PATH_CHARS_MAX,
    "description": "Path below the folder, such as reports/may.txt",
}
_FOLDER: Final = {"type": "string", "description": "Which folder connection, if there are several"}
_ENCODING: Final = {"type": "string", "enum": ["utf-8", "base64"], "default": "utf-8"}
_WHERE: Final = (
    " Works only below folders that an administrator connected; links are not followed and `..` is "
    "refused."
)


def _tool(
    name: str,
    description: str,
    details: str,
    run: Callable[[ToolRun], Any],
    *,
    takes: Mapping[str, Any],
    required: tuple[str, ...],
    gives: Mapping[str, Any],
    shown: list[dict[str, Any]],
    changes: bool = True,
    destructive: bool = False,
) -> StandardTool:
    definition = define(
        name,
        description,
        category="filesystem",
        details=details + _WHERE,
        takes={"path": _PATH, **takes, "folder": _FOLDER},
        required=required,
        gives={"path": {"type": "string"}, **gives},
        gives_always=("path",),
        tags=("file", "filesystem", "folder"),
        shown=shown,
        changes=changes,
        destructive=destructive,
        output_bytes=limits.CODE_RESULT_BYTES_MAX,
    )
    return StandardTool(definition, run, connection="folder")


TOOLS: Final = (
    _tool(
        "read_file",
        "Read a file of a granted folder as text, in parts if it is long, or list a folder.",
        "Returns text by lines: `startLine` and `lineCount` select a part, `nextLine` "
        "is where to continue. PDF, DOCX and XLSX are read as text. A path that ends "
        "with / (or is .) lists the "
        "folder. Other files are read with encoding base64.",
        _read,
        takes={
            "startLine": {"type": "integer", "minimum": 1, "default": 1},
            "lineCount": {
                "type": "integer",
                "minimum": 1,
                "maximum": limits.FILE_LINES_SHOWN_MAX,
                "default": limits.FILE_LINES_SHOWN_MAX,
            },
            "encoding": _ENCODING,
        },
        required=("path",),
        gives={
            "kind": {"type": "string", "enum": ["file", "folder"]},
            "content": {"type": "string"},
            "base64": {"type": "string"},
            "bytes": {"type": "integer"},
            "totalLines": {"type": "integer"},
            "nextLine": {"type": "integer"},
            "entries": {"type": "array", "items": {"type": "object"}},
        },
        shown=examples(
            ("Read a file", {"path": "notes/today.md"}), ("List a folder", {"path": "notes/"})
        ),
        changes=False,
    ),
    _tool(
        "write_file",
        "Write a file in a granted folder, as a whole.",
        "An existing file is replaced only with `overwrite`. It is written to a temporary "
        "file and then moved, so nobody sees it half-written.",
        _write,
        takes={
            "content": {"type": "string", "maxLength": limits.FILE_BYTES_MAX * 2},
            "encoding": _ENCODING,
            "overwrite": {"type": "boolean", "default": False},
            "createFolders": {"type": "boolean", "default": True},
        },
        required=("path", "content"),
        gives={"bytes": {"type": "integer"}, "created": {"type": "boolean"}},
        shown=examples(("A new file", {"path": "reports/may.txt", "content": "All well.\n"})),
        destructive=True,
    ),
    _tool(
        "edit_file",
        "Change a text file in a granted folder: replace one passage by another.",
        "`oldText` must occur in the file exactly once, unless `all` is set.",
        _edit,
        takes={
            "oldText": {"type": "string", "minLength": 1, "maxLength": 100_000},
            "newText": {"type": "string", "maxLength": 100_000},
            "all": {"type": "boolean", "default": False},
        },
        required=("path", "oldText", "newText"),
        gives={"replaced": {"type": "integer"}},
        shown=examples(
            ("Change a word", {"path": "a.txt", "oldText": "colour", "newText": "color"})
        ),
        destructive=True,
    ),
    _tool(
        "delete_file",
        "Delete a file of a granted folder, or with `directory` an empty folder.",
        "Deletion is final: there is no recycle bin.",
        _delete,
        takes={"directory": {"type": "boolean", "default": False}},
        required=("path",),
        gives={"deleted": {"type": "boolean"}, "kind": {"type": "string"}},
        shown=examples(("Delete a file", {"path": "reports/old.txt"})),
        destructive=True,
    ),
    _tool(
        "create_directory",
        "Create a folder within a granted folder, with its parents.",
        "If it exists already, that is not an error: `created` is then false.",
        _create,
        takes={},
        required=("path",),
        gives={"created": {"type": "boolean"}},
        shown=examples(("A folder", {"path": "reports/2026/may"})),
    ),
)
