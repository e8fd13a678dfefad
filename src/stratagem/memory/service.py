"""The memory system: what an agent stores, recalls, searches, forgets, logs and branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, overload

from stratagem import limits
from stratagem.answers import (
    LISTS_INSTRUCTIONS,
    NOTHING_MATCHES,
    read_cursor,
    say_absent,
    say_end,
)
from stratagem.deferred_modules import defer
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments, values
from stratagem.engine.events import Draft
from stratagem.engine.lineage import OPEN_END, View, is_transaction
from stratagem.errors import InvalidInput, MissingRequired, ValidationFailed
from stratagem.memory.branch_operations import BranchOperations
from stratagem.memory.entries import (
    TTL_ALIASES,
    VALUE_ALIASES,
    Entries,
    Item,
    check_names,
    check_tags,
)
from stratagem.memory.kinds import ENTRY, EVENT, EVENT_LOGGED, entries, logged_events
from stratagem.memory.listing import Listings, live_namespaces
from stratagem.memory.misses import Misses, explain_several
from stratagem.memory.models import (
    Branches,
    BranchInfo,
    Diff,
    Entry,
    Forgotten,
    History,
    Hit,
    Instruction,
    Logged,
    MergeResult,
    Purged,
    SearchResults,
    Status,
    Stored,
    StoredMany,
    TimeRange,
)
from stratagem.memory.namespaces import Namespaces
from stratagem.memory.overviews import Overviews
from stratagem.memory.parameters import (
    KEY_ALIASES,
    PATH_ALIASES,
    Decisions,
    ErasedKey,
    ErasedSequence,
    Key,
    Keys,
    MergeStrategy,
    Path,
    Session,
    Tags,
    require_one,
)
from stratagem.memory.search_notes import (
    SearchedPart,
    asks_for_fix,
    asks_for_instructions,
    asks_for_own_instructions,
    explain_nothing,
    find_period,
    has_word,
    say_earlier,
    say_found_without,
    say_kinds_that_match,
    say_no_match,
    say_on_branch,
    say_period,
)
from stratagem.memory.standing import STANDING
from stratagem.parameters import (
    COUNT_ALIASES,
    MISSING,
    AsOf,
    BranchName,
    Cursor,
    Namespace,
    Param,
    RequestId,
)
from stratagem.projects import is_address
from stratagem.search import place_order
from stratagem.search.index import Ranking
from stratagem.search.record_finders import FinderQuery, FoundByName
from stratagem.storage.clock_watch import clock_gap
from stratagem.storage.contract import Reader, RecordReader, Transaction
from stratagem.storage.views import find_branch, is_another

if TYPE_CHECKING:
    from stratagem.memory import hidden_answers, hits, near_words
else:
    hidden_answers = defer("stratagem.memory.hidden_answers")
    hits = defer("stratagem.memory.hits")
    near_words = defer("stratagem.memory.near_words")

__all__ = ["Memory"]

BranchAnswer = BranchInfo | Branches | Diff | MergeResult
Action = Literal["create", "switch", "list", "fork", "merge", "diff", "delete", "restore"]

# A list of tools has no room for the other options of an item.
_ITEMS: Final = {
    "items": {
        "type": "object",
        "properties": {"key": {"type": "string"}, "value": {}},
        "required": ["key", "value"],
    }
}
_Items = Annotated[
    Sequence[Item] | None,
    Param(
        "Several at once",
        aliases=("entries", "memories"),
        advertised=_ITEMS,
        time="items",
    ),
]
_Ttl = Annotated[
    str | float | None,
    Param("Expires after: 7d, 12h, seconds", strict=True, aliases=TTL_ALIASES, time="duration"),
]
_SearchedKinds = Annotated[
    Sequence[str] | None,
    Param("Of entry, event, concept, incident", plural="kind", quiet=True, aliases=("primitives",)),
]
_SearchMode = Annotated[
    Literal["hybrid", "lexical"] | None,
    Param("lexical: words alone", quiet=True, unlisted=True),
]
_QUERY_ALIASES: Final = (
    "q",
    "text",
    "search",
    "search_query",
    "search_term",
    "question",
    "keywords",
)
_EVENT_ALIASES: Final = ("type", "event_type", "event_name", "label", "kind", "name")
_DATA_ALIASES: Final = ("content", "message", "value", "text", "payload", "details")
_SOURCE_ALIASES: Final = ("from", "from_branch", "source_branch")
_TARGET_ALIASES: Final = ("into", "into_branch", "target", "target_branch")
_COMPARE_ALIASES: Final = ("with", "compare_with", "compare_to", "other", "against")

# A status is a short overview; it lists no more names than this.
_NAMESPACES_SHOWN: Final = 100
# What the first server called the kinds of what it stored.
_PRIMITIVES: Final = {"kv": ENTRY, "json": ENTRY, "events": EVENT}
# What each action of `branch` takes.
_PARAMETERS: Final[dict[str, frozenset[str]]] = {
    "create": frozenset({"name", "request_id"}),
    "switch": frozenset({"name"}),
    "list": frozenset(),
    "fork": frozenset({"name", "branch", "as_of", "request_id"}),
    "merge": frozenset({"source", "branch", "strategy", "preview", "decisions", "request_id"}),
    "diff": frozenset({"compare", "branch", "as_of"}),
    "delete": frozenset({"name", "request_id"}),
    "restore": frozenset({"name", "source", "as_of", "request_id"}),
}


class Memory(Entries, BranchOperations, Listings, Misses, Namespaces, Overviews):
    """The operations of memory for one caller."""

    @overload
    def store(
        self,
        key: str,
        value: Any,
        *,
        tags: Sequence[str] | None = None,
        namespace: str | None = None,
        branch: str | None = None,
        ttl: str | float | None = None,
        expected_version: int | None = None,
        path: str | None = None,
        session: str | None = None,
        index: bool = True,
        request_id: str | None = None,
    ) -> Stored: ...

    @overload
    def store(
        self,
        *,
        items: Sequence[Item],
        namespace: str | None = None,
        branch: str | None = None,
        request_id: str | None = None,
    ) -> StoredMany: ...

    def store(
        self,
        key: Annotated[str | None, Param("Such as user/city", aliases=KEY_ALIASES)] = None,
        value: Annotated[Any, Param("Any JSON, not as text", aliases=VALUE_ALIASES)] = MISSING,
        *,
        tags: Tags = None,
        namespace: Namespace = None,
        items: _Items = None,
        branch: BranchName = None,
        ttl: _Ttl = None,
        expected_version: Annotated[
            int | None, Param("Only if at this version; 0: only if new")
        ] = None,
        path: Annotated[
            str | None, Param("Change one place: JSONPath, $.a.b[0]", aliases=PATH_ALIASES)
        ] = None,
        session: Session = None,
        index: Annotated[bool, Param("false: not searchable (counters)")] = True,
        request_id: RequestId = None,
    ) -> Stored | StoredMany:
        """Remember a value under a key, or several at once.

        A store replaces the entry whole, tags included; with `path`, one place of its value,
        keeping the rest. `items` are written together, all of them or none.

        Raises:
            VersionConflict: The entry is not at `expected_version` (0: not there).
        """
        options = {
            "tags": tags,
            "namespace": namespace,
            "ttl": ttl,
            "expected_version": expected_version,
            "path": path,
            "session": session,
            "index": index,
        }
        shared = {name: option for name, option in options.items() if option is not None}
        if index:
            del shared["index"]
        if items is not None:
            if key is not None or value is not MISSING:
                raise ValidationFailed(
                    "Give a key and a value, or items, not both.",
                    field="items",
                    hint="Leave `items` out, or `key` and `value`; nothing was written.",
                )
            return self._store_many(items, branch, request_id, shared)
        if key is None:
            raise MissingRequired(
                "A store needs a key and a value, or items.",
                field="key",
                hint="Add one or the other and call again.",
            )
        if value is MISSING:
            raise MissingRequired(f"There is no value to store under {key!r}.", field="value")
        item: Any = {**shared, "key": key, "value": value}
        return self._store_items([item], branch=branch, request_id=request_id, batch=False)[0]

    def _store_many(
        self,
        items: Sequence[Item],
        branch: str | None,
        request_id: str | None,
        shared: Mapping[str, Any],
    ) -> StoredMany:
        """Write several entries; options given beside them hold for each that has none."""
        if not all(type(item) is dict or isinstance(item, Mapping) for item in items):
            raise InvalidInput("Each item is an object with a key and a value.", field="items")
        full: Any = [{**shared, **item} for item in items] if shared else items
        stored = self._store_items(full, branch=branch, request_id=request_id)
        return StoredMany(stored, stored[-1].version, stored[-1].timestamp)

    def recall_many(
        self,
        keys: Keys,
        *,
        namespace: Namespace = None,
        as_of: AsOf = None,
        branch: BranchName = None,
        path: Path = None,
    ) -> list[Entry]:
        """Return what is stored under some keys, all of one moment, leaving out the misses."""
        if len(keys) > limits.KEYS_MAX:
            raise ValidationFailed(
                f"At most {limits.KEYS_MAX} keys can be recalled at once.",
                field="keys",
                limit=limits.KEYS_MAX,
            )
        with self._store.snapshot():
            found = [
                self.recall(key, namespace=namespace, as_of=as_of, branch=branch, path=path)
                for key in dict.fromkeys(keys)
            ]
        return [entry for entry in found if entry is not None]

    def search(
        self,
        query: Annotated[
            str, Param("What to find, in natural language", aliases=_QUERY_ALIASES, quiet=True)
        ],
        *,
        k: Annotated[
            int, Param("Results", ge=1, le=limits.SEARCH_K_MAX, aliases=COUNT_ALIASES)
        ] = limits.SEARCH_K_DEFAULT,
        tags: Tags = None,
        namespace: Annotated[str | None, Param("Only this one; default: all")] = None,
        branch: BranchName = None,
        as_of: AsOf = None,
        min_score: Annotated[
            float | None, Param("The least score a hit must have", ge=0, le=1, quiet=True)
        ] = None,
        cursor: Cursor = None,
        kinds: _SearchedKinds = None,
        mode: _SearchMode = None,
    ) -> SearchResults:
        """Find entries and logged events by words and by meaning, best first.

        `mode` "lexical" finds by words alone.
        `kinds` searches concepts and incidents too, or instead: one list, ordered by how well each
        answers by itself, ten entries and events at a time. What has next to nothing to do with the
        query is left out: `min_score` says how well a hit has to match by itself (`0`: at all).
        """
        _check_query(query)
        scope = _SearchScope(
            query,
            check_tags(tags or ()),
            namespace,
            branch or self._caller.branch,
            as_of,
            min_score,
            mode == "lexical",
        )
        skip = read_cursor(cursor, most=limits.SEARCH_OFFSET_MAX)
        own, others = self._read_kinds(kinds)
        if others and not own:
            self._check_filters(scope, others)
        # All pages before this one are needed to put the lists together.
        found = self._find_elsewhere(scope, others, skip + k + 1) if others else ()
        answer = self._find(scope, own, skip, k, found)
        page, ranking = answer.page, answer.ranking
        follows = page.more and skip + k <= limits.SEARCH_OFFSET_MAX
        return SearchResults(
            results=page.hits,
            truncated=page.more,
            next=str(skip + k) if follows else None,
            mode=ranking.mode,
            branch=scope.branch,
            namespace=self._caller.namespace,
            note=self._search_note(
                scope, own, others, answer, is_first=not skip, is_last=not follows
            ),
            ended_at=page.ended_at,
        )

    def explain_search(
        self,
        query: Annotated[str, Param("What to find, in natural language", aliases=_QUERY_ALIASES)],
        *,
        k: Annotated[
            int, Param("Results", ge=1, le=limits.SEARCH_K_MAX, aliases=COUNT_ALIASES)
        ] = limits.SEARCH_K_DEFAULT,
        tags: Tags = None,
        namespace: Annotated[str | None, Param("Only this one; default: all")] = None,
        branch: BranchName = None,
        as_of: AsOf = None,
        min_score: Annotated[
            float | None, Param("The least score a hit must have", ge=0, le=1)
        ] = None,
    ) -> SearchResults:
        """Find entries and logged events, and say of each hit why it was found."""
        _check_query(query)
        scope = _SearchScope(
            query,
            check_tags(tags or ()),
            namespace,
            branch or self._caller.branch,
            as_of,
            min_score,
            explain=True,
        )
        answer = self._find(scope, {ENTRY, EVENT}, 0, k)
        page, ranking = answer.page, answer.ranking
        return SearchResults(
            results=page.hits,
            truncated=page.more,
            next=None,
            mode=ranking.mode,
            branch=scope.branch,
            namespace=self._caller.namespace,
            note=self._search_note(scope, {ENTRY, EVENT}, (), answer),
        )

    def _find(
        self,
        scope: _SearchScope,
        kinds: set[str],
        skip: int,
        k: int,
        others: Sequence[Sequence[Hit]] = (),
    ) -> _Found:
        """Return a page of memory's own hits and of others, and how memory's were found."""
        index = self._foundation.index
        with index.snapshot() as reader:
            view = self._views.view(reader, scope.branch, scope.as_of)
            search = partial(
                index.search,
                reader,
                view,
                scope.query,
                spaces=_spaces(reader.records, scope.namespace, kinds),
                tags=scope.tags,
                raised=STANDING,
                lexical=scope.lexical,
            )
            rankings = place_order.rank_in_parts(lambda limit: search(limit=limit), skip + k)
            ranking = next(rankings)
            rarity = index.rarity(reader, ranking.terms)
            found = hits.HitReader(
                reader,
                view,
                chain((ranking,), rankings),
                rarity,
                min_score=scope.min_score,
                explain=scope.explain,
            )
            page = found.read(skip, k, others)
            absent = () if skip else self._find_absent_words(reader, scope.query, ranking)
            looks_back = not skip and ENTRY in kinds and not scope.tags
            hidden = self._say_hidden(reader, view, scope, rarity, page) if looks_back else None
            return _Found(page, ranking, absent, hidden)

    def _say_hidden(
        self,
        reader: Reader,
        view: View,
        scope: _SearchScope,
        rarity: Mapping[str, float],
        page: hits.Page,
    ) -> str | None:
        """Say what is hidden and answers better, or which entry said before what is asked for."""
        found = hidden_answers.find_hidden_answer(
            reader,
            self._views,
            view,
            rarity,
            page,
            index=self._foundation.index,
            namespace=scope.namespace,
            other_branches=scope.as_of is None,
        )
        branch = None if scope.branch == self._caller.branch else scope.branch
        if found is not None:
            event = found.event
            key = f"@{event.sequence}" if event.key is None else event.key
            if found.branch is not None:
                return say_on_branch(key, event.space.namespace, found.branch)
            return say_earlier(key, event.space.namespace, branch, is_hit=False)
        if not hidden_answers.asks_what_was(scope.query):
            return None
        hit = hidden_answers.find_changed_hit(reader, view, page.hits)
        if hit is None or hit.key is None:
            return None
        return say_earlier(hit.key, hit.namespace, branch, is_hit=True)

    def _find_absent_words(self, reader: Reader, query: str, ranking: Ranking) -> Sequence[str]:
        """Return the names of a query that no text has: no hit can be about them."""
        index = self._foundation.index
        absent = index.absent_terms(reader, ranking.terms)
        return near_words.find_absent_words(query, absent, index.embedder) if absent else ()

    def _search_note(
        self,
        scope: _SearchScope,
        kinds: set[str],
        others: Sequence[str],
        answer: _Found,
        *,
        is_first: bool = True,
        is_last: bool = False,
    ) -> str | None:
        """Return what may help where there is no hit, and what else is to be known of a page."""
        said = []
        page, ranking, absent, hidden = answer
        if page.ended_at is not None:
            said.append(say_end(page.ended_at))
        elif is_first and not page.hits:
            said += self._say_nothing(scope, kinds, page.nearest)
        elif absent:
            said.append(say_absent(absent))
        if hidden is not None:
            said.append(hidden)
        is_plain = is_first and kinds == {ENTRY, EVENT} and not others
        if is_plain and page.hits and asks_for_fix(scope.query):
            said += say_kinds_that_match(self._kinds_that_match(scope, ["incident"]))
        if kinds and is_first and self._asks_for_instructions(scope, has_hits=bool(page.hits)):
            said.append(LISTS_INSTRUCTIONS)
        since = find_period(scope.query) if kinds and is_first and scope.as_of is None else None
        if since is not None:
            said.append(self._say_period(scope, since))
        said += ranking.say_waiting(self._store)
        if page.more and is_last:
            said.append(
                f"A search shows its first {limits.SEARCH_OFFSET_MAX:,} hits; for others, search "
                "for something more specific."
            )
        return " ".join(said) or None

    def _say_period(self, scope: _SearchScope, since: str) -> str:
        with self._store.snapshot() as reader:
            view = self._views.view(reader, scope.branch)
            kinds = [kind for kind in (EVENT, ENTRY) if reader.records.count(view, kind)]
        return say_period(since, scope.namespace, kinds or [ENTRY])

    def _say_nothing(
        self, scope: _SearchScope, kinds: set[str], near: Sequence[hits.NamedPlace]
    ) -> list[str]:
        """Say why there could be no hit; else what may have been meant, and what is nearest."""
        if not kinds:
            return [f"{NOTHING_MATCHES}: try fewer or other words."]
        with self._foundation.index.snapshot() as reader:
            view = self._views.view(reader, scope.branch, scope.as_of)
            part = SearchedPart(view, scope.namespace, scope.tags, kinds)
            why = None if near else explain_nothing(reader, part)
            spaces = _spaces(reader.records, scope.namespace, kinds)
            meant = near_words.find_near_words(
                reader,
                view,
                scope.query,
                spaces=spaces,
                tags=scope.tags,
                embedder=self._foundation.index.embedder,
            )
            stored = [kind for kind in self._foundation.finders if reader.records.count(view, kind)]
        elsewhere = say_kinds_that_match(self._kinds_that_match(scope, stored))
        said = [f"Did you mean {' or '.join(map(repr, meant.values()))}?"] if meant else []
        if near:
            said.append(self._say_nearest(near))
        elif not meant and not elsewhere:
            said.append(why or self._say_no_match(scope, kinds))
        return [*said, *elsewhere]

    def _asks_for_instructions(self, scope: _SearchScope, *, has_hits: bool) -> bool:
        """Whether a search asks for standing instructions, and there are any.

        A query with hits may ask for the instructions of something else.
        """
        asks = asks_for_own_instructions if has_hits else asks_for_instructions
        if not asks(scope.query) and not asks_for_own_instructions(scope.query):
            return False
        with self._store.snapshot() as reader:
            view = self._views.view(reader, scope.branch, scope.as_of)
            return bool(self._instructions(reader, view))

    def _kinds_that_match(self, scope: _SearchScope, kinds: Sequence[str]) -> list[str]:
        """Return those kinds of other systems of which the caller would find something."""
        usable, finders = self._caller.toolsets, self._foundation.finders
        return [
            kind
            for kind in kinds
            if self._caller.may(finders[kind].toolset, "read")
            and (usable is None or finders[kind].toolset in usable)
            and any(self._find_elsewhere(scope, [kind], 1))
        ]

    def _say_no_match(self, scope: _SearchScope, kinds: set[str]) -> str:
        """Say what the query finds elsewhere or now, else that nothing matches it."""
        if not has_word(scope.query):
            return "The query has no word to search for: say what to find."
        given = {"namespace": scope.namespace, "tags": scope.tags or None, "as_of": scope.as_of}
        filters = [name for name, each in given.items() if each is not None]
        if filters:
            wider = scope._replace(namespace=None, tags=(), as_of=None)
            page = self._find(wider, kinds, 0, limits.SEARCH_K_DEFAULT).page
            if said := say_found_without(filters, page.hits):
                return said
        return say_no_match(scope.branch, scope.namespace, scope.as_of)

    def _say_nearest(self, near: Sequence[hits.NamedPlace]) -> str:
        own = self._caller.namespace
        names = [
            each.name if each.namespace == own else f"{each.name} (namespace {each.namespace!r})"
            for each in near
        ]
        shows = f"min_score=0 shows {'it' if len(names) == 1 else 'them'}"
        return f"Nearest, but too weak to be a hit: {', '.join(names)}; {shows}."

    def _read_kinds(self, kinds: Sequence[str] | None) -> tuple[set[str], list[str]]:
        """Return the kinds of memory's own records to search, and those of other systems."""
        finders = self._foundation.finders
        allowed = [ENTRY, EVENT, *finders]
        named = [_PRIMITIVES.get(each, each) for each in kinds or (ENTRY, EVENT)]
        wanted = list(dict.fromkeys(named))
        for each in wanted:
            if each not in allowed:
                raise ValidationFailed(
                    f"There is no kind {each!r} to search.",
                    field="kinds",
                    invalid_value=each,
                    allowed=allowed,
                    hint=f"Use some of {', '.join(allowed)}.",
                )
            if each in finders:
                self._caller.require(finders[each].toolset, "read", f"searching each {each}")
        return {ENTRY, EVENT}.intersection(wanted), [each for each in wanted if each in finders]

    def _check_filters(self, scope: _SearchScope, kinds: Sequence[str]) -> None:
        """Refuse filters of a search for records of other systems alone, which have neither."""
        finders = self._foundation.finders
        if scope.tags:
            raise ValidationFailed(
                f"No {kinds[0]} has tags.", field="tags", hint="Leave `tags` out."
            )
        places = list(dict.fromkeys(finders[kind].toolset for kind in kinds))
        if scope.namespace not in {None, *places}:
            raise ValidationFailed(
                f"No {kinds[0]} is in the namespace {scope.namespace!r}.",
                field="namespace",
                invalid_value=scope.namespace,
                hint=f"Leave `namespace` out, or use {' or '.join(places)}.",
            )

    def _find_elsewhere(
        self, scope: _SearchScope, kinds: Sequence[str], count: int
    ) -> list[list[Hit]]:
        """Return the best so many of each kind of other systems.

        They have no tags, and each is in a namespace of its own. Those that answer best by
        themselves come first.
        """
        if scope.tags:
            return []
        finders = self._foundation.finders
        return [
            self._find_kind(scope, kind, count)
            for kind in kinds
            if scope.namespace in {None, finders[kind].toolset}
        ]

    def _find_kind(self, scope: _SearchScope, kind: str, count: int) -> list[Hit]:
        finder = self._foundation.finders[kind]

        def find(limit: int) -> list[FoundByName]:
            query = FinderQuery(scope.query, scope.branch, scope.as_of, limit, scope.min_score)
            found = finder.find(self._foundation, self._caller, query)
            return sorted(found, key=lambda each: -each.score)

        places = place_order.find_in_parts(find, attrgetter("key"), limits.SEARCH_K_MAX)
        good = (each for each in places if each.score >= (scope.min_score or 0.0))
        return [hits.hit_by_name(kind, finder.toolset, each) for each in islice(good, count)]

    def forget(
        self,
        key: Key = None,
        *,
        keys: Keys | None = None,
        namespace: Namespace = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Forgotten:
        """Remove what is stored under a key; views of earlier moments still show it."""
        require_one({"key": key, "keys": keys})
        wanted = [key] if key is not None else list(keys or ())
        forgotten = self._forget_keys(
            wanted, namespace=namespace, branch=branch, request_id=request_id
        )
        if forgotten.missing:
            misses = explain_several(self, forgotten.missing, namespace=namespace, branch=branch)
            forgotten.misses = misses or None
        return forgotten

    def log(
        self,
        event: Annotated[
            str, Param("Label: observation, decision, message", aliases=_EVENT_ALIASES)
        ],
        data: Annotated[Any, Param("JSON, or {role, content}", aliases=_DATA_ALIASES)],
        *,
        namespace: Namespace = None,
        tags: Tags = None,
        session: Session = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> Logged:
        """Append an event: something that happened and will not change."""
        values.check_text(event, field="event", chars_max=limits.EVENT_LABEL_CHARS_MAX)
        values.check(data, field="data")
        content: dict[str, Any] = {"event": event, "data": data}
        if unique := check_tags(tags or ()):
            content["tags"] = unique
        if session is not None:
            content["session"] = values.check_text(
                session, field="session", chars_max=limits.SESSION_CHARS_MAX
            )
        where = check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, name)
            draft = Draft(EVENT_LOGGED, content, logged_events(where))
            appended = transaction.append(target, [draft])[0]
            return {"sequence": appended.sequence, "timestamp": moments.iso(appended.at)}

        arguments = {**content, "namespace": where, "branch": name}
        logged = self._foundation.write(
            self._caller, work, request_id=request_id, operation="log", arguments=arguments
        )
        return Logged(**logged, branch=self._other_branch(branch))

    @overload
    def history(
        self,
        key: str,
        *,
        namespace: str | None = None,
        branch: str | None = None,
        as_of: str | int | None = None,
        limit: int = limits.HISTORY_PAGE_DEFAULT,
        cursor: str | None = None,
    ) -> History: ...

    @overload
    def history(
        self,
        key: None = None,
        *,
        namespace: str | None = None,
        branch: str | None = None,
        as_of: str | int | None = None,
        limit: int = limits.HISTORY_PAGE_DEFAULT,
        cursor: str | None = None,
    ) -> TimeRange: ...

    def history(
        self,
        key: Annotated[
            str | None, Param("Key; without it: the branch's time range", aliases=KEY_ALIASES)
        ] = None,
        *,
        namespace: Namespace = None,
        branch: BranchName = None,
        as_of: AsOf = None,
        limit: Annotated[
            int,
            Param("Versions", ge=1, le=limits.HISTORY_PAGE_MAX, aliases=COUNT_ALIASES),
        ] = limits.HISTORY_PAGE_DEFAULT,
        cursor: Cursor = None,
    ) -> History | TimeRange:
        """Return the versions of an entry, newest first; without a key, the branch's time range."""
        if key is None:
            return self.time_range(branch=branch, as_of=as_of, namespace=namespace)
        return self._versions(
            key, namespace=namespace, branch=branch, as_of=as_of, limit=limit, cursor=cursor
        )

    def time_range(
        self,
        *,
        branch: BranchName = None,
        as_of: AsOf = None,
        namespace: Annotated[str | None, Param("Only this one; default: all")] = None,
    ) -> TimeRange:
        """Return the moments for which a branch has something to show."""
        name = branch or self._caller.branch
        with self._store.snapshot() as reader:
            spaces = (
                None if namespace is None else _spaces(reader.records, namespace, {ENTRY, EVENT})
            )
            span = reader.log.span(self._views.view(reader, name, as_of).lineage, spaces)
        if span is None:
            return TimeRange(None, None, name)
        oldest, latest = span
        return TimeRange(
            moments.iso(oldest.limit),
            moments.iso(latest.limit),
            name,
            oldest.branch,
            latest.branch,
        )

    def status(self) -> Status:
        """Return the state of the database as this caller sees it; cheap at any size."""
        foundation, caller, index = self._foundation, self._caller, self._foundation.index
        with self._store.snapshot() as reader:
            view, note = self._own_view(reader)
            head = reader.log.head()
            gap = clock_gap(reader.log, self._store.now())
            wanted = self._instructions(reader, view) if view else []
            return Status(
                version=foundation.version,
                branch=caller.shown_branch,
                namespace=caller.namespace,
                auto_embed=index.embedder is not None,
                branches=reader.branches.live_count(),
                keys=reader.records.count(view, ENTRY) if view else 0,
                events=reader.records.count(view, EVENT) if view else 0,
                namespaces=_live_names(reader, view) if view else [],
                head=f"{head.sequence}:{head.hash.hex()}",
                database=self._shown_location(),
                embedder=index.embedder_name or "none",
                unembedded=index.count_without_vector(reader),
                durability=foundation.durability,
                read_only=self._store.read_only,
                clock_ahead_seconds=gap.seconds if gap else None,
                clock_ahead_since=gap.since if gap else None,
                clock_warning=gap.warning if gap else None,
                note=note,
                instructions=wanted[: limits.INSTRUCTIONS_MAX],
                instructions_more=len(wanted) > limits.INSTRUCTIONS_MAX or None,
            )

    def _shown_location(self) -> str:
        """Return where the database is; to callers elsewhere not which folder or server that is."""
        location = self._store.location
        if self._caller.is_on_machine:
            return location
        return "postgresql" if is_address(location) else PurePath(location).name

    def _own_view(self, reader: Reader) -> tuple[View | None, str | None]:
        """Return what the caller's branch shows, and a note where it cannot work on that branch.

        A status does not switch branches: if the caller's branch was deleted, the note says how to
        continue.
        """
        name = self._caller.branch
        live = reader.branches.by_name(name)
        if is_transaction(name) or (live is not None and not is_another(live, name)):
            return self._views.view(reader, name), None
        choose = 'choose one with strata_branch, action "switch"'
        if live is not None:
            return None, (
                f"Your current branch {name!r} was deleted, and another branch has its name "
                f"now: nothing is read or written until you {choose}, or restore yours with "
                f'strata_branch, action "restore", source {name!r} and another name.'
            )
        deleted = reader.branches.deleted_by_name(name)
        restore = f'strata_branch with action "restore" and name {name!r}'
        if deleted is None and not self._caller.can_switch:
            # A command or a request names its branch anew each time, and this one wrongly.
            find_branch(reader.branches, name)
        if deleted is None:
            return None, f"There is no branch {name!r}: nothing is read or written; {choose}."
        view = View(deleted, reader.branches.lineage(deleted), self._store.now())
        return view, (
            f"The branch {name!r} was deleted: nothing is read or written until you {choose}, "
            f"or restore it with {restore}."
        )

    def instructions(self) -> list[Instruction]:
        """Return the newest standing instructions and preferences of the caller's namespace.

        They were recognised when they were written: "always …", "I prefer …". Newest first.
        """
        with self._store.snapshot() as reader:
            wanted = self._instructions(reader, self._views.view(reader, self._caller.branch))
        return wanted[: limits.INSTRUCTIONS_MAX]

    def _instructions(self, reader: Reader, view: View) -> list[Instruction]:
        """Return one more than are shown, if there are so many."""
        meant = hits.newest_instructions(reader, view, self._caller.namespace)
        return [
            hits.read_instruction(event) for event in islice(meant, limits.INSTRUCTIONS_MAX + 1)
        ]

    def purge(
        self,
        key: ErasedKey = None,
        *,
        namespace: Namespace = None,
        sequence: ErasedSequence = None,
    ) -> int:
        """Erase an entry or a logged event for good; return how many events lost their content.

        It goes from the log, every branch, every past moment and the index, and so does what
        records of calls quote of it. The chain still verifies. Backups and exports made earlier
        are out of reach.
        """
        return self.erase(key, namespace=namespace, sequence=sequence).erased

    def erase(
        self,
        key: ErasedKey = None,
        *,
        namespace: Namespace = None,
        sequence: ErasedSequence = None,
    ) -> Purged:
        """Purge, and return which copies were erased too, and which were left."""
        require_one({"key": key, "sequence": sequence})
        if key is not None:
            check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        if sequence is not None and not 1 <= sequence <= OPEN_END:
            raise ValidationFailed(
                f"No logged event has sequence {sequence}.", field="sequence", limit=OPEN_END
            )
        where = check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )
        erased = self._foundation.purge(
            self._caller, space=entries(where), key=key, sequence=sequence
        )
        results = {"kept_result": erased.results} if erased.results else {}
        return Purged(
            erased.events,
            {**erased.copies, **results},
            {**erased.elsewhere},
            erased.pending,
            erased.note,
        )

    def branch(
        self,
        action: Annotated[
            Action, Param("What to do", quiet=True, aliases=("operation", "command"))
        ],
        *,
        name: Annotated[
            str | None,
            Param("Branch to make, switch to, delete, restore", aliases=("branch_name",)),
        ] = None,
        source: Annotated[
            str | None, Param("merge: from this branch", aliases=_SOURCE_ALIASES)
        ] = None,
        compare: Annotated[
            str | None, Param("diff: with this branch", aliases=_COMPARE_ALIASES)
        ] = None,
        branch: Annotated[
            str | None, Param("Fork from, merge into; default: current", aliases=_TARGET_ALIASES)
        ] = None,
        as_of: AsOf = None,
        strategy: MergeStrategy = None,
        preview: Annotated[bool, Param("merge: change nothing", aliases=("dry_run",))] = False,
        decisions: Decisions = None,
        request_id: RequestId = None,
    ) -> BranchAnswer:
        """Work with branches; each action is also a method of its own.

        `branch` names the branch that is forked, merged into or compared, where that is not
        the current one.
        """
        given = {
            "name": name,
            "source": source,
            "compare": compare,
            "branch": branch,
            "as_of": as_of,
            "strategy": strategy,
            "preview": preview or None,
            "decisions": decisions,
            "request_id": request_id,
        }
        _check_action(action, {each for each, value in given.items() if value is not None})
        actions: dict[str, Callable[[], BranchAnswer]] = {
            "create": lambda: self.create(name, request_id=request_id),
            "switch": lambda: self.switch(name),
            "list": self.branches,
            "fork": lambda: self.fork(name, branch=branch, as_of=as_of, request_id=request_id),
            "diff": lambda: self.diff(compare, branch=branch, as_of=as_of),
            "delete": lambda: self.delete(name, request_id=request_id),
            "restore": lambda: self.restore(
                name, source=source, as_of=as_of, request_id=request_id
            ),
            "merge": lambda: self.merge(
                source,
                branch=branch,
                strategy=strategy,
                decisions=decisions,
                preview=preview,
                request_id=request_id,
            ),
        }
        return actions[action]()


class _Found(NamedTuple):
    """A page of hits, how those of memory were found, and the names asked for that no text has.

    `hidden` says which earlier version, or which other branch, may have been asked for.
    """

    page: hits.Page
    ranking: Ranking
    absent: Sequence[str]
    hidden: str | None


class _SearchScope(NamedTuple):
    """What is searched for, and among what."""

    query: str
    tags: Sequence[str]
    namespace: str | None
    branch: str
    as_of: AsOf
    min_score: float | None
    lexical: bool = False
    explain: bool = False


def _check_action(action: str, given: set[str]) -> None:
    """Refuse an unknown action, and a parameter that it would ignore silently."""
    if action not in _PARAMETERS:
        raise ValidationFailed(
            f"There is no action {action!r}.", field="action", allowed=list(_PARAMETERS)
        )
    takes = _PARAMETERS[action]
    if unused := sorted(given - takes):
        raise ValidationFailed(
            f"The action {action!r} takes no `{unused[0]}`.",
            field=unused[0],
            hint=f"It takes: {', '.join(sorted(takes)) or 'nothing'}.",
        )


def _check_query(query: str) -> None:
    """Refuse a query that says nothing; unlike a name it may have several lines."""
    if not query.strip():
        raise ValidationFailed("`query` must be text that is not empty.", field="query")
    if len(query) > limits.QUERY_CHARS_MAX:
        raise ValidationFailed(
            f"`query` is {len(query):,} characters long; the limit is {limits.QUERY_CHARS_MAX:,}.",
            field="query",
            limit=limits.QUERY_CHARS_MAX,
            hint="Search for its most specific words.",
        )
    values.encode(query, field="query")


def _spaces(records: RecordReader, namespace: str | None, kinds: set[str]) -> list[int] | None:
    """Return the spaces of some kinds: all of memory's own, or those of one namespace.

    None: all there are, which the store need not be told.
    """
    if namespace is not None:
        check_names(namespace, field="namespace", chars_max=limits.NAMESPACE_CHARS_MAX)
    spaces = records.spaces()
    found = [
        number
        for number, space in spaces.items()
        if space.kind in kinds and namespace in {None, space.namespace}
    ]
    return None if len(found) == len(spaces) else found


def _live_names(reader: Reader, view: View) -> list[str]:
    """Return the namespaces in which memory shows something; other systems have their own."""
    return list(islice(live_namespaces(reader, view), _NAMESPACES_SHOWN))
