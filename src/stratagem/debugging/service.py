"""Debug memory: the fix that worked, for an environment like the caller's.

Four operations, each of which says what to do next. Everything is an event on a branch, so a
fix learned on a branch is invisible elsewhere until it is merged, and a lookup in the past sees
what was known then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from stratagem import limits
from stratagem.answers import plural
from stratagem.debugging import actions, checks, kinds, ranking, retrieval
from stratagem.debugging.drafts import add_all, new_id, outcome_draft, solution_draft
from stratagem.debugging.environments import Environment
from stratagem.debugging.models import (
    IncidentAdded,
    IncidentMatch,
    NextAction,
    OutcomeRecorded,
    RankedSolution,
    RankedSolutions,
    SolutionAdded,
    SolutionStats,
)
from stratagem.debugging.ranking import Outcome, Solution, SolutionGroup
from stratagem.debugging.records import IncidentRecords, steps_key
from stratagem.debugging.retrieval import SimilarIncident
from stratagem.debugging.signatures import kept_headlines, signature_fields
from stratagem.engine.events import Draft
from stratagem.engine.lineage import View
from stratagem.engine.relevance import LISTED_MIN, TRY_MIN, ProblemComparison
from stratagem.errors import RecordRetired
from stratagem.operation import Caller
from stratagem.parameters import COUNT_ALIASES, AsOf, BranchName, Param, RequestId
from stratagem.redaction import mask
from stratagem.search.foundation import BoundSystem, Foundation
from stratagem.storage.contract import Reader, Transaction
from stratagem.storage.views import find_branch

__all__ = ["Debugging", "rank_solutions", "refuse_retired"]

# Above it two incidents are likely the same one in other words.
_TWIN_RELEVANCE = TRY_MIN
_QUERY_KEPT_CHARS = 2_000
_PROBABLE = 0.5
# Words that agree or differ: listed, and said in a sentence.
_WORDS_MAX = 8
_WORDS_SAID = 5


_ENV_ALIASES = ("environment",)
_ENV_TYPES = {"type": ["object", "string"]}
_ERROR_ALIASES = ("error", "error_message", "error_text", "stack_trace", "traceback")

QueryText = Annotated[
    str,
    Param(
        "Error, stack trace or log",
        aliases=("query", "q", "text", "message", "problem", "log", *_ERROR_ALIASES),
    ),
]
QueryEnv = Annotated[
    Mapping[str, Any] | Literal["auto"],
    Param(
        '{"os":"linux","python":"3.12","framework":"torch 2.1",…} or "auto"',
        aliases=_ENV_ALIASES,
        advertised=_ENV_TYPES,
    ),
]
ErrorSignature = Annotated[
    str | None, Param("Error text or stack trace", aliases=("signature", *_ERROR_ALIASES))
]
Summary = Annotated[
    str | None, Param("More about the problem", quiet=True, aliases=("description", "details"))
]
IncidentTags = Annotated[
    Sequence[str] | None, Param("Labels", quiet=True, aliases=("tag", "label", "labels"))
]
Env = Annotated[
    Mapping[str, Any] | Literal["auto"],
    Param('Where it was tried; "auto": here', aliases=_ENV_ALIASES, advertised=_ENV_TYPES),
]
EnvBucket = Annotated[str | None, Param("Bucket that overrides env")]
LookupId = Annotated[str | None, Param("From ranked_solutions", aliases=("lookup",))]
Notes = Annotated[
    str | None,
    Param("Anything else worth knowing", quiet=True, aliases=("note", "comment", "comments")),
]
Steps = Annotated[
    str | Sequence[str],
    Param(
        "The fix, step by step",
        aliases=("solution", "fix", "resolution", "solution_steps"),
        advertised={"type": ["array", "string"], "items": {"type": "string"}},
    ),
]
Worked = Annotated[
    bool,
    Param(
        "Whether it worked",
        quiet=True,
        aliases=("success", "succeeded", "successful", "solved", "fixed", "works"),
    ),
]


class Debugging(BoundSystem):
    """The four operations of debugging, for one caller.

    `asked_by` names an automatic caller, whose lookups are left out of statistics.
    """

    def __init__(
        self, foundation: Foundation, caller: Caller, *, asked_by: str | None = None
    ) -> None:
        super().__init__(foundation, caller)
        self._asked_by = asked_by

    def ranked_solutions(
        self,
        query_text: QueryText,
        env: QueryEnv,
        *,
        limit: Annotated[
            int, Param("Solutions", ge=1, le=limits.SOLUTIONS_MAX, aliases=COUNT_ALIASES)
        ] = limits.SOLUTIONS_DEFAULT,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> RankedSolutions:
        """Find incidents like a problem and rank their fixes for an environment."""
        checks.query(query_text)
        caller = checks.environment(
            env, local=self._caller.local, redaction=self._foundation.redaction
        )
        problem = retrieval.parse_problem(query_text)
        writes = self._caller_writes()
        with self._foundation.index.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            matches, mode = retrieval.find_incidents(
                self._foundation,
                reader,
                view,
                problem,
                limit=max(limits.INCIDENTS_LISTED, limit),
            )
            records = IncidentRecords(reader, view, snapshot=True)
            matches = _stand_for_merged(records, matches)
            solutions = {
                match.incident_id: records.solutions(match.incident_id) for match in matches
            }
            likely = [
                match for match in matches if match.relevance >= self._foundation.relevance_min
            ]
            ranked = rank_solutions(records, likely, solutions, caller, view.time)[:limit]
            unindexed = self._foundation.index.say_unindexed(reader)
        notes = filter(None, (_note_on_lookup(matches, likely, ranked), unindexed))
        answer = RankedSolutions(
            lookup_id=None,
            incidents=[_incident_match(match, solutions[match.incident_id]) for match in matches],
            ranked_solutions=ranked,
            recommended_solution=ranked[0] if ranked else None,
            next_action=_next_action(likely, ranked, writes=writes),
            env_bucket=caller.bucket,
            mode=mode,
            note=" ".join(notes) or None,
        )
        if as_of is None and writes:
            answer.lookup_id = self._keep_lookup(problem, caller, answer, branch)
        return answer

    def _caller_writes(self) -> bool:
        """Whether anything may be written in the caller's name."""
        may = self._caller.may("debugging", "write") and not self._caller.read_only
        return may and not self._store.read_only

    def record_outcome(
        self,
        solution_id: Annotated[
            str, Param("The solution that was tried", quiet=True, aliases=("solution", "id"))
        ],
        worked: Worked,
        env: Env,
        *,
        lookup_id: LookupId = None,
        env_bucket: EnvBucket = None,
        notes: Notes = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> OutcomeRecorded:
        """Record whether a solution worked, and say what that changed."""
        place = self._place(env, env_bucket)
        text = self._mask_optional(checks.optional(notes, "notes", limits.NOTES_CHARS_MAX))
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            view = self._views.view(transaction, name)
            records = IncidentRecords(transaction, view)
            solution = records.solution(solution_id)
            stands = records.solution(records.resolve_solution(solution_id))
            earlier, relevance = records.lookup_history(solution, stands, lookup_id)
            draft = outcome_draft(
                transaction,
                solution,
                worked=worked,
                place=place,
                notes=text,
                lookup_id=lookup_id,
                repeats=earlier[0] if earlier else None,
                relevance=relevance,
            )
            [outcome] = transaction.append(view.branch, [draft])
            return {
                "outcome_id": draft.content["outcome_id"],
                "counted": earlier is None or earlier[1] != worked,
                "sequence": outcome.sequence,
                "note": _note_on_standing(records, solution, stands),
                "retired": bool(_find_retired(records, stands)),
            }

        answer = self._write(
            work,
            request_id,
            "record_outcome",
            {
                "solution_id": solution_id,
                "worked": worked,
                "bucket": place.environment.bucket,
                "lookup_id": lookup_id,
                "notes": text,
                "branch": name,
            },
        )
        if "sequence" in answer:
            answer |= self._effect(name, solution_id, answer["sequence"], place.environment)
        return _outcome_answer(solution_id, place, answer, worked=worked)

    def add_solution(
        self,
        incident_id: Annotated[
            str, Param("The incident that it solves", quiet=True, aliases=("incident", "id"))
        ],
        steps: Steps,
        env: Env,
        *,
        env_bucket: EnvBucket = None,
        lookup_id: LookupId = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> SolutionAdded:
        """Add a fix to an incident; evidence comes later, by record_outcome."""
        listed = self._mask_steps(checks.steps(steps))
        place = self._place(env, env_bucket)
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            view = self._views.view(transaction, name)
            records = IncidentRecords(transaction, view)
            records.incident(incident_id)
            stands = records.resolve_incident(incident_id)
            refuse_retired(records, stands, steps_key(listed))
            if lookup_id is not None:
                records.lookup(lookup_id)
            draft = solution_draft(transaction, stands, listed, place, lookup_id)
            transaction.append(view.branch, [draft])
            return {"solution_id": draft.key, "incident_id": stands}

        answer = self._write(
            work,
            request_id,
            "add_solution",
            {
                "incident_id": incident_id,
                "steps": listed,
                "bucket": place.environment.bucket,
                "lookup_id": lookup_id,
                "branch": name,
            },
        )
        stands = answer.get("incident_id", incident_id)
        merged = f"{incident_id} was merged into {stands}; the fix was added to that."
        return SolutionAdded(
            solution_id=answer["solution_id"],
            incident_id=stands,
            env_bucket=place.environment.bucket,
            next_action=actions.solution_added(),
            note=_join_notes(place.note, merged if stands != incident_id else None),
        )

    def add_incident(
        self,
        title: Annotated[str, Param("What went wrong, in a line", quiet=True, aliases=("name",))],
        steps: Steps,
        env: Env,
        worked: Worked,
        *,
        error_signature: ErrorSignature = None,
        summary: Summary = None,
        tags: IncidentTags = None,
        lookup_id: LookupId = None,
        env_bucket: EnvBucket = None,
        notes: Notes = None,
        distinct: Annotated[bool, Param("Add it even if the signature is known")] = False,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> IncidentAdded:
        """Add an incident with its fix and the fix's outcome: all of it, or nothing."""
        listed = self._mask_steps(checks.steps(steps))
        place = self._place(env, env_bucket)
        kept = self._incident_content(title, error_signature, summary, tags, lookup_id)
        text = self._mask_optional(checks.optional(notes, "notes", limits.NOTES_CHARS_MAX))
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            view = self._views.view(transaction, name)
            records = IncidentRecords(transaction, view)
            if lookup_id is not None:
                records.lookup(lookup_id)
            if not distinct and (twin := _find_same_signature(transaction, view, kept)) is not None:
                return {"twin": twin}
            similar = self._find_likely_twin(transaction, view, kept)
            return {
                **add_all(transaction, view, kept, listed, place, worked=worked, notes=text),
                "similar": similar,
            }

        answer = self._write(
            work,
            request_id,
            "add_incident",
            {
                **kept,
                "steps": listed,
                "bucket": place.environment.bucket,
                "worked": worked,
                "notes": text,
                "distinct": distinct,
                "branch": name,
            },
        )
        if "twin" in answer:
            return _duplicate_answer(answer["twin"])
        return _incident_answer(answer, kept["title"], place, worked=worked)

    def _incident_content(
        self,
        title: object,
        error_signature: object,
        summary: object,
        tags: object,
        lookup_id: str | None,
    ) -> dict[str, Any]:
        """Return the content of an incident event, checked and masked."""
        signature = checks.optional(error_signature, "error_signature", limits.SIGNATURE_CHARS_MAX)
        masked = self._mask_optional(signature)
        content: dict[str, Any] = {
            "title": self._mask(checks.line(title, "title", limits.TITLE_CHARS_MAX)),
            "error_signature": masked,
            **signature_fields(signature or "", masked or ""),
            "summary": self._mask_optional(
                checks.optional(summary, "summary", limits.SUMMARY_CHARS_MAX)
            ),
            "tags": sorted({self._mask(tag) for tag in checks.tags(tags)}),
            "lookup_id": lookup_id,
        }
        return {name: value for name, value in content.items() if value not in (None, "", [])}

    def _find_likely_twin(
        self, reader: Reader, view: View, content: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Return the incident that is probably the same problem, described in other words."""
        told = [content.get(name) for name in ("title", "error_signature", "summary")]
        problem = retrieval.Problem(
            "\n".join(part for part in told if part)[: limits.QUERY_CHARS_MAX],
            content["title"],
            "",
            kept_headlines(content),
        )
        matches, _mode = retrieval.find_incidents(self._foundation, reader, view, problem, limit=1)
        matches = _stand_for_merged(IncidentRecords(reader, view), matches)
        if not matches or matches[0].relevance < _TWIN_RELEVANCE:
            return None
        twin = matches[0]
        return {
            "incident_id": twin.incident_id,
            "title": twin.content["title"],
            "relevance": round(twin.relevance, 3),
        }

    def _keep_lookup(
        self,
        problem: retrieval.Problem,
        caller: Environment,
        answer: RankedSolutions,
        branch: str | None,
    ) -> str:
        """Store the recommendation, so that outcomes can be linked to it."""
        name = branch or self._caller.branch
        content: dict[str, Any] = {
            # Cut after it was masked: half a token has no shape to know it by.
            "query": self._mask(problem.text)[:_QUERY_KEPT_CHARS],
            "fingerprint": problem.fingerprint,
            "env_bucket": caller.bucket,
            "incidents": [match.incident_id for match in answer.incidents],
            "incident_relevances": [match.relevance for match in answer.incidents],
            "solutions": [each.solution_id for each in answer.ranked_solutions],
            "relevances": [each.relevance for each in answer.ranked_solutions],
            "answer": answer.next_action.type,
            **_promise(answer),
            **({"asked_by": self._asked_by} if self._asked_by else {}),
        }

        def work(transaction: Transaction) -> str:
            lookup_id = new_id("look", transaction)
            kept = {"lookup_id": lookup_id, "at": transaction.wall, **content}
            draft = Draft(kinds.SOLUTIONS_RANKED, kept, kinds.LOOKUPS)
            transaction.append(find_branch(transaction.branches, name), [draft])
            return lookup_id

        return self._foundation.write(self._caller, work)

    def _effect(
        self, branch: str, solution_id: str, sequence: int, caller: Environment
    ) -> dict[str, Any]:
        """Return where a solution stood before an outcome, and stands after it.

        Ranking reads every outcome of the incident, so it happens after the write, when no
        other writer waits for it; both views end where that outcome was written.
        """
        with self._store.snapshot() as reader:
            found = reader.branches.by_name(branch) or reader.branches.deleted_by_name(branch)
            assert found is not None
            now = reader.log.wall_of(sequence) or 0

            def standing_at(limit: int) -> dict[str, Any]:
                view = View(found, reader.branches.lineage(found, limit), now)
                records = IncidentRecords(reader, view, snapshot=True)
                stands = records.solution(records.resolve_solution(solution_id))
                return _measure_standing(records, stands, caller, now)

            return {"before": standing_at(sequence - 1), "after": standing_at(sequence)}

    def _write(
        self,
        work: Any,
        request_id: str | None,
        operation: str,
        arguments: Mapping[str, Any],
    ) -> dict[str, Any]:
        answer: dict[str, Any] = self._foundation.write(
            self._caller, work, request_id=request_id, operation=operation, arguments=arguments
        )
        return answer

    def _place(self, env: object, env_bucket: object) -> checks.Place:
        """Return where something was tried, without what may be secret in it."""
        return checks.place(
            env, env_bucket, local=self._caller.local, redaction=self._foundation.redaction
        )

    def _mask_steps(self, steps: list[str]) -> list[str]:
        """Return the steps without secrets, those that were cut into several steps included."""
        whole = "\n".join(steps)
        if "PRIVATE KEY" in whole:
            return self._mask(whole).split("\n")
        return [self._mask(step) for step in steps]

    def _mask(self, text: str) -> str:
        return mask(text, self._foundation.redaction)

    def _mask_optional(self, text: str | None) -> str | None:
        return None if text is None else self._mask(text)


def _outcome_answer(
    solution_id: str, place: checks.Place, answer: Mapping[str, Any], *, worked: bool
) -> OutcomeRecorded:
    before, after = answer["before"], answer["after"]
    return OutcomeRecorded(
        ok=True,
        outcome_id=answer["outcome_id"],
        solution_id=solution_id,
        env_bucket=place.environment.bucket,
        counted=answer["counted"],
        stats=SolutionStats(**after["stats"]),
        effect={
            "reliability_before": before["stats"]["reliability_score"],
            "reliability_after": after["stats"]["reliability_score"],
            "rank_before": before["rank"],
            "rank_after": after["rank"],
            "of": after["of"],
        },
        next_action=actions.after_outcome(worked=worked, retired=answer.get("retired", False)),
        note=_join_notes(place.note, answer.get("note")),
    )


def _join_notes(*notes: str | None) -> str | None:
    return " ".join(each for each in notes if each) or None


def _note_on_standing(records: IncidentRecords, tried: Solution, stands: Solution) -> str | None:
    """Note that a reported fix was retired or merged."""
    notes = []
    if tried.solution_id != stands.solution_id:
        notes.append(
            f"{tried.solution_id} was merged into {stands.solution_id}: the evidence and "
            "the figures are those of both."
        )
    notes += [
        f"{record_id} was retired ({reason}): the outcome is kept, but the fix is not recommended."
        for record_id, reason in _find_retired(records, stands).items()
    ]
    return " ".join(notes) or None


def _find_retired(records: IncidentRecords, solution: Solution) -> dict[str, str]:
    """Return which of a fix and its incident were retired, and why."""
    incident_id = records.resolve_incident(solution.incident_id)
    contents = {
        solution.solution_id: records.content(kinds.SOLUTIONS, solution.solution_id),
        incident_id: records.incident(incident_id),
    }
    return {
        record_id: content["retired"]["reason"]
        for record_id, content in contents.items()
        if "retired" in content
    }


def refuse_retired(records: IncidentRecords, incident_id: str, key: str) -> None:
    """Refuse a fix that could never be recommended, or that somebody has withdrawn.

    Raises:
        RecordRetired: The incident was retired, or a fix of it with the same steps.
    """
    incident = records.incident(incident_id)
    if "retired" in incident:
        reason = incident["retired"]["reason"]
        raise RecordRetired(
            f"The incident {incident_id!r} was retired: {reason}",
            field="incident_id",
            record_id=incident_id,
            reason=reason,
        )
    for each in records.every_solution(incident_id):
        if each.retired and each.steps_key == key:
            reason = records.content(kinds.SOLUTIONS, each.solution_id)["retired"]["reason"]
            raise RecordRetired(
                f"These steps are those of {each.solution_id!r}, which was retired: {reason}",
                field="steps",
                record_id=each.solution_id,
                reason=reason,
            )


def _stand_for_merged(
    records: IncidentRecords, matches: Sequence[SimilarIncident]
) -> list[SimilarIncident]:
    """Return incidents with those that were merged away replaced, each once, in their order."""
    found: dict[str, SimilarIncident] = {}
    for match in matches:
        stands = match
        if "merged_into" in match.content:
            incident_id = records.resolve_incident(match.incident_id)
            content = records.incident(incident_id)
            if "retired" in content:
                continue
            stands = replace(match, incident_id=incident_id, content=content)
        known = found.get(stands.incident_id)
        if known is None or stands.relevance > known.relevance:
            found[stands.incident_id] = stands
    return list(found.values())


def rank_solutions(
    records: IncidentRecords,
    likely: Sequence[SimilarIncident],
    solutions: Mapping[str, Sequence[Solution]],
    caller: Environment,
    now: int,
) -> list[RankedSolution]:
    """Return the fixes of the incidents that are likely the problem at hand, best first."""
    candidates = [
        candidate
        for match in likely
        for candidate in _group_solutions(records, match, solutions[match.incident_id])
    ]
    priors = {
        match.incident_id: records.prior(match.incident_id)
        for match in likely
        if solutions[match.incident_id]
    }
    return ranking.rank(candidates, caller, now, priors=priors)


def _group_solutions(
    records: IncidentRecords, match: SimilarIncident, solutions: Sequence[Solution]
) -> list[SolutionGroup]:
    """Return the fixes of an incident, those with the same steps as one."""
    groups: dict[str, list[Solution]] = {}
    for solution in solutions:
        groups.setdefault(solution.steps_key, []).append(solution)
    return [
        SolutionGroup(
            match.content["title"],
            match.relevance,
            tuple(group),
            tuple(records.outcomes(group)),
            _describe_fit(match),
        )
        for group in groups.values()
    ]


def _incident_match(match: SimilarIncident, solutions: Sequence[Solution]) -> IncidentMatch:
    found = match.comparison
    return IncidentMatch(
        incident_id=match.incident_id,
        title=match.content["title"],
        relevance=round(match.relevance, 4),
        exact=match.exact,
        solutions=len({solution.steps_key for solution in solutions}),
        summary=(match.content.get("summary") or "")[:300] or None,
        agreed=list(found.shared_words[:_WORDS_MAX]),
        asked_only=list(match.asked_only[:_WORDS_MAX]),
        known_only=list(match.known_only[:_WORDS_MAX]),
    )


def _promise(answer: RankedSolutions) -> dict[str, float]:
    """Return the predicted success of the recommended fix, which statistics use."""
    best = answer.recommended_solution
    if best is None:
        return {}
    return {"promised": round(best.relevance * best.reliability_score, 4)}


def _describe_fit(match: SimilarIncident) -> str:
    """Describe how an incident matches the query, and by which words."""
    if match.exact:
        same = "The same error signature" if match.relevance >= 1 else "The same error message"
        return same + _say_hosts(match)
    words = _say_words(match)
    chance = "Probably" if match.relevance >= _PROBABLE else "Perhaps"
    return f"{chance} the same problem ({match.relevance:.2f}{words and f'; {words}'})"


def _say_hosts(match: SimilarIncident) -> str:
    """Say with which other servers the known problem was."""
    if not match.known_hosts:
        return ""
    known, asked = (", ".join(names) for names in (match.known_hosts, match.asked_hosts))
    return f", with another host (known: {known}; asked: {asked})"


def _note_on_lookup(
    matches: Sequence[SimilarIncident],
    likely: Sequence[SimilarIncident],
    ranked: Sequence[RankedSolution],
) -> str | None:
    """Warn of what is nearest but another problem, or of a fix that has only failed."""
    if not likely:
        return _name_nearest(matches[0]) if matches else None
    if not ranked or not ranking.has_only_failed(ranked[0]):
        return _note_on_failed_fixes(likely[0], ranked)
    best = ranked[0]
    if ranking.has_only_failed_here(best):
        is_nearest = best.env_match_score >= 1 or best.here == best.nearest_bucket
        place = best.best_env_bucket_match if is_nearest else "environments like yours"
        failed = (best.nearest_bucket if is_nearest else best.here)["failed"]
        return (
            f"In {place} the recommended fix has only failed ({plural(failed, 'attempt')}). "
            "Try it only if something has changed since."
        )
    return (
        "The recommended fix has only failed wherever it was tried "
        f"({plural(best.overall['failed'], 'attempt')}). Try it only if your environment makes a "
        "difference."
    )


def _note_on_failed_fixes(match: SimilarIncident, ranked: Sequence[RankedSolution]) -> str | None:
    """Say that the fixes of the very error have failed, where that of another is recommended."""
    own = [each for each in ranked if each.incident_id == match.incident_id]
    is_known = match.exact and own and ranked[0] not in own
    if not is_known or not all(map(ranking.has_only_failed, own)):
        return None
    return (
        f"This error is known as {match.incident_id} ({match.content['title']!r}), but nothing "
        "that was tried for it has worked here. The recommended fix is for another incident."
    )


def _name_nearest(match: SimilarIncident) -> str | None:
    """Say what the nearest incident is, and why its fixes are not recommended.

    None if it is not near: unlikely, and less than half of either is in the other.
    """
    found = match.comparison
    lacking = max(len(found.asked_only), len(found.known_only))
    if match.relevance < LISTED_MIN and lacking >= len(found.shared_words):
        return None
    words = _say_words(match)
    return (
        f"Nearest, but probably another problem: {match.incident_id} ({match.content['title']!r}), "
        f"relevance {match.relevance:.2f}{words and f'; {words}'}."
    )


def _say_words(match: SimilarIncident) -> str:
    found = match.comparison
    said = (
        ("both say", found.shared_words),
        ("only asked", match.asked_only),
        ("only known", match.known_only),
    )
    return "; ".join(f"{what}: {', '.join(words[:_WORDS_SAID])}" for what, words in said if words)


def _next_action(
    likely: Sequence[SimilarIncident], ranked: Sequence[RankedSolution], *, writes: bool
) -> NextAction:
    if not likely:
        return actions.no_match(writes=writes)
    if not ranked:
        return actions.no_solutions(writes=writes)
    if ranking.has_only_failed(ranked[0]):
        return actions.only_failed(writes=writes)
    return actions.try_solution(writes=writes)


def _measure_standing(
    records: IncidentRecords, solution: Solution, caller: Environment, now: int
) -> dict[str, Any]:
    """Return where a fix stands among those of its incident, and its evidence."""
    incident = records.incident(records.resolve_incident(solution.incident_id))
    match = SimilarIncident(solution.incident_id, incident, ProblemComparison(1.0), exact=True)
    prior = records.prior(solution.incident_id)
    solution = replace(solution, incident_id=records.resolve_incident(solution.incident_id))
    candidates = _group_solutions(records, match, records.solutions(solution.incident_id))
    ranked = ranking.rank(candidates, caller, now, priors={solution.incident_id: prior})
    if "retired" in incident:
        ranked = []
    places = [
        place
        for place, each in enumerate(ranked, 1)
        if solution.solution_id in {each.solution_id, *each.variants}
    ]
    outcomes: list[Outcome] = records.outcomes(records.variants(solution))
    stats = ranking.stats(outcomes, caller, now, prior=prior)
    return {
        # What was retired stands nowhere.
        "rank": places[0] if places else None,
        "of": len(ranked),
        "stats": {name: getattr(stats, name) for name in SolutionStats.__slots__},
    }


def _find_same_signature(
    reader: Reader, view: View, content: Mapping[str, Any]
) -> dict[str, str] | None:
    error = content.get("error_signature") or ""
    problem = retrieval.Problem(error, "", content.get("fingerprint", ""), kept_headlines(content))
    exact = _stand_for_merged(
        IncidentRecords(reader, view), retrieval.find_exact(reader, view, problem)
    )
    if not exact:
        return None
    return {"incident_id": exact[0].incident_id, "title": exact[0].content["title"]}


def _incident_answer(
    answer: Mapping[str, Any], title: str, place: checks.Place, *, worked: bool
) -> IncidentAdded:
    return IncidentAdded(
        incident_id=answer["incident_id"],
        solution_id=answer["solution_id"],
        outcome_id=answer["outcome_id"],
        duplicate=False,
        next_action=actions.after_outcome(worked=worked),
        title=title,
        env_bucket=place.environment.bucket,
        similar_incident=answer["similar"],
        note=place.note,
    )


def _duplicate_answer(twin: Mapping[str, str]) -> IncidentAdded:
    return IncidentAdded(
        incident_id=twin["incident_id"],
        solution_id=None,
        outcome_id=None,
        duplicate=True,
        next_action=actions.duplicate_incident(),
        title=twin["title"],
        note="Nothing was written. Pass distinct=true if this is a different problem.",
    )
