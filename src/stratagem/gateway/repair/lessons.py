"""What calls have taught: what a form at some place of a tool's arguments turned out to mean.

A lesson names things of the schema (a parameter, an allowed value, a way of writing), never what
a caller wrote: of that there is a hash, by which the same is recognised. Lessons are counted in
the log, for and against, and believed by the one Beta model.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stratagem.engine.events import Draft
from stratagem.engine.evidence import Belief, Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import Change, Hint, HintKind, Strategy
from stratagem.storage.contract import Reader

__all__ = ["Lesson", "Lessons", "ToolLessons", "drafts", "from_changes", "from_retry"]

_INDEX: Final = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Lesson:
    """That a form means something, at a place. `form` is a hash of what was written."""

    kind: HintKind
    path: str
    form: str
    meaning: str


def hashed(form: str) -> str:
    """Return what a form is recognised by, without its being told."""
    return hashlib.sha256(form.casefold().encode()).hexdigest()[:16]


def from_changes(changes: Iterable[Change]) -> list[Lesson]:
    """Return the lessons of a correction that somebody confirmed, or that was applied."""
    found = []
    for change in changes:
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


def from_retry(refused: Any, worked: Any, schema: Mapping[str, Any]) -> list[Lesson]:
    """Return what a caller taught by calling again: a value that moved to another name.

    Only the top level is compared, and only a value that stands under exactly one name in both.
    """
    if not isinstance(refused, Mapping) or not isinstance(worked, Mapping):
        return []
    known = schema.get("properties")
    if not isinstance(known, Mapping):
        return []
    gone = {name: value for name, value in refused.items() if name not in worked}
    come = {name: value for name, value in worked.items() if name not in refused}
    found = []
    for name, value in gone.items():
        targets = [other for other, each in come.items() if each == value]
        alike = [other for other, each in gone.items() if each == value]
        if name not in known and len(targets) == 1 and len(alike) == 1 and targets[0] in known:
            found.append(Lesson(HintKind.ALIAS, "$", hashed(name), targets[0]))
    return found


def drafts(tool: str, lessons: Iterable[Lesson], *, held: bool) -> list[Draft]:
    """Return the events by which lessons are counted, for or against."""
    kind, space = (
        (names.LESSON_CONFIRMED, names.LESSONS_FOR)
        if held
        else (names.LESSON_CONTRADICTED, names.LESSONS_AGAINST)
    )
    return [
        Draft(
            kind,
            {
                "tool": tool,
                "kind": each.kind.value,
                "path": each.path,
                "form": each.form,
                "meaning": each.meaning,
            },
            space,
        )
        for each in lessons
    ]


class Lessons:
    """All lessons that a view shows, by tool."""

    def __init__(self, counts: Mapping[str, Mapping[Lesson, tuple[int, int]]]) -> None:
        self._counts = counts

    @classmethod
    def read(cls, reader: Reader, view: View) -> Lessons:
        """Read what was learned, from the counts that the store keeps."""
        counts: dict[str, dict[Lesson, tuple[int, int]]] = {}
        for kind in (names.LESSON_FOR, names.LESSON_AGAINST):
            for group, count in reader.group_tallies(view.lineage, kind).items():
                tool, hint, path, form, meaning = group.split(names.PART)
                lesson = Lesson(HintKind(hint), path, form, meaning)
                held, fell = counts.setdefault(tool, {}).get(lesson, (0, 0))
                more = (count, 0) if kind == names.LESSON_FOR else (0, count)
                counts[tool][lesson] = (held + more[0], fell + more[1])
        return cls(counts)

    def of(self, tool: str) -> ToolLessons:
        """Return what is known about one tool."""
        return ToolLessons(self._counts.get(tool, {}))

    def count(self) -> int:
        """Return how many lessons there are."""
        return sum(map(len, self._counts.values()))


class ToolLessons:
    """What is known about one tool: the `Learned` that corrections take."""

    def __init__(self, counts: Mapping[Lesson, tuple[int, int]]) -> None:
        self.counts = counts

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        """Return what a form at a place turned out to mean, the most believed first."""
        wanted = hashed(form)
        found = [
            Hint(lesson.meaning, _belief(*count))
            for lesson, count in self.counts.items()
            if (lesson.kind, lesson.path, lesson.form) == (kind, path, wanted)
        ]
        return sorted(found, key=lambda hint: (-hint.belief.mean, str(hint.meaning)))


def _belief(held: int, fell: int) -> Belief:
    return believe([Observation(worked=True, weight=held), Observation(worked=False, weight=fell)])


def _general(path: str) -> str:
    return _INDEX.sub("[*]", path)
