"""Callers' own vectors, in collections: records like all others.

A collection is a record that says how long its vectors are and how they are compared; each vector
is a record under a key, with metadata. So branches, past moments, history, merge, purge and export
hold for them as for entries. `search/collections.py` finds the nearest.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, Required, TypedDict

import orjson

from stratagem import limits
from stratagem.answers import read_cursor
from stratagem.deferred_modules import np
from stratagem.developer.kinds import (
    COLLECTION_CREATED,
    COLLECTION_DELETED,
    VECTOR_DELETED,
    VECTOR_STORED,
    collections,
    vectors,
)
from stratagem.developer.metadata import (
    FilterCondition,
    check_metadata,
    facet,
    matches,
    number_name,
    parse_filter,
    text_facet,
)
from stratagem.developer.models import (
    CollectionDeleted,
    CollectionInfo,
    CollectionList,
    Metric,
    RecordsPurged,
    VectorDeleted,
    VectorHit,
    VectorHits,
    VectorRecord,
    VectorsWritten,
    VectorVersion,
    VectorVersions,
    VectorWritten,
)
from stratagem.developer.parameters import HistoryLimit, SpaceName
from stratagem.developer.records import KeyedRecords
from stratagem.engine import moments, values
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import OPEN_END, View
from stratagem.engine.records import FACET_MARK
from stratagem.errors import CollectionExists, CollectionNotFound, ValidationFailed
from stratagem.parameters import COUNT_ALIASES, AsOf, BranchName, Cursor, Param, RequestId
from stratagem.search.collections import CollectionShape
from stratagem.storage.contract import EventContent, Reader, Transaction, Version
from stratagem.storage.views import find_branch

__all__ = ["VectorCollections", "VectorItem"]

_CollectionName = Annotated[str, Param("The collection", quiet=True)]
_VectorKey = Annotated[str, Param("The vector's key", quiet=True, aliases=("id",))]
_Numbers = Annotated[
    Sequence[float], Param("Its numbers", quiet=True, aliases=("embedding", "values"))
]
_Metadata = Annotated[Mapping[str, Any] | None, Param("An object for filters", quiet=True)]
_Filter = Annotated[
    Mapping[str, Any] | None,
    Param("{field: value} or {field: {op: value}}; op: eq ne gt gte lt lte in contains"),
]
_WithVectors = Annotated[bool, Param("Return the vectors too")]
_AT_ONCE: Final = 1_000
# How much deeper than what is wanted is looked where hits have to be read to be judged.
_DEEPER: Final = 4
# At least so many of the nearest are measured exactly where distances are asked for.
_MEASURED_MIN: Final = 50


class VectorItem(TypedDict, total=False):
    """One vector of a call that writes several."""

    key: Required[Annotated[str, Param("Its key", aliases=("id",))]]
    vector: Required[Annotated[Sequence[float], Param("Its numbers", aliases=("embedding",))]]
    metadata: Annotated[Mapping[str, Any] | None, Param("Metadata for filters")]


class VectorCollections(KeyedRecords):
    """Collections of vectors, for one caller."""

    def create_collection(
        self,
        name: _CollectionName,
        dimension: Annotated[
            int, Param("How many numbers a vector has", ge=1, le=limits.VECTOR_DIMENSIONS_MAX)
        ],
        metric: Annotated[Metric, Param("How they are compared", quiet=True)] = "cosine",
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CollectionInfo:
        """Create a collection.

        Raises:
            CollectionExists: There is one of that name.
        """
        where = self._namespace(namespace)
        _check_collection(name)

        def check(version: Version | None) -> bool:
            if version is not None:
                raise CollectionExists(
                    f"There is a collection named {name!r} already.", field="name", collection=name
                )
            return True

        done = self._write_record(
            collections(where),
            name,
            COLLECTION_CREATED,
            {"dimension": dimension, "metric": metric},
            branch,
            request_id,
            "vector_create_collection",
            check=check,
        )
        return CollectionInfo(name, dimension, metric, where, 0, done["timestamp"])

    def delete_collection(
        self,
        name: _CollectionName,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> CollectionDeleted:
        """Delete a collection with its vectors; views of earlier moments still show them."""
        where, on = self._namespace(namespace), branch or self._caller.branch
        _check_collection(name)

        def work(transaction: Transaction) -> dict[str, Any]:
            target = find_branch(transaction.branches, on)
            view = View(target, transaction.branches.lineage(target), transaction.wall)
            if transaction.records.current(view.lineage, collections(where), name) is None:
                return {"deleted": False, "vectors": 0}
            space = vectors(where, name)
            drafts = [
                Draft(VECTOR_DELETED, {}, space, key) for key in _keys(transaction, view, space)
            ]
            drafts.append(Draft(COLLECTION_DELETED, {}, collections(where), name))
            for begin in range(0, len(drafts), _AT_ONCE):
                target = find_branch(transaction.branches, on)
                transaction.append(target, drafts[begin : begin + _AT_ONCE])
            return {"deleted": True, "vectors": len(drafts) - 1}

        done = self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="vector_delete_collection",
            arguments={"name": name, "namespace": where, "branch": on},
        )
        return CollectionDeleted(name, **done)

    def list_collections(
        self, *, as_of: AsOf = None, namespace: SpaceName = None, branch: BranchName = None
    ) -> CollectionList:
        """Return the collections of a space, by name."""
        where = self._namespace(namespace)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            names = list(_keys(reader, view, collections(where)))
            found = [_describe(reader, view, where, name) for name in names]
        return CollectionList(found)

    def stats(
        self,
        name: _CollectionName,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> CollectionInfo:
        """Return what a collection is, and how many vectors it holds.

        Raises:
            CollectionNotFound: There is none of that name.
        """
        where = self._namespace(namespace)
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            return _describe(reader, view, where, _check_collection(name))

    def upsert(
        self,
        collection: _CollectionName,
        key: _VectorKey,
        vector: _Numbers,
        metadata: _Metadata = None,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> VectorWritten:
        """Store a vector under a key, in the place of the one that was there.

        Raises:
            CollectionNotFound: There is no such collection.
        """
        item: Any = {"key": key, "vector": vector, "metadata": metadata}
        (done,) = self._store_vectors(collection, [item], namespace, branch, request_id)
        return VectorWritten(**done)

    def batch_upsert(
        self,
        collection: _CollectionName,
        items: Annotated[
            Sequence[VectorItem],
            Param(
                "[{key, vector, metadata}, …]: all are written, or none",
                advertised={
                    "items": {
                        "type": "object",
                        "properties": {
                            "key": {"type": "string"},
                            "vector": {"type": "array", "items": {"type": "number"}},
                            "metadata": {"type": "object"},
                        },
                        "required": ["key", "vector"],
                    }
                },
                aliases=("entries", "vectors"),
            ),
        ],
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> VectorsWritten:
        """Store several vectors, all of them or none."""
        done = self._store_vectors(collection, items, namespace, branch, request_id)
        created = sum(each["status"] == "created" for each in done)
        last = done[-1]
        return VectorsWritten(
            len(done), created, len(done) - created, last["version"], last["timestamp"]
        )

    def get(
        self,
        collection: _CollectionName,
        key: _VectorKey,
        *,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> VectorRecord | None:
        """Return a vector by its key, now or at a past moment; None where there is none."""
        where = self._namespace(namespace)
        space = vectors(where, _check_collection(collection))
        version = self._current(space, self._key(key, "key"), branch, as_of)
        if version is None:
            self._require_collection(where, collection, branch, as_of)
            return None
        content = orjson.loads(version.payload or b"{}")
        return VectorRecord(
            key,
            _numbers_of(content["vector"]),
            content.get("metadata") or {},
            version.sequence,
            moments.iso(version.at),
            collection,
            where,
        )

    def delete(
        self,
        collection: _CollectionName,
        key: _VectorKey,
        *,
        namespace: SpaceName = None,
        branch: BranchName = None,
        request_id: RequestId = None,
    ) -> VectorDeleted:
        """Delete a vector; views of earlier moments still show it."""
        where = self._namespace(namespace)
        space = vectors(where, _check_collection(collection))
        done = self._delete_record(
            space, self._key(key, "key"), VECTOR_DELETED, branch, request_id, "vector_delete"
        )
        if not done:
            self._require_collection(where, collection, branch, None)
        return VectorDeleted(key, bool(done), done.get("version"), done.get("timestamp"))

    def search(
        self,
        collection: _CollectionName,
        query: Annotated[
            Sequence[float], Param("The vector to compare with", quiet=True, aliases=("vector",))
        ],
        k: Annotated[
            int, Param("How many", quiet=True, ge=1, le=limits.VECTOR_K_MAX, aliases=COUNT_ALIASES)
        ] = limits.SEARCH_K_DEFAULT,
        *,
        filter: _Filter = None,  # noqa: A002 -- what the first server calls it
        include_vectors: _WithVectors = False,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> VectorHits:
        """Return the vectors nearest to one, nearest first, among those that a filter chooses.

        Raises:
            CollectionNotFound: There is no such collection.
        """
        where = self._namespace(namespace)
        conditions = parse_filter(filter)
        index = self._foundation.collections
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            info = _find_collection(reader, view, where, _check_collection(collection))
            wanted = _vector(query, info, field="query")
            number = _number_of(reader, vectors(where, collection))
            if number is None:
                return VectorHits([], info.metric)
            shape = CollectionShape(number, info.dimension, info.metric)
            index.check(self._store.reader(), shape)
            among = _candidates(reader, number, conditions)
            hits = _Search(reader, view, shape, wanted, among, conditions)
            found = hits.find(index, k)
        shown = [_hit(*each, info.metric, with_vector=include_vectors) for each in found]
        return VectorHits(shown, info.metric)

    def history(
        self,
        collection: _CollectionName,
        key: _VectorKey,
        *,
        limit: HistoryLimit = limits.HISTORY_PAGE_DEFAULT,
        cursor: Cursor = None,
        as_of: AsOf = None,
        namespace: SpaceName = None,
        branch: BranchName = None,
    ) -> VectorVersions:
        """Return the versions of a vector, newest first."""
        before = read_cursor(cursor, start=OPEN_END, least=1)
        where = self._namespace(namespace)
        space = vectors(where, _check_collection(collection))
        page, more = self._versions(space, self._key(key, "key"), before, limit, branch, as_of)
        if not page:
            self._require_collection(where, collection, branch, as_of)
        return VectorVersions(
            [_version(each) for each in page], more, str(page[-1].sequence) if more else None
        )

    def purge(
        self, collection: _CollectionName, key: _VectorKey, *, namespace: SpaceName = None
    ) -> RecordsPurged:
        """Erase a vector for good, with every version on any branch."""
        space = vectors(self._namespace(namespace), _check_collection(collection))
        return self._purge(space, self._key(key, "key"))

    def _require_collection(
        self, namespace: str, name: str, branch: str | None, as_of: str | int | None
    ) -> None:
        """Refuse a collection that is not there: a vector that is not there is no error."""
        with self._store.snapshot() as reader:
            view = self._views.view(reader, branch or self._caller.branch, as_of)
            _find_collection(reader, view, namespace, name)

    def _store_vectors(
        self,
        collection: str,
        items: Sequence[VectorItem],
        namespace: str | None,
        branch: str | None,
        request_id: str | None,
    ) -> list[dict[str, Any]]:
        """Write vectors, all of them or none."""
        where, on = self._namespace(namespace), branch or self._caller.branch
        _check_collection(collection)
        if not 1 <= len(items) <= limits.VECTORS_AT_ONCE_MAX:
            raise ValidationFailed(
                f"Between 1 and {limits.VECTORS_AT_ONCE_MAX:,} vectors can be stored at once; "
                f"there are {len(items):,}.",
                field="items",
                limit=limits.VECTORS_AT_ONCE_MAX,
                hint="Store them in several calls." if items else "Give at least one.",
            )
        keys = [self._key(each["key"], "key") for each in items]
        metadata = [check_metadata(each.get("metadata")) for each in items]
        for each in metadata:
            values.encode(each, field="metadata")

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            target = find_branch(transaction.branches, on)
            view = View(target, transaction.branches.lineage(target), transaction.wall)
            info = _find_collection(transaction, view, where, collection)
            space = vectors(where, collection)
            drafts = [
                _draft(space, key, _vector(item["vector"], info), extra)
                for key, item, extra in zip(keys, items, metadata, strict=True)
            ]
            return [
                {
                    "key": key,
                    "version": done.sequence,
                    "timestamp": moments.iso(done.at),
                    "status": "created" if done.before is None else "updated",
                }
                for key, done in zip(keys, transaction.append(target, drafts), strict=True)
            ]

        given = [[*map(float, each["vector"])] for each in items] if request_id else []
        arguments = {"vectors": given, "keys": keys, "metadata": metadata, "collection": collection}
        return self._foundation.write(
            self._caller,
            work,
            request_id=request_id,
            operation="vector_upsert",
            arguments={**arguments, "namespace": where, "branch": on},
        )


class _Search:
    """One search: the nearest of some candidates for which all conditions hold."""

    def __init__(  # noqa: PLR0917 -- what a search is about
        self,
        reader: Reader,
        view: View,
        shape: CollectionShape,
        query: Any,
        among: Any,
        conditions: Sequence[FilterCondition],
    ) -> None:
        self._reader = reader
        self._view = view
        self._shape = shape
        self._query = query
        self._among = among
        self._conditions = conditions

    def find(self, index: Any, k: int) -> list[tuple[float, EventContent]]:
        """Return the nearest hits with their scores, nearest first.

        The index computes a distance as a difference of squares of lengths, which loses precision
        for small distances. So more hits than wanted are read, and measured from the stored
        vectors.
        """
        if self._shape.metric != "euclidean":
            return self._best(index, k)
        near = self._best(index, _DEEPER * k + _MEASURED_MIN)
        measured = [(0.0 - self._distance(content), content) for _score, content in near]
        return sorted(measured, key=itemgetter(0), reverse=True)[:k]

    def _distance(self, content: EventContent) -> float:
        numbers = np.array(_numbers_of(orjson.loads(content.payload)["vector"]))
        return float(np.linalg.norm(numbers - self._query.astype(np.float64)))

    def _best(self, index: Any, k: int) -> list[tuple[float, EventContent]]:
        """Return the best hits; where conditions rule many out, deeper and deeper ones are read."""
        depth = k if not self._conditions else _DEEPER * k
        while True:
            ranked = index.nearest(
                self._reader, self._view, self._shape, self._query, among=self._among, depth=depth
            )
            contents = self._reader.log.contents([sequence for sequence, _score in ranked])
            hits = [
                (score, contents[sequence])
                for sequence, score in ranked
                if self._holds(contents[sequence])
            ]
            if len(hits) >= k or len(ranked) < depth:
                return hits[:k]
            depth *= _DEEPER

    def _holds(self, content: EventContent) -> bool:
        if not self._conditions:
            return True
        return matches(self._conditions, orjson.loads(content.payload).get("metadata") or {})


def _candidates(reader: Reader, space: int, conditions: Sequence[FilterCondition]) -> Any:
    """Return the versions for which conditions may hold, as far as the indexes tell; else None."""
    found = None
    for each in conditions:
        possible = _possible(reader, space, each)
        if possible is not None:
            found = possible if found is None else np.intersect1d(found, possible)
    return found


def _possible(reader: Reader, space: int, condition: FilterCondition) -> Any:
    field, operator, value = condition
    if operator == "ne":
        return None
    if operator in {"eq", "in"}:
        wanted = [value] if operator == "eq" else value
        return _find_tagged(reader, [facet(field, each) for each in wanted])
    if operator == "contains":
        names = [facet(field, value, element=True)]
        return _find_tagged(
            reader, [*names, text_facet(field)] if isinstance(value, str) else names
        )
    if isinstance(value, str):
        return _find_tagged(reader, [text_facet(field)])
    if abs(value) > limits.METADATA_NUMBER_MAX:
        return None
    above = operator in {"gt", "gte"}
    # The bounds are included: what is equal is ruled out when the hits are read.
    least, most = (float(value), _HIGHEST) if above else (-_HIGHEST, float(value))
    return np.unique(reader.search.numbered_versions(space, number_name(field), least, most))


_HIGHEST: Final = 1.7e308
_NONE: Final[tuple[int, ...]] = ()


def _find_tagged(reader: Reader, names: Sequence[str]) -> Any:
    found = [reader.search.tagged_versions([FACET_MARK + name]) for name in dict.fromkeys(names)]
    return found[0] if len(found) == 1 else np.unique(np.concatenate([*found, _NONE]))


def _check_collection(name: str) -> str:
    values.check_text(name, field="collection", chars_max=limits.COLLECTION_CHARS_MAX)
    if "/" in name:
        raise ValidationFailed(
            "The name of a collection cannot contain a slash.",
            field="collection",
            hint="Use a dot or a dash.",
        )
    return name


def _find_collection(reader: Reader, view: View, namespace: str, name: str) -> CollectionInfo:
    version = reader.records.current(view.lineage, collections(namespace), name)
    if version is None or version.payload is None:
        near = list(_keys(reader, view, collections(namespace)))[:5]
        later = _created_later(reader, view, collections(namespace), name)
        if later is not None:
            raise CollectionNotFound(
                f"There was no collection {name!r} in the space {namespace!r} at that moment.",
                field="as_of",
                collection=name,
                created=later,
                hint=f"It was created at {later}: give a later moment.",
            )
        raise CollectionNotFound(
            f"There is no collection {name!r} in the space {namespace!r}.",
            field="collection",
            collection=name,
            similar=near,
            hint=f"There are: {', '.join(near)}."
            if near
            else "Create it with strata_vector_create_collection.",
        )
    content = orjson.loads(version.payload)
    return CollectionInfo(
        name, content["dimension"], content["metric"], namespace, None, moments.iso(version.at)
    )


def _created_later(reader: Reader, view: View, space: Space, name: str) -> str | None:
    """Return when a collection was created that a view of a past moment does not show yet."""
    now = reader.records.current(reader.branches.lineage(view.branch), space, name)
    return moments.iso(now.at) if now is not None and now.sequence > view.limit else None


def _describe(reader: Reader, view: View, namespace: str, name: str) -> CollectionInfo:
    info = _find_collection(reader, view, namespace, name)
    number = _number_of(reader, vectors(namespace, name))
    counts = reader.listing.space_counts(view, ("vector",))
    info.count = sum(each.live for each in counts if each.space == number)
    return info


def _number_of(reader: Reader, space: Space) -> int | None:
    spaces = reader.records.spaces(space.kind)
    return next((number for number, each in spaces.items() if each == space), None)


def _keys(reader: Reader, view: View, space: Space) -> Iterator[str]:
    after = ""
    while page := reader.listing.by_key(view, space, after=after, limit=_AT_ONCE):
        yield from (each.key for each in page)
        after = page[-1].key


def _vector(given: Any, info: CollectionInfo, *, field: str = "vector") -> Any:
    """Return the numbers of a vector, checked against its collection."""
    try:
        with np.errstate(over="ignore"):
            numbers = np.asarray(given, np.float32)
    except (TypeError, ValueError, OverflowError):
        numbers = None
    if numbers is None or numbers.ndim != 1:
        raise ValidationFailed(f"`{field}` must be a list of numbers.", field=field)
    if len(numbers) != info.dimension:
        raise ValidationFailed(
            f"`{field}` has {len(numbers):,} numbers; vectors of {info.name!r} have "
            f"{info.dimension:,}.",
            field=field,
            limit=info.dimension,
            hint="Embed with the model that the collection was made for.",
        )
    if not np.isfinite(numbers).all():
        raise ValidationFailed(f"`{field}` has a number that is not finite.", field=field)
    if info.metric == "cosine" and not numbers.any():
        raise ValidationFailed(
            f"`{field}` is all zeros: it has no direction, so its cosine similarity is undefined.",
            field=field,
            hint="Use a collection with the metric euclidean or dot for such vectors.",
        )
    return numbers


def _draft(space: Space, key: str, vector: Any, metadata: Mapping[str, Any]) -> Draft:
    content: dict[str, Any] = {"vector": b64encode(vector.astype("<f4").tobytes()).decode()}
    if metadata:
        content["metadata"] = dict(metadata)
    return Draft(VECTOR_STORED, content, space, key)


def _numbers_of(stored: str) -> list[float]:
    numbers: list[float] = np.frombuffer(b64decode(stored), "<f4").tolist()
    return numbers


def _hit(score: float, content: EventContent, metric: Metric, *, with_vector: bool) -> VectorHit:
    stored = orjson.loads(content.payload)
    return VectorHit(
        key=content.key or "",
        score=float(score),
        metadata=stored.get("metadata") or {},
        version=content.sequence,
        distance=-float(score) if metric == "euclidean" else None,
        vector=_numbers_of(stored["vector"]) if with_vector else None,
    )


def _version(version: Version) -> VectorVersion:
    content = orjson.loads(version.payload) if version.payload else {}
    there = "vector" in content
    return VectorVersion(
        version.sequence,
        moments.iso(version.at),
        not there,
        _numbers_of(content["vector"]) if there else None,
        (content.get("metadata") or {}) if there else None,
        version.actor,
        version.payload is None or None,
    )
