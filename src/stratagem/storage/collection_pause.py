"""No collection of garbage in the middle of a transaction, or of a comparison.

Python looks for garbage after every few hundred objects that it makes. In such work there is none:
what it makes is freed when it ends. Until then each collection looks through all of that again, and
every now and then through all that the process holds: two fifths of the time of a merge of a
thousand changes, where every surface is loaded.
"""

from __future__ import annotations

import gc
import os

__all__ = ["CollectionPause"]


class CollectionPause:
    """Collects no garbage within a `with` block, in any thread.

    Of blocks at the same time the first one that ends, ends the pause for all: so a pause that an
    interrupt has left behind ends with the next one. Where a program has switched collections off,
    they stay off.
    """

    __slots__ = ("_pauses",)

    def __enter__(self) -> None:
        self._pauses = _is_paused or gc.isenabled()
        if self._pauses:
            _set_paused(paused=True)

    def __exit__(self, *_error: object) -> None:
        if self._pauses:
            _set_paused(paused=False)


_is_paused = False


def _set_paused(*, paused: bool) -> None:
    global _is_paused  # noqa: PLW0603 -- as collections are: one switch for the process
    _is_paused = paused
    if paused:
        gc.disable()
    else:
        gc.enable()


def _end_pause_after_fork() -> None:
    """Collect garbage in a process that was forked while another thread had paused it."""
    if _is_paused:
        _set_paused(paused=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_pause_after_fork)
