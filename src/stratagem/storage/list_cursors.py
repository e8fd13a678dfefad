"""Cursors of lists: where a page ended, and of which state of the log it was a page.

All pages of a list show the state that the first one showed, whatever is written meanwhile: no
record is missed and none is shown twice. A cursor therefore says up to which sequence, and at what
time, the list is read. It is text that only the list which gave it takes back.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, NoReturn
from zlib import crc32

import orjson

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import ValidationFailed
from stratagem.storage.contract import Reader

__all__ = ["ListAnchor", "anchor_view", "cursor_at", "list_check", "read_list_cursor"]

# The longest key, twice as long in base64 as in bytes of UTF-8, and the numbers before it.
_CURSOR_CHARS_MAX: Final = 4_096


class ListAnchor(NamedTuple):
    """The state that a list shows: up to which sequence, and what the clock said.

    `check` stands for what is listed, so that the cursor of one list is not taken for another's.
    """

    sequence: int
    time: int
    check: int

    @property
    def text(self) -> str:
        """The anchor as an answer holds it."""
        return f"{self.sequence:x}.{self.time:x}.{self.check:x}"


def list_check(*wanted: object) -> int:
    """Return a number that stands for what a list is asked for."""
    return crc32(orjson.dumps(wanted))


def cursor_at(anchor: str, position: object) -> str:
    """Return the cursor of a list after a position: a key or a sequence."""
    return urlsafe_b64encode(f"{anchor}.{position}".encode()).decode().rstrip("=")


def read_list_cursor(cursor: str, check: int) -> tuple[ListAnchor, str]:
    """Return what state a list is of, and after which position it goes on.

    Raises:
        ValidationFailed: It is no cursor of a list, or one of another list.
    """
    try:
        padded = cursor[:_CURSOR_CHARS_MAX] + "=" * (-len(cursor) % 4)
        decoded = urlsafe_b64decode(padded.encode()).decode()
        sequence, time, of, position = decoded.split(".", 3)
        anchor = ListAnchor(int(sequence, 16), int(time, 16), int(of, 16))
    except (ValueError, binascii.Error):
        _refuse("The cursor is not one that an earlier answer gave as `next`.")
    if not (0 <= anchor.sequence <= OPEN_END and 0 <= anchor.time <= OPEN_END):
        _refuse("The cursor is not one that an earlier answer gave as `next`.")
    if anchor.check != check:
        _refuse("The cursor belongs to another list, with other records or another order.")
    return anchor, position


def anchor_view(
    reader: Reader, view: View, cursor: str | None, check: int
) -> tuple[View, ListAnchor, str]:
    """Return the view that all pages of a list have, its anchor, and where the page begins."""
    if cursor is None:
        limit = min(view.limit, reader.log.head().sequence)
        anchor, position = ListAnchor(limit, view.time, check), ""
    else:
        anchor, position = read_list_cursor(cursor, check)
    lineage = reader.branches.lineage(view.branch, anchor.sequence)
    return View(view.branch, lineage, anchor.time), anchor, position


def _refuse(message: str) -> NoReturn:
    raise ValidationFailed(
        message,
        field="cursor",
        hint="Pass `next` of an earlier answer as it is, with the same parameters; leave "
        "the cursor out to start from the beginning.",
    )
