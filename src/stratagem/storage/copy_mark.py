"""The mark that a copy leaves in its target until it is complete.

It is a setting of the target, written before the first event arrives and removed after the last
check. Opening a database that has it is refused, and so is every commit except the copy's own: half
of a log looks like a complete one, and one write into it would make it impossible to add the rest.
"""

from __future__ import annotations

import os
import platform
from dataclasses import asdict
from typing import Final

import orjson

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import CopyUnfinished
from stratagem.storage.contract import SettingReader, Store, Transaction, WriteRequest

__all__ = [
    "COPYING",
    "SETTING",
    "CopyMark",
    "read_mark",
    "refuse_unfinished",
    "remove_mark",
    "set_mark",
]

SETTING: Final = "unfinished_copy"
# Who writes what is copied.
COPYING: Final = WriteRequest("stratagem")


@dataclass(frozen=True, slots=True)
class CopyMark:
    """What is being copied here, and by which process.

    `command` is what makes the copy go on when it is repeated. `events` are how many the target
    held before: 1 where it was empty. `made`: the target was not there before.
    """

    command: str
    source: str
    events: int
    made: bool
    host: str
    process: int

    @classmethod
    def of_this_process(
        cls, command: str, source: str, *, events: int = 1, made: bool = False
    ) -> CopyMark:
        """Return the mark of a copy that this process makes."""
        return cls(command, source, events, made, platform.node(), os.getpid())

    @property
    def process_lives(self) -> bool:
        """Whether the process that copies may still be at it, as far as this machine can tell."""
        if self.host != platform.node() or self.process == os.getpid():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def read_mark(settings: SettingReader) -> CopyMark | None:
    """Return the mark of a copy that is not finished."""
    return _mark(settings.text(SETTING))


def set_mark(target: Store, mark: CopyMark) -> None:
    """Mark a store as the target of a copy; what is known of it from before is kept."""

    def work(transaction: Transaction) -> None:
        there = read_mark(transaction.settings)
        events = there.events if there else transaction.log.head().sequence
        made = there.made if there else mark.made
        content = {**asdict(mark), "events": events, "made": made}
        transaction.settings.set(SETTING, orjson.dumps(content).decode())

    target.write(work, COPYING)


def remove_mark(target: Store) -> None:
    """Remove the mark of a complete copy."""
    target.write(lambda transaction: transaction.settings.set(SETTING, None), COPYING)


def refuse_unfinished(value: str | None, path: str) -> None:
    """Refuse a database that an unfinished copy is in.

    Raises:
        CopyUnfinished: It has the mark.
    """
    mark = _mark(value)
    if mark is None:
        return
    raise CopyUnfinished(
        f"The database is an unfinished copy of {mark.source}.",
        hint=f"Repeat the interrupted `stratagem {mark.command}` to continue the copy, or "
        "repeat it with --discard to delete what it wrote.",
        path=path,
        command=mark.command,
        source=mark.source,
    )


def _mark(value: str | None) -> CopyMark | None:
    return None if value is None else CopyMark(**orjson.loads(value))
