"""Makes the example: goes through the month, and calls what the team would have called."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from stratagem.bootstrap import Runtime, Settings, built_in, start
from stratagem.demo import tool_server
from stratagem.demo.texts import CONCEPTS, CONVERSATIONS, FACTS, NOTES, PREREQUISITES, PROBLEMS
from stratagem.errors import StratagemError, ValidationFailed
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters
from stratagem.storage.sqlite.store import BESIDE

__all__ = ["make_demo"]

DAYS: Final = 30
_SECOND: Final = 1_000_000
_HOUR: Final = 3600 * _SECOND
_DAY: Final = 24 * _HOUR
_SEED: Final = 22
# The day on which the port changes a tool.
_PORT_CHANGES: Final = 29
_AGENTS: Final = ("planner", "builder", "reviewer", "operator")
_ENVIRONMENTS: Final = {
    "linux": {"os": "linux", "python": "3.12"},
    "docker": {"os": "linux", "container": "docker", "python": "3.12"},
    "macos": {"os": "macos", "python": "3.13"},
    "github-actions": {"os": "linux", "ci": "github-actions", "python": "3.12"},
}
TRIAL: Final = "postgres-trial"
PRICING: Final = "pricing-by-container"


def make_demo(
    path: str, end: int, progress: Callable[[int, int], None] = lambda _done, _of: None
) -> dict[str, Any]:
    """Make a database of a month that ends at a time, in microseconds; return what it holds.

    Raises:
        ValidationFailed: There is a file already.
    """
    if Path(path).exists():
        raise ValidationFailed(
            f"{path} exists already.", field="path", hint="Choose a file that does not exist."
        )
    # Whole days, the last of them yesterday.
    clock = _Clock(end - end % _DAY - DAYS * _DAY)
    chance = random.Random(_SEED)  # noqa: S311 -- the same month each time
    # Writes in the background draw salts at no fixed time, and so from numbers of their own.
    salts = random.Random(_SEED)  # noqa: S311 -- nothing here is secret
    settings = Settings(
        path,
        durability="fast",
        adapters=Adapters(clock.now, salts.randbytes),
        external=built_in(),
    )
    month = _Month(clock, chance, Path(path))
    try:
        _live(month, settings, progress)
        with _open(settings) as month.runtime:
            head = str(month.call("mara", "strata_status")["head"])
    except BaseException:
        # Half a month would be taken for the example, and could not be made again.
        for ending in ("", "-vectors.lock", *BESIDE):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        raise
    return {"path": path, "events": int(head.partition(":")[0])}


def _live(month: _Month, settings: Settings, progress: Callable[[int, int], None]) -> None:
    # The port's server is started anew when it has changed.
    try:
        for days in (range(1, _PORT_CHANGES), range(_PORT_CHANGES, DAYS + 1)):
            with _open(settings) as month.runtime:
                for day in days:
                    month.live(day)
                    progress(day, DAYS)
    finally:
        month.end_first_release()


@contextmanager
def _open(settings: Settings) -> Iterator[Runtime]:
    runtime = start(settings)
    try:
        yield runtime
    finally:
        runtime.close()


class _Clock:
    """A clock that goes on only when it is told to, and a little with each look."""

    def __init__(self, begin: int) -> None:
        self._now = begin

    def now(self) -> int:
        self._now += 1000
        return self._now

    def jump(self, moment: int) -> None:
        self._now = max(self._now, moment)


class _Month:
    """What the team does, day by day."""

    runtime: Runtime

    def __init__(self, clock: _Clock, chance: random.Random, path: Path) -> None:
        self._clock = clock
        self._chance = chance
        self._begin = clock.now()
        self._first_release = path.with_name(f"{path.name}.port-release-1")
        self._concepts: dict[str, str] = {}
        self._solutions: dict[tuple[str, int], str] = {}

    def call(self, actor: str, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call an operation as one of the team; people and agents alike work where the file is."""
        caller = Caller(actor, "harbor", authority="operator", local=False)
        return self.runtime.call(name, arguments, caller)

    def live(self, day: int) -> None:
        """Do what is done on a day."""
        at = self._begin + (day - 1) * _DAY
        self._clock.jump(at + 8 * _HOUR)
        self._store_facts(day)
        self._talk(day)
        self._learn(day)
        self._clock.jump(at + 11 * _HOUR)
        self._meet_problems(day)
        self._note(day)
        self._branch(day)
        self._clock.jump(at + 15 * _HOUR)
        self._use_tools(day)

    def _store_facts(self, day: int) -> None:
        for fact in FACTS:
            if fact.day == day:
                self._pass_minutes(30)
                self.call(
                    fact.actor,
                    "strata_store",
                    key=fact.key,
                    value=fact.value,
                    namespace=fact.namespace,
                    tags=list(fact.tags),
                )

    def _talk(self, day: int) -> None:
        for on, namespace, session, agent, turns in CONVERSATIONS:
            if on != day:
                continue
            for role, words in turns:
                self._pass_minutes(4)
                self.call(
                    agent if role == "assistant" else "mara",
                    "strata_log",
                    event="message",
                    data={"role": role, "content": words},
                    session=session,
                    namespace=namespace,
                )

    def _note(self, day: int) -> None:
        """Jot down what came up; more on busy days, nothing much at weekends."""
        count = 1 if day % 7 in {6, 0} else self._chance.randrange(3, 9)
        for place in range(count):
            self._pass_minutes(12)
            agent = self._chance.choice(_AGENTS)
            words = self._chance.choice(NOTES).format(n=self._chance.randrange(2, 90))
            self.call(
                agent,
                "strata_store",
                key=f"notes/day-{day:02}/{place + 1}",
                value=words,
                namespace="harbor",
                tags=["note", agent],
            )
            if place % 3 == 0:
                self.call(
                    agent,
                    "strata_log",
                    event="task_done",
                    data={"content": f"Done in {self._chance.randrange(5, 90)} minutes: {words}"},
                    session=f"work-{day:02}",
                    namespace="harbor",
                )

    def _learn(self, day: int) -> None:
        share = -(-len(CONCEPTS) // 20)
        for area, topic, name, explanation in CONCEPTS[(day - 1) * share : day * share]:
            self._pass_minutes(6)
            made = self.call(
                self._chance.choice(_AGENTS),
                "create_concept",
                name=name,
                area=area,
                topic=topic,
                explanation=explanation,
            )
            self._concepts[name] = made["concept_id"]
        self._relate(day)
        if day > 20:  # noqa: PLR2004 -- when all are there
            name = self._chance.choice(list(self._concepts))
            self.call(
                "reviewer",
                "confirm_concept",
                concept_id=self._concepts[name],
                source=f"review {day}",
            )
        if day == 25:  # noqa: PLR2004 -- one is in doubt
            self.call(
                "mara",
                "refute_concept",
                concept_id=self._concepts["Demurrage"],
                source="contract",
                note="Rotterdam counts calendar days",
            )
            self.call(
                "mara", "mark_known", concepts=["Container", "Voyage", "Event"], learner="jonas"
            )

    def _relate(self, day: int) -> None:
        """Say what builds on what, once both are known."""
        for before, after in PREREQUISITES:
            known = before in self._concepts and after in self._concepts
            if known and (day, before, after) not in self._earlier_pairs(day):
                self.call(
                    "planner",
                    "create_relationship",
                    source_id=self._concepts[before],
                    target_id=self._concepts[after],
                    relationship_type="prerequisite",
                )

    def _earlier_pairs(self, day: int) -> set[tuple[int, str, str]]:
        """Return which pairs were there before this day."""
        share = -(-len(CONCEPTS) // 20)
        earlier = {name for _, _, name, _ in CONCEPTS[: (day - 1) * share]}
        return {
            (day, before, after)
            for before, after in PREREQUISITES
            if before in earlier and after in earlier
        }

    def _meet_problems(self, day: int) -> None:
        for problem in PROBLEMS:
            if problem.day == day:
                self._add_problem(problem.title)
            for on, fix, worked, where in problem.outcomes[1:]:
                if on != day:
                    continue
                self._pass_minutes(7)
                self.call(
                    self._chance.choice(_AGENTS),
                    "record_outcome",
                    solution_id=self._solutions[problem.title, fix],
                    worked=worked,
                    env=_ENVIRONMENTS[where],
                )

    def _add_problem(self, title: str) -> None:
        problem = next(each for each in PROBLEMS if each.title == title)
        _, _, worked, where = problem.outcomes[0]
        made = self.call(
            "builder",
            "add_incident",
            title=title,
            steps=problem.fixes[0],
            env=_ENVIRONMENTS[where],
            worked=worked,
            error_signature=problem.error,
            tags=list(problem.tags),
        )
        self._solutions[title, 0] = made["solution_id"]
        for place, fix in enumerate(problem.fixes[1:], 1):
            added = self.call(
                "operator",
                "add_solution",
                incident_id=made["incident_id"],
                steps=fix,
                env=_ENVIRONMENTS[where],
            )
            self._solutions[title, place] = added["solution_id"]

    def _branch(self, day: int) -> None:
        if day == 7:  # noqa: PLR2004 -- the trial of the database
            self.call("planner", "strata_branch", action="fork", name=TRIAL)
        if day in {7, 8}:
            self._try_postgres(day)
        if day == 9:  # noqa: PLR2004 -- it went well
            self.call(
                "mara",
                "strata_branch",
                action="merge",
                source=TRIAL,
                branch="default",
                strategy="source_wins",
            )
        if day == 23:  # noqa: PLR2004 -- an experiment that is still open
            self.call("planner", "strata_branch", action="fork", name=PRICING)
            self._try_pricing()
        if day == 27:  # noqa: PLR2004 -- meanwhile, on the default branch
            self._pass_minutes(20)
            self._put(
                "builder",
                "api/rate-limit",
                {"requests_per_minute": 240, "burst": 40},
                ["api", "limits"],
            )

    def _try_postgres(self, day: int) -> None:
        self._pass_minutes(25)
        self.call(
            "builder",
            "strata_store",
            key=f"trial/result-{day}",
            value={"store": "PostgreSQL 17", "p95_ms": 40 - day, "clients": 64},
            namespace="harbor",
            tags=["trial"],
            branch=TRIAL,
        )

    def _try_pricing(self) -> None:
        self._pass_minutes(40)
        changes = {
            "api/rate-limit": {"requests_per_minute": 600, "burst": 40, "by": "container"},
            "plans": {
                "starter": {"containers": 10, "price": 49},
                "fleet": {"containers": 500, "price": 990},
            },
            "roadmap": {
                "now": ["notifications", "billing by container"],
                "next": ["customs documents"],
                "later": ["carbon report"],
            },
        }
        for key, value in changes.items():
            self._put("planner", key, value, ["pricing"], PRICING)

    def _put(
        self, actor: str, key: str, value: Any, tags: list[str], branch: str = "default"
    ) -> None:
        self.call(
            actor,
            "strata_store",
            key=key,
            value=value,
            namespace="harbor",
            tags=tags,
            branch=branch,
        )

    def _use_tools(self, day: int) -> None:
        if day == 4:  # noqa: PLR2004 -- the port gives them tools
            self._add_port()
        if day == _PORT_CHANGES:
            self.end_first_release()
            self.call("operator", "server_refresh", name="port")
        for _ in range(0 if day % 7 in {6, 0} else self._chance.randrange(2, 7)):
            self._pass_minutes(9)
            self._execute(*self._chance.choice(_CALLS))

    def _add_port(self) -> None:
        self._first_release.touch()
        self.call(
            "mara",
            "server_add",
            name="port",
            command=sys.executable,
            args=["-I", str(Path(tool_server.__file__)), str(self._first_release.absolute())],
        )

    def end_first_release(self) -> None:
        """Remove the file that makes the port's server its first release."""
        self._first_release.unlink(missing_ok=True)

    def _execute(self, tool: str, arguments: dict[str, Any]) -> None:
        # Calls that fail are part of the story.
        try:
            self.call(
                self._chance.choice(_AGENTS), "tool_execute", toolName=tool, arguments=arguments
            )
        except StratagemError:
            return

    def _pass_minutes(self, most: int) -> None:
        self._clock.jump(self._clock.now() + self._chance.randrange(1, most) * 60 * _SECOND)


_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("calculator", {"expression": "18% of 2490"}),
    ("calculator", {"expression": "412 / 18.5"}),
    # As agents write it: corrected before it runs.
    ("calculator", {"expresion": "64 * 12"}),
    ("calculator", {"expression": 42}),
    ("calculator", {"expression": "1 / 0"}),
    ("free_berths", {"quay": "north"}),
    ("free_berths", {"quay": "quay-7"}),
    ("estimate_arrival", {"nautical_miles": 410, "knots": "16.5"}),
)
