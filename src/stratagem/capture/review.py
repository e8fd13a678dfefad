"""Review of captured memory: listing it, and deciding about it.

Logged events never change, so a decision is a record of its own, under the id that the event was
captured with: branches merge it like any other. A pinned or corrected item becomes an entry; a
discarded one is no longer found by searches, but stays in the log. Keeping, pinning and correcting
state that somebody has read a text and trusts it, so they need a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.capture.kinds import (
    DRAFT_ENDED,
    DRAFTS,
    FACET_DRAFT,
    FACET_ORPHAN,
    ORPHAN_SETTLED,
    ORPHANS,
)
from stratagem.capture.models import (
    CapturedItem,
    Decision,
    ReviewDecided,
    ReviewDecision,
    ReviewList,
)
from stratagem.debugging.automation import is_recorded
from stratagem.debugging.service import Debugging
from stratagem.engine import moments, values
from stratagem.engine.events import Draft
from stratagem.engine.lineage import OPEN_END, View
from stratagem.errors import MissingRequired, ValidationFailed
from stratagem.memory.kinds import (
    ENTRY_STORED,
    FACET_CAPTURED,
    PINNED,
    REVIEWED,
    REVIEWS,
    TRUST,
    capture_facet,
    entries,
)
from stratagem.memory.messages import words_of
from stratagem.memory.service import Memory
from stratagem.parameters import COUNT_ALIASES, BranchName, Cursor, Param, RequestId
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import EventContent, Reader, Transaction
from stratagem.storage.views import find_branch

__all__ = ["Review"]

_TEXT_CHARS: Final = 600
_READ_AT_ONCE: Final = 100
# What can be decided about each kind.
_TAKES: Final[Mapping[str, Sequence[str]]] = {
    "captured": ("keep", "pin", "correct", "discard"),
    "draft": ("keep", "correct", "discard"),
    "branch": ("keep", "discard"),
}
_SourceName = Literal["user", "assistant", "tool", "web", "import", "remote"]

Ids = Annotated[Sequence[str], Param("From review_list", plural="id", aliases=("items",))]


class Review(BoundSystem):
    """Captured memory, and what is decided about it."""

    def list(
        self,
        kind: Annotated[
            Literal["captured", "draft", "branch"] | None, Param("Only things of this kind")
        ] = None,
        *,
        source: Annotated[_SourceName | None, Param("Only from there")] = None,
        session: Annotated[str | None, Param("Only of this session")] = None,
        decided: Annotated[bool, Param("Include what was reviewed already")] = False,
        limit: Annotated[
            int, Param("Results", ge=1, le=limits.LIST_PAGE_MAX, aliases=COUNT_ALIASES)
        ] = limits.LIST_PAGE_DEFAULT,
        cursor: Cursor = None,
        branch: BranchName = None,
    ) -> ReviewList:
        """List what came in by itself and was not decided about yet, newest first."""
        before = read_cursor(cursor, start=OPEN_END)
        found: list[CapturedItem] = []
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch)
            for item in self._items(reader, view, before, kind):
                if source not in {None, item.source} or session not in {None, item.session}:
                    continue
                if item.decision is None or decided:
                    found.append(item)
                if len(found) > limit:
                    break
        more = len(found) > limit
        page = found[:limit]
        return ReviewList(page, more, str(page[-1].version) if more else None)

    def decide(
        self,
        ids: Ids,
        decision: Annotated[
            Decision,
            Param(
                "keep: trust it. pin: every session sees it. correct: with `text`. discard: hide"
            ),
        ],
        *,
        text: Annotated[
            str | None, Param("correct: what it should say; of a draft, one step a line")
        ] = None,
        key: Annotated[str | None, Param("pin, correct: the entry's key")] = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> ReviewDecided:
        """Decide about things that came in."""
        wanted = list(dict.fromkeys(ids))
        _check(wanted, decision, text, key)
        name = branch or self._caller.branch
        with self._store.snapshot() as reader:
            view = self._views.view(reader, name)
            items = [self._find(reader, view, each) for each in wanted]
        for item in items:
            if decision not in _TAKES[item.kind]:
                raise ValidationFailed(
                    f"{item.id!r} is a {item.kind}, which does not take the decision {decision!r}.",
                    field="decision",
                    allowed=list(_TAKES[item.kind]),
                )
        added = {
            item.id: self._settle_draft(item, decision, text, name)
            for item in items
            if item.kind == "draft"
        }
        for item in items:
            if item.kind == "branch":
                self._settle_branch(item, decision, name)

        def work(transaction: Transaction) -> dict[str, str | None]:
            target = find_branch(transaction.branches, name)
            kept: dict[str, str | None] = {}
            for item in items:
                written, kept[item.id] = self._drafts_of(item, decision, text, key)
                transaction.append(target, written)
            return kept

        arguments = {"ids": wanted, "decision": decision, "text": text, "key": key, "branch": name}
        keys = self._foundation.write(
            self._caller, work, request_id=request_id, operation="review", arguments=arguments
        )
        return ReviewDecided(
            [
                added.get(item.id) or ReviewDecision(item.id, decision, keys[item.id])
                for item in items
            ]
        )

    def _items(
        self, reader: Reader, view: View, before: int, kind: str | None
    ) -> Iterator[CapturedItem]:
        """Yield what came in, newest first."""
        facets = {"captured": FACET_CAPTURED, "draft": FACET_DRAFT, "branch": FACET_ORPHAN}
        wanted = [facet for name, facet in facets.items() if kind in {None, name}]
        while True:
            newest = sorted(
                {
                    sequence
                    for facet in wanted
                    for sequence in reader.catalogue.with_facet(
                        view, facet, limit=_READ_AT_ONCE, before=before
                    )
                },
                reverse=True,
            )[:_READ_AT_ONCE]
            if not newest:
                return
            events = reader.log.contents(newest)
            for sequence in newest:
                yield _item(reader, view, events[sequence])
            before = newest[-1]

    def _find(self, reader: Reader, view: View, item_id: str) -> CapturedItem:
        values.check_text(item_id, field="ids", chars_max=limits.KEY_CHARS_MAX)
        found = reader.catalogue.with_facet(view, capture_facet(item_id), limit=1)
        spaces = () if found else (DRAFTS, ORPHANS)
        kept = (reader.records.current(view.lineage, space, item_id) for space in spaces)
        version = next((each for each in kept if each is not None), None)
        if not found and version is None:
            raise ValidationFailed(
                f"Nothing that waits for review has the id {item_id!r}.",
                field="ids",
                hint="review_list shows the ids.",
            )
        sequence = found[0] if found else version.sequence  # type: ignore[union-attr]
        return _item(reader, view, reader.log.contents([sequence])[sequence])

    def _settle_draft(
        self, item: CapturedItem, decision: Decision, text: str | None, branch: str
    ) -> ReviewDecision:
        """Add what a draft suggests to debug memory, where it is kept."""
        if decision == "discard":
            return ReviewDecision(item.id, decision)
        steps = text.splitlines() if text else item.steps or []
        debugging = Debugging(self._foundation, self._caller)
        request = f"review/{item.id}"
        added = debugging.add_incident(
            item.text,
            steps,
            "auto",
            worked=True,
            error_signature=item.error,
            branch=branch,
            request_id=request,
        )
        solution_id = added.solution_id
        if added.duplicate:
            solution_id = debugging.add_solution(
                added.incident_id, steps, "auto", branch=branch, request_id=f"{request}/fix"
            ).solution_id
        return ReviewDecision(
            item.id, decision, incident_id=added.incident_id, solution_id=solution_id
        )

    def _settle_branch(self, item: CapturedItem, decision: Decision, target: str) -> None:
        """Merge the memory of a git branch that is gone, or delete it; that can be undone."""
        memory = Memory(self._foundation, self._caller)
        source = item.id.removeprefix("branch:")
        if decision == "keep":
            memory.merge(source, branch=target)
        memory.delete(source)

    def _drafts_of(
        self, item: CapturedItem, decision: Decision, text: str | None, key: str | None
    ) -> tuple[Sequence[Draft], str | None]:
        """Return the events that record a decision, and the key of the entry that comes of it."""
        if item.kind == "branch":
            return [Draft(ORPHAN_SETTLED, {"decision": decision}, ORPHANS, item.id)], None
        if item.kind == "draft":
            return [Draft(DRAFT_ENDED, {"decision": decision}, DRAFTS, item.id)], None
        decided = Draft(REVIEWED, {"decision": decision}, REVIEWS, item.id)
        wanted = decision in {"pin", "correct"} or (decision == "keep" and item.trust is not None)
        if not wanted:
            return [decided], None
        name = key or f"reviewed/{item.id}"
        content: dict[str, Any] = {"value": text if decision == "correct" else item.text}
        if decision == "pin":
            content["tags"] = [PINNED]
        if item.source is not None:
            content["source"] = "user" if decision == "correct" else item.source
        entry = Draft(ENTRY_STORED, content, entries(self._caller.namespace), name)
        return [decided, entry], name


def _item(reader: Reader, view: View, event: EventContent) -> CapturedItem:
    content = orjson.loads(event.payload)
    if event.space == DRAFTS:
        error = content.get("error") or ""
        # Kept, it would add a second fix that says the same.
        recorded = error and is_recorded(reader, view, error, since=content["at"])
        return CapturedItem(
            content["draft_id"],
            "draft",
            content["title"],
            moments.iso(event.at),
            event.sequence,
            command=content.get("command"),
            error=content.get("error"),
            steps=content["steps"],
            decision="recorded" if recorded else None,
        )
    if event.space == ORPHANS:
        return CapturedItem(
            f"branch:{content['branch']}",
            "branch",
            f"The git branch {content['branch']} is gone, and its commits are not in "
            "the branch that is checked out: it was squashed or abandoned. Keep it "
            "to merge its memory.",
            moments.iso(event.at),
            event.sequence,
        )
    data = content.get("data", content.get("value"))
    decided = reader.records.current(view.lineage, REVIEWS, content["capture"])
    return CapturedItem(
        content["capture"],
        "captured",
        _text_of_data(data)[:_TEXT_CHARS],
        moments.iso(event.at),
        event.sequence,
        content.get("source"),
        content.get(TRUST),
        content.get("session"),
        content.get("event"),
        decision=orjson.loads(decided.payload or b"{}").get("decision") if decided else None,
    )


def _text_of_data(data: Any) -> str:
    """Return what was said, or what a tool was asked and answered."""
    if said := words_of(data):
        return said
    if isinstance(data, dict) and "tool" in data:
        return f"{data['tool']} {data.get('input', '')}\n{data.get('output', '')}".strip()
    return values.text_of(data)


def _check(ids: Sequence[str], decision: str, text: str | None, key: str | None) -> None:
    if not ids:
        raise MissingRequired("Give the ids of what to review.", field="ids")
    if len(ids) > limits.KEYS_MAX:
        raise ValidationFailed(
            f"At most {limits.KEYS_MAX} can be reviewed at once.",
            field="ids",
            limit=limits.KEYS_MAX,
        )
    if decision == "correct" and not (text or "").strip():
        raise MissingRequired("A correction needs `text`: what it should say.", field="text")
    if text is not None and decision != "correct":
        raise ValidationFailed("Only the decision correct takes a `text`.", field="text")
    if key is not None and (len(ids) > 1 or decision not in {"pin", "correct"}):
        raise ValidationFailed("`key` is for one item that is pinned or corrected.", field="key")
    if key is not None:
        values.check_text(key, field="key", chars_max=limits.KEY_CHARS_MAX)
    if text is not None:
        values.encode(text, field="text")
