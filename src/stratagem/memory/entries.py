"""Entries: values under keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, Final, Required, TypedDict

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.engine import moments, paths, values
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END, Branch, Lineage
from stratagem.errors import MissingRequired, StratagemError, ValidationFailed, VersionConflict
from stratagem.memory.kinds import (
    ENTRY_FORGOTTEN,
    ENTRY_STORED,
    EVENT,
    TRUST,
    entries,
    origin_time,
)
from stratagem.memory.models import Entry, Forgotten, History, Stored, VersionInfo
from stratagem.memory.parameters import (
    KEY_ALIASES,
    PATH_ALIASES,
    SESSION_ALIASES,
    TAG_ALIASES,
    Path,
)
from stratagem.parameters import MISSING, AsOf, BranchName, Namespace, Param
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Appended, Transaction, Version
from stratagem.storage.views import find_branch

__all__ = [
    "TTL_ALIASES",
    "VALUE_ALIASES",
    "Entries",
    "Item",
    "check_names",
    "check_tags",
    "sequence_named_by",
]

VALUE_ALIASES: Final = ("content", "contents", "data", "text", "body", "memory", "payload")
TTL_ALIASES: Final = ("expires_in", "ttl_seconds")
# The SDK writes a timedelta as a number of seconds.
_TTL: Final = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]}

_KEY_AND_VALUE: Final = frozenset({"key", "value"})
# Of the highest sequence there can be.
_DIGITS_MAX = 18
# There is no present value to apply a change to.
_HINT_NEW: Final = (
    "Nothing was written. To store a new entry, pass 0 as `expected_version`, or leave it out."
)


class Item(TypedDict, total=False):
    """One entry of a store that writes several."""

    key: Required[Annotated[str, Param("Its name", aliases=KEY_ALIASES)]]
    value: Required[Annotated[Any, Param("Any JSON", aliases=VALUE_ALIASES)]]
    tags: Annotated[Sequence[str] | None, Param("Labels", aliases=TAG_ALIASES)]
    namespace: Annotated[str | None, Param("Its group")]
    ttl: Annotated[
        str | float | timedelta | None,
        Param("Expires after", strict=True, aliases=TTL_ALIASES, schema=_TTL),
    ]
    expected_version: Annotated[int | None, Param("Only if at this version; 0: only if new")]
    path: Annotated[str | None, Param("Change one place", aliases=PATH_ALIASES)]
    session: Annotated[str | None, Param("Conversation id", aliases=SESSION_ALIASES)]
    index: Annotated[bool | None, Param("false: not searchable")]


class _Write:
    """One entry to be written, checked as far as that needs no look at the database."""

    __slots__ = ("content", "expected_version", "key", "namespace", "steps", "tags_given", "ttl")

    def __init__(self, item: Item, namespace: str) -> None:
        # Most entries are a key and a value, and there may be thousands of them.
        is_plain = item.keys() == _KEY_AND_VALUE
        if not is_plain:
            _check_options(item)
        self.key = check_names(item["key"], field="key", chars_max=limits.KEY_CHARS_MAX)
        self.namespace = check_names(
            item.get("namespace") or namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )
        values.check(item["value"])
        self.content: dict[str, Any] = {"value": item["value"]}
        self.tags_given = False
        self.ttl: int | None = None
        self.steps: paths.Steps | None = None
        self.expected_version: int | None = None
        if not is_plain:
            self._take_options(item)

    def _take_options(self, item: Item) -> None:
        if (given := item.get("tags")) is not None:
            self.tags_given = True
            if tags := check_tags(given or ()):
                self.content["tags"] = tags
        if (session := item.get("session")) is not None:
            self.content["session"] = values.check_text(
                session, field="session", chars_max=limits.SESSION_CHARS_MAX
            )
        if _check_index(item.get("index")) is False:
            self.content["index"] = False
        if (ttl := item.get("ttl")) is not None:
            self.ttl = moments.duration(ttl)
        if (path := item.get("path")) is not None:
            self.steps = paths.parse(path)
        if (version := item.get("expected_version")) is not None:
            self.expected_version = _check_version(version)

    def canonical_arguments(self) -> list[Any]:
        """Return the arguments in one form however they were written, for the idempotency key."""
        place = self.steps and list(self.steps)
        content = {**self.content, "tags": self.content.get("tags") if self.tags_given else None}
        return [self.namespace, self.key, content, self.ttl, place, self.expected_version]

    def fit(self, transaction: Transaction, branch: Branch) -> None:
        """Check the write against what its branch shows, and complete it from that."""
        if self.ttl is not None:
            self.content["expires_at"] = transaction.wall + self.ttl
        if self.expected_version is None and self.steps is None:
            return
        lineage = transaction.branches.lineage(branch)
        version = transaction.records.current(lineage, entries(self.namespace), self.key)
        content = orjson.loads(version.payload) if version and version.payload else None
        if version is None or content is None or is_expired(content, transaction.wall):
            version = content = None
        if self.expected_version is not None:
            self._compare(version)
        if self.steps is not None:
            self._change_place(content)

    def _compare(self, version: Version | None) -> None:
        found = version.sequence if version else 0
        if found != self.expected_version:
            raise VersionConflict(
                f"The entry {self.key!r} is at version {found}, not {self.expected_version}."
                if found
                else f"There is no entry {self.key!r}.",
                field="expected_version",
                key=self.key,
                namespace=self.namespace,
                expected_version=self.expected_version,
                version=found,
                hint=None if found else _HINT_NEW,
            )

    def _change_place(self, content: Mapping[str, Any] | None) -> None:
        """Put the value at its path, keeping the rest of the entry."""
        assert self.steps is not None
        document = content["value"] if content else {}
        try:
            changed = paths.put(document, self.steps, self.content["value"])
        except ValidationFailed as error:
            if isinstance(document, str) and document.lstrip()[:1] in {"{", "["}:
                error.hint = "The entry is text that looks like JSON: store it as JSON first."
            raise
        values.check(changed)
        kept = {name: content[name] for name in content if name != "value"} if content else {}
        if self.tags_given and "tags" not in self.content:
            kept.pop("tags", None)
        self.content = {**kept, **self.content, "value": changed}

    @property
    def subject(self) -> tuple[Space, str]:
        """The record that it writes."""
        return entries(self.namespace), self.key

    def draft(self) -> Draft:
        return Draft(ENTRY_STORED, self.content, entries(self.namespace), self.key)

    def answer(self, appended: Appended, timestamp: str) -> dict[str, Any]:
        answer = {
            "key": self.key,
            "version": appended.sequence,
            "timestamp": timestamp,
            "namespace": self.namespace,
            "status": "created" if appended.before is None else "updated",
        }
        if "expires_at" in self.content:
            answer["expires"] = moments.iso(self.content["expires_at"])
        return answer


class Entries(BoundSystem):
    """Reading and writing entries for one caller."""

    def _store_items(
        self,
        items: Sequence[Item],
        *,
        branch: str | None,
        request_id: str | None,
        batch: bool = True,
    ) -> list[Stored]:
        """Write entries, all of them or none. `batch`: an error says which one it is about."""
        if not 1 <= len(items) <= limits.ITEMS_MAX:
            raise ValidationFailed(
                f"Between 1 and {limits.ITEMS_MAX} items can be stored at once; "
                f"there are {len(items)}.",
                field="items",
                limit=limits.ITEMS_MAX,
                hint="Store them in several calls." if items else "Give at least one.",
            )
        writes = self._read_items(items, batch=batch)
        name = branch or self._caller.branch
        # In canonical form: with the effective namespace, and tags in order.
        meant = [write.canonical_arguments() for write in writes] if request_id is not None else []
        arguments = {"items": meant, "branch": name}

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            target = find_branch(transaction.branches, name)
            if len(writes) > 1 and _repeats_a_key(writes):
                return [self._store_one(transaction, name, write) for write in writes]
            for write in writes:
                write.fit(transaction, target)
            appended = transaction.append(target, [write.draft() for write in writes])
            # What a transaction writes has one time.
            timestamp = moments.iso(transaction.at)
            return [write.answer(at, timestamp) for write, at in zip(writes, appended, strict=True)]

        answers = self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="store",
            arguments=arguments,
            # Those of many are looked up together by the one who writes them.
            subjects=[write.subject for write in writes] if len(writes) == 1 else (),
        )
        other = self._other_branch(branch)
        return [Stored(**answer, branch=other) for answer in answers]

    def _other_branch(self, branch: str | None) -> str | None:
        """Return the branch that was written to, unless it is the one that nearly all is on."""
        caller = self._caller
        name = caller.shown_branch if branch in {None, caller.branch} else branch
        return None if name == DEFAULT_BRANCH else name

    def _read_items(self, items: Sequence[Item], *, batch: bool) -> list[_Write]:
        namespace = self._caller.namespace
        writes: list[_Write] = []
        try:
            for item in items:
                writes.append(_Write(item, namespace))  # noqa: PERF401 -- counted if one fails
        except StratagemError as error:
            if not batch:
                raise
            inner = error.details.get("path") or error.details.get("field", "")
            raise _about_item(error, f"items[{len(writes)}]", inner) from error
        return writes

    def _store_one(self, transaction: Transaction, branch: str, write: _Write) -> dict[str, Any]:
        target = find_branch(transaction.branches, branch)
        write.fit(transaction, target)
        appended = transaction.append(target, [write.draft()])[0]
        return write.answer(appended, moments.iso(transaction.at))

    def _edit_value(
        self,
        key: str,
        edit: Callable[[Any], Any],
        *,
        namespace: str | None,
        branch: str | None,
        request_id: str | None,
        operation: str,
        arguments: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Change an entry by a function of its value, in one transaction; keep the rest of it.

        `edit` is given MISSING where there is no such entry, and returns MISSING where nothing
        changes.
        """
        where = check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )
        check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, name)
            lineage = transaction.branches.lineage(target)
            version = transaction.records.current(lineage, entries(where), key)
            content = orjson.loads(version.payload) if version and version.payload else None
            if content is not None and is_expired(content, transaction.wall):
                content = None
            value = edit(content["value"] if content else MISSING)
            if value is MISSING:
                return {"namespace": where, "changed": False}
            values.check(value)
            kept = {"index": False} if content is None else content
            draft = Draft(ENTRY_STORED, {**kept, "value": value}, entries(where), key)
            appended = transaction.append(target, [draft])[0]
            return {
                "value": value,
                "namespace": where,
                "changed": True,
                "version": appended.sequence,
                "timestamp": moments.iso(appended.at),
            }

        return self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation=operation,
            arguments={**arguments, "key": key, "namespace": where, "branch": name},
        )

    def recall(
        self,
        key: Annotated[str, Param("The name that a value is stored under", quiet=True)],
        *,
        namespace: Namespace = None,
        as_of: AsOf = None,
        branch: BranchName = None,
        path: Path = None,
    ) -> Entry | None:
        """Return what is stored under a key, now or at a past moment; None if nothing is.

        A key such as `@123` or `message @123` under which nothing is stored names a logged event by
        its sequence.
        """
        steps = None if path is None else paths.parse(path)
        caller = self._caller
        name = branch or caller.branch
        where = namespace or caller.namespace
        if as_of is None:
            lineage, time = self._views.present(name), None
        else:
            lineage, time = self._views.past(name, as_of)
        try:
            version = self._store.reader().records.current(lineage, entries(where), key)
        except UnicodeEncodeError:
            # Half of a surrogate pair: nothing is stored under it, and a miss says why.
            version = None
        if version is None:
            if not self._has_branch_changed(key, where, name, lineage):
                return self._recall_event(key, branch=name, as_of=as_of, steps=steps)
            return self.recall(key, namespace=where, as_of=as_of, branch=name, path=path)
        content = orjson.loads(version.payload or b"")
        value = content["value"]
        expires = None
        if "expires_at" in content:
            if is_expired(content, time or self._store.now()):
                return None
            expires = moments.iso(content["expires_at"])
        if steps is not None:
            found, value = paths.get(value, steps)
            if not found:
                return None
        tags = content.get("tags") or []
        at, actor = moments.iso(version.at), version.actor
        entry = Entry(key, value, version.sequence, at, where, tags, expires, actor)
        if "source" in content or TRUST in content:
            entry.source, entry.trust = content.get("source"), content.get(TRUST)
            entry.imported, entry.occurred = content.get("imported"), origin_time(content)
        return entry

    def _recall_event(
        self,
        key: str,
        *,
        branch: str,
        as_of: str | int | None,
        steps: paths.Steps | None,
    ) -> Entry | None:
        """Return the logged event that a key such as `@123` names by its sequence.

        After other words than its label, as in the key `standup @9`, the number says something
        else.
        """
        sequence = sequence_named_by(key)
        if sequence is None:
            return None
        label = key.rpartition("@")[0]
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch, as_of)
            if sequence not in reader.records.visible_among(view, [sequence]):
                return None
            event = reader.log.contents([sequence])[sequence]
        if event.space.kind != EVENT:
            return None
        content = orjson.loads(event.payload)
        if label and label.strip() != content["event"].strip():
            return None
        found, value = paths.get(content["data"], steps or ())
        if not found:
            return None
        at, tags = moments.iso(event.at), content.get("tags") or []
        entry = Entry(key, value, sequence, at, event.space.namespace, tags, None, event.actor)
        entry.source, entry.trust = content.get("source"), content.get(TRUST)
        entry.occurred = origin_time(content)
        return entry

    def _has_branch_changed(self, key: str, namespace: str, branch: str, lineage: Lineage) -> bool:
        """Check after a miss whether the branch was replaced by another; a hit need not check."""
        check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        check_names(namespace, field="namespace", chars_max=limits.NAMESPACE_CHARS_MAX)
        return self._views.confirm(branch)[0].branch != lineage[0].branch

    def _forget_keys(
        self,
        keys: Sequence[str],
        *,
        namespace: str | None,
        branch: str | None,
        request_id: str | None,
    ) -> Forgotten:
        """Remove entries; earlier views still show them."""
        if not 1 <= len(keys) <= limits.KEYS_MAX:
            raise ValidationFailed(
                f"Between 1 and {limits.KEYS_MAX} keys can be forgotten at once.",
                field="keys",
                limit=limits.KEYS_MAX,
                hint="Forget them in several calls." if keys else "Give at least one key.",
            )
        for key in keys:
            check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        space = entries(
            check_names(
                namespace or self._caller.namespace,
                field="namespace",
                chars_max=limits.NAMESPACE_CHARS_MAX,
            )
        )
        name = branch or self._caller.branch

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, name)
            lineage = transaction.branches.lineage(target)
            there = [
                key
                for key in dict.fromkeys(keys)
                if is_live(transaction.records.current(lineage, space, key), transaction.wall)
            ]
            found = set(there)
            missing = [key for key in dict.fromkeys(keys) if key not in found] or None
            if not there:
                return {"deleted": False, "keys": [], "missing": missing}
            drafts = [Draft(ENTRY_FORGOTTEN, {}, space, key) for key in there]
            last = transaction.append(target, drafts)[-1]
            return {
                "deleted": True,
                "keys": there,
                "missing": missing,
                "version": last.sequence,
                "timestamp": moments.iso(last.at),
            }

        arguments = {"keys": list(keys), "namespace": space.namespace, "branch": name}
        answer = self._foundation.write(
            self._caller, work, request_id=request_id, operation="forget", arguments=arguments
        )
        return Forgotten(**answer, branch=self._other_branch(branch))

    def _versions(
        self,
        key: str,
        *,
        namespace: str | None,
        branch: str | None,
        as_of: str | int | None,
        limit: int,
        cursor: str | None,
    ) -> History:
        """Return a page of an entry's versions, newest first."""
        check_names(key, field="key", chars_max=limits.KEY_CHARS_MAX)
        where = check_names(
            namespace or self._caller.namespace,
            field="namespace",
            chars_max=limits.NAMESPACE_CHARS_MAX,
        )
        before = read_cursor(cursor, start=OPEN_END, least=1)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            versions = reader.records.history(
                view.lineage, entries(where), key, before=before, limit=limit + 1
            )
        page = versions[:limit]
        more = len(versions) > limit
        return History(
            results=[_version(version) for version in page],
            truncated=more,
            next=str(page[-1].sequence) if more else None,
        )


def _about_item(error: StratagemError, item: str, inner: str) -> StratagemError:
    """Return an error about one of several items, with the place in them that it is about."""
    place = f"{item}.{inner}" if inner and inner != "items" else item
    details = {**error.details, "field": "items", "path": place}
    return type(error)(f"{place}: {error.message}", hint=error.hint, **details)


def is_expired(content: Mapping[str, Any], time: int) -> bool:
    """Whether an entry has expired by a time."""
    expires_at = content.get("expires_at")
    return expires_at is not None and expires_at <= time


def is_live(version: Version | None, time: int) -> bool:
    """Whether a version shows anything at a time."""
    if version is None or version.payload is None:
        return False
    return b'"expires_at"' not in version.payload or not is_expired(
        orjson.loads(version.payload), time
    )


# A key, namespace or name that can be taken.
check_names: Final = values.check_text


def check_tags(tags: Iterable[str]) -> list[str]:
    """Return tags in order, each once."""
    if not isinstance(tags, list | tuple | set | frozenset):
        raise ValidationFailed(
            "`tags` must be a list of strings.",
            field="tags",
            hint=f"Send [{tags!r}] instead." if isinstance(tags, str) else "",
        )
    unique = sorted({_check_tag(tag) for tag in tags})
    if len(unique) > limits.TAGS_MAX:
        raise ValidationFailed(
            f"An entry can have at most {limits.TAGS_MAX} tags; there are {len(unique)}.",
            field="tags",
            limit=limits.TAGS_MAX,
        )
    return unique


def _check_tag(tag: object) -> str:
    return values.check_text(tag, field="tags", chars_max=limits.TAG_CHARS_MAX)


def _check_index(index: object) -> bool | None:
    if index is None or isinstance(index, bool):
        return index
    raise ValidationFailed("`index` must be true or false.", field="index")


def sequence_named_by(key: str) -> int | None:
    """Return the sequence that a key ends with, as `@123` does; None where it names none.

    A list of hits has it after the label of the event: `message @123`.
    """
    label, sign, number = key.rpartition("@")
    is_named = sign and (not label or label.endswith(" "))
    if not is_named or not number.isdecimal() or len(number) > _DIGITS_MAX:
        return None
    return int(number)


def _check_version(version: object) -> int:
    if isinstance(version, bool) or not isinstance(version, int) or not 0 <= version <= OPEN_END:
        raise ValidationFailed(
            "expected_version is a version number, or 0 for an entry that must not exist yet.",
            field="expected_version",
        )
    return version


def _check_options(item: Mapping[str, Any]) -> None:
    """Refuse an item that lacks a required option, or has one that would be ignored."""
    for name in ("key", "value"):
        if name not in item:
            raise MissingRequired(f"An item needs a `{name}`.", field=name)
    if not item.keys() <= Item.__annotations__.keys():
        unknown = sorted(map(str, item.keys() - Item.__annotations__.keys()))
        raise ValidationFailed(
            f"An item has no option `{unknown[0]}`.",
            field="items",
            unknown=unknown[:20],
            hint=f"An item takes {', '.join(Item.__annotations__)}. "
            "All items of a call are written to one branch.",
        )


def _repeats_a_key(writes: Sequence[_Write]) -> bool:
    """Whether a later write of the group must see an earlier one."""
    names = {(write.namespace, write.key) for write in writes}
    return len(names) < len(writes)


def _version(version: Version) -> VersionInfo:
    content = orjson.loads(version.payload) if version.payload else {}
    return VersionInfo(
        value=content.get("value"),
        version=version.sequence,
        timestamp=moments.iso(version.at),
        tags=content.get("tags", []),
        deleted="value" not in content,
        expires=moments.iso(content["expires_at"]) if "expires_at" in content else None,
        actor=version.actor,
        erased=version.payload is None or None,
        source=content.get("source"),
        trust=content.get(TRUST),
    )
