"""Lessons of calls: the meaning of a name or value at a place of a tool's arguments."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.events import Draft
from stratagem.engine.evidence import Belief, Observation, believe
from stratagem.engine.lineage import View
from stratagem.gateway import names
from stratagem.gateway.correction import CorrectionStep, Hint, HintKind, Strategy, lists
from stratagem.storage.catalogue import CatalogueReader

__all__ = [
    "LEARNED_PATTERNS",
    "EvidenceCount",
    "Lesson",
    "Lessons",
    "ToolLessons",
    "belief_of",
    "drafts",
    "from_changes",
    "from_retry",
    "has_only_names",
    "hash_form",
    "mask_unknown_names",
    "parse_group",
    "pattern_id",
    "property_names",
    "teacher_of",
]

_NODES_MAX: Final = 5_000
# A name after a dot, the place in a list, or a name in quotes that has other signs in it.
_PART: Final = re.compile(r"\.([^.\[]*+)|(\[(?:\d++|\*)\])|\[(['\"])(.*?)(?:\3\]|\Z)|.", re.DOTALL)
_OTHER: Final = "*"


def property_names(schema: Any) -> frozenset[str]:
    """Return the names of all properties that a schema mentions, wherever it does."""
    names: set[str] = set()
    waiting, seen = [schema], 0
    while waiting and seen < _NODES_MAX:
        node, seen = waiting.pop(), seen + 1
        if isinstance(node, Mapping):
            properties = node.get("properties")
            names.update(properties if isinstance(properties, Mapping) else ())
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return frozenset(names)


def mask_unknown_names(path: str, names: frozenset[str]) -> str:
    """Return a path with a star for each name that a schema does not have."""
    masked = path[:1]
    for part in _PART.finditer(path[1:]):
        if part.group(2) or {part.group(1), part.group(4)} & names:
            masked += part.group()
        elif not masked.endswith(f".{_OTHER}"):
            masked += f".{_OTHER}"
    return masked


def has_only_names(path: str, names: frozenset[str]) -> bool:
    """Whether a path has no names but those of a schema."""
    return mask_unknown_names(path, names) == path


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
    """The meaning of a form at a place. `form` is a hash of the written text."""

    kind: HintKind
    path: str
    form: str
    meaning: str

    @property
    def id(self) -> str:
        """The id of the lesson among the patterns of its tool."""
        if self.kind in _WAYS:
            # A way of writing is one at each place.
            return f"{_WAYS[self.kind](self.meaning)}:{hash_form(self.path + self.form)}"
        pattern = "key_known_alias" if self.kind is HintKind.ALIAS else "enum_known_alias"
        return f"{pattern}:{self.form}"


def hash_form(form: str) -> str:
    """Return a hash by which a form is recognised, whatever its case."""
    # A separator may be nothing but space.
    return hashlib.sha256((form.strip() or form).casefold().encode()).hexdigest()[:16]


def pattern_id(change: CorrectionStep) -> str:
    """Return what a change is counted by: its pattern, or the lesson that it follows."""
    if change.pattern not in LEARNED_PATTERNS or not isinstance(change.before, str):
        return change.pattern
    if change.pattern in _SPLIT | _WHOLE | _DATES:
        written = _writing_lesson(change)
        return written.id if written is not None else change.pattern
    pattern = "key_known_alias" if change.pattern.startswith("key_") else "enum_known_alias"
    return f"{pattern}:{hash_form(change.before)}"


def from_changes(changes: Iterable[CorrectionStep]) -> list[Lesson]:
    """Return the lessons of a correction that somebody confirmed."""
    found = []
    for change in changes:
        written = _writing_lesson(change)
        if written is not None:
            found.append(written)
        if not isinstance(change.before, str) or not isinstance(change.after, str):
            continue
        if change.pattern.startswith("key_") and change.path.endswith(f".{change.before}"):
            place = change.path.removesuffix(f".{change.before}")
            found.append(
                Lesson(HintKind.ALIAS, _generalize(place), hash_form(change.before), change.after)
            )
        elif change.strategy is Strategy.ENUM_VARIANTS:
            place = _generalize(change.path)
            found.append(Lesson(HintKind.CHOICE, place, hash_form(change.before), change.after))
    return found


def _writing_lesson(change: CorrectionStep) -> Lesson | None:
    """Return the lesson about a way of writing that a change follows or would teach."""
    place = _generalize(change.path)
    if change.pattern in _SPLIT | _WHOLE and isinstance(change.before, str):
        return _list_lesson(change.before, place, split=change.pattern in _SPLIT)
    return (
        _date_order_lesson(change.before, change.after, place) if change.pattern in _DATES else None
    )


def _list_lesson(text: str, place: str, *, split: bool) -> Lesson | None:
    parts = lists.split(text)
    if parts is None:
        return None
    meaning = "split" if split else "whole"
    return Lesson(HintKind.LIST, place, hash_form(parts.separator), meaning)


def _date_order_lesson(before: Any, after: Any, place: str) -> Lesson | None:
    """Return in which order a date has day and month, where both orders are possible."""
    if not isinstance(before, str) or not isinstance(after, str):
        return None
    given, meant = _YEAR_LAST.fullmatch(before), _ISO_DAY.fullmatch(after)
    if not given or not meant or given[4] != meant[1] or int(given[1]) == int(given[3]):
        return None
    day, month = int(meant[3]), int(meant[2])
    for order, pair in (("dayFirst", (day, month)), ("monthFirst", (month, day))):
        if (int(given[1]), int(given[3])) == pair:
            return Lesson(HintKind.DATE_ORDER, place, hash_form(_DATE_FORM), order)
    return None


def from_retry(refused: Any, worked: Any, schema: Mapping[str, Any]) -> list[Lesson]:
    """Return what a caller taught by calling again with the same values under other names.

    A value has to stand under exactly one unknown name before and under exactly one known name
    after. Values that may be alike by chance count only where nothing else was changed.
    """
    return list(_compare(refused, worked, schema, "$", 0))


def _compare(
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
    yield from _alias_lessons(gone, come, known, path, alone=not changed and len(gone) == len(come))
    for name in changed:
        part = known.get(name)
        if not isinstance(part, Mapping):
            continue
        if len(changed) == 1 and not gone and not come:
            yield from _choice_lessons(refused[name], worked[name], part, f"{path}.{name}")
        yield from _rewriting_lessons(refused[name], worked[name], f"{path}.{name}")
        yield from _compare(refused[name], worked[name], part, f"{path}.{name}", depth + 1)


def _alias_lessons(
    gone: Mapping[str, Any],
    come: Mapping[str, Any],
    known: Mapping[str, Any],
    path: str,
    *,
    alone: bool,
) -> Iterator[Lesson]:
    for name, value in sorted(gone.items()):
        targets = [other for other, each in come.items() if _are_alike(each, value)]
        rivals = [other for other, each in gone.items() if _are_alike(each, value)]
        if name in known or len(targets) != 1 or len(rivals) != 1 or targets[0] not in known:
            continue
        if alone or _is_telling(value):
            yield Lesson(HintKind.ALIAS, path, hash_form(name), targets[0])


def _choice_lessons(
    before: Any, after: Any, part: Mapping[str, Any], path: str
) -> Iterator[Lesson]:
    """Yield that a word stands for a listed value, where it was all that the caller changed."""
    options = part.get("enum")
    if (
        isinstance(options, list)
        and isinstance(before, str)
        and isinstance(after, str)
        and before not in options
        and after in options
    ):
        yield Lesson(HintKind.CHOICE, path, hash_form(before), after)


def _rewriting_lessons(before: Any, after: Any, path: str) -> Iterator[Lesson]:
    """Yield how a list or a date was written, where the caller wrote it out: no value is needed."""
    lesson: Lesson | None = None
    if isinstance(before, str) and isinstance(after, list):
        parts = lists.split(before)
        if parts is not None and list(parts.parts) == after and len(after) > 1:
            lesson = _list_lesson(before, path, split=True)
        elif after == [before]:
            lesson = _list_lesson(before, path, split=False)
    else:
        lesson = _date_order_lesson(before, after, path)
    if lesson is not None:
        yield lesson


def _are_alike(one: Any, other: Any) -> bool:
    """Whether two values are one, but for being written as text: "5" and 5."""
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    scalars = isinstance(one, str | int | float) and isinstance(other, str | int | float)
    return scalars and str(one).casefold() == str(other).casefold()


def _is_telling(value: Any) -> bool:
    if isinstance(value, str):
        return len(value.strip()) >= _TELLING_CHARS
    if isinstance(value, bool) or value is None:
        return False
    return abs(value) >= _TELLING_NUMBER if isinstance(value, int | float) else bool(value)


def _generalize(path: str) -> str:
    return _INDEX.sub("[*]", path)


# What other tools taught, or one other caller alone, counts so much at most: never certain.
_UNSHARED_MOST: Final = 4
# Parts a caller from its agent, in what a teacher is recognised by.
_OF: Final = "-"
# What a group of lessons is named after; `kinds` writes it.
_GROUPED: Final = ("tool", "kind", "path", "form", "meaning", "teacher")
# Tools and what a name meant at each, by the kind of hint, the form and the tool.
Pooled = dict[tuple[HintKind, str, str], dict[str, int]]


class EvidenceCount(NamedTuple):
    """How often something was confirmed and contradicted."""

    held: int = 0
    fell: int = 0

    def plus(self, *, held: bool, count: int = 1) -> EvidenceCount:
        """Return the count with some more."""
        return (
            EvidenceCount(self.held + count, self.fell)
            if held
            else EvidenceCount(self.held, self.fell + count)
        )


def belief_of(held: float, fell: float) -> Belief:
    """Return the belief that follows from outcomes."""
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
    """Return the hash by which a teacher is recognised: of the caller and its agent."""
    return f"{hash_form(actor)}{_OF}{hash_form(agent or '')}"


class Lessons:
    """All lessons that a view shows, by tool, with who taught them how often."""

    def __init__(self, counts: dict[str, dict[Lesson, dict[str, EvidenceCount]]]) -> None:
        self._counts = counts
        self._elsewhere: Pooled | None = None

    @classmethod
    def read(cls, catalogue: CatalogueReader, view: View) -> Lessons:
        """Read what was learned, from the counts that the store keeps."""
        lessons = cls({})
        for kind in (names.LESSON_FOR, names.LESSON_AGAINST):
            for group, count in catalogue.group_counts(view.lineage, kind).items():
                named = parse_group(group)
                if named is not None:
                    lessons._add(*named, held=kind == names.LESSON_FOR, count=count)
        return lessons

    def of(self, tool: str, *, teacher: str = "", elsewhere: bool = False) -> ToolLessons:
        """Return what is known about one tool, as one of its callers may use it.

        Lessons from only one other caller are included, but never certain. `elsewhere`: includes
        lessons of other tools.
        """
        # A copy: lessons are noted on the home loop while other threads look into them.
        own = {lesson: dict(each) for lesson, each in dict(self._counts.get(tool, {})).items()}
        foreign = frozenset(lesson for lesson, each in own.items() if not _is_shared(each, teacher))
        counts = {lesson: _total(each) for lesson, each in own.items()}
        return ToolLessons(tool, counts, foreign, self._pool() if elsewhere else {})

    def totals(self) -> Iterator[tuple[str, Lesson, EvidenceCount]]:
        """Yield all lessons with their tools and counts."""
        for tool, lesson, taught in self.by_teacher():
            yield tool, lesson, _total(taught)

    def by_teacher(self) -> Iterator[tuple[str, Lesson, Mapping[str, EvidenceCount]]]:
        """Yield all lessons with their tools, and how often who taught them."""
        for tool in sorted(self._counts):
            own = dict(self._counts[tool])
            for lesson in sorted(own, key=lambda each: (each.kind, each.path, each.form)):
                yield tool, lesson, dict(own[lesson])

    def note(
        self, tool: str, lesson: Lesson, teacher: str, *, held: bool
    ) -> tuple[EvidenceCount, EvidenceCount]:
        """Count one more, until it can be read from the log; return the count before and after."""
        before = _total(self._counts.get(tool, {}).get(lesson, {}))
        self._add(tool, lesson, teacher, held=held)
        return before, before.plus(held=held)

    def count(self) -> int:
        """Return how many lessons there are."""
        return sum(map(len, self._counts.values()))

    def _add(self, tool: str, lesson: Lesson, teacher: str, *, held: bool, count: int = 1) -> None:
        taught = self._counts.setdefault(tool, {}).setdefault(lesson, {})
        taught[teacher] = taught.get(teacher, EvidenceCount()).plus(held=held, count=count)

    def _pool(self) -> Pooled:
        """Return names by what they meant at other tools: by their form alone."""
        if self._elsewhere is None:
            self._elsewhere = {}
            for tool, lesson, count in self.totals():
                if lesson.kind is HintKind.ALIAS and count.held > count.fell:
                    meanings = self._elsewhere.setdefault((lesson.kind, lesson.form, tool), {})
                    meanings[lesson.meaning] = meanings.get(lesson.meaning, 0) + count.held
        return self._elsewhere


class ToolLessons:
    """What is known about one tool: the `Learned` that corrections take."""

    def __init__(
        self,
        tool: str,
        counts: Mapping[Lesson, EvidenceCount],
        foreign: frozenset[Lesson],
        pooled: Pooled,
    ) -> None:
        self.counts = counts
        self._tool = tool
        self._foreign = foreign
        self._pooled = pooled

    @property
    def stamp(self) -> int:
        """The version of these lessons."""
        pooled = sum(sum(counts.values()) for counts in self._pooled.values())
        return hash((frozenset(self.counts.items()), self._foreign, pooled))

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        """Return what a form at a place turned out to mean, the most believed first."""
        wanted = hash_form(form)
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
        return _order_hints(found)

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
        return _order_hints(found)


def parse_group(group: str) -> tuple[str, Lesson, str] | None:
    """Return the tool, the lesson and the teacher of a group; None for what is none of ours."""
    parts = group.split(names.PART)
    if len(parts) != len(_GROUPED):
        return None
    tool, kind, path, form, meaning, teacher = parts
    if kind not in set(HintKind):
        return None
    return tool, Lesson(HintKind(kind), path, form, meaning), teacher


def _total(taught: Mapping[str, EvidenceCount]) -> EvidenceCount:
    return EvidenceCount(
        sum(each.held for each in taught.values()), sum(each.fell for each in taught.values())
    )


def _is_shared(taught: Mapping[str, EvidenceCount], teacher: str) -> bool:
    """Whether a lesson may be certain for a caller: it is its own, or several agree on it."""
    agreeing = {name for name, each in taught.items() if each.held}
    callers = [name.partition(_OF)[0] for name in agreeing]
    # Anybody can name two agents: of one caller they count as two for that caller only.
    own = callers.count(teacher.partition(_OF)[0])
    return teacher in agreeing or own > 1 or len(set(callers)) > 1


def _order_hints(found: list[Hint]) -> list[Hint]:
    return sorted(found, key=lambda hint: (-hint.belief.mean, str(hint.meaning)))
