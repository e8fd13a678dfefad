from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC
from pathlib import Path

import pytest

from stratagem.engine.lineage import OPEN_END
from stratagem.errors import BranchNotFound, ValidationFailed
from stratagem.storage import views as views_module
from stratagem.storage.sqlite.store import SqliteStore
from stratagem.storage.views import Views, find_branch
from tests.contracts.backends import open_sqlite_file, open_sqlite_memory
from tests.contracts.samples import START, TESTER, Clock, a_note, append, create, fork, live


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[SqliteStore]:
    with closing(open_sqlite_memory(Path(), clock)) as store:
        yield store


@pytest.fixture
def views(store: SqliteStore) -> Views:
    return Views(store, lambda: UTC)


def test_a_view_of_the_present_has_no_end(store: SqliteStore, views: Views) -> None:
    with store.snapshot() as reader:
        view = views.view(reader, "default")
        same = views.view(reader, "default", "now")

    assert view.limit == same.limit == OPEN_END
    assert view.time == START


def test_a_view_of_a_sequence_ends_with_its_transaction_and_has_its_time(
    store: SqliteStore, views: Views, clock: Clock
) -> None:
    clock.advance(5)
    last = append(store, a_note("a"), a_note("b"))
    clock.advance(5)
    append(store, a_note("c"))

    with store.snapshot() as reader:
        view = views.view(reader, "default", f"@{last - 1}")

    assert (view.limit, view.time) == (last, START + 5_000_000)


def test_a_view_of_a_time_keeps_that_time(store: SqliteStore, views: Views, clock: Clock) -> None:
    clock.advance(5)
    last = append(store, a_note("a"))
    clock.advance(5)

    with store.snapshot() as reader:
        view = views.view(reader, "default", START + 7_000_000)

    assert (view.limit, view.time) == (last, START + 7_000_000)


def test_a_log_whose_clock_ran_ahead_has_no_future_up_to_its_head(
    store: SqliteStore, views: Views, clock: Clock
) -> None:
    clock.advance(3600)
    append(store, a_note("a"))
    clock.advance(-3600)

    with store.snapshot() as reader:
        view = views.view(reader, "default", START + 3_600_000_000)
        with pytest.raises(ValidationFailed):
            views.view(reader, "default", START + 3_600_000_001)

    assert view.limit == 2


def test_a_past_view_is_resolved_once_and_stays(
    store: SqliteStore, views: Views, clock: Clock
) -> None:
    clock.advance(5)
    append(store, a_note("a"))
    clock.advance(5)
    append(store, a_note("b"))
    moment = START + 6_000_000
    first = views.past("default", moment)

    clock.advance(5)
    append(store, a_note("c"))

    assert views.past("default", moment) == first


def test_a_moment_that_may_still_be_written_at_is_not_kept(
    store: SqliteStore, views: Views, clock: Clock
) -> None:
    clock.advance(5)
    moment = clock.now
    before, _ = views.past("default", moment)

    last = append(store, a_note("a"))

    after, _ = views.past("default", moment)
    assert (before[0].limit, after[0].limit) == (1, last)


def test_relative_words_are_resolved_each_time(
    store: SqliteStore, views: Views, clock: Clock
) -> None:
    clock.advance(3600)
    append(store, a_note("a"))
    clock.advance(3600)
    append(store, a_note("b"))
    first, _ = views.past("default", "30 minutes ago")

    clock.advance(3600)
    second, _ = views.past("default", "30 minutes ago")

    assert (first[0].limit, second[0].limit) == (2, 3)


def test_a_branch_that_became_another_is_noticed_when_asked(
    store: SqliteStore, views: Views
) -> None:
    first = create(store, "trial")
    before = views.present("trial")
    store.write(lambda t: t.branches.delete(live(t, "trial")), TESTER)
    second = create(store, "trial")

    kept = views.present("trial")
    confirmed = views.confirm("trial")

    assert before[0].branch == kept[0].branch == first.id
    assert confirmed[0].branch == views.present("trial")[0].branch == second.id


def test_branches_that_others_have_ended_are_not_kept_for_ever(
    store: SqliteStore, views: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views_module, "_RESOLVED_MAX", 3)

    for number in range(10):
        fork(store, f"trial-{number}")
        views.present(f"trial-{number}")

    assert len(views._lineages) <= 3  # noqa: SLF001 -- what it keeps shows nowhere else
    assert views.present("trial-0") == views.present("trial-0")


def test_a_missing_branch_suggests_those_that_are_near(store: SqliteStore) -> None:
    for name in ("feature-one", "feature-two", "other"):
        fork(store, name)

    with pytest.raises(BranchNotFound) as refused:
        find_branch(store.reader().branches, "feature-on")

    assert refused.value.details["similar"][0] == "feature-one"
    assert "feature-one" in refused.value.hint
    assert "other" not in refused.value.details["similar"]


def test_a_deleted_branch_is_said_to_be_deleted(store: SqliteStore) -> None:
    fork(store, "trial")
    store.write(lambda t: t.branches.delete(live(t, "trial")), TESTER)

    with pytest.raises(BranchNotFound) as refused:
        find_branch(store.reader().branches, "trial", field="source")

    assert "restore" in refused.value.hint
    assert refused.value.details["field"] == "source"


@pytest.mark.parametrize("name", ["", " ", "\ud800", "a\0b", "b" * 129])
def test_a_name_that_no_branch_can_have_is_refused(store: SqliteStore, name: str) -> None:
    with pytest.raises(ValidationFailed):
        find_branch(store.reader().branches, name)


def test_many_threads_resolve_and_forget_views_side_by_side(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with closing(open_sqlite_file(tmp_path, Clock())) as store:
            for number in range(200):
                append(store, a_note("k", str(number)))
            views = Views(store, lambda: UTC)

            def work(forgets: bool) -> None:
                try:
                    for number in range(150):
                        if forgets:
                            views.forget("default")
                        views.past("default", f"@{number + 1}")
                        views.present("default")
                except BaseException as error:  # noqa: BLE001 -- looked at below
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(each % 2 == 0,)) for each in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)

    assert failures == []
