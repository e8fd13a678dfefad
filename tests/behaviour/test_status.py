from __future__ import annotations

from tests.behaviour.conftest import Call, Opener
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("status:answer")
def test_a_new_database_says_that_it_is_empty(call: Call) -> None:
    answer = call.status()

    wanted = ("branch", "namespace", "auto_embed", "branches", "keys", "events", "read_only")
    assert [answer[name] for name in wanted] == ["default", "default", False, 1, 0, 0, False]
    assert answer["version"]
    assert answer["head"].startswith("1:")
    assert (answer["embedder"], answer["durability"]) == ("none", "fast")


@proves("status:counts")
def test_a_status_counts_what_the_branch_shows(call: Call) -> None:
    call.store(items=[{"key": f"k{number}", "value": number} for number in range(5)])
    call.store(key="k0", value="again")
    call.store(key="k", value=1, namespace="other")
    call.forget(key="k1")
    call.log(event="e", data=1)
    call.branch(action="fork", name="trial")
    call.store(key="new", value=1, branch="trial")
    call.log(event="e", data=2, branch="trial")

    here = call.status()
    call.branch(action="switch", name="trial")
    there = call.status()

    assert (here["keys"], here["events"], here["branches"]) == (5, 1, 2)
    assert (there["keys"], there["events"], there["branches"]) == (6, 2, 2)
    assert here["namespaces"] == ["default", "other"]


@proves("status:counts")
def test_expired_entries_are_not_counted(call: Call, clock: Clock) -> None:
    call.store(key="brief", value=1, ttl="10s")
    call.store(key="lasting", value=1)
    before = call.status()["keys"]

    clock.advance(11)

    assert (before, call.status()["keys"]) == (2, 1)


@proves("status:counts")
def test_a_namespace_that_shows_nothing_is_not_named(call: Call) -> None:
    call.store(key="a", value=1, namespace="gone")
    call.store(key="a", value=1, namespace="notes")
    call.log(event="e", data=1, namespace="happened")
    call.forget(key="a", namespace="gone")

    assert call.status()["namespaces"] == ["happened", "notes"]


@proves("status:counts")
def test_merging_counts_what_it_brought(call: Call) -> None:
    call.store(key="a", value=1)
    call.store(key="b", value=1)
    call.branch(action="fork", name="trial")
    call.store(key="c", value=1, branch="trial")
    call.forget(key="a", branch="trial")
    call.store(key="b", value=2, branch="trial")
    call.log(event="e", data=1, branch="trial")

    call.branch(action="merge", source="trial")

    assert (call.status()["keys"], call.status()["events"]) == (2, 1)


@proves("status:head")
def test_the_head_moves_with_every_write_and_with_nothing_else(call: Call) -> None:
    heads = [call.head()]
    call.store(key="k", value=1)
    heads.append(call.head())
    call.recall(key="k")
    call.search(query="k")
    call.history(key="k")
    call.branch(action="list")
    call.branch(action="switch", name="default")
    heads.append(call.head())

    assert heads[0] != heads[1] == heads[2]


@proves("status:embedder")
def test_a_status_says_whether_meaning_is_searched(opened: Opener) -> None:
    answer = opened(embedder="static").status()

    assert answer["auto_embed"] is True
    assert "static" in answer["embedder"]
