"""The one index over every kind of record.

Words and meaning are searched apart and their scores fused (`ranking`). Words are found by
the store, which holds the analysed terms; meaning by comparing vectors (`vectors`). Both see
exactly what the view shows, and filters apply before anything is ranked.

The embedder is read when it is first needed, in a thread of its own: a write that comes before
is indexed by its words at once and gets its vector when the embedder is there, at the latest
when the next search begins.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import defer, np
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import View
from stratagem.engine.records import Text
from stratagem.errors import EmbeddingFailed, StratagemError
from stratagem.function_cache import cache_texts
from stratagem.search import embedding, ranking
from stratagem.search.embedding import Embedder
from stratagem.storage.contract import (
    IndexedText,
    Progress,
    Reader,
    ScoredPassages,
    SearchReader,
    SettingReader,
    Store,
    Transaction,
    WriteRequest,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratagem.search import analysis, nearness, passages, questions, stored_vectors
    from stratagem.search import vectors as text_vectors
    from stratagem.search.nearness import Nearness
    from stratagem.search.stored_vectors import StoredVectors
    from stratagem.search.vectors import Nearest, VectorCache, VectorComparison
else:
    # Only searches and writes of texts look at words and vectors.
    analysis = defer("stratagem.search.analysis")
    nearness = defer("stratagem.search.nearness")
    passages = defer("stratagem.search.passages")
    questions = defer("stratagem.search.questions")
    stored_vectors = defer("stratagem.search.stored_vectors")
    text_vectors = defer("stratagem.search.vectors")

__all__ = ["Index", "MatchedTexts", "Ranked", "Ranking", "lent_terms"]

_ACTOR = "stratagem"
_BATCH = 256
# How many waiting texts a search embeds before it answers; a longer queue is left to the
# background.
_SETTLED_AT_ONCE = 2_000
_SETTLING_SECONDS_MAX = 2.0
# How long a search waits for other writers to index what they have left.
_INDEXING_SECONDS_MAX = 1.0
_TERM_COUNTS_MAX = 10_000
# How many times the passages wanted are ranked, in case that a view hides some.
_SPARE = 2
_SEARCHES_AFTER_MISS = 16
_MANY = ranking.UNSORTED_MATCHES_MAX + 1
_RAISED_LISTED_MAX = 200
# Beyond those that are weighed: estimated scores may have put some in a wrong place.
_REFINED_SPARE = 50
# Room for as many words as a message may lend; the cache of them takes 16 MB at most.
_LENT_MAX = 4_096
_LENT_CHARS_MAX = 1_000


class Ranked(NamedTuple):
    """A version that a search found, with a score in [0, 1], or 1 more where it has the very name.

    Scores compare what one search found. `cosine` is how near its meaning is by itself; NaN
    where there is no vector. `passage` is the one whose words match best, None where none does.
    `is_raised`: the score is multiplied by `ranking.RAISED`.
    """

    sequence: int
    score: float
    cosine: float = math.nan
    passage: int | None = None
    is_raised: bool = False

    def weigh(self, weight: float, *, is_raised: bool) -> Ranked:
        """Return the same with another score."""
        return Ranked(self.sequence, self.score * weight, self.cosine, self.passage, is_raised)


class MatchedTexts(NamedTuple):
    """Versions, how well the words of each match, and its passage that matches best; -1: none."""

    sequences: NDArray[np.int64]
    bm25: NDArray[np.float64]
    passages: NDArray[np.int64]

    def take(self, places: NDArray[np.int64]) -> MatchedTexts:
        """Return some of them."""
        return MatchedTexts(self.sequences[places], self.bm25[places], self.passages[places])

    def best_passage(self, sequence: int) -> int | None:
        """Return the passage of a version that matches best; None for others."""
        places = np.flatnonzero(self.sequences == sequence)
        return int(self.passages[places[0]]) if len(places) else None


@dataclass(frozen=True, slots=True)
class Ranking:
    """The hits of a search, best first, and how it was made.

    `terms` are those of the query; `asked` the selective ones among them. `best_passage` says which
    passage of a text matches best by its words, whether it was found or not, and None where none
    does. `waiting` texts have no vector yet, and `unindexed` ones could not be searched at all.
    `nearness` compares further texts with the query.
    """

    found: list[Ranked]
    terms: list[str]
    asked: list[str]
    mode: Literal["hybrid", "lexical"]
    best_passage: Callable[[int], int | None]
    waiting: int = 0
    unindexed: int = 0
    nearness: Nearness | None = None

    def say_waiting(self, store: Store) -> list[str]:
        """Say which texts were searched by words only, and which not at all."""
        said = []
        if self.waiting:
            said.append(f"{self.waiting} texts have no vector yet; they are found by words only.")
        if self.unindexed:
            said.append(_say_unindexed(self.unindexed, read_only=store.read_only))
        return said


def _say_unindexed(count: int, *, read_only: bool) -> str:
    if read_only:
        return (
            f"{count} texts were stored last and are not searched yet: whoever opens the database "
            "for writing indexes them."
        )
    return f"{count} texts were stored a moment ago and are not searched yet: search again."


class Index:
    """Indexes texts and searches them. Safe to share between threads."""

    context_window = ranking.CONTEXT_WINDOW

    def __init__(self, embedder: Embedder | None, vector_path: Path | None) -> None:
        self._vector_path = vector_path
        self._store: Store | None = None
        self._store_compares_vectors = False
        self._opening = threading.Lock()
        self._use(embedder)
        self._background: threading.Thread | None = None
        self._starting = threading.Lock()
        self._stopping = threading.Event()
        self._term_counts: dict[str, tuple[int, int]] = {}
        # For how many searches yet only what a view shows is ranked.
        self._ranks_shown_only = 0

    @property
    def embedder_name(self) -> str | None:
        """The embedder whose vectors this index can compare."""
        return self.embedder.name if self.embedder else None

    def attach(self, store: Store, *, follow: bool) -> None:
        """Take the store whose texts are indexed.

        Where it was embedded with another embedder, `follow` that one; otherwise its texts
        are embedded anew, in the background.
        """
        self._store = store
        self._use(self.embedder)
        reader = store.reader()
        self._store_compares_vectors = reader.vector_comparer is not None
        kept = reader.settings.text("embedder")
        if self.embedder is None or kept == self.embedder.name:
            return
        if follow and kept is not None and not embedding.is_ours(kept):
            # Without that embedder words alone are searched; its vectors are not thrown away.
            self._use(embedding.recognise(kept))
        elif not store.read_only:
            name = self.embedder.name
            store.write(
                lambda transaction: transaction.vectors.change_embedder(name), WriteRequest(_ACTOR)
            )
            if kept is not None:
                self.warm()

    def _use(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self._opened_vectors: VectorCache | StoredVectors | None = None

    @property
    def _vectors(self) -> VectorCache | StoredVectors | None:
        """The vectors of the embedder, opened when they are first compared; None without one."""
        if self._opened_vectors is None and self.embedder is not None:
            with self._opening:
                if self._opened_vectors is None:
                    self._opened_vectors = self._open_vectors(self.embedder)
        return self._opened_vectors

    def _open_vectors(self, embedder: Embedder) -> VectorCache | StoredVectors:
        if self._store_compares_vectors:
            return stored_vectors.StoredVectors(embedder.dimensions)
        return text_vectors.VectorCache(self._vector_path, embedder.dimensions)

    def documents(
        self, texts: Sequence[tuple[Text, Sequence[str]]], *, embed: bool
    ) -> list[IndexedText]:
        """See `stratagem.storage.contract.Indexer`."""
        vectors: list[bytes | None] = [None] * len(texts)
        if embed and self.embedder is not None:
            if self.embedder.is_loaded:
                rows = _embed(self.embedder, [text for text, _ in texts])
                vectors = [row.tobytes() for row in rows]
            else:
                self.warm()
        title_terms = analysis.title_terms
        return [
            IndexedText(
                title_terms(text.title),
                _body_terms(text),
                _context_terms(text.aside, context) if text.aside or context else "",
                vector,
            )
            for (text, context), vector in zip(texts, vectors, strict=True)
        ]

    def search(
        self,
        reader: Reader,
        view: View,
        query: str,
        *,
        spaces: Sequence[int] | None,
        tags: Sequence[str],
        limit: int,
        title: str = "",
        weights: tuple[float, float, float] = ranking.FIELD_WEIGHTS,
        nearest: Callable[[NDArray[np.float32], int], Nearest] | None = None,
        raised: str = "",
        lexical: bool = False,
    ) -> Ranking:
        """Return the best `limit` versions for a query, among those a view shows.

        Up to `ranking.WEIGHED_MIN`, fewer are the first of more. Beyond, another limit may give
        another order (`place_order`).

        `spaces` and `tags`, where given, restrict the search; several tags mean all of them.
        `title` is the part of a long query that says by itself what it is about; `weights`
        are those of title, body, and context or aside. `nearest`, if given, finds the nearest
        versions in place of the vectors of this index. Texts with the facet `raised` get a somewhat
        higher score. `lexical`: search by words only.
        """
        terms = analysis.query_terms(query)
        asked, expected = self._worth_asking(reader, terms)
        scope = _Scope(view, spaces, tags, weights)
        common = set(terms) - set(asked) if len(terms) <= ranking.ASKED_TERMS_MAX else set()
        spoken = questions.in_first_person(query)
        wanted = Text(title, analysis.leave_out(spoken, common), titled=True)
        vector = None if lexical else self._query_vector(reader.settings, wanted)
        if vector is None:
            best = _Weighing(reader, scope, limit, raised)
            self._weigh_words(best, asked, expected)
            if best.count < ranking.MATCHES_FEW and len(asked) < len(terms):
                # Words that are common elsewhere, on other branches say, may be all there is here.
                every = terms[: ranking.ASKED_TERMS_MAX]
                self._weigh_words(best, every, self._count_matches(reader, every))
            unindexed = reader.search.unindexed_count()
            return Ranking(
                best.shares(), terms, asked, "lexical", best.passage_of, unindexed=unindexed
            )
        assert self.embedder is not None
        meaning = _Meaning(vector, max(limit, ranking.SEMANTIC_DEPTH), nearest)
        found = self._compare(reader, scope, meaning, _Asked(asked, expected, limit))
        if len(found.words.sequences) < ranking.MATCHES_FEW and len(asked) < len(terms):
            # Words that are common elsewhere, on other branches say, may be all there is here.
            every = terms[: ranking.ASKED_TERMS_MAX]
            many = max(self._count_matches(reader, every), _MANY)
            found = self._compare(reader, scope, meaning, _Asked(every, many, limit))
        candidates, cosines = _merge_candidates(found)
        best = _Weighing(reader, scope, limit, raised)
        among = None
        named = self._find_named(reader, scope, query)
        if found.exact is not None:
            among = _find_best(candidates, cosines, named, best.count_max + _REFINED_SPARE)
            cosines[among] = found.exact(candidates.sequences[among])
        best.weigh(_rank(candidates, cosines, named, best.count_max, among))
        waiting = reader.vectors.pending_count()
        near_words = nearness.Nearness(self.embedder, spoken, vector)
        passage_of = found.words.best_passage
        unindexed = reader.search.unindexed_count()
        return Ranking(best.top, terms, asked, "hybrid", passage_of, waiting, unindexed, near_words)

    def _find_named(self, reader: Reader, scope: _Scope, query: str) -> list[int]:
        """Return the versions that have the name which a query is, if it is nothing else."""
        name = analysis.find_lone_name(query)
        if name is None or not self._count_matches(reader, [name]):
            return []
        # Messages that follow one with the name have it in their context only.
        own = scope._replace(weights=(*scope.weights[:2], 0.0))
        found = own.matches(reader, [name], ranking.LEXICAL_DEPTH)
        named: list[int] = found.sequences[found.scores > 0].tolist()
        return named

    def embed(self, texts: Sequence[Text]) -> NDArray[np.float32]:
        """Return the vectors of texts, as they are kept.

        Raises:
            EmbeddingFailed: There is no embedder.
        """
        if self.embedder is None:
            raise EmbeddingFailed("There is no embedder.")
        return _embed(self.embedder, texts)

    def rarity(self, reader: Reader, terms: Sequence[str]) -> dict[str, float]:
        """Return the weight of each term: rarer terms weigh more."""
        total = max(reader.search.text_count(), 1)
        counts = self._count_texts(reader.search, terms, total)
        return {term: math.log1p(total / (1 + counts[term])) for term in terms}

    def absent_terms(self, reader: Reader, terms: Sequence[str]) -> set[str]:
        """Return the terms that no text has, whatever a view shows."""
        return {term for term, count in self.rare_terms(reader, terms, 0).items() if not count}

    def rare_terms(self, reader: Reader, terms: Sequence[str], most: int) -> dict[str, int]:
        """Return the terms that about so many texts have at most, and how many do."""
        search = reader.search
        counts = self._count_texts(search, terms, max(search.text_count(), 1))
        rare = [term for term, count in counts.items() if count <= most]
        # What was counted a while ago may have been stored since.
        return search.document_frequencies(rare) if rare else {}

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        """Begin a snapshot to search in, after the texts of a burst of writes have been indexed.

        Short queues of texts get their vectors, too. So a search sees the latest writes. A snapshot
        tells whether any texts wait, and mostly none do: a server that was asked beforehand would
        be asked once more.
        """
        store, vectors = self._store, self._vectors
        assert store is not None, "texts are searched in a store"
        settles = vectors is not None and not store.read_only
        with store.snapshot() as reader:
            known = vectors is None or vectors.belongs_to(reader.log)
            waiting = reader.vectors.pending_count() if settles else 0
            unindexed = 0 if store.read_only else reader.search.unindexed_count()
            if known and not waiting and not unindexed:
                yield reader
                return
        if unindexed:
            store.index_backlog(_INDEXING_SECONDS_MAX)
            waiting = store.reader().vectors.pending_count() if settles else 0
        if vectors is not None and not known:
            # What another thread has read meanwhile may be newer than that snapshot.
            vectors.check(store.reader())
        if waiting:
            self._settle(waiting)
        with store.snapshot() as reader:
            yield reader

    def _settle(self, waiting: int) -> None:
        """Give texts their vectors; do not wait for it where there are many."""
        store = self._store
        assert store is not None, "texts are searched in a store"
        if store.reader().settings.text("embedder") != self.embedder_name:
            # They are another embedder's to embed.
            return
        # Who is just ending does not see the latest texts, so it may take another one.
        for _ in range(2):
            self.warm()
            # In the background all the same: another process may hold the database for longer
            # than anybody waits for a search, and words find the texts meanwhile.
            thread = self._background
            if thread is None or waiting > _SETTLED_AT_ONCE:
                return
            thread.join(_SETTLING_SECONDS_MAX)
            if thread.is_alive() or not store.reader().vectors.pending_count():
                return

    def say_unindexed(self, reader: Reader) -> str | None:
        """Say how many texts no search finds yet, where there are any."""
        count = reader.search.unindexed_count()
        assert self._store is not None, "texts are searched in a store"
        return _say_unindexed(count, read_only=self._store.read_only) if count else None

    def count_without_vector(self, reader: Reader) -> int:
        """Return how many texts wait for their vector; none do where there is no embedder."""
        if self.embedder is None:
            return 0
        return reader.vectors.pending_count() + reader.search.unindexed_count()

    def embed_waiting(self, progress: Progress) -> int:
        """Give every waiting text its vector; return how many got one."""
        store, embedder = self._store, self.embedder
        if store is None or embedder is None or store.read_only:
            return 0
        if store.reader().search.unindexed_count():
            store.index_backlog(_INDEXING_SECONDS_MAX)
        total, done = store.reader().vectors.pending_count(), 0
        while not self._stopping.is_set():
            with store.snapshot() as reader:
                if reader.settings.text("embedder") != embedder.name:
                    # Another process has chosen another one: the vectors would not be kept.
                    break
                texts = _texts(reader, reader.vectors.pending(_BATCH))
            if not texts:
                break
            rows = _embed(embedder, list(texts.values()))
            made = {at: row.tobytes() for at, row in zip(texts, rows, strict=True)}
            store.write(_vector_writer(made, embedder.name), WriteRequest(_ACTOR))
            done += len(made)
            progress(done, max(total, done), "embedding")
        return done

    def warm(self) -> None:
        """Read the embedder and embed what waits for it, in the background."""
        with self._starting:
            running = self._background is not None and self._background.is_alive()
            if running or self.embedder is None or self._stopping.is_set():
                return
            thread = threading.Thread(
                target=self._work_in_background, name="stratagem-embedding", daemon=True
            )
            # Where no thread can be started, the texts wait for the next write or search.
            with suppress(RuntimeError):
                thread.start()
                self._background = thread

    def close(self) -> None:
        """Stop working in the background."""
        self._stopping.set()
        thread = self._background
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def forget_texts(self) -> None:
        """Drop the file of vectors and the counts of terms: a text in them was erased."""
        self._term_counts.clear()
        if self._vectors is not None:
            self._vectors.discard()

    def _work_in_background(self) -> None:
        assert self.embedder is not None
        try:
            self.embedder.load()
            self.embed_waiting(lambda _done, _total, _what: None)
        except StratagemError:
            # The texts stay in the queue; the next search or start tries again.
            return

    def _weigh_words(self, best: _Weighing, terms: Sequence[str], expected: int) -> None:
        """Weigh the texts that have any of some terms, best first.

        `expected` is in how many passages they are at most.

        Looking up whether a view shows a passage takes as long as ranking it. So the best of all
        are ranked first, and only these looked up, unless views lately hid most of them.
        """
        if not self._ranks_shown_only:
            spare = _SPARE * best.count_max
            found = best.scope.passages(best.reader, terms, spare, expected)
            if best.weigh_some(_by_passages(found)) or len(found.scores) < spare:
                return
            self._ranks_shown_only = _SEARCHES_AFTER_MISS
        self._ranks_shown_only -= 1
        depth = best.count_max
        while True:
            found = best.scope.matches(best.reader, terms, depth)
            # A few very long texts may have most of the passages.
            if best.weigh_some(_by_passages(found)) or len(found.scores) < depth:
                return
            depth *= 4

    def _compare(
        self, reader: Reader, scope: _Scope, meaning: _Meaning, asked: _Asked
    ) -> _Compared:
        """Return the nearest versions, the texts that have any of some words, and cosines.

        Vectors tell faster than the store which versions a view shows, so all matches are ranked
        first, unless views lately hid most of them.
        """
        vectors = self._vectors
        assert vectors is not None
        if isinstance(vectors, text_vectors.VectorCache):
            copy: VectorCache | None = vectors
        else:
            copy = vectors.copy_at_hand(reader)
        if copy is not None and meaning.nearest is None:
            knows = not scope.tags and text_vectors.knows_what_is_shown(reader.records, scope.view)
            if knows and not self._ranks_shown_only:
                found = scope.passages(reader, asked.terms, asked.spare, asked.expected)
                words = _pool(found, None)
                near, places, cosines, exact = scope.compare(
                    reader, copy, meaning, words, shown_max=asked.depth
                )
                words, cosines = _leave_out_hidden(reader, scope, words.take(places), cosines)
                if len(found.scores) != asked.spare or len(words.sequences) >= asked.depth:
                    return _Compared(near, words, cosines, exact)
                self._ranks_shown_only = _SEARCHES_AFTER_MISS
            self._ranks_shown_only = max(self._ranks_shown_only - 1, 0)
            # The same texts count whichever way they are found: the next page may take the other.
            words = _matches(reader, scope, asked, asked.depth if knows else asked.weighed_max)
            near, _, cosines, exact = scope.compare(reader, copy, meaning, words)
            return _Compared(near, words, cosines, exact)
        words = _matches(reader, scope, asked, asked.weighed_max)
        if meaning.nearest is not None:
            near = meaning.nearest(meaning.vector, meaning.depth)
            cosines = vectors.cosines(reader, words.sequences, meaning.vector)
            return _Compared(_leave_out(near, words.sequences), words, cosines)
        assert isinstance(vectors, stored_vectors.StoredVectors)
        near, cosines = vectors.compare(
            reader,
            scope.view,
            meaning.vector,
            words.sequences,
            spaces=scope.spaces,
            tags=scope.tags,
            depth=meaning.depth,
        )
        return _Compared(_leave_out(near, words.sequences), words, cosines)

    def _worth_asking(self, reader: Reader, terms: list[str]) -> tuple[list[str], int]:
        """Drop the terms that occur in too many texts to be selective.

        Return the others, and an upper bound of the passages that have any of them.
        """
        total = reader.search.text_count()
        if total < ranking.COMMON_TERMS_FROM and len(terms) <= ranking.ASKED_TERMS_MAX:
            return terms, total
        counts = self._count_texts(reader.search, terms, total)
        asked = ranking.selective_terms(terms, counts, total)
        return asked, sum(counts[term] for term in asked)

    def _count_matches(self, reader: Reader, terms: Sequence[str]) -> int:
        """Return an upper bound of the number of passages that have any of some terms."""
        search = reader.search
        return sum(self._count_texts(search, terms, search.text_count()).values())

    def _count_texts(
        self, search: SearchReader, terms: Sequence[str], total: int
    ) -> dict[str, int]:
        """Return the number of texts with each term.

        Counts of an index of about the same size are reused.
        """
        counts: dict[str, int] = {}
        unknown = []
        for term in terms:
            known = self._term_counts.get(term)
            if known is not None and known[1] * 0.8 <= total <= known[1] * 1.25:
                counts[term] = known[0] * total // max(known[1], 1)
            else:
                unknown.append(term)
        if unknown:
            if len(self._term_counts) >= _TERM_COUNTS_MAX:
                self._term_counts.clear()
            counted = search.document_frequencies(unknown)
            self._term_counts.update((term, (count, total)) for term, count in counted.items())
            counts |= counted
        return counts

    def _query_vector(self, settings: SettingReader, query: Text) -> NDArray[np.float32] | None:
        if self.embedder is None or settings.text("embedder") != self.embedder.name:
            return None
        vector = _embed(self.embedder, [query])[0]
        return vector if vector.any() else None


class _Scope(NamedTuple):
    """The scope of a search by words, and the weights of title, body and context."""

    view: View
    spaces: Sequence[int] | None
    tags: Sequence[str]
    weights: tuple[float, float, float]

    def matches(self, reader: Reader, terms: Sequence[str], limit: int | None) -> ScoredPassages:
        """Return the passages that have any of some terms, best first; None: all, in any order."""
        if not terms:
            return ScoredPassages.from_rows(())
        rows = reader.search.matches(
            self.view,
            analysis.match_expression(terms),
            weights=self.weights,
            spaces=self.spaces,
            tags=self.tags,
            limit=limit,
        )
        return ScoredPassages.from_rows(rows)

    def passages(
        self, reader: Reader, terms: Sequence[str], limit: int | None, expected: int
    ) -> ScoredPassages:
        """Return the passages that have any of some terms, best first, whatever is shown."""
        if not terms:
            return ScoredPassages.from_rows(())
        expression = analysis.match_expression(terms)
        return reader.search.passages(
            expression, weights=self.weights, limit=limit, expected=expected
        )

    def compare(
        self,
        reader: Reader,
        vectors: VectorCache,
        meaning: _Meaning,
        words: MatchedTexts,
        shown_max: int | None = None,
    ) -> VectorComparison:
        """Return what is nearest to a vector, and how near the texts are whose words match."""
        return vectors.compare(
            reader,
            self.view,
            meaning.vector,
            words.sequences,
            spaces=None if self.spaces is None else np.array(self.spaces, np.int64),
            sequences=reader.search.tagged_versions(self.tags) if self.tags else None,
            depth=meaning.depth,
            best=None if shown_max is None else text_vectors.BestKnown(words.bm25, shown_max),
        )


class _Meaning(NamedTuple):
    """The vector of a query, the number of neighbours wanted, and who finds them in its place."""

    vector: NDArray[np.float32]
    depth: int
    nearest: Callable[[NDArray[np.float32], int], Nearest] | None


class _Compared(NamedTuple):
    """The texts that have any of a query's words with their cosines, and which others are nearest.

    Where the cosines are estimates, `exact` gives those of some versions as they are.
    """

    near: Nearest
    words: MatchedTexts
    cosines: NDArray[np.float32]
    exact: Callable[[NDArray[np.int64]], NDArray[np.float32]] | None = None


class _Asked(NamedTuple):
    """Terms, in how many passages they are at most, and how many versions are wanted."""

    terms: Sequence[str]
    expected: int
    limit: int

    @property
    def depth(self) -> int:
        """How many versions are compared by their meaning, too."""
        return max(self.limit, ranking.LEXICAL_DEPTH)

    @property
    def weighed_max(self) -> int:
        """How many versions are weighed at most."""
        return max(self.limit, ranking.WEIGHED_MIN)

    @property
    def everything(self) -> bool:
        """Whether all matches are read: of a few thousand, sorting in the store costs more."""
        return self.expected <= ranking.UNSORTED_MATCHES_MAX

    @property
    def spare(self) -> int | None:
        """How many passages are read where a view may hide some of them; None: all."""
        return None if self.everything else _SPARE * self.depth


def _matches(reader: Reader, scope: _Scope, asked: _Asked, count_min: int) -> MatchedTexts:
    """Return the versions that have any of some terms, each by its best passage.

    They are at least so many, where there are.
    """
    if asked.everything:
        return _pool(scope.matches(reader, asked.terms, None), asked.depth)
    limit = asked.depth
    while True:
        found = scope.matches(reader, asked.terms, limit)
        pooled = _pool(found, asked.depth)
        # A few very long texts may have most of the passages.
        if len(found.scores) < limit or len(pooled.sequences) >= count_min:
            return pooled
        limit *= 4


def _leave_out_hidden(
    reader: Reader, scope: _Scope, words: MatchedTexts, cosines: NDArray[np.float32]
) -> tuple[MatchedTexts, NDArray[np.float32]]:
    """Leave out the texts without a vector that a view does not show."""
    unknown = np.isnan(cosines)
    if not unknown.any():
        return words, cosines
    shown = reader.search.shown_traits(
        scope.view, words.sequences[unknown].tolist(), "", spaces=scope.spaces, tags=scope.tags
    )
    kept = np.flatnonzero(~unknown | np.isin(words.sequences, np.fromiter(shown, np.int64)))
    return words.take(kept), cosines[kept]


def _pool(found: ScoredPassages, depth: int | None) -> MatchedTexts:
    """Return the best versions, so many at most, each in the place of its best passage.

    Without a `depth` all are returned, in any order.
    """
    sequences, numbers, scores = found
    several = numbers.any()
    if depth is None and not several:
        return MatchedTexts(sequences, scores, numbers)
    order = np.lexsort((numbers, -sequences, -scores))
    if several:
        order = order[_first_of_each(sequences[order])]
    order = order[:depth]
    return MatchedTexts(sequences[order], scores[order], numbers[order])


def _first_of_each(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places at which each number comes for the first time, in order."""
    _, first = np.unique(numbers, return_index=True)
    first.sort()
    return first


def _leave_out(near: Nearest, known: NDArray[np.int64]) -> Nearest:
    """Return what is nearest without the versions that are known already."""
    there = set(known.tolist())
    more = [place for place, each in enumerate(near.sequences.tolist()) if each not in there]
    return text_vectors.Nearest(near.sequences[more], near.cosines[more])


def _merge_candidates(found: _Compared) -> tuple[MatchedTexts, NDArray[np.float64]]:
    """Return the union of two lists, with both scores of each version."""
    near, lexical, cosine, _ = found
    count = len(near.sequences)
    both = MatchedTexts(
        np.concatenate((lexical.sequences, near.sequences)),
        np.concatenate((lexical.bm25, np.zeros(count))),
        np.concatenate((lexical.passages, np.full(count, -1))),
    )
    return both, np.concatenate((cosine, near.cosines)).astype(np.float64)


def _fuse(
    candidates: MatchedTexts, cosines: NDArray[np.float64], named: Sequence[int]
) -> NDArray[np.float64]:
    """Return the scores of candidates; those that have the name asked for come before all others.

    Texts with the same parts are as near to it as they are, and shorter ones nearer.
    """
    scores = ranking.fuse(candidates.bm25, cosines)
    if named:
        scores[np.isin(candidates.sequences, named)] += 1.0
    return scores


def _find_best(
    candidates: MatchedTexts,
    cosines: NDArray[np.float64],
    named: Sequence[int],
    count: int,
) -> NDArray[np.int64]:
    """Return where the candidates are that may be the best, by estimated cosines."""
    if len(cosines) <= count:
        return np.arange(len(cosines))
    scores = _fuse(candidates, cosines, named)
    # Scores are shares of the nearest meaning, which has to be exact, too.
    scores[np.fmax(cosines, -1.0).argmax()] = np.inf
    return np.argpartition(-scores, count)[:count]


class _RankedTexts(NamedTuple):
    """Versions, best first, with what `Ranked` has of each; no passage is -1."""

    sequences: NDArray[np.int64]
    scores: NDArray[np.float64]
    cosines: NDArray[np.float64]
    passages: NDArray[np.int64]

    def take(self, places: NDArray[np.int64] | slice) -> _RankedTexts:
        """Return some of them."""
        sequences, scores, cosines, passages = self
        return _RankedTexts(sequences[places], scores[places], cosines[places], passages[places])

    def to_list(self) -> list[Ranked]:
        """Return each of them."""
        columns = [column.tolist() for column in self]
        if min(columns[-1]) < 0:
            columns[-1] = [None if passage < 0 else passage for passage in columns[-1]]
        return list(map(Ranked, *columns))


def _by_passages(found: ScoredPassages) -> _RankedTexts:
    """Return versions in order of how well the words of each match, each by its best passage."""
    sequences, numbers, scores = found
    ranked = _RankedTexts(sequences, scores, np.full(len(scores), np.nan), numbers)
    return ranked.take(_first_of_each(sequences)) if numbers.any() else ranked


def _rank(
    candidates: MatchedTexts,
    cosines: NDArray[np.float64],
    named: Sequence[int],
    limit: int,
    among: NDArray[np.int64] | None,
) -> _RankedTexts:
    """Return the highest scores of words and meaning; of equals the newer first.

    `among`, where given, are the places that the best are at.
    """
    sequences, scores = candidates.sequences, _fuse(candidates, cosines, named)
    if among is None:
        order = np.lexsort((-sequences, -scores))[:limit]
    else:
        order = among[np.lexsort((-sequences[among], -scores[among]))[:limit]]
    order = order[scores[order] > 0]
    return _RankedTexts(sequences, scores, cosines, candidates.passages).take(order)


class _Weighing:
    """The best of what a view shows, with scores weighed by what the texts are."""

    def __init__(self, reader: Reader, scope: _Scope, limit: int, raised: str) -> None:
        self.reader = reader
        self.scope = scope
        # How many are weighed at most: those that follow match too badly, whatever they are.
        self.count_max = max(limit, ranking.WEIGHED_MIN)
        self._limit = limit
        # So many are weighed at least: where there are fewer, other words are asked for.
        self._count_min = max(limit, ranking.MATCHES_FEW)
        self._raised = raised
        self._raisable = _find_raisable(reader, raised)
        self._shown: list[Ranked] = []
        self._weighed: list[Ranked] = []

    @property
    def count(self) -> int:
        """How many were weighed."""
        return len(self._weighed)

    @property
    def top(self) -> list[Ranked]:
        """The highest scores; of equals the newer first."""
        return self._weighed[: self._limit]

    def shares(self) -> list[Ranked]:
        """Return the same with the scores divided by the best score before any was weighed."""
        best = max((each.score for each in self._shown), default=0.0)
        if best <= 0:
            return self.top
        share = 1 / best
        return [each.weigh(share, is_raised=each.is_raised) for each in self.top]

    def passage_of(self, sequence: int) -> int | None:
        """Return the passage by which a version was found; None if it was not."""
        return next((each.passage for each in self._shown if each.sequence == sequence), None)

    def weigh(self, found: _RankedTexts) -> None:
        """Weigh all candidates, best first."""
        self._weigh_groups(self._order_by_highest(found), self._count_min)

    def weigh_some(self, found: _RankedTexts) -> bool:
        """Weigh the first of more candidates, best first.

        Return whether no later candidate can still get among the best.

        Which candidates are weighed must not depend on how many hits are wanted, or on how many
        candidates were found: pages would not fit together. So they are taken as they come. Where
        some may be raised, those that were not found yet may be among them: then as many as count
        are looked at, at once.
        """
        return self._weigh_groups(found, self.count_max if self._raisable else self._count_min)

    def _weigh_groups(self, found: _RankedTexts, size: int) -> bool:
        self._shown, self._weighed = [], []
        for begin in range(0, len(found.sequences), size):
            following = float(found.scores[begin]), int(found.sequences[begin])
            if self._is_settled(following, size):
                return True
            self._weigh_group(found.take(slice(begin, begin + size)).to_list())
        return self.count == self.count_max

    def _order_by_highest(self, found: _RankedTexts) -> _RankedTexts:
        """Return what was found in order of the scores that each may have once it is weighed."""
        raisable = self._raisable
        if not raisable or raisable.isdisjoint(found.sequences.tolist()):
            return found
        may_rise = np.isin(found.sequences, list(raisable))
        highest = found.scores * np.where(may_rise, ranking.RAISED, 1.0)
        return found.take(np.lexsort((-found.sequences, -highest)))

    def _is_settled(self, following: tuple[float, int], count_min: int) -> bool:
        """Whether no candidate from this one on, a score and a sequence, can get among the best."""
        if self.count < count_min:
            return False
        score, sequence = following
        if self._raisable is None or sequence in self._raisable:
            score *= ranking.RAISED
        lowest = self._weighed[self._limit - 1]
        return self.count == self.count_max or (score, sequence) < _by_score(lowest)

    def _weigh_group(self, group: Sequence[Ranked]) -> None:
        scope = self.scope
        traits = self.reader.search.shown_traits(
            scope.view,
            [each.sequence for each in group],
            self._raised,
            spaces=scope.spaces,
            tags=scope.tags,
        )
        shown = [each for each in group if each.sequence in traits]
        shown = shown[: self.count_max - self.count]
        self._shown += shown
        for each in shown:
            chars, is_raised = traits[each.sequence]
            # Most texts are short, and none of them is raised.
            if not is_raised and (chars is None or chars <= ranking.SHORT_CHARS):
                self._weighed.append(each)
            else:
                weight = ranking.prior(chars, is_raised)
                self._weighed.append(each.weigh(weight, is_raised=is_raised))
        self._weighed.sort(key=_by_score, reverse=True)


def _find_raisable(reader: Reader, facet: str) -> frozenset[int] | None:
    """Return the versions that a facet raises; None where they are too many to be listed."""
    if not facet:
        return frozenset()
    versions = reader.search.versions_with_facet(facet, _RAISED_LISTED_MAX + 1)
    return frozenset(versions) if len(versions) <= _RAISED_LISTED_MAX else None


# The sort key of versions; of equals the newer comes first.
_by_score = itemgetter(1, 0)


def lent_terms(text: str) -> str:
    """Return the terms that a message lends to those that follow, or none if it has too many."""
    if len(text) <= _LENT_CHARS_MAX:
        return _short_lent_terms(text)
    # It has too many terms, as a rule, and the first few words show that.
    too_many = analysis.has_more_content_terms(text, ranking.CONTEXT_TERMS_MAX)
    return "" if too_many else _lent_terms(text)


def _lent_terms(text: str) -> str:
    lent = analysis.content_terms(text)
    return " ".join(lent) if len(lent) <= ranking.CONTEXT_TERMS_MAX else ""


# A message of a session is analysed again as the context of those that follow.
_short_lent_terms = cache_texts(_LENT_MAX)(_lent_terms)


def _body_terms(text: Text) -> list[str]:
    """Return the terms of each passage that a text is found by."""
    body = text.body
    if not text.parted or len(body) <= passages.WHOLE_CHARS_MAX:
        return [analysis.document_terms(body)]
    return [analysis.document_terms(body[begin:end]) for begin, end in passages.parts(body)]


def _context_terms(aside: str, context: Sequence[str]) -> str:
    """Return the terms that a text is found by beside its own: of its aside, and of its context."""
    own = [analysis.document_terms(aside)] if aside else []
    return " ".join([*own, *map(lent_terms, context)])


def _embed(embedder: Embedder, texts: Sequence[Text]) -> NDArray[np.float32]:
    """Return the vectors of texts; a title that says it all counts as much as the whole."""
    rows = embedder.embed(
        [_text_below_title(text) for text in texts], [text.title for text in texts]
    )
    titled = [place for place, text in enumerate(texts) if text.titled and text.title]
    if titled:
        titles = embedder.embed([texts[place].title for place in titled])
        rows[titled] = _normalise(rows[titled] + titles)
    return rows


def _normalise(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: NDArray[np.float32]
    unit = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return unit


def _text_below_title(text: Text) -> str:
    # An embedder reads the beginning at most, and some send all of it to a server.
    body = text.body[: limits.INDEXED_CHARS_MAX]
    return f"{body}\n{text.aside}" if text.aside else body


def _texts(reader: Reader, sequences: list[int]) -> dict[int, Text]:
    hits = reader.log.contents(sequences)
    texts: dict[int, Text] = {}
    for sequence in sequences:
        hit = hits[sequence]
        text = reader.kinds.project(hit.kind, orjson.loads(hit.payload), hit.key).text
        texts[sequence] = text or Text("", "")
    return texts


def _vector_writer(vectors: dict[int, bytes], embedder: str) -> Any:
    def work(transaction: Transaction) -> None:
        # Another process may have chosen another embedder in the meantime.
        if transaction.settings.text("embedder") == embedder:
            transaction.vectors.add(vectors)

    return work
