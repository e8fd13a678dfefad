"""The spool: items to be written into a database, in files beside it, one for each item.

Beside a database on a server nobody can put a file: its spool is in a folder of the user's own.

A file appears whole or not at all. The process that writes them into the database first gathers
them in one batch file, then writes the batch with its name as the idempotency key, and then removes
it. A process that is killed at any point loses nothing, and nothing is written twice: files that a
batch has are removed before another one is made, and a batch that was written is recognised by its
request id.

Hooks import this, so it imports nothing heavy.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from stratagem.projects import is_address, user_folder

__all__ = ["Spool", "hooks_folder"]

# The backlog is bounded: if nothing can be written for weeks, the newest items are kept.
_WAITING_MAX: Final = 5_000
_REJECTED_MAX: Final = 100
# One transaction takes so many.
_BATCH_MAX: Final = 500
_BATCH: Final = "batch-"


def hooks_folder(database: str) -> str:
    """Return the folder of hooks beside a database; of one on a server it is the user's own.

    It is named after the address without user and password, and its workspace.
    """
    if not is_address(database):
        return f"{database}-hooks"
    # Imported here because few databases are on a server.
    import hashlib

    address, _, workspace = database.partition("#")
    authority, _, rest = address.partition("://")[2].partition("/")
    name = f"{authority.rpartition('@')[2]}/{rest}#{workspace or 'default'}"
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return os.path.join(user_folder(), "hooks", f"server-{digest}")


class Spool:
    """The spool beside a database."""

    def __init__(self, database: str) -> None:
        self._folder = os.path.join(hooks_folder(database), "spool")

    def put(self, item: Mapping[str, Any]) -> None:
        """Leave something to be written, durably."""
        os.makedirs(self._folder, 0o700, exist_ok=True)
        # In the order of writing; two processes of one instant are told apart by chance.
        name = f"{time.time_ns():020d}-{os.urandom(4).hex()}"  # noqa: TID251 -- orders files only
        self._write(f"{name}.json", [{"id": name, **item}])

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        try:
            with os.scandir(self._folder) as found:
                return not any(entry.name.endswith(".json") for entry in found)
        except OSError:
            return True

    @contextmanager
    def batches(self) -> Iterator[Iterator[tuple[str, list[dict[str, Any]]]]]:
        """Give the batches that wait, while no other process takes them; none where one does."""
        with _lock(os.path.join(self._folder, "lock")) as held:
            yield self._batches() if held else iter(())

    def remove(self, batch: str) -> None:
        """Remove a batch that was written."""
        os.unlink(os.path.join(self._folder, f"{batch}.json"))

    def set_aside(self, name: str, item: Mapping[str, Any]) -> None:
        """Keep something that can never be written, where nobody tries again."""
        self._write(f"{name}.rejected", [dict(item)])

    def trim(self) -> None:
        """Remove the oldest of what could not be written for so long that it piles up."""
        names = [name for name in self._names() if not name.startswith(_BATCH)]
        rejected = [name for name in self._names(".rejected") if not name.startswith(".")]
        for name in names[:-_WAITING_MAX] + rejected[:-_REJECTED_MAX]:
            os.unlink(os.path.join(self._folder, name))

    def _batches(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        names = self._names()
        for name in names:
            if name.startswith(_BATCH):
                yield name.removesuffix(".json"), self._read_batch(name)
        single = [name for name in self._names() if not name.startswith(_BATCH)]
        for begin in range(0, len(single), _BATCH_MAX):
            batch = self._gather(single[begin : begin + _BATCH_MAX])
            if batch:
                yield batch.removesuffix(".json"), self._read_batch(batch)

    def _gather(self, names: list[str]) -> str | None:
        items = [item for name in names for item in self._read(name)]
        for name in names:
            if not self._read(name):
                os.unlink(os.path.join(self._folder, name))
        if not items:
            return None
        batch = f"{_BATCH}{os.urandom(8).hex()}.json"
        self._write(batch, items)
        return batch

    def _read_batch(self, batch: str) -> list[dict[str, Any]]:
        """Return the items of a batch, once the files they came from are gone."""
        items = self._read(batch)
        # Only files that are here: an id may say anything, a path among other things.
        here = set(self._names())
        for item in items:
            name = f"{item.get('id')}.json"
            if name in here and name != batch:
                os.unlink(os.path.join(self._folder, name))
        return items

    def _names(self, suffix: str = ".json") -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._folder) if name.endswith(suffix))
        except OSError:
            return []

    def _read(self, name: str) -> list[dict[str, Any]]:
        try:
            with open(os.path.join(self._folder, name), encoding="utf-8") as file:
                items = json.load(file)
        except (OSError, ValueError):
            return []
        return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []

    def _write(self, name: str, items: list[dict[str, Any]]) -> None:
        aside = os.path.join(self._folder, f".{name}.{os.getpid()}")
        with open(aside, "w", encoding="utf-8") as file:
            json.dump(items, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, os.path.join(self._folder, name))


@contextmanager
def _lock(path: str) -> Iterator[bool]:
    """Hold a lock on a file if nobody else does; say whether it is held."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover -- Windows has no such lock; batches are recognised
        yield True
        return
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(file)
