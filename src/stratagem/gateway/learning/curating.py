"""The operations on patterns and breakers, for one caller: lists, backup and restore, reset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stratagem import limits
from stratagem.engine.lineage import View
from stratagem.errors import InvalidInput, MissingRequired, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.correction import Hint, HintKind
from stratagem.gateway.learning import figures, inputs
from stratagem.gateway.learning.lessons import Count, Lessons, belief_of, drafts
from stratagem.gateway.learning.service import Answer, Bound
from stratagem.gateway.learning.standing import read_standing
from stratagem.gateway.learning.teaching import LEARNED_PATTERNS, Lesson
from stratagem.gateway.learning.telling import lesson_name
from stratagem.storage.contract import Reader, Transaction

__all__ = ["Curating"]

_FORMAT: Final = "stratagem-correction-patterns"
_SECOND: Final = 1_000_000


class Curating(Bound):
    """What an administrator does with patterns and breakers."""

    def patterns(self, given: inputs.PatternsInput) -> Answer:
        """List patterns, show a tool's profile, make a backup or bring one back."""
        if given.action == "profile":
            return self._profile(given)
        if given.action == "restore":
            return self._restore(given)
        self._parts.recorder.settle()
        with self._foundation.store.snapshot() as reader:
            view = self._view(reader, given.branch, given.as_of)
            if given.action == "backup":
                return {"backup": self._backup(reader, view, given)}
            found = [
                each
                for each in (*_lessons(reader, view), *_built_in(reader, view))
                if each["usageCount"] >= given.min_usage
                and given.tool_name in {None, each["toolName"]}
            ]
        found.sort(key=lambda each: (-each["usageCount"], each["patternId"]))
        return {"patterns": found, "total": len(found)}

    async def circuits(self, given: inputs.CircuitsInput) -> Answer:
        """List the breakers of corrections, or close one; they live on the home loop."""
        return await self._parts.home.join(lambda: self._circuits(given))

    async def _circuits(self, given: inputs.CircuitsInput) -> Answer:
        if given.action == "reset":
            return self._reset(given)
        return {"circuitBreakers": self._listed()}

    # --- inside

    def _listed(self) -> list[Answer]:
        breakers, now = self._corrector.breakers, self._foundation.store.now()
        return [
            {
                **each,
                # As the document has it: milliseconds since 1970.
                "lastFailure": (now - int(age * _SECOND)) // 1000 if age is not None else None,
                "coolDownSeconds": limits.CORRECTION_BREAKER_SECONDS,
            }
            for each in breakers.list()
            for age in [breakers.age(each["lastFailure"])]
        ]

    def _reset(self, given: inputs.CircuitsInput) -> Answer:
        """Close a breaker, once its cool-down is over or where it is forced."""
        name = given.tool_name
        if given.force:
            self._caller.require("gateway", "admin", "forcing a breaker")
        if name is None:
            raise MissingRequired("A breaker is named by its tool.", field="toolName")
        breakers = self._corrector.breakers
        known = next((each for each in breakers.list() if each["toolName"] == name), None)
        age = breakers.age(known["lastFailure"]) if known else None
        left = limits.CORRECTION_BREAKER_SECONDS - (age if age is not None else 1e9)
        if known is not None and known["status"] == "open" and left > 0 and not given.force:
            raise ValidationFailed(
                f"The breaker of {name} opened less than five minutes ago.",
                field="toolName",
                retry_after=round(left),
                hint="Wait, or say force: true.",
            )
        reason = given.reason or "reset by hand"
        return {"toolName": name, "reset": breakers.reset(name, reason), "reason": reason}

    def _profile(self, given: inputs.PatternsInput) -> Answer:
        if given.tool_name is None:
            raise MissingRequired("A profile is one tool's.", field="toolName")
        self._parts.recorder.settle()
        tool = self._tool(given.tool_name, given.branch)
        self._corrector.examiner.forget()
        found = self._corrector.examiner.profile(tool, self._branch(given.branch))
        return {"toolName": tool.name, "profile": found.plain()}

    def _backup(self, reader: Reader, view: View, given: inputs.PatternsInput) -> Answer:
        return {
            "format": _FORMAT,
            "version": 1,
            "lessons": [
                {
                    "tool": tool,
                    "kind": lesson.kind.value,
                    "path": lesson.path,
                    "form": lesson.form,
                    "meaning": lesson.meaning,
                    "teacher": teacher,
                    "held": count.held,
                    "fell": count.fell,
                }
                for tool, lesson, taught in Lessons.read(reader, view).taught()
                for teacher, count in taught.items()
                if sum(map(sum, taught.values())) >= given.min_usage
                and given.tool_name in {None, tool}
            ],
        }

    def _restore(self, given: inputs.PatternsInput) -> Answer:
        """Bring evidence back that is not there; what is there stays."""
        # A backup says who taught what: whoever writes one speaks for everybody.
        self._caller.require("gateway", "admin", "restoring patterns")
        wanted = _read_backup(given.backup)

        def work(transaction: Transaction) -> Answer:
            view = self._view(transaction, given.branch)
            present = {
                (tool, lesson, teacher): count
                for tool, lesson, taught in Lessons.read(transaction, view).taught()
                for teacher, count in taught.items()
            }
            restored = 0
            for tool, lesson, teacher, count in wanted:
                known = present.get((tool, lesson, teacher), Count())
                rows = [
                    draft
                    for held, more in (
                        (True, count.held - known.held),
                        (False, count.fell - known.fell),
                    )
                    for _each in range(max(0, more))
                    for draft in drafts(tool, teacher, [lesson], held=held)
                ]
                if rows:
                    transaction.append(view.branch, rows)
                    restored += 1
            return {"restored": restored, "unchanged": len(wanted) - restored}

        answer = self._foundation.write(
            self._caller,
            work,
            request_id=given.request_id,
            operation="auto_correction_patterns",
            arguments=given.given(),
        )
        self._corrector.examiner.forget()
        return answer


def _lessons(reader: Reader, view: View) -> Iterator[Answer]:
    for tool, lesson, count in Lessons.read(reader, view).every():
        belief = belief_of(*count)
        standing = read_standing(reader, view, tool, lesson.id)
        certain = Hint(lesson.meaning, belief).certain and not standing.deprecated
        yield {
            "patternId": f"{tool}:{lesson.id}",
            "name": lesson_name(tool, lesson),
            "toolName": tool,
            "learned": True,
            "usageCount": sum(count),
            "successRate": figures.rate(count.held, sum(count)),
            "confidence": round(belief.mean, 4),
            "certain": certain,
            "status": "deprecated" if standing.deprecated or belief.mean < 0.5 else "active",  # noqa: PLR2004 -- more against it than for it
            "path": lesson.path,
            "meaning": lesson.meaning,
        }


def _built_in(reader: Reader, view: View) -> Iterator[Answer]:
    """Yield the engine's own patterns, with how each did at each tool."""
    counts: dict[tuple[str, str], Count] = {}
    for kind, held in ((names.CORRECTION_OK, True), (names.CORRECTION_FAILED, False)):
        for group, number in reader.group_tallies(view.lineage, kind).items():
            tool, _, pattern = group.partition(names.PART)
            if pattern.partition(":")[0] in LEARNED_PATTERNS:
                continue
            known = counts.get((tool, pattern), Count())
            counts[tool, pattern] = known.plus(held=held, count=number)
    for (tool, pattern), count in counts.items():
        standing = read_standing(reader, view, tool, pattern)
        name, text = figures.described(pattern)
        yield {
            "patternId": f"{tool}:{pattern}",
            "name": name,
            "toolName": tool,
            "learned": False,
            "usageCount": sum(count),
            "successRate": figures.rate(count.held, sum(count)),
            "confidence": round(belief_of(*count).mean, 4),
            "certain": not standing.deprecated,
            "status": "deprecated" if standing.deprecated else "active",
            "description": text,
        }


def _read_backup(backup: Mapping[str, Any] | None) -> list[tuple[str, Lesson, str, Count]]:
    """Return the lessons of a backup.

    Raises:
        InvalidInput: It is none.
    """
    if backup is None:
        raise MissingRequired("A restore needs the `backup`.", field="backup")
    rows = backup.get("lessons")
    if backup.get("format") != _FORMAT or not isinstance(rows, list):
        raise InvalidInput("This is no backup of patterns.", field="backup")
    if len(rows) > limits.PATTERNS_RESTORED_MAX:
        raise InvalidInput(
            f"A backup has at most {limits.PATTERNS_RESTORED_MAX:,} patterns.",
            field="backup",
            limit=limits.PATTERNS_RESTORED_MAX,
        )
    return [_read_lesson(row, at) for at, row in enumerate(rows)]


def _read_lesson(row: Any, at: int) -> tuple[str, Lesson, str, Count]:
    try:
        texts = [row[name] for name in ("tool", "path", "form", "meaning", "teacher")]
        counts = [row["held"], row["fell"]]
        kind = HintKind(row["kind"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"Pattern {at} of the backup is none.", field="backup") from error
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in counts)
    plain = all(isinstance(each, str) and names.PART not in each for each in texts)
    if not whole or not plain or min(counts) < 0:
        raise InvalidInput(f"Pattern {at} of the backup is none.", field="backup")
    most = limits.PATTERN_EVIDENCE_RESTORED_MAX
    tool, path, form, meaning, teacher = texts
    held, fell = (min(count, most) for count in counts)
    return tool, Lesson(kind, path, form, meaning), teacher, Count(held, fell)
