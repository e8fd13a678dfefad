"""Why a recall found nothing, and what was probably meant.

A caller that asks for a key which is not there mostly has it nearly right: another case, the
beginning of it, a letter wrong, another namespace, or it existed earlier. The number of keys
compared is bounded, so that a miss is cheap however much is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated, Any, Final

import orjson

from stratagem import limits
from stratagem.engine import moments, paths
from stratagem.engine.events import Space
from stratagem.engine.likeness import nearest
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, View
from stratagem.memory.entries import check_names, is_expired, is_live, sequence_named_by
from stratagem.memory.kinds import ENTRY, EVENT, entries
from stratagem.memory.models import Miss
from stratagem.memory.parameters import Path
from stratagem.parameters import AsOf, BranchName, Namespace, Param
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Reader, Version
from stratagem.storage.listing import ListingReader
from stratagem.storage.views import other_branches

__all__ = ["WILDCARDS", "Misses", "explain_several", "near_keys"]

_NEAR_MAX: Final = 5
_ELSEWHERE_MAX: Final = 3
# A namespace is often misspelt: of so many that have the key, those with a similar name come first.
_ELSEWHERE_READ: Final = 50
# A key is looked for on so many other branches, the newest first.
_BRANCHES_READ: Final = 50
_FIELDS_MAX: Final = 20
# Of the keys of one call, so many are explained.
_EXPLAINED_MAX: Final = 5
# So many versions are looked at for one that a past moment shows.
_VERSIONS_MAX: Final = 10
# So many are looked through for the first one after a past moment.
_LATER_VERSIONS_MAX: Final = 100
# So many keys are compared letter by letter, of those that begin alike.
_COMPARED_MAX: Final = 500
# What people write behind a beginning when they mean everything that begins so.
WILDCARDS: Final = "*%?"


class Misses(BoundSystem):
    """What is said about keys under which nothing is stored, to one caller."""

    def explain_miss(
        self,
        key: Annotated[str, Param("The key under which nothing was found", quiet=True)],
        *,
        namespace: Namespace = None,
        as_of: AsOf = None,
        branch: BranchName = None,
        path: Path = None,
    ) -> Miss:
        """Say why a recall found nothing, and which keys and namespaces may have been meant."""
        caller = self._caller
        where = namespace or caller.namespace
        check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        check_names(where, field="namespace", chars_max=limits.NAMESPACE_CHARS_MAX)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or caller.branch, as_of)
            space = entries(where)
            miss = Miss(key, where, "absent")
            versions = reader.records.history(
                view.lineage, space, key, before=OPEN_END, limit=_VERSIONS_MAX
            )
            if versions:
                _explain_by_past(miss, versions[0], view.time, path)
            if miss.reason in {"path", "found"}:
                return miss
            miss.before = self._moment_of(reader, view.branch.name, space, key, versions)
            if not versions and as_of is not None:
                self._explain_by_future(reader, miss, view, space)
            elif not versions:
                miss.branches = _branches_with(reader, view, space, key) or None
            near = list(near_keys(reader.listing, view, space, key))
            others = reader.listing.namespaces_with(view, ENTRY, key, limit=_ELSEWHERE_READ)
            miss.id_of = self._kind_with_id(reader, view, key)
            self._explain_number(reader, miss, view, path)
        miss.near = near or None
        others = [name for name in others if name != where]
        alike = nearest(where, others, _ELSEWHERE_MAX)
        miss.elsewhere = list(dict.fromkeys([*alike, *others]))[:_ELSEWHERE_MAX] or None
        return miss

    def _kind_with_id(self, reader: Reader, view: View, key: str) -> Any:
        """Return the kind of other systems' records that has one under this id, as hits name it."""
        for kind, finder in self._foundation.finders.items():
            if not self._caller.may(finder.toolset, "read"):
                continue
            for space in reader.records.spaces(kind).values():
                version = reader.records.current(view.lineage, space, key)
                if version is not None and version.payload is not None:
                    return kind
        return None

    def _explain_number(self, reader: Reader, miss: Miss, view: View, path: str | None) -> None:
        """Say what a key that is the number of an event, as `@123` is, names in the log."""
        sequence, end = sequence_named_by(miss.key), reader.log.head().sequence
        if sequence is None or sequence < 1:
            return
        if sequence > end:
            miss.latest_sequence = end
            return
        # The moment shows what was written then, unless another version of it was, too.
        moment = self._views.view(reader, view.branch.name, f"@{sequence}")
        if sequence > view.limit or sequence not in reader.records.visible_among(
            moment, [sequence]
        ):
            return
        written = reader.log.contents([sequence])[sequence]
        content: dict[str, Any] = orjson.loads(written.payload)
        label = miss.key.rpartition("@")[0].strip()
        if written.space.kind == EVENT and label in {"", content["event"].strip()}:
            miss.event = content["event"]
            if path is not None and not paths.get(content["data"], steps := paths.parse(path))[0]:
                miss.reason, miss.path = "path", path
                miss.place, miss.there = _describe_place(content["data"], steps)
        elif written.space.kind == ENTRY and not label:
            miss.version_of = written.key
            if written.space.namespace != miss.namespace:
                miss.version_namespace = written.space.namespace

    def _moment_of(
        self, reader: Reader, branch: str, space: Space, key: str, versions: Sequence[Version]
    ) -> str | None:
        """Return the newest moment at which a key shows a value.

        A written version is no proof of one, because a merge may carry an expired version.
        """
        for version in versions:
            moment = f"@{version.sequence}"
            view = self._views.view(reader, branch, moment)
            if is_live(reader.records.current(view.lineage, space, key), view.time):
                return moment
        return None

    def _explain_by_future(self, reader: Reader, miss: Miss, view: View, space: Space) -> None:
        """Say that the key was stored only after the moment that was asked about."""
        lineage = reader.branches.lineage(view.branch)
        versions = reader.records.history(
            lineage, space, miss.key, before=OPEN_END, limit=_LATER_VERSIONS_MAX
        )
        if not versions:
            return
        miss.reason = "later"
        if len(versions) < _LATER_VERSIONS_MAX:
            first = versions[-1]
            miss.timestamp = moments.iso(first.at)
            miss.before = self._moment_of(reader, view.branch.name, space, miss.key, [first])


def explain_several(
    memory: Misses,
    keys: Sequence[str],
    *,
    namespace: str | None,
    branch: str | None,
    as_of: str | int | None = None,
    path: str | None = None,
) -> list[Miss]:
    """Return what can be said of keys under which nothing is, leaving out what says nothing."""
    misses = [
        memory.explain_miss(key, namespace=namespace, branch=branch, as_of=as_of, path=path)
        for key in keys[:_EXPLAINED_MAX]
    ]
    return [
        each
        for each in misses
        if each.reason != "absent"
        or each.near
        or each.elsewhere
        or each.branches
        or each.id_of
        or each.latest_sequence
        or each.event is not None
        or each.version_of is not None
    ]


def _branches_with(reader: Reader, view: View, space: Space, key: str) -> list[str]:
    """Return other live branches which show an entry under a key: `default`, then the newest."""
    if not reader.records.subjects(space, [key]):
        return []
    live = other_branches(reader.branches, view.branch)
    live.sort(key=lambda branch: branch.name != DEFAULT_BRANCH)
    shown = (
        branch.name
        for branch in live[:_BRANCHES_READ]
        if is_live(reader.records.current(reader.branches.lineage(branch), space, key), view.time)
    )
    return list(islice(shown, _ELSEWHERE_MAX))


def _explain_by_past(miss: Miss, newest: Version, time: int, path: str | None) -> None:
    """Explain what happened to an entry that existed earlier."""
    content: dict[str, Any] = orjson.loads(newest.payload) if newest.payload else {}
    if newest.payload is None:
        miss.reason, miss.timestamp = "erased", moments.iso(newest.at)
    elif "value" not in content:
        miss.reason, miss.timestamp = "forgotten", moments.iso(newest.at)
    elif is_expired(content, time):
        miss.reason, miss.timestamp = "expired", moments.iso(content["expires_at"])
    elif path is not None:
        miss.reason, miss.path = "path", path
        miss.place, miss.there = _describe_place(content["value"], paths.parse(path))
    else:
        miss.reason = "found"


def _describe_place(value: Any, steps: paths.Steps) -> tuple[str, str]:
    """Return how far a path leads, and what is there."""
    depth = next(depth for depth in range(len(steps), -1, -1) if paths.get(value, steps[:depth])[0])
    _found, here = paths.get(value, steps[:depth])
    return paths.render(steps[:depth]), _describe(here)


def _describe(value: Any) -> str:
    if isinstance(value, dict):
        names = list(value)[:_FIELDS_MAX]
        more = f" and {len(value) - len(names)} more" if len(value) > len(names) else ""
        return f"the fields {', '.join(names)}{more}" if names else "an object without fields"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        is_json = value.lstrip()[:1] in {"{", "["} and _is_json(value)
        return "text that holds JSON (store it as JSON, not as text)" if is_json else "text"
    if value is None:
        return "null"
    return "true or false" if isinstance(value, bool) else "a number"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def near_keys(listing: ListingReader, view: View, space: Space, key: str) -> Iterator[str]:
    """Yield keys that may have been meant: those that begin so first, then those most alike."""
    begin = key.rstrip(WILDCARDS)
    begun = [each.key for each in listing.by_key(view, space, prefix=begin, limit=_NEAR_MAX)]
    yield from begun if begin else ()
    if len(begun) >= _NEAR_MAX:
        return
    candidates = _candidates(listing, view, space, begin).difference(begun)
    yield from nearest(begin or key, candidates, _NEAR_MAX - len(begun))


def _candidates(listing: ListingReader, view: View, space: Space, key: str) -> set[str]:
    """Return keys to compare: all of a small namespace, else those that begin alike."""
    every = listing.by_key(view, space, limit=_COMPARED_MAX + 1)
    if len(every) <= _COMPARED_MAX:
        return {each.key for each in every}
    found: set[str] = set()
    spellings = dict.fromkeys((key, key.lower(), key.upper(), key.capitalize(), key.title()))
    for spelling in spellings:
        # From the longest beginning to shorter ones, until there is something to compare.
        for length in dict.fromkeys((len(spelling), len(spelling) * 3 // 4, len(spelling) // 2, 1)):
            page = listing.by_key(
                view, space, prefix=spelling[:length], limit=_COMPARED_MAX // len(spellings)
            )
            found.update(each.key for each in page)
            if page:
                break
    return found
