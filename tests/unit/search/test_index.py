"""What a search by words finds is what ranking everything would find."""

import gc
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import stratagem
from stratagem.function_cache import clear_text_caches
from stratagem.search import analysis, index, ranking
from stratagem.storage.contract import WriteRequest


@pytest.fixture
def db() -> Iterator[stratagem.Stratagem]:
    with stratagem.open(":memory:", embedder="none", durability="fast") as opened:
        yield opened


def keys(
    db: stratagem.Stratagem, query: str, *, k: int = 10, branch: str | None = None
) -> list[str]:
    found = db.memory.search(query, k=k, branch=branch, min_score=0)
    return [hit.key or "" for hit in found.results]


def fill(db: stratagem.Stratagem, count: int) -> None:
    db.memory.store(
        items=[
            {"key": f"k{number}", "value": "harbour " + "word " * number} for number in range(count)
        ]
    )


def test_an_instruction_comes_up_from_below_the_first_page(db: stratagem.Stratagem) -> None:
    fill(db, 60)
    instruction = "Always show the harbour first. " + "Mind the long way round it. " * 2
    db.memory.store("wish", instruction)

    assert "wish" in keys(db, "harbour", k=10)


def test_more_instructions_than_are_listed_are_weighed_all_the_same(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(db, 60)
    db.memory.store("wish", "Always show the harbour first. " + "Mind the long way round it. " * 2)
    db.memory.store("other", "Always include the units.")
    known = keys(db, "harbour", k=20)

    monkeypatch.setattr(index, "_RAISED_LISTED_MAX", 1)

    assert keys(db, "harbour", k=20) == known


def test_versions_that_were_replaced_take_no_place(db: stratagem.Stratagem) -> None:
    db.memory.store("kept", "harbour " + "padding " * 40)
    for number in range(300):
        db.memory.store("note", f"harbour {number}")
    db.memory.store("note", "something else")

    for _ in range(3):
        assert keys(db, "harbour") == ["kept"]


def test_a_search_by_words_finds_what_its_branch_shows(db: stratagem.Stratagem) -> None:
    # Texts of nearly the same length would be ordered by time.
    db.memory.store(
        items=[{"key": f"k{n}", "value": "harbour " + "word " * 8 * n} for n in range(12)]
    )
    db.memory.fork("trial")
    db.memory.forget("k0", branch="trial")
    db.memory.store("k1", "something else", branch="trial")
    db.memory.store("own", "harbour", branch="trial")

    assert keys(db, "harbour", k=2) == ["k0", "k1"]
    assert keys(db, "harbour", k=2, branch="trial") == ["own", "k2"]
    assert len(keys(db, "harbour", k=50, branch="trial")) == 11


def test_a_text_of_many_passages_leaves_room_for_others(db: stratagem.Stratagem) -> None:
    fill(db, 5)
    db.memory.store("book", "harbour harbour harbour light and sea. " * 4_000)

    assert set(keys(db, "harbour", k=6)) == {"book", "k0", "k1", "k2", "k3", "k4"}


def test_common_words_are_asked_for_where_the_rare_ones_find_nothing_here(
    db: stratagem.Stratagem,
) -> None:
    db.memory.store(items=[{"key": f"k{n}", "value": f"harbour {n}"} for n in range(300)])
    db.memory.store("elsewhere", "harbour lighthouse")
    db.memory.fork("trial")
    db.memory.forget("elsewhere", branch="trial")

    assert len(keys(db, "harbour lighthouse", branch="trial")) == 10
    assert keys(db, "harbour lighthouse", k=1) == ["elsewhere"]


def test_replaced_versions_take_no_place_among_meanings_either() -> None:
    with stratagem.open(":memory:", embedder="static", durability="fast") as db:
        db.memory.store("kept", "harbour " + "padding " * 40)
        for number in range(600):
            db.memory.store("note", f"harbour {number}")
        db.memory.store("note", "harbour at last")

        found = db.memory.search("harbour", min_score=0)

        assert found.mode == "hybrid"
        assert {hit.key for hit in found.results} == {"kept", "note"}


def test_of_texts_without_a_vector_only_those_are_found_that_are_shown(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with stratagem.open(path, embedder="static") as db:
        db.memory.store("embedded", "a harbour by the sea")
    with stratagem.open(path, embedder="none") as db:
        db.memory.store("words", "harbour light")
        db.memory.store("gone", "harbour")
        db.memory.forget("gone")

    with stratagem.open(path, embedder="static", read_only=True) as db:
        found = db.memory.search("harbour", min_score=0)

    assert found.mode == "hybrid"
    assert {hit.key for hit in found.results} == {"embedded", "words"}


def test_a_text_that_is_merged_is_not_analysed_again(
    db: stratagem.Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    analysed: list[str] = []

    def record(chunk: str) -> str:
        analysed.append(chunk)
        return analysis.title_terms(chunk)

    monkeypatch.setattr("stratagem.search.analysis._look_up", record)
    text, long = "a lighthouse that was merged once", "a breakwater " * 200
    db.memory.fork("draft")
    db.memory.store("short", text, branch="draft")
    db.memory.store("long", long, branch="draft")
    db.memory.merge("draft")

    assert analysed.count("lighthouse") == 1
    assert keys(db, "lighthouse") == ["short"]
    assert keys(db, "breakwater") == ["long"]


@pytest.mark.parametrize("repeats", [3, 100, 150, 3_000])
@pytest.mark.parametrize("word", ["harbour ", "the harbour ", "-- ", "x" * 2_000 + " "])
def test_a_message_lends_all_of_its_terms_or_none(word: str, repeats: int) -> None:
    text = word * repeats
    terms = analysis.content_terms(text)

    lent = index.lent_terms(text)

    assert lent == (" ".join(terms) if len(terms) <= ranking.CONTEXT_TERMS_MAX else "")


def test_long_messages_are_not_cached() -> None:
    clear_text_caches()
    gc.collect()
    text = "harbour and quay " * 5_000
    held = sys.getrefcount(text)

    index.lent_terms(text)
    index.lent_terms("a short message")

    assert sys.getrefcount(text) == held


def test_a_text_that_comes_while_the_background_ends_is_found_by_meaning() -> None:
    with stratagem.open(":memory:", embedder="static") as db:
        # It is alive, and looks for no more texts.
        ending = threading.Timer(0.2, lambda: None)
        ending.start()
        db.runtime.foundation.index._background = ending  # noqa: SLF001 -- who embeds
        db.memory.store("dog", "The puppy chased its tail around the garden")

        found = db.memory.search("a young hound at play")

        assert [hit.key for hit in found.results] == ["dog"]


def test_a_text_is_stored_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with stratagem.open(":memory:", embedder="static") as db:
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            db.memory.store("dog", "The puppy chased its tail around the garden")
            by_words = db.memory.search("puppy")

        by_meaning = db.memory.search("a young hound at play")

    assert [hit.key for hit in by_words.results] == ["dog"]
    assert [hit.key for hit in by_meaning.results] == ["dog"]


def test_texts_are_left_to_the_embedder_that_another_process_has_chosen(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with stratagem.open(path, embedder="static") as db:
        db.memory.store("dog", "The puppy chased its tail around the garden")
        # It was killed before it had embedded any text.
        with stratagem.open(path, embedder="none") as other:
            other.runtime.foundation.store.write(
                lambda transaction: transaction.vectors.change_embedder("another"),
                WriteRequest("other"),
            )

        found = db.memory.search("puppy")
        embedded = db.runtime.foundation.index.embed_waiting(lambda _done, _total, _what: None)

    assert [hit.key for hit in found.results] == ["dog"]
    assert embedded == 0
