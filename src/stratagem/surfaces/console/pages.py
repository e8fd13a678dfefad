"""What a page is: a name, a title, data in JSON, and the template that shows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed
from stratagem.surfaces.console.visits import Visit

__all__ = ["Act", "ConsolePage", "Done", "PageRoute", "View", "whole_number"]


@dataclass(frozen=True, slots=True)
class ConsolePage:
    """A page. `data` is all that the template is given, and what programs get.

    `section` is the entry of the navigation that it belongs to. `present` says what of it is shown
    as it is now, whatever moment is looked at.
    """

    template: str
    title: str
    data: dict[str, Any]
    section: str = ""
    status: int = 200
    present: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """What a form did: where to go next, what to say there, and the form that undoes it.

    `undo` are the fields of a form that is sent to `undo_path`.
    """

    path: str
    said: str
    undo: dict[str, Any] = field(default_factory=dict)
    undo_path: str = ""


def whole_number(text: str, *, field: str) -> int:
    """Return the number that an address or a form has.

    Raises:
        ValidationFailed: It is none.
    """
    try:
        return int(text)
    except ValueError as error:
        raise ValidationFailed(
            f"`{field}` is a whole number; it was {text[:40]!r}.", field=field
        ) from error


View = Callable[[Visit], Awaitable[ConsolePage]]
# What is done with the fields of a form; a page instead of `Done` shows its own result.
Act = Callable[[Visit, dict[str, str]], Awaitable[Done | ConsolePage]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """A page at a path, and what its forms do, by the value of their field `act`."""

    path: str
    view: View
    acts: dict[str, Act] = field(default_factory=dict)
