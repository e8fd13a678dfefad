"""What calls have taught: what a form at some place of a tool's arguments turned out to mean.

A lesson names things of the schema (a parameter, an allowed value), never what a caller wrote:
of that there is a hash, by which the same is recognised. Lessons are counted in the log, for and
against, and believed by the one Beta model. What speaks for one meaning of a form speaks against
every other meaning of it. What one caller means by a word holds for that caller; for others it is
certain only once a second one has taught the same. The agents that a caller says it speaks for
are told apart too, but only among themselves: to others they are one caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from stratagem.engine.events import Draft
from stratagem.engine.evidence import Belief, Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import Hint, HintKind
from stratagem.gateway.learning.teaching import Lesson, hashed
from stratagem.storage.contract import Reader

__all__ = [
    "Count",
    "Lessons",
    "ToolLessons",
    "belief_of",
    "drafts",
    "named_in",
    "teacher_of",
]

# What other tools taught, or one other caller alone, counts so much at most: never certain.
_UNSHARED_MOST: Final = 4
# Parts a caller from its agent, in what a teacher is recognised by.
_OF: Final = "-"
# What a group of lessons is named after; `kinds` writes it.
_GROUPED: Final = ("tool", "kind", "path", "form", "meaning", "teacher")
# Tools and what a name meant at each, by the kind of hint, the form and the tool.
Pooled = dict[tuple[HintKind, str, str], dict[str, int]]


class Count(NamedTuple):
    """How often something was confirmed and contradicted."""

    held: int = 0
    fell: int = 0

    def plus(self, *, held: bool, count: int = 1) -> Count:
        """Return the count with some more."""
        return Count(self.held + count, self.fell) if held else Count(self.held, self.fell + count)


def belief_of(held: float, fell: float) -> Belief:
    """Return what outcomes let one believe."""
    return believe([Observation(worked=True, weight=held), Observation(worked=False, weight=fell)])


def drafts(tool: str, teacher: str, lessons: Iterable[Lesson], *, held: bool) -> list[Draft]:
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
                "teacher": teacher,
            },
            space,
        )
        for each in lessons
    ]


def teacher_of(actor: str, agent: str | None) -> str:
    """Return what a teacher is recognised by, without being named: the caller and its agent."""
    return f"{hashed(actor)}{_OF}{hashed(agent or '')}"


class Lessons:
    """All lessons that a view shows, by tool, with who taught them how often."""

    def __init__(self, counts: dict[str, dict[Lesson, dict[str, Count]]]) -> None:
        self._counts = counts
        self._elsewhere: Pooled | None = None

    @classmethod
    def read(cls, reader: Reader, view: View) -> Lessons:
        """Read what was learned, from the counts that the store keeps."""
        lessons = cls({})
        for kind in (names.LESSON_FOR, names.LESSON_AGAINST):
            for group, count in reader.group_tallies(view.lineage, kind).items():
                named = named_in(group)
                if named is not None:
                    lessons._add(*named, held=kind == names.LESSON_FOR, count=count)
        return lessons

    def of(self, tool: str, *, teacher: str = "", elsewhere: bool = False) -> ToolLessons:
        """Return what is known about one tool, as one of its callers may use it.

        What somebody else alone has taught is known, and never certain. `elsewhere`: with what
        other tools taught.
        """
        # A copy: lessons are noted on the home loop while other threads look into them.
        own = {lesson: dict(each) for lesson, each in dict(self._counts.get(tool, {})).items()}
        foreign = frozenset(lesson for lesson, each in own.items() if not _is_shared(each, teacher))
        counts = {lesson: _total(each) for lesson, each in own.items()}
        return ToolLessons(tool, counts, foreign, self._pooled() if elsewhere else {})

    def every(self) -> Iterator[tuple[str, Lesson, Count]]:
        """Yield all lessons with their tools and counts."""
        for tool, lesson, taught in self.taught():
            yield tool, lesson, _total(taught)

    def taught(self) -> Iterator[tuple[str, Lesson, Mapping[str, Count]]]:
        """Yield all lessons with their tools, and how often who taught them."""
        for tool in sorted(self._counts):
            own = dict(self._counts[tool])
            for lesson in sorted(own, key=lambda each: (each.kind, each.path, each.form)):
                yield tool, lesson, dict(own[lesson])

    def note(self, tool: str, lesson: Lesson, teacher: str, *, held: bool) -> tuple[Count, Count]:
        """Count one more, until it can be read from the log; return the count before and after."""
        before = _total(self._counts.get(tool, {}).get(lesson, {}))
        self._add(tool, lesson, teacher, held=held)
        return before, before.plus(held=held)

    def count(self) -> int:
        """Return how many lessons there are."""
        return sum(map(len, self._counts.values()))

    def _add(self, tool: str, lesson: Lesson, teacher: str, *, held: bool, count: int = 1) -> None:
        taught = self._counts.setdefault(tool, {}).setdefault(lesson, {})
        taught[teacher] = taught.get(teacher, Count()).plus(held=held, count=count)

    def _pooled(self) -> Pooled:
        """Return names by what they meant at other tools: by their form alone."""
        if self._elsewhere is None:
            self._elsewhere = {}
            for tool, lesson, count in self.every():
                if lesson.kind is HintKind.ALIAS and count.held > count.fell:
                    meanings = self._elsewhere.setdefault((lesson.kind, lesson.form, tool), {})
                    meanings[lesson.meaning] = meanings.get(lesson.meaning, 0) + count.held
        return self._elsewhere


class ToolLessons:
    """What is known about one tool: the `Learned` that corrections take."""

    def __init__(
        self,
        tool: str,
        counts: Mapping[Lesson, Count],
        foreign: frozenset[Lesson],
        pooled: Pooled,
    ) -> None:
        self.counts = counts
        self._tool = tool
        self._foreign = foreign
        self._pooled = pooled

    @property
    def stamp(self) -> int:
        """What tells these lessons from others of the same tool."""
        pooled = sum(sum(counts.values()) for counts in self._pooled.values())
        return hash((frozenset(self.counts.items()), self._foreign, pooled))

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        """Return what a form at a place turned out to mean, the most believed first."""
        wanted = hashed(form)
        own = {
            lesson: count
            for lesson, count in self.counts.items()
            if (lesson.kind, lesson.path, lesson.form) == (kind, path, wanted)
        }
        if not own and self._pooled:
            return self._from_elsewhere(kind, wanted)
        every = sum(count.held for count in own.values())
        found = []
        for lesson, count in own.items():
            held = min(count.held, _UNSHARED_MOST) if lesson in self._foreign else count.held
            belief = belief_of(held, count.fell + every - count.held)
            found.append(Hint(lesson.meaning, belief))
        return _ordered(found)

    def _from_elsewhere(self, kind: HintKind, form: str) -> Sequence[Hint]:
        meanings: dict[str, int] = {}
        for (known, other, tool), counts in self._pooled.items():
            if known is kind and other == form and tool != self._tool:
                for meaning, held in counts.items():
                    meanings[meaning] = meanings.get(meaning, 0) + held
        every = sum(meanings.values())
        found = [
            Hint(meaning, belief_of(min(held, _UNSHARED_MOST), every - held))
            for meaning, held in meanings.items()
        ]
        return _ordered(found)


def named_in(group: str) -> tuple[str, Lesson, str] | None:
    """Return the tool, the lesson and the teacher of a group; None for what is none of ours."""
    parts = group.split(names.PART)
    if len(parts) != len(_GROUPED):
        return None
    tool, kind, path, form, meaning, teacher = parts
    if kind not in set(HintKind):
        return None
    return tool, Lesson(HintKind(kind), path, form, meaning), teacher


def _total(taught: Mapping[str, Count]) -> Count:
    return Count(
        sum(each.held for each in taught.values()), sum(each.fell for each in taught.values())
    )


def _is_shared(taught: Mapping[str, Count], teacher: str) -> bool:
    """Whether a lesson may be certain for a caller: it is its own, or several agree on it."""
    agreeing = {name for name, each in taught.items() if each.held}
    callers = [name.partition(_OF)[0] for name in agreeing]
    # Anybody can name two agents: of one caller they count as two for that caller only.
    own = callers.count(teacher.partition(_OF)[0])
    return teacher in agreeing or own > 1 or len(set(callers)) > 1


def _ordered(found: list[Hint]) -> list[Hint]:
    return sorted(found, key=lambda hint: (-hint.belief.mean, str(hint.meaning)))
