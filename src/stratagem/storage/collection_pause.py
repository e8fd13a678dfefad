"""No collection of garbage in the middle of a transaction, or of a comparison.

Python runs a collection after every few hundred new objects. A transaction produces no garbage: its
objects are freed when it ends. Until then each collection scans all of them again, and now and then
all objects of the process: two fifths of the time of a merge of a thousand changes in a process
with every surface loaded.
"""

from __future__ import annotations

import gc
import os

__all__ = ["CollectionPause"]


class CollectionPause:
    """Collects no garbage within a `with` block, in any thread.

    If several blocks overlap, the first one to end ends the pause for all: so a pause that an
    interrupt has left behind ends with the next block. If the program has disabled collections
    itself, they stay disabled.
    """

    __slots__ = ("_pauses",)

    def __enter__(self) -> None:
        global _is_paused  # noqa: PLW0603 -- as collections are: one switch for the process
        self._pauses = _is_paused or gc.isenabled()
        if self._pauses:
            _is_paused = True
            gc.disable()

    def __exit__(self, *_error: object) -> None:
        if self._pauses:
            _end_pause()


_is_paused = False


def _end_pause() -> None:
    global _is_paused  # noqa: PLW0603 -- as above
    _is_paused = False
    gc.enable()


def _end_pause_after_fork() -> None:
    """Collect garbage in a process that was forked while another thread had paused it."""
    if _is_paused:
        _end_pause()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_pause_after_fork)
