"""What tests fetch from package registries: once for a machine, and only where they are reached.

It is kept in the user's cache, outside of the repository. One test run at a time fetches; others
wait for it, and none sees a half of anything. A registry that cannot be reached is asked once by
each process: after that, whoever needs it is told the reason at once.
"""

from __future__ import annotations

import fcntl
import functools
import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

# Whoever answers at all answers sooner.
_PROBE_SECONDS = 5
_FETCH_SECONDS_MAX = 100


def cache_folder(*parts: str) -> Path:
    """Return a folder of the cache; tests have a home of their own, and so it is not asked for."""
    return Path(_home(), ".cache", "stratagem-tests", *parts)


def npm_package(name: str) -> tuple[str, Path]:
    """Return node and the folder of a package; fetch it where it is not there yet.

    Raises:
        LookupError: Node is missing, or nothing can be fetched.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise LookupError(f"node and npm are needed for {name}")
    kept = cache_folder("npm", name.replace("/", "+"))
    package = kept / "node_modules" / name
    if not package.exists() and (reason := _fetch_by_npm(npm, name, kept)):
        raise LookupError(reason)
    return node, package


def fetch_once(kept: Path, fetch: Callable[[Path], str | None]) -> str | None:
    """Have a folder made, unless another process has made it; return what kept it from that.

    `fetch` fills the folder that it is given, and says why if it cannot.
    """
    kept.parent.mkdir(parents=True, exist_ok=True)
    with _locked(kept.with_name(f"{kept.name}.lock")):
        if kept.exists():
            return None
        making = kept.with_name(f"{kept.name}.making")
        # Left by a process that was ended; nobody else is here.
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir()
        reason = fetch(making)
        if reason is None:
            making.rename(kept)
        else:
            shutil.rmtree(making)
        return reason


@functools.cache
def _fetch_by_npm(npm: str, name: str, kept: Path) -> str | None:
    def fetch(folder: Path) -> str | None:
        if (reason := _npm_unreachable(npm)) is not None:
            return reason
        options = ("--no-audit", "--no-fund", "--fetch-retries=0", "--prefix", str(folder))
        try:
            done = _run(npm, "install", *options, name, seconds=_FETCH_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return f"{name} could not be fetched within {_FETCH_SECONDS_MAX} s"
        if done.returncode:
            return f"{name} cannot be fetched: {done.stderr[-300:]}"
        return None

    return fetch_once(kept, fetch)


@functools.cache
def _npm_unreachable(npm: str) -> str | None:
    address = _run(npm, "config", "get", "registry", seconds=_FETCH_SECONDS_MAX).stdout.strip()
    return unreachable(address, "npm's registry")


def unreachable(address: str, what: str) -> str | None:
    """Say that nothing can be fetched from an address, None if something might."""
    parts = urlsplit(_proxy(urlsplit(address).scheme) or address)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    met = threading.Event()

    def connect() -> None:
        try:
            socket.create_connection((parts.hostname or "", port), _PROBE_SECONDS).close()
        except OSError:
            return
        met.set()

    # In a thread, because looking a name up has no time limit of its own.
    probe = threading.Thread(target=connect, daemon=True)
    probe.start()
    probe.join(_PROBE_SECONDS)
    return None if met.is_set() else f"{what} cannot be reached from here"


def _proxy(scheme: str) -> str | None:
    for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper()):
        if os.environ.get(name):
            return os.environ[name]
    return None


def _run(*command: str, seconds: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        # Its own settings say where the registry is.
        env={**os.environ, "HOME": _home()},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def _home() -> str:
    return pwd.getpwuid(os.getuid()).pw_dir


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
