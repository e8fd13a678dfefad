"""What one call teaches: which form at which place meant what.

Two things teach. A caller confirms an offered correction, and the call works; or a caller whose
call was refused calls again, and the second call works. Both are the caller's own word for what
was meant. That a correction which nobody confirmed did no harm teaches nothing: the tool took the
arguments, which does not say that they were meant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stratagem.gateway.correction import Change, HintKind, Strategy, lists

__all__ = ["LEARNED_PATTERNS", "Lesson", "from_changes", "from_retry", "hashed", "pattern_id"]

_INDEX: Final = re.compile(r"\[\d+\]")
_DEPTH_MAX: Final = 8
# A shorter text, or a number below ten, may stand in two places by chance.
_TELLING_CHARS: Final = 3
_TELLING_NUMBER: Final = 10
# Patterns that a lesson gave; each lesson stands or falls for itself.
LEARNED_PATTERNS: Final = frozenset(
    {"key_known_alias", "key_alias_doubtful", "enum_known_alias",
     "list_known_split", "list_known_whole", "date_order_known"}
)  # fmt: skip
# What a caller who confirms a list, or writes it out, has said about the text that stood there.
_SPLIT: Final = frozenset({"doubtful_list_split", "list_known_split"})
_WHOLE: Final = frozenset({"doubtful_list_kept", "list_known_whole"})
_DATES: Final = frozenset({"date_order_assumed", "date_order_known"})
_DATE_FORM: Final = "day/month"
_YEAR_LAST: Final = re.compile(r"\s*(\d{1,2})([-/.\s])(\d{1,2})\2(\d{4}).*", re.DOTALL)
_ISO_DAY: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2}).*", re.DOTALL)


# The pattern by which a way of writing is followed.
_WAYS: Final[Mapping[HintKind, Callable[[str], str]]] = {
    HintKind.LIST: lambda meaning: f"list_known_{meaning}",
    HintKind.DATE_ORDER: lambda _meaning: "date_order_known",
}


@dataclass(frozen=True, slots=True)
class Lesson:
    """That a form means something, at a place. `form` is a hash of what was written."""

    kind: HintKind
    path: str
    form: str
    meaning: str

    @property
    def id(self) -> str:
        """What the lesson is found by among the patterns of its tool."""
        if self.kind in _WAYS:
            # A way of writing is one at each place.
            return f"{_WAYS[self.kind](self.meaning)}:{hashed(self.path + self.form)}"
        pattern = "key_known_alias" if self.kind is HintKind.ALIAS else "enum_known_alias"
        return f"{pattern}:{self.form}"


def hashed(form: str) -> str:
    """Return what a form is recognised by, without its being told."""
    # A separator may be nothing but space.
    return hashlib.sha256((form.strip() or form).casefold().encode()).hexdigest()[:16]


def pattern_id(change: Change) -> str:
    """Return what a change is counted by: its pattern, or the lesson that it follows."""
    if change.pattern not in LEARNED_PATTERNS or not isinstance(change.before, str):
        return change.pattern
    if change.pattern in _SPLIT | _WHOLE | _DATES:
        written = _written(change)
        return written.id if written is not None else change.pattern
    pattern = "key_known_alias" if change.pattern.startswith("key_") else "enum_known_alias"
    return f"{pattern}:{hashed(change.before)}"


def from_changes(changes: Iterable[Change]) -> list[Lesson]:
    """Return the lessons of a correction that somebody confirmed."""
    found = []
    for change in changes:
        written = _written(change)
        if written is not None:
            found.append(written)
        if not isinstance(change.before, str) or not isinstance(change.after, str):
            continue
        if change.pattern.startswith("key_") and change.path.endswith(f".{change.before}"):
            place = change.path.removesuffix(f".{change.before}")
            found.append(
                Lesson(HintKind.ALIAS, _general(place), hashed(change.before), change.after)
            )
        elif change.strategy is Strategy.ENUM_VARIANTS:
            place = _general(change.path)
            found.append(Lesson(HintKind.CHOICE, place, hashed(change.before), change.after))
    return found


def _written(change: Change) -> Lesson | None:
    """Return the lesson about a way of writing that a change follows or would teach."""
    place = _general(change.path)
    if change.pattern in _SPLIT | _WHOLE and isinstance(change.before, str):
        return _listed(change.before, place, split=change.pattern in _SPLIT)
    return _ordered(change.before, change.after, place) if change.pattern in _DATES else None


def _listed(text: str, place: str, *, split: bool) -> Lesson | None:
    parts = lists.split(text)
    if parts is None:
        return None
    meaning = "split" if split else "whole"
    return Lesson(HintKind.LIST, place, hashed(parts.separator), meaning)


def _ordered(before: Any, after: Any, place: str) -> Lesson | None:
    """Return in which order a date has day and month, where both orders are possible."""
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    given, meant = _YEAR_LAST.fullmatch(before), _ISO_DAY.fullmatch(after)
    if not given or not meant or given[4] != meant[1] or int(given[1]) == int(given[3]):
        return None
    day, month = int(meant[3]), int(meant[2])
    for order, pair in (("dayFirst", (day, month)), ("monthFirst", (month, day))):
        if (int(given[1]), int(given[3])) == pair:
            return Lesson(HintKind.DATE_ORDER, place, hashed(_DATE_FORM), order)
    return None


def from_retry(refused: Any, worked: Any, schema: Mapping[str, Any]) -> list[Lesson]:
    """Return what a caller taught by calling again with the same values under other names.

    A value has to stand under exactly one unknown name before and under exactly one known name
    after. Values that may be alike by chance count only where nothing else was changed.
    """
    return list(_compared(refused, worked, schema, "$", 0))


def _compared(
    refused: Any, worked: Any, schema: Mapping[str, Any], path: str, depth: int
) -> Iterator[Lesson]:
    if not isinstance(refused, Mapping) or not isinstance(worked, Mapping) or depth > _DEPTH_MAX:
        return
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(known, Mapping):
        return
    gone = {name: refused[name] for name in refused.keys() - worked.keys()}
    come = {name: worked[name] for name in worked.keys() - refused.keys()}
    shared = refused.keys() & worked.keys()
    changed = [name for name in shared if refused[name] != worked[name]]
    yield from _renamed(gone, come, known, path, alone=not changed and len(gone) == len(come))
    for name in changed:
        part = known.get(name)
        if not isinstance(part, Mapping):
            continue
        if len(changed) == 1 and not gone and not come:
            yield from _chosen(refused[name], worked[name], part, f"{path}.{name}")
        yield from _rewritten(refused[name], worked[name], f"{path}.{name}")
        yield from _compared(refused[name], worked[name], part, f"{path}.{name}", depth + 1)


def _renamed(
    gone: Mapping[str, Any],
    come: Mapping[str, Any],
    known: Mapping[str, Any],
    path: str,
    *,
    alone: bool,
) -> Iterator[Lesson]:
    for name, value in sorted(gone.items()):
        targets = [other for other, each in come.items() if _alike(each, value)]
        rivals = [other for other, each in gone.items() if _alike(each, value)]
        if name in known or len(targets) != 1 or len(rivals) != 1 or targets[0] not in known:
            continue
        if alone or _telling(value):
            yield Lesson(HintKind.ALIAS, path, hashed(name), targets[0])


def _chosen(before: Any, after: Any, part: Mapping[str, Any], path: str) -> Iterator[Lesson]:
    """Yield that a word stands for a listed value, where it was all that the caller changed."""
    options = part.get("enum")
    if (
        isinstance(options, list)
        and isinstance(before, str)
        and isinstance(after, str)
        and before not in options
        and after in options
    ):
        yield Lesson(HintKind.CHOICE, path, hashed(before), after)


def _rewritten(before: Any, after: Any, path: str) -> Iterator[Lesson]:
    """Yield how a list or a date was written, where the caller wrote it out: no value is needed."""
    lesson: Lesson | None = None
    if isinstance(before, str) and isinstance(after, list):
        parts = lists.split(before)
        if parts is not None and list(parts.parts) == after and len(after) > 1:
            lesson = _listed(before, path, split=True)
        elif after == [before]:
            lesson = _listed(before, path, split=False)
    else:
        lesson = _ordered(before, after, path)
    if lesson is not None:
        yield lesson


def _alike(one: Any, other: Any) -> bool:
    """Whether two values are one, but for being written as text: "5" and 5."""
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    scalars = isinstance(one, str | int | float) and isinstance(other, str | int | float)
    return scalars and str(one).casefold() == str(other).casefold()


def _telling(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.strip()) >= _TELLING_CHARS
    if isinstance(value, bool) or value is None:
        return False
    return abs(value) >= _TELLING_NUMBER if isinstance(value, int | float) else bool(value)


def _general(path: str) -> str:
    return _INDEX.sub("[*]", path)
