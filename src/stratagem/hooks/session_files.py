"""The state of hooks between events of a session: small files in a folder beside the database.

* `sessions/`: for each session what it was shown, what failed and what was done, a line each. Lines
  are appended in one piece; one that a killed process left half-written is passed over.
* `calls/`: a mark for each event of the last minutes.
* `log.jsonl`: everything that was injected: when, why, and at what cost.
* `spool/`: what is to be written into the database (`capture.spool_files`).

What is written here was masked before.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from stratagem.capture.spool_files import Spool, hooks_folder

if TYPE_CHECKING:
    from stratagem.hooks.clients import HookEvent

__all__ = ["SessionFiles", "file_name", "log_path", "now", "random_id", "read_lines"]

_LOG_BYTES_MAX: Final = 1_000_000
_STATE_BYTES_MAX: Final = 1_000_000
_NAME_CHARS_MAX: Final = 80
# So long a server that did not answer is not asked again.
_UNREACHABLE_SECONDS: Final = 60
_SESSIONS_KEPT_SECONDS: Final = 30 * 24 * 3600
# Clients call all hooks of an event at once, or one after the other. Nobody sends a prompt twice
# within this time, and other events have ids or times of their own.
_REPEAT_SECONDS: Final = 3
_CALLS_KEPT_SECONDS: Final = 300


def log_path(database: str) -> str:
    """Return the file that says what was injected."""
    return os.path.join(hooks_folder(database), "log.jsonl")


def now() -> float:
    """Return the present time, in seconds since 1970."""
    return time.time()  # noqa: TID251 -- a hook is a process of its own, and has no other clock


def random_id(prefix: str) -> str:
    """Return an id that no other process makes."""
    return f"{prefix}_{os.urandom(8).hex()}"


class SessionFiles:
    """The files of one session of an agent."""

    def __init__(self, database: str, client: str, session: str) -> None:
        self.key: Final = f"{client}-{file_name(session)}"
        self._folder = hooks_folder(database)
        self._log = log_path(database)
        self._spool = Spool(database)

    def is_repeat(self, event: HookEvent) -> bool:
        """Whether another hook was called with this very event a moment ago.

        The settings of a person, those of a project and a plugin may each name one, and most
        clients call them all: all but the first have nothing to do.
        """
        folder = os.path.join(self._folder, "calls")
        mark = os.path.join(folder, f"{self.key}-{event.digest}")
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            # Another process may remove old marks meanwhile.
            with suppress(OSError):
                age = now() - os.path.getmtime(mark)
                os.utime(mark)
                return abs(age) < _REPEAT_SECONDS
        except OSError:
            # Where nothing can be written, nothing is written twice either.
            return False
        return False

    def read(self) -> list[dict[str, Any]]:
        """Return what was noted in this session, in order."""
        return list(read_lines(self._state_path, _STATE_BYTES_MAX))

    def note(self, what: str, **details: Any) -> None:
        """Remember something for later events of this session."""
        _append(self._state_path, {"what": what, "at": round(now(), 3), **details})

    def note_shown(self, keys: Sequence[str]) -> None:
        """Remember which texts were put before the model, by their keys (`text_key`)."""
        if keys:
            self.note("shown", texts=list(keys))

    def shown_keys(self) -> set[str]:
        """Return the keys of the texts that were put before the model in this session."""
        lines = (line for line in self.read() if line["what"] == "shown")
        return {key for line in lines for key in line.get("texts", ())}

    def log_injection(self, details: Mapping[str, Any]) -> None:
        """Add to the log of what was injected; a long one is begun anew, and the old one kept."""
        try:
            if os.path.getsize(self._log) > _LOG_BYTES_MAX:
                os.replace(self._log, f"{self._log}.1")
        except OSError:
            # There is none yet, or another process has just begun it anew.
            pass
        _append(self._log, {"at": round(now(), 3), "session": self.key, **details})

    def spool(self, item: Mapping[str, Any]) -> None:
        """Leave something of this session to be written into the database."""
        self._spool.put({"key": self.key, **item})

    @contextmanager
    def attempt(self) -> Iterator[bool]:
        """Say whether to try to reach a server: not right after it was unreachable.

        A process that is killed while it waits leaves the mark, so that the next ones do not wait
        as well.
        """
        mark = os.path.join(self._folder, "unreachable")
        try:
            is_new = now() - os.path.getmtime(mark) < _UNREACHABLE_SECONDS
        except OSError:
            is_new = False
        if is_new:
            yield False
            return
        os.makedirs(self._folder, 0o700, exist_ok=True)
        with open(mark, "wb"):
            pass
        yield True
        os.unlink(mark)

    def remove_old(self) -> None:
        """Remove the files of sessions that ended long ago, and what could never be written."""
        _remove_older(os.path.join(self._folder, "sessions"), _SESSIONS_KEPT_SECONDS)
        self._spool.trim()

    def remove_old_marks(self) -> None:
        """Remove the marks of events that no hook is called with any more."""
        _remove_older(os.path.join(self._folder, "calls"), _CALLS_KEPT_SECONDS)

    @property
    def _state_path(self) -> str:
        return os.path.join(self._folder, "sessions", f"{self.key}.jsonl")


def read_lines(path: str, bytes_max: int) -> Iterator[dict[str, Any]]:
    """Return the whole lines of a file, from its end where it is long."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - bytes_max))
            data = file.read()
    except OSError:
        return
    for line in data.splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def _remove_older(folder: str, seconds: float) -> None:
    oldest = now() - seconds
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        path = os.path.join(folder, name)
        # Another process may do the same.
        with suppress(FileNotFoundError):
            if os.path.getmtime(path) < oldest:
                os.unlink(path)


def _append(path: str, line: Mapping[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    data = json.dumps(line).encode() + b"\n"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def file_name(name: str) -> str:
    """Return a session's id, or a branch, as a name for files, told apart where it does not fit."""
    plain = "".join(each if each.isalnum() or each in "-_" else "-" for each in name)
    if plain == name and len(name) <= _NAME_CHARS_MAX and plain.isascii():
        return plain
    import hashlib

    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{plain[:40].encode('ascii', 'ignore').decode()}-{digest}"
