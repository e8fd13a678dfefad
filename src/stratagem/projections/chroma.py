"""Concepts in ChromaDB: our own vectors, with what can be filtered by.

Each version of a concept is an item of its own, named after the concept and the sequence. So an
older version that arrives late stands beside the newer one, and never replaces it; each update of a
concept removes all but the newest item. Every hit of a search is looked up in the log, where
superseded versions are not shown.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from stratagem import limits
from stratagem.engine.records import Text
from stratagem.errors import (
    EmbeddingFailed,
    ServiceUnavailable,
    StratagemError,
    VectorServiceFailed,
)
from stratagem.projections.contract import Companion, Properties, RecordState, StoredItem
from stratagem.search.vectors import Nearest

__all__ = ["ChromaModel"]

T = TypeVar("T")
Embed = Callable[[Sequence[Text]], NDArray[np.float32]]

SERVICE: Final = "chromadb_service"
# Raised when what is kept, or how, changes.
_FORM: Final = 2
_PAGE: Final = 1_000


class ChromaModel:
    """See `ReadModel`. Safe to use from several threads.

    `place` is the address of a server, a folder, or nothing: then it is in memory alone.
    """

    name: Final = "chroma"

    def __init__(
        self,
        place: str,
        *,
        identity: str,
        kind: str,
        companion: str,
        embed: Embed,
        embedder: Callable[[], str | None],
    ) -> None:
        self.kinds = (kind, companion)
        self.companion = Companion(kind, companion)
        self._place = place
        self._collection_name = f"stratagem-{identity}"
        self._embed = embed
        self._embedder = embedder
        self._lock = threading.Lock()
        self._client: Any = None
        self._collection: Any = None

    @property
    def fingerprint(self) -> str:
        """See `ReadModel`: vectors of another embedder cannot be compared."""
        return f"{_FORM}:{self._embedder()}"

    @property
    def _display_address(self) -> str:
        """Where it is, without what an address may say of its user."""
        return re.sub(r"//[^/@]*@", "//", self._place) or "memory"

    def probe(self) -> None:
        """See `ReadModel`."""
        self._request(lambda _collection: self._client.heartbeat())

    def clear(self) -> None:
        """See `ReadModel`."""

        def work(_collection: Any) -> None:
            self._client.delete_collection(self._collection_name)

        self._request(work)
        self._forget()

    def apply(self, items: Sequence[RecordState]) -> None:
        """See `ReadModel`."""
        added = [item.node for item in items if item.node is not None]
        items = [item for item in items if item.kind == self.companion.node] + added
        if not items:
            return
        ids, vectors, kept = self._embed_items(items)

        def work(collection: Any) -> None:
            if ids:
                collection.upsert(
                    ids=ids,
                    embeddings=vectors,
                    metadatas=[_metadata(item) for item in kept],
                    documents=[_document(item) for item in kept],
                )
            stale = _stale(collection, items)
            if stale:
                collection.delete(ids=stale)

        self._request(work)

    def expected_properties(self, items: Sequence[RecordState]) -> dict[str, Properties]:
        """See `ReadModel`."""
        ids, vectors, kept = self._embed_items(items)
        return {
            name: {**_metadata(item), "document": _document(item), "vector": vector.tolist()}
            for name, vector, item in zip(ids, vectors, kept, strict=True)
        }

    def fetch(self, ids: Sequence[str]) -> dict[str, Properties]:
        """See `ReadModel`."""
        if not ids:
            return {}
        include = ["metadatas", "documents", "embeddings"]
        found = self._request(lambda collection: collection.get(ids=list(ids), include=include))
        rows = zip(
            found["ids"],
            found["metadatas"],
            found["documents"],
            found["embeddings"],
            strict=True,
        )
        return {
            name: {**metadata, "document": document, "vector": [float(each) for each in vector]}
            for name, metadata, document, vector in rows
        }

    def stored_items(self) -> Iterator[StoredItem]:
        """See `ReadModel`."""
        offset = 0
        while True:
            page = self._request(partial(_page, offset=offset))
            for name, metadata in zip(page["ids"], page["metadatas"], strict=True):
                yield StoredItem(name, int((metadata or {}).get("subject", 0)))
            if len(page["ids"]) < _PAGE:
                return
            offset += _PAGE

    def nearest(self, vector: NDArray[np.float32], *, facets: Sequence[str], limit: int) -> Nearest:
        """Return the versions whose vectors are nearest to one."""

        def work(collection: Any) -> Any:
            return collection.query(
                query_embeddings=[vector],
                n_results=limit,
                where=_where(facets),
                include=["metadatas", "distances"],
            )

        found = self._request(work)
        sequences = [each["sequence"] for each in found["metadatas"][0]]
        # A distance may be a little below nothing.
        cosines = np.clip(1 - np.array(found["distances"][0], np.float32), -1, 1)
        return Nearest(np.array(sequences, np.int64), cosines.astype(np.float32))

    def close(self) -> None:
        """See `ReadModel`."""
        with self._lock:
            client, self._client, self._collection = self._client, None, None
        if client is not None:
            client.close()
            for session in _sessions(client):
                session.close()

    def _embed_items(
        self, items: Sequence[RecordState]
    ) -> tuple[list[str], NDArray[np.float32], list[RecordState]]:
        """Return the items that have a vector, and what they are called.

        A text whose vector is zero is near to nothing, and is left out.
        """
        texts = [item for item in items if item.content is not None and item.text is not None]
        if not texts:
            return [], np.zeros((0, 0), np.float32), []
        try:
            rows = self._embed([item.text for item in texts if item.text is not None])
        except (StratagemError, OSError, ValueError) as error:
            raise EmbeddingFailed(f"The embedder does not work: {error}") from error
        told = np.any(rows != 0, axis=1)
        kept = [item for item, has in zip(texts, told.tolist(), strict=True) if has]
        return [_id(item) for item in kept], rows[told], kept

    def _request(self, ask: Callable[[Any], T]) -> T:
        """Ask the service, and say in our words what went wrong."""
        try:
            import httpx
            from chromadb.errors import ChromaError, NotFoundError
        except ImportError as error:
            raise _unavailable(f"The package chromadb is not installed: {_INSTALL}.") from error
        try:
            try:
                return ask(self._get_collection())
            except NotFoundError:
                # Another process made the collection anew.
                self._forget()
                return ask(self._get_collection())
        except (httpx.TransportError, TimeoutError, ConnectionError) as error:
            raise _unavailable(
                f"Chroma does not answer at {self._display_address}: {error}."
            ) from error
        except ChromaError as error:
            raise VectorServiceFailed(f"Chroma refused: {error}.", service=SERVICE) from error
        except (ValueError, OSError, httpx.HTTPError) as error:
            raise _unavailable(
                f"Chroma cannot be used at {self._display_address}: {error}."
            ) from error

    def _get_collection(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = _within(limits.SERVICE_TIMEOUT_SECONDS, self._connect)
            if self._collection is None:
                self._collection = self._client.get_or_create_collection(
                    self._collection_name,
                    embedding_function=None,
                    configuration={"hnsw": {"space": "cosine"}},
                )
            return self._collection

    def _connect(self) -> Any:
        import chromadb
        import httpx
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        if not self._place.startswith(("http://", "https://")):
            with _opening:
                if not self._place:
                    return chromadb.EphemeralClient(settings=settings)
                return chromadb.PersistentClient(self._place, settings=settings)
        address = httpx.URL(self._place)
        client = chromadb.HttpClient(
            host=address.host,
            port=address.port or (443 if address.scheme == "https" else 80),
            ssl=address.scheme == "https",
            settings=settings,
        )
        for session in _sessions(client):
            session.timeout = httpx.Timeout(
                limits.SERVICE_TIMEOUT_SECONDS, connect=limits.SERVICE_CONNECT_SECONDS
            )
        return client

    def _forget(self) -> None:
        with self._lock:
            self._collection = None


# Chroma lists a folder as open before it is: a second client would be given what is not there yet.
# An attempt that took too long goes on in its thread, so there can be two.
_opening: Final = threading.Lock()
_INSTALL: Final = "pip install 'stratagem[chroma]'"


def _unavailable(message: str) -> ServiceUnavailable:
    return ServiceUnavailable(message, service=SERVICE)


def _sessions(client: Any) -> Iterator[Any]:
    """Return the connections of a client: it gives them no time-out, and closes none of them."""
    for each in (client, getattr(client, "_admin_client", None)):
        session = getattr(getattr(each, "_server", None), "_session", None)
        if session is not None:
            yield session


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Run work that knows no time-out; one that hangs is left behind."""
    done: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as error:  # noqa: BLE001 -- raised again where it is waited for
            failed.append(error)

    thread = threading.Thread(target=run, name="stratagem-chroma", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return done[0]


def _page(collection: Any, *, offset: int) -> Any:
    return collection.get(limit=_PAGE, offset=offset, include=["metadatas"])


def _id(item: RecordState) -> str:
    return f"{item.key}@{item.sequence}"


def _document(item: RecordState) -> str:
    return item.text.body[: limits.INDEXED_CHARS_MAX] if item.text else ""


def _metadata(item: RecordState) -> Properties:
    """Return what an item can be filtered by: its plain fields, and its facets where they are."""
    content = item.content or {}
    body = _document(item)
    plain = {
        name: value
        for name, value in content.items()
        if isinstance(value, str | int | float) and value != body
    }
    facets = dict(facet.split("=", 1) for facet in item.facets if not facet.startswith("name="))
    return {
        **plain,
        **facets,
        "concept_id": item.key,
        "subject": item.subject,
        "sequence": item.sequence,
    }


def _where(facets: Sequence[str]) -> dict[str, Any] | None:
    wanted: list[dict[str, Any]] = [dict([facet.split("=", 1)]) for facet in facets]
    if len(wanted) > 1:
        return {"$and": wanted}
    return wanted[0] if wanted else None


def _stale(collection: Any, items: Sequence[RecordState]) -> list[str]:
    """Return the items of some concepts but the newest of each, or all of one that is gone."""
    subjects = [item.subject for item in items]
    found = collection.get(where={"subject": {"$in": subjects}}, include=["metadatas"])
    newest = {item.subject: item.sequence for item in items}
    for metadata in found["metadatas"]:
        subject, sequence = metadata["subject"], metadata["sequence"]
        newest[subject] = max(newest[subject], sequence)
    gone = {item.subject: item.sequence for item in items if item.content is None}
    return [
        name
        for name, metadata in zip(found["ids"], found["metadatas"], strict=True)
        if metadata["sequence"] < newest[metadata["subject"]]
        or metadata["sequence"] <= gone.get(metadata["subject"], 0)
    ]
