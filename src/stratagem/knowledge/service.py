"""The knowledge system: concepts, how they relate, and how sure one can be of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from stratagem import limits
from stratagem.answers import plural
from stratagem.engine import moments
from stratagem.engine.lineage import OPEN_END
from stratagem.engine.records import FACET_MARK
from stratagem.errors import ValidationFailed
from stratagem.knowledge import checks, concept_lists, similarity_search, valid_time
from stratagem.knowledge.concept_lists import ConceptFilter
from stratagem.knowledge.context import write_context
from stratagem.knowledge.curation import Curation
from stratagem.knowledge.disputes import mark_disputes
from stratagem.knowledge.list_positions import ListPosition
from stratagem.knowledge.models import (
    Availability,
    ConceptGraph,
    ConceptHit,
    ConceptListed,
    ContextConcept,
    Hierarchy,
    KnowledgeContext,
    Pong,
    RecentConcept,
    Results,
    StoreStatistics,
)
from stratagem.knowledge.parameters import (
    Area,
    CertaintyBound,
    ConceptLimit,
    MinCertainty,
    RelatedLimit,
    Subtopic,
    Topic,
    ValidAt,
)
from stratagem.knowledge.picture import read_graph
from stratagem.knowledge.records import ConceptRecords
from stratagem.knowledge.services import TOOLS, WRITERS
from stratagem.knowledge.similarity_search import ConceptQuery, Found, Wanted
from stratagem.knowledge.spaces import CONCEPT, facet, fold_name
from stratagem.parameters import AsOf, BranchName, Cursor, Param
from stratagem.storage.contract import Store

__all__ = ["Knowledge", "make_pong"]

_LEVELS: Final = ("area", "topic", "subtopic")


class Knowledge(Curation):
    """Concepts, how they relate, and how sure one can be of each, for one caller."""

    def ping(self) -> Pong:
        """Say that the server is there."""
        return make_pong(self._store.now())

    def get_server_stats(self) -> StoreStatistics:
        """Return figures of the event store and of the outbox."""
        with self._store.snapshot() as reader:
            events = {
                "total_events": reader.log.head().sequence,
                "concept_events": reader.catalogue.version_count(CONCEPT),
            }
        outbox, troubles = self._services.outbox(), self._services.troubles()
        if outbox["failed"]:
            note = "`stratagem outbox status` shows why, `stratagem outbox retry` sends them again."
            return StoreStatistics(events, outbox, "error", note)
        if troubles:
            told = "; ".join(f"{name}: {trouble}" for name, trouble in troubles.items())
            note = f"{told}. Writes wait in the outbox; get_tool_availability shows what works."
            return StoreStatistics(events, outbox, "degraded", note)
        return StoreStatistics(events, outbox, "healthy")

    def get_graph(
        self,
        *,
        concept: Annotated[
            str | None, Param("Only what is near this one: id or name; default: all")
        ] = None,
        depth: Annotated[int, Param("Steps around it", ge=1, le=5, strict=True)] = 2,
        limit: Annotated[
            int, Param("Most concepts", ge=1, le=limits.PICTURE_CONCEPTS_MAX, strict=True)
        ] = limits.PICTURE_CONCEPTS_MAX,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> ConceptGraph:
        """Return concepts laid out for a picture: in layers, each after what it needs."""
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of)
            graph = read_graph(records, concept, depth=depth, nodes_max=limit)
        return ConceptGraph(
            graph["concepts"],
            graph["links"],
            graph["areas"],
            graph["layers"],
            graph["width"],
            graph["height"],
            graph["left_out"],
            f"{plural(len(graph['concepts']), 'concept')}, "
            f"{plural(len(graph['links']), 'relationship')}",
            graph["root"],
        )

    def get_tool_availability(self) -> Availability:
        """Return which tools can be used, and which services stand behind them."""
        missing = {tool for tool in TOOLS if self._services.missing_services(tool)}
        note = None
        if self._store.read_only or not self._caller.may("knowledge", "write"):
            missing |= WRITERS
            note = "Nothing can be written here: the server, or your token, is for reading only."
        return Availability(
            available=sorted(TOOLS.keys() - missing),
            unavailable=sorted(missing),
            total_tools=len(TOOLS),
            service_status=self._services.status_by_group(),
            implementations={
                name: service.implementation for name, service in self._services.status().items()
            },
            note=note,
        )

    def search_concepts_semantic(
        self,
        query: Annotated[
            str,
            Param(
                "What to find",
                quiet=True,
                advertised={"minLength": 1, "maxLength": limits.QUERY_CHARS_MAX},
            ),
        ],
        *,
        limit: Annotated[
            int, Param("Most results", ge=1, le=limits.SEARCH_K_MAX, strict=True, quiet=True)
        ] = limits.SEARCH_K_DEFAULT,
        min_certainty: MinCertainty = None,
        area: Area = None,
        topic: Topic = None,
        valid_at: ValidAt = None,
        include_superseded: Annotated[
            bool, Param("Include what was replaced; it comes last", strict=True)
        ] = False,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[ConceptHit]:
        """Find concepts by what they mean and by their words, the most similar first.

        What has next to nothing to do with the query is not found. What was superseded is left out
        unless asked for, and counted; `valid_at` finds what held then.
        """
        self._services.require("search_concepts_semantic")
        text = checks.query(query)
        places = {"area": checks.level(area, "area"), "topic": checks.level(topic, "topic")}
        tags = [FACET_MARK + facet(level, name) for level, name in places.items() if name]
        page = ListPosition.at(cursor, limit)
        at = self._valid_moment(valid_at)
        narrowed = tags or min_certainty or at is not None
        with self._foundation.index.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            wanted = Wanted(at is not None, min_certainty, include_superseded)
            found = similarity_search.find_similar(
                self._foundation.index,
                records,
                ConceptQuery(text, tags, self._services.nearest(reader, records.view, tags)),
                wanted,
                page.read,
            )
            levels = {level: name for level, name in places.items() if name}
            advice = (
                None if found.concepts else _advise(records, text, levels, filtered=bool(narrowed))
            )
        message = "Found" if found.concepts else "Nothing found"
        answer = page.results(found.concepts, page.cut(found.hits), message)
        answer.mode = "lexical" if found.ranking.mode == "lexical" else None
        notes = [_search_note(found, self._store, "include_superseded"), advice]
        answer.note = " ".join(note for note in notes if note) or None
        return answer

    def get_context(
        self,
        query: Annotated[str, Param("A question or a topic", advertised={"minLength": 1})],
        *,
        max_chars: Annotated[
            int,
            Param(
                "Length of the text",
                ge=limits.CONTEXT_CHARS_MIN,
                le=limits.ANSWER_CHARS_MAX,
                strict=True,
            ),
        ] = limits.CONTEXT_CHARS_DEFAULT,
        area: Area = None,
        topic: Topic = None,
        valid_at: ValidAt = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> KnowledgeContext:
        """Return what is known about a question as one text that fits into a prompt.

        It has the concepts that answer best, what they mean, what speaks against them and how they
        relate to others. What was superseded, and what did not hold then, is left out.
        """
        text = checks.query(query)
        places = {"area": checks.level(area, "area"), "topic": checks.level(topic, "topic")}
        tags = [FACET_MARK + facet(level, name) for level, name in places.items() if name]
        at = self._valid_moment(valid_at)
        with self._foundation.index.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            found = similarity_search.find_similar(
                self._foundation.index,
                records,
                ConceptQuery(text, tags),
                Wanted(held=True),
                limits.SEARCH_K_DEFAULT,
            )
            written = write_context(records, found.concepts, max_chars)
        shown = [
            ContextConcept(each.concept_id, each.name, each.similarity, each.certainty_score)
            for each in found.hits[: written.concepts]
        ]
        note = _search_note(found, self._store, "search_concepts_semantic with include_superseded")
        if not found.concepts:
            return KnowledgeContext("", [], "Nothing is known about this", note=note)
        left = len(found.concepts) - written.concepts
        message = f"{plural(len(shown), 'concept')} in {len(written.text):,} characters"
        return KnowledgeContext(written.text, shown, message, left_out=left or None, note=note)

    def search_concepts_exact(
        self,
        *,
        name: Annotated[str | None, Param("Part of the name, any case")] = None,
        area: Area = None,
        topic: Topic = None,
        subtopic: Subtopic = None,
        min_certainty: MinCertainty = None,
        valid_at: ValidAt = None,
        limit: ConceptLimit = limits.CONCEPTS_DEFAULT,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[ConceptListed]:
        """Find concepts by a part of their name and by where they belong, newest first."""
        self._services.require("search_concepts_exact")
        at = self._valid_moment(valid_at)
        wanted = ConceptFilter(
            checks.part(name),
            checks.level(area, "area"),
            checks.level(topic, "topic"),
            checks.level(subtopic, "subtopic"),
            min_certainty,
            at,
        )
        page = ListPosition.at(cursor, limit)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            found = concept_lists.find_matching(records, wanted, page.read)
            kept = [concept_lists.to_list_item(*each) for each in page.cut(found)]
            mark_disputes(records, kept)
            narrowed = wanted.places or min_certainty or at is not None
            advice = (
                None if found else _advise(records, name, wanted.places, filtered=bool(narrowed))
            )
        answer = page.results(found, kept, f"Found {len(kept)} concepts matching criteria")
        answer.note = advice
        return answer

    def get_recent_concepts(
        self,
        *,
        limit: RelatedLimit = limits.CONCEPTS_DEFAULT,
        valid_at: ValidAt = None,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[RecentConcept]:
        """Return the concepts that were created last, newest first."""
        self._services.require("get_recent_concepts")
        page = ListPosition.at(cursor, limit)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            found = concept_lists.newest(records, page.read, at)
            kept = [
                RecentConcept(
                    each.id,
                    each.name,
                    each.content.get("area"),
                    each.content.get("topic"),
                    moments.iso(each.content["created_at"]),
                    **valid_time.render_period(each.content),
                )
                for each in page.cut(found)
            ]
            mark_disputes(records, kept)
        answer = page.results(found, kept, "Found" if found else "Nothing found")
        answer.note = None if found else _advise(records, None, {}, filtered=at is not None)
        return answer

    def list_hierarchy(
        self, *, valid_at: ValidAt = None, branch: BranchName = None, as_of: AsOf = None
    ) -> Hierarchy:
        """Return how many concepts each area, topic and subtopic has, by name.

        The counts of the present are kept until anything is written, by whomever. With `valid_at`
        concepts that held then are counted.
        """
        self._services.require("list_hierarchy")
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            if at is not None or records.view.limit != OPEN_END:
                return concept_lists.hierarchy(concept_lists.counts(records, at))
            counted = self._foundation.cache.get(
                ("hierarchy", records.view.lineage),
                reader.log.head().sequence,
                lambda: concept_lists.counts(records),
            )
        return concept_lists.hierarchy(counted)

    def get_concepts_by_certainty(
        self,
        *,
        min_certainty: CertaintyBound = 0,
        max_certainty: CertaintyBound = 100,
        limit: RelatedLimit = limits.CONCEPTS_DEFAULT,
        valid_at: ValidAt = None,
        cursor: Cursor = None,
        branch: BranchName = None,
        as_of: AsOf = None,
    ) -> Results[ConceptListed]:
        """Return the concepts in a range of certainty, the least certain first."""
        self._services.require("get_concepts_by_certainty")
        low, high = min_certainty, max_certainty
        if low > high:
            raise ValidationFailed(
                f"`min_certainty` {low:g} is above `max_certainty` {high:g}.",
                field="min_certainty",
                invalid_value=low,
                hint="Swap the two values.",
            )
        page = ListPosition.at(cursor, limit)
        at = self._valid_moment(valid_at)
        with self._store.snapshot() as reader:
            records = self._records(reader, branch, as_of, at)
            found = concept_lists.by_certainty(records, (low, high), page.read, at)
            kept = [concept_lists.to_list_item(*each) for each in page.cut(found)]
            mark_disputes(records, kept)
        message = f"Found {len(kept)} concepts with certainty between {low:g} and {high:g}"
        return page.results(found, kept, message)


def _advise(
    records: ConceptRecords, wanted: str | None, places: Mapping[str, str], *, filtered: bool
) -> str:
    """Say what to try where a search found nothing: other filters, similar names, other words."""
    is_name = wanted is not None and len(wanted) <= limits.CONCEPT_NAME_CHARS_MAX
    similar = records.similar_names(wanted) if wanted and is_name else []
    advice = _advise_case(records, places)
    if filtered:
        advice.append("Leave out a filter to search more widely.")
    if similar:
        advice.append(f"Names like it: {', '.join(map(repr, similar))}.")
    elif wanted:
        advice.append("Try other words, or a shorter part of the name with search_concepts_exact.")
    return " ".join(advice) or "create_concept adds a concept."


def _advise_case(records: ConceptRecords, places: Mapping[str, str]) -> list[str]:
    """Say which names of areas, topics and subtopics differ from the wanted ones in case alone."""
    if not places or records.view.limit != OPEN_END:
        return []
    counted = concept_lists.counts(records)
    advice = []
    for level, name in places.items():
        names = {place[_LEVELS.index(level)] for place, _count in counted}
        alike = sorted(each for each in names if fold_name(each) == fold_name(name))
        if alike and name not in names:
            known = " and ".join(map(repr, alike))
            advice.append(f"The {level} is written {known}.")
    return advice


def make_pong(now: int) -> Pong:
    """Say at a time that the server is there."""
    return Pong("ok", "MCP Knowledge Server is running", "knowledge-server", moments.iso(now))


def _search_note(found: Found, store: Store, what_shows_all: str) -> str | None:
    notes = []
    if found.replaced:
        notes.append(f"Superseded and left out: {found.replaced}; {what_shows_all} shows them.")
    notes += found.ranking.say_waiting(store)
    return " ".join(notes) or None
