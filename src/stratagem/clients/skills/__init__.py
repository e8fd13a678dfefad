"""The skill that comes with Stratagem: in packages, and served over MCP."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Final

__all__ = ["SKILL_DESCRIPTION", "SKILL_NAME", "skill_text"]

SKILL_NAME: Final = "stratagem-memory"


@cache
def skill_text() -> str:
    """Return the skill: when to store what, and how to use branches and the debugging memory."""
    return (resources.files(__package__) / SKILL_NAME / "SKILL.md").read_text("utf-8")


# A line of its front matter; reading YAML takes longer than all else at the start of a server.
SKILL_DESCRIPTION: Final = skill_text().partition("\ndescription: ")[2].partition("\n")[0]
