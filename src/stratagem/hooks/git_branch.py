"""Which memory branch a hook reads and writes, as the settings have it."""

from __future__ import annotations

from stratagem.git_branches import DEFAULT, memory_branch_of
from stratagem.hooks.settings import HookSettings

__all__ = ["memory_branch"]


def memory_branch(settings: HookSettings) -> str:
    """Return that of the git branch that is checked out, where branches follow git."""
    follows = settings.git_branches and settings.memory
    return memory_branch_of(settings.folder) if follows else DEFAULT
