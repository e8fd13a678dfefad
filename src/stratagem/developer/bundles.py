"""Bundles: a branch in one file, in the one folder that the operator has named for them.

A bundle is the export of a branch (`stratagem export`), called by a name: no path of a caller's
reaches the file system.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

from stratagem.developer.models import BundleInfo, BundleLoaded
from stratagem.errors import (
    ServiceUnavailable,
    StratagemError,
    ValidationFailed,
)
from stratagem.memory.transfer import export_branch, import_from
from stratagem.operation import Caller
from stratagem.parameters import AsOf, BranchName, Param
from stratagem.search.foundation import Foundation

__all__ = ["Bundles"]

# At most 120 characters: one name, which can lead out of no folder.
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}")
_ENDING: Final = ".jsonl"
_Name = Annotated[str, Param("Name of the bundle, without a path", quiet=True, aliases=("path",))]


class Bundles:
    """Bundles, for one caller."""

    def __init__(self, foundation: Foundation, caller: Caller) -> None:
        self._foundation = foundation
        self._caller = caller

    def export(
        self,
        name: _Name,
        *,
        overwrite: Annotated[bool, Param("Replace a bundle of that name")] = False,
        as_of: AsOf = None,
        branch: BranchName = None,
    ) -> BundleInfo:
        """Write a branch into a bundle: entries, events, state cells, collections and vectors."""
        self._caller.refuse_in_transaction("Exporting a bundle")
        file = self._file(name)
        if file.exists() and not overwrite:
            raise ValidationFailed(
                f"A bundle named {name!r} exists already.",
                field="name",
                hint="Choose another name, or pass overwrite.",
            )
        with _errors_by_name(file, name):
            done = export_branch(
                self._foundation,
                file,
                branch=branch or self._caller.branch,
                progress=_quiet,
                as_of=as_of,
                overwrite=overwrite,
            )
        return BundleInfo(
            name,
            valid=True,
            branch=str(done.branch),
            entries=done.entries,
            events=done.events,
            records=done.records,
            bytes=done.bytes,
            sha256=done.sha256,
        )

    def import_(
        self,
        name: _Name,
        *,
        preview: Annotated[bool, Param("Only show what would be done")] = False,
        branch: BranchName = None,
    ) -> BundleLoaded:
        """Read a bundle into a branch; it can be repeated, and nothing is written twice.

        Raises:
            ImportRefused: The bundle was cut or altered. Nothing was written.
        """
        self._caller.refuse_in_transaction("Importing a bundle")
        caller = self._caller
        if branch is not None:
            from dataclasses import replace

            caller = replace(caller, branch=branch)
        file = self._present(name)
        with _errors_by_name(file, name):
            done = import_from(
                self._foundation,
                caller,
                file,
                progress=_quiet,
                form="stratagem",
                preview=preview,
            )
        return BundleLoaded(
            name,
            str(done.branch),
            done.preview,
            done.created,
            done.updated,
            done.unchanged,
            done.logged,
            done.known,
        )

    def validate(self, name: _Name) -> BundleInfo:
        """Say whether a bundle is whole, and what it holds; nothing is written."""
        file = self._present(name)
        header = _header(file)
        problem = None
        try:
            with _errors_by_name(file, name):
                import_from(
                    self._foundation,
                    self._caller,
                    file,
                    progress=_quiet,
                    form="stratagem",
                    preview=True,
                )
        except StratagemError as error:
            problem = error.message
        return BundleInfo(
            name,
            valid=problem is None,
            branch=str(header.get("branch", "")),
            entries=_count(header, "entries"),
            events=_count(header, "events"),
            records=_count(header, "records"),
            bytes=file.stat().st_size,
            problem=problem,
        )

    def _present(self, name: str) -> Path:
        file = self._file(name)
        if file.is_symlink() or not file.is_file():
            files = file.parent.glob(f"*{_ENDING}")
            there = sorted(each.stem for each in files if not each.is_symlink())[:10]
            raise ValidationFailed(
                f"There is no bundle {name!r}.",
                field="name",
                similar=there,
                hint=f"There are: {', '.join(there)}." if there else "Export one first.",
            )
        return file

    def _file(self, name: str) -> Path:
        folder = self._foundation.bundles
        if folder is None:
            raise ServiceUnavailable(
                "No folder for bundles is configured.",
                hint="The operator of the server sets one: --bundles FOLDER, STRATAGEM_BUNDLES or "
                "`stratagem.open(…, bundles=…)`.",
            )
        if not folder.is_dir():
            raise ServiceUnavailable(
                "The folder for bundles does not exist.",
                hint="The operator of the server has to create the folder that --bundles names.",
            )
        if not _NAME.fullmatch(name):
            raise ValidationFailed(
                "The name of a bundle consists of letters, digits, dots, dashes and underscores.",
                field="name",
                hint="Give a name without a path: all bundles are in one folder.",
            )
        return folder / f"{name.removesuffix(_ENDING)}{_ENDING}"


@contextmanager
def _errors_by_name(file: Path, name: str) -> Iterator[None]:
    """Say in errors the name of a bundle, not the folder of the machine that it is in."""
    try:
        yield
    except StratagemError as error:
        details = {
            field: value.replace(str(file), name) if isinstance(value, str) else value
            for field, value in error.details.items()
        }
        error.reword(error.message.replace(str(file), name), details)
        raise


def _header(file: Path) -> dict[str, Any]:
    import orjson

    with file.open("rb") as lines:
        try:
            header = orjson.loads(lines.readline(1_000_000))
        except orjson.JSONDecodeError:
            header = None
    return header if isinstance(header, dict) else {}


def _count(header: dict[str, Any], name: str) -> int:
    count = header.get(name, 0)
    return count if isinstance(count, int) else 0


def _quiet(_done: int, _total: int, _what: str) -> None:
    """Report no progress: nobody watches."""
