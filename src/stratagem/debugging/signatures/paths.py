"""Paths, reduced to the name at their end.

Directories depend on the machine, not on the error. The last part that has a
word in it stays, without what a bundler or `mktemp` put into it.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["TEMPORARY", "base", "parts", "stable"]

TEMPORARY: Final = "<tmp>"

_SEPARATOR: Final = re.compile(r"[/\\]+")
_TEMPORARY_ROOT: Final = re.compile(
    r"""(?ix) ^ (?: (?:/private)? (?:/var)? /tmp | /dev/shm | /var/folders/\w+/\w+/[TC]
    | (?:~|[a-z]:\\users\\[^\\]+) [/\\] appdata [/\\] local [/\\] temp | %te?mp% | \$\{?TMPDIR\}? )
    [/\\] [^/\\]+ $"""
)
# `tempfile` draws eight of these letters, `mktemp` six to ten.
_DRAWN: Final = re.compile(
    r"^(?:tmp[\w-]{4,}|[\w-]*[._-](?=\w{0,9}\d)\w{6,10}|\d+)(?=$|\.[A-Za-z]\w{0,4}$)"
)
# `main.3f2a1b.js`, `index-BsF3k2a1.js`, `vendors~a.1f3e.chunk.js`
_BUNDLE_HASH: Final = re.compile(
    r"[.-](?=[A-Za-z_-]{0,20}\d)[\w-]{6,32}(?=(?:\.(?:chunk|bundle|min|esm|umd|prod))*\.(?:[cm]?[jt]sx?|css|wasm)$)"
)
_IPYTHON: Final = re.compile(r"^<?ipython-input-\d+-\w+>?$|^ipykernel_\d+$")


def base(path: str) -> str:
    """Return the last part of a path, without what differs from build to build."""
    names = parts(path)
    return stable(names[-1]) if names else ""


def parts(path: str) -> list[str]:
    """Return the names a path is made of; a temporary file is one that has no name."""
    path = path.rstrip("/\\")
    names = [name for name in _SEPARATOR.split(path) if name not in {"", ".", ".."}]
    if names and _TEMPORARY_ROOT.match(path):
        names[-1] = _DRAWN.sub(TEMPORARY, names[-1])
    return names


def stable(name: str) -> str:
    """Return a file's name without query, bundle hash and number of a notebook's cell."""
    name = name.partition("?")[0]
    return _IPYTHON.sub("<cell>", _BUNDLE_HASH.sub("", name))
