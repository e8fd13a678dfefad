from __future__ import annotations

import errno
from pathlib import Path

import apsw
import pytest

from stratagem.storage.sqlite.connection import connect, translate_error, translating_errors


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (apsw.BusyError(), "storage_busy", True),
        (apsw.LockedError(), "storage_busy", True),
        (apsw.FullError(), "storage_full", True),
        (apsw.ReadOnlyError(), "read_only", False),
        (apsw.NotADBError(), "database_corrupt", False),
        (apsw.CorruptError(), "database_corrupt", False),
        (apsw.CantOpenError(), "storage_unavailable", True),
        (apsw.IOError(), "storage_unavailable", True),
        (apsw.ConnectionClosedError(), "storage_unavailable", True),
    ],
    ids=lambda part: type(part).__name__,
)
def test_each_of_the_drivers_errors_has_a_word(
    error: apsw.Error, code: str, retryable: bool
) -> None:
    ours = translate_error(error, "/a/path")

    assert (ours.code, ours.retryable) == (code, retryable)
    assert ours.details["path"] == "/a/path"
    assert ours.hint


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "storage_full"),
        (errno.EDQUOT, "storage_full"),
        (errno.EIO, "storage_unavailable"),
    ],
)
def test_the_systems_errors_have_words_too(number: int, code: str) -> None:
    with pytest.raises(Exception, match="disk|database") as refused, translating_errors("/a/path"):
        raise OSError(number, "no")

    assert getattr(refused.value, "code", None) == code
    assert isinstance(refused.value.__cause__, OSError)


def test_full_durability_syncs_each_commit_and_fast_does_not(tmp_path: Path) -> None:
    full = connect(str(tmp_path / "a.db"), durability="full")
    fast = connect(str(tmp_path / "b.db"), durability="fast")

    assert (full.pragma("synchronous"), fast.pragma("synchronous")) == (2, 1)
    full.close()
    fast.close()
