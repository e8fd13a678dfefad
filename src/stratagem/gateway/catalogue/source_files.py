"""Source files for the tools that read code: given as text, in a folder, or in a repository.

A repository is an archive (.tar.gz or .zip) at a public address; `github.com/owner/name` stands for
the archive of its default branch. Nothing is unpacked to disk, and links in it are not followed.
"""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ExecutionFailed, ValidationFailed
from stratagem.gateway.catalogue.service_answers import get_response
from stratagem.gateway.catalogue.standard_tool import ToolRun
from stratagem.gateway.outbound.results import result_of

__all__ = ["LANGUAGES", "SourceFile", "files_schema", "read_sources", "with_languages"]

SourceFile = dict[str, Any]

_LANGUAGE_OF: Final = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "tsx",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".cs": "csharp",
    ".rb": "ruby",
    ".php": "php",
}
LANGUAGES: Final = tuple(dict.fromkeys(_LANGUAGE_OF.values()))
_OWNER_AND_NAME: Final = 2
_SKIPPED: Final = frozenset(
    {".git", "node_modules", "vendor", "dist", "build", ".venv", "__pycache__", "third_party"}
)


def files_schema(description: str) -> dict[str, Any]:
    """Return the schema of a list of files."""
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": limits.CODE_FILES_MAX,
        "description": description,
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "minLength": 1, "maxLength": 500},
                "content": {"type": "string", "maxLength": limits.CODE_CHARS_MAX},
                "language": {"type": "string", "enum": list(LANGUAGES)},
            },
            "required": ["path", "content"],
        },
    }


async def read_sources(run: ToolRun) -> list[SourceFile]:
    """Return the files that a call is about.

    Raises:
        ValidationFailed: It names none, or more than one source.
    """
    given = run.arguments
    named = [name for name in ("code", "files", "repository", "folder") if given.get(name)]
    if len(named) != 1:
        raise ValidationFailed(
            "Give one of `code`, `files`, `repository` and `folder`.",
            field=named[1] if named else "code",
            hint="`code` is one text, `files` a list of {path, content}.",
        )
    if "code" in named:
        files = [_single(given)]
    elif "files" in named:
        files = [dict(each) for each in given["files"]]
    elif "folder" in named:
        files = await run.in_thread(lambda: list(_in_folder(run)))
    else:
        files = await _in_repository(run, str(given["repository"]))
    return with_languages(files)


def with_languages(files: Sequence[Mapping[str, Any]]) -> list[SourceFile]:
    """Return the files whose language is known, each with it.

    Raises:
        ValidationFailed: There is no such file, or they are too much together.
    """
    known = [
        {**each, "language": language}
        for each in files
        if (language := each.get("language") or _LANGUAGE_OF.get(_suffix(each["path"])))
    ]
    if not known:
        raise ValidationFailed(
            "None of the files is in a language that is known.",
            field="files",
            allowed=list(LANGUAGES),
            hint="Give `language`, or paths with the usual endings, such as main.py.",
        )
    total = sum(len(each["content"]) for each in known)
    if total > limits.CODE_CHARS_MAX:
        raise ValidationFailed(
            f"The code has {total:,} characters; {limits.CODE_CHARS_MAX:,} are read at once.",
            field="files",
            limit=limits.CODE_CHARS_MAX,
            hint="Choose a part of it: `folder` takes a path, `paths` selects files.",
        )
    return known


def _single(given: Mapping[str, Any]) -> SourceFile:
    language = given.get("language")
    if language is None and not given.get("path"):
        raise ValidationFailed(
            "`language` is needed for `code`.", field="language", allowed=list(LANGUAGES)
        )
    file: SourceFile = {"path": given.get("path") or "code", "content": given["code"]}
    return {**file, "language": language} if language else file


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.casefold()


def _is_wanted(path: str, pattern: str | None) -> bool:
    place = PurePosixPath(path)
    if _suffix(path) not in _LANGUAGE_OF or _SKIPPED & set(place.parts):
        return False
    return pattern is None or place.match(pattern)


def _in_folder(run: ToolRun) -> Iterator[SourceFile]:
    from stratagem.gateway.catalogue.folders import open_folder

    name, _, below = str(run.arguments["folder"]).partition("/")
    folder = open_folder(run, name or None)
    count = 0
    for path in folder.walk(below):
        if _is_wanted(path, run.arguments.get("paths")):
            yield {"path": path, "content": folder.read_text(path, limits.CODE_CHARS_MAX)}
            count += 1
            if count >= limits.CODE_FILES_MAX:
                return


async def _in_repository(run: ToolRun, repository: str) -> list[SourceFile]:
    response = await get_response(
        run, _archive_url(repository), bytes_max=limits.REPOSITORY_BYTES_MAX
    )
    # A failure of the service is told by its status, with what it said.
    result_of(response)
    pattern = run.arguments.get("paths")
    files: list[SourceFile] = await run.in_thread(lambda: list(_in_archive(response.body, pattern)))
    return files


def _archive_url(repository: str) -> str:
    plain = repository.removeprefix("https://").removeprefix("http://").removesuffix(".git")
    parts = plain.strip("/").split("/")
    if parts[0] in {"github.com", "www.github.com"} and len(parts) > _OWNER_AND_NAME:
        return f"https://codeload.github.com/{parts[1]}/{parts[2]}/tar.gz/HEAD"
    if not repository.startswith(("http://", "https://")):
        raise ValidationFailed(
            "`repository` must be github.com/owner/name, or the address of a .tar.gz or .zip.",
            field="repository",
        )
    return repository


def _in_archive(data: bytes, pattern: str | None) -> Iterator[SourceFile]:
    reader = _zip_entries if data[:2] == b"PK" else _tar_entries
    count, total = 0, 0
    try:
        for path, content in reader(data, pattern):
            total += len(content)
            count += 1
            if count > limits.CODE_FILES_MAX or total > limits.CODE_CHARS_MAX:
                return
            yield {"path": path, "content": content.decode("utf-8", "replace")}
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        raise ExecutionFailed(
            f"The repository cannot be read as an archive: {error}.",
            answered=True,
            hint="Give the address of a .tar.gz or .zip.",
        ) from error


def _tar_entries(data: bytes, pattern: str | None) -> Iterator[tuple[str, bytes]]:
    unpacked = 0
    # As a stream: an archive that unpacks without end is left when it has given too much.
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|*") as archive:
        for entry in archive:
            unpacked += entry.size
            if unpacked > limits.DOCUMENT_EXPANDED_BYTES_MAX:
                return
            path = _inner_path(entry.name)
            if entry.isreg() and entry.size <= limits.CODE_CHARS_MAX and _is_wanted(path, pattern):
                content = archive.extractfile(entry)
                yield path, content.read() if content is not None else b""


def _zip_entries(data: bytes, pattern: str | None) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for entry in archive.infolist():
            path = _inner_path(entry.filename)
            if entry.file_size <= limits.CODE_CHARS_MAX and _is_wanted(path, pattern):
                yield path, archive.read(entry)


def _inner_path(name: str) -> str:
    """Return a path without the folder that archives of repositories wrap everything in."""
    return "/".join(name.split("/")[1:]) or name
