"""6. Workspaces and branches are kept apart: by search, as-of, graph, errors, events and ids."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import socketio

from stratagem import limits
from tests.properties.seeding import seeded
from tests.security.house import SURFACES, House, Outcome, Surface, make_token, opened, serving
from tests.surfaces.serving import eventually

# Words that nobody in the other workspace ever writes.
SECRETS = ("zanzibarium", "quixotrope", "blunderwick")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One server, two workspaces: red writes its secrets, blue looks for them."""
    path = tmp_path_factory.mktemp("two") / "memory.db"
    scopes = ("*:write", "*:execute")
    many = {"rate": 1_000_000}
    tokens = {
        "red": make_token(path, "red", *scopes, roles={"red": "member"}, **many),
        "blue": make_token(path, "blue", *scopes, roles={"blue": "member"}, **many),
        "both": make_token(
            path, "both", *scopes, roles={"red": "reader", "blue": "member"}, **many
        ),
    }
    with serving(path, embedder="static") as house:
        house.tokens = tokens
        yield house


def fill(house: House, token: str, words: tuple[str, ...], seed: int) -> None:
    """Write a random history about some words into whatever a token opens."""
    drawn = random.Random(seed)

    def call(name: str, arguments: dict[str, Any]) -> Outcome:
        return house.call("rest", token, name, arguments)

    made: list[str] = []
    for number in range(24):
        word = drawn.choice(words)
        key, branch = f"key {drawn.randrange(4)}", drawn.choice(["default", "trial"])
        if number == 0:
            call("strata_branch", {"action": "fork", "name": "trial"})
            call("strata_branch", {"action": "fork", "name": f"{word}-branch"})
        step = drawn.randrange(5)
        if step == 0:
            call("strata_store", {"key": key, "value": f"{word} {number}", "branch": branch})
        elif step == 1:
            call("strata_log", {"event": "message", "content": f"about {word}", "branch": branch})
        elif step == 2:
            given = {"name": f"{word} {number}", "explanation": f"what {word} is"}
            made.append(call("create_concept", given).answer.get("concept_id", ""))
        elif step == 3 and len(made) > 1:
            given = {
                "source_id": made[-1],
                "target_id": made[-2],
                "relationship_type": "relates_to",
            }
            call("create_relationship", given)
        else:
            incident: dict[str, Any] = {
                "title": f"{word} fails",
                "error_signature": f"{word}Error: {number}",
                "steps": f"restart {word}",
                "env": {"os": "linux"},
                "worked": True,
            }
            call("add_incident", incident)
    house.call(
        "rest",
        token,
        "tool_register",
        {
            "name": f"{words[0]}-tool",
            "description": f"does {words[0]}",
            "inputSchema": {"type": "object"},
            "handler": {"type": "webhook", "url": "https://example.com/x"},
        },
    )


def questions(word: str) -> list[tuple[str, dict[str, Any]]]:
    views: list[dict[str, Any]] = [{}, {"as_of": "now"}, {"branch": "trial"}, {"as_of": "@5"}]
    asked: list[tuple[str, dict[str, Any]]] = [
        ("strata_search", {"query": word, "k": 50, **view}) for view in views
    ]
    asked += [("strata_recall", {"key": f"key {n}", **view}) for n in range(4) for view in views]
    asked += [("strata_history", {"key": f"key {n}"}) for n in range(4)]
    return [
        *asked,
        ("strata_branch", {"action": "list"}),
        ("strata_branch", {"action": "diff", "compare": "trial"}),
        # An error may suggest names, but only the caller's own.
        ("strata_recall", {"key": "k", "branch": f"{word}-branc"}),
        ("strata_status", {}),
        ("search_concepts_semantic", {"query": word}),
        ("search_concepts_exact", {}),
        ("get_recent_concepts", {}),
        ("list_hierarchy", {}),
        ("get_concepts_by_certainty", {}),
        ("ranked_solutions", {"query_text": f"{word}Error: 3", "env": {"os": "linux"}}),
        ("tools_list", {"search": word}),
        ("tool_get", {"toolId": f"{word}-tol"}),
        ("tool_help", {"toolName": f"{word}-tool"}),
        ("resources_list", {}),
    ]


def test_nothing_of_one_workspace_shows_in_another(two: House) -> None:
    with seeded() as seed:
        fill(two, "red", SECRETS, seed)
        fill(two, "blue", ("ordinary", "plain"), seed)
        assert _leaks(two) == []
    recorded = two.call("mcp", "blue", "tool_executions", {"limit": 100})
    assert {each["caller"] for each in recorded.answer["executions"]} == {"token:blue"}


def _leaks(two: House) -> list[tuple[str, str, dict[str, Any], str]]:
    """Return what one workspace is told of the other."""
    leaks: list[tuple[str, str, dict[str, Any], str]] = []
    for surface in SURFACES:
        for word in SECRETS[: 1 if surface == "socket" else None]:
            for name, arguments in questions(word)[:: 4 if surface == "socket" else 1]:
                outcome = two.call(surface, "blue", name, arguments)
                # What was asked for may be repeated; nothing else of theirs may be there.
                others = [each for each in SECRETS if each != word and each in outcome.text]
                told = outcome.text.lower().replace(f"{word}-branc", "").replace(f"{word}-tol", "")
                hits = told.count(f"about {word}") + told.count(f"what {word}")
                if others or hits or f"{word}-branch" in told:
                    leaks.append((surface, name, arguments, outcome.text[:300]))
    return leaks


def test_an_id_of_another_workspace_is_unknown_alike(two: House) -> None:
    """An id that exists elsewhere is answered exactly as one that exists nowhere."""
    made = two.call("rest", "red", "create_concept", {"name": "mine", "explanation": "e"}).answer
    concept = made["concept_id"]
    nowhere = concept[:-4] + ("0000" if concept[-4:] != "0000" else "1111")

    one = two.call("rest", "blue", "get_concept", {"concept_id": concept})
    other = two.call("rest", "blue", "get_concept", {"concept_id": nowhere})

    assert one.error == other.error == "concept_not_found"
    assert one.text.replace(concept, "") == other.text.replace(nowhere, "")


@pytest.mark.parametrize("surface", SURFACES)
def test_a_token_opens_the_workspaces_it_names_and_no_others(two: House, surface: Surface) -> None:
    key = f"where {surface}"
    store = {"key": key, "value": "blue"}

    written = two.call(surface, "both", "strata_store", store, workspace="blue")
    only_read = two.call(surface, "both", "strata_store", store, workspace="red")
    seen = two.call(surface, "blue", "strata_recall", {"key": key})
    hidden = two.call(surface, "red", "strata_recall", {"key": key})

    assert written.error is None
    assert only_read.error in {"permission_denied", "unauthenticated"}
    assert seen.answer["value"] == "blue"
    assert hidden.answer["found"] is False


@pytest.mark.parametrize("asked", ["default", "blue", "nowhere"])
def test_a_workspace_of_others_is_refused_whether_it_exists_or_not(two: House, asked: str) -> None:
    client = two.client("red", **{"x-stratagem-workspace": asked})

    by_header = client.post("/api/memory/strata_status", json={})
    by_query = two.client("red").get(f"/api/mcp/tools?workspace={asked}")

    assert by_header.status_code == by_query.status_code == 403
    assert by_header.json()["message"] == f"Your token does not open the workspace {asked!r}."
    folder = two.path.parent / f"{two.path.name}-workspaces"
    assert not (folder / "nowhere.db").exists()


@pytest.mark.parametrize("surface", SURFACES)
def test_without_tokens_nothing_is_written_to_another_workspace_than_was_meant(
    tmp_path: Path, surface: Surface
) -> None:
    """A header that is not understood must not make a write land somewhere else."""
    store = {"key": "k", "value": 1}
    with serving(tmp_path / "memory.db") as house:
        if surface == "socket":
            with pytest.raises(socketio.exceptions.ConnectionError):
                socketio.SimpleClient().connect(house.url, auth={"workspace": "red"})
        else:
            refused = house.call(surface, None, "strata_store", store, workspace="red")
            assert refused.error == "permission_denied"
            own = house.call(surface, None, "strata_store", store, workspace="default")
            assert own.error is None


def test_a_workspace_can_be_chosen_in_the_query(two: House) -> None:
    unclear = two.client("both").get("/api/mcp/tools")
    chosen = two.client("both").get("/api/mcp/tools?workspace=blue&limit=1")

    assert unclear.status_code == 400
    assert "X-Stratagem-Workspace" in unclear.text
    assert chosen.status_code == 200


def test_sockets_hear_of_their_own_workspace_only(two: House) -> None:
    heard: dict[str, list[str]] = {"red": [], "blue": []}
    sockets = {name: two.open_socket(name) for name in heard}
    for name, client in sockets.items():
        client.on("mcp:tool:available", lambda data, name=name: heard[name].append(data["name"]))
    handler = {"type": "webhook", "url": "https://example.com/x"}
    tool = {"description": "d", "inputSchema": {"type": "object"}, "handler": handler}

    for name, client in sockets.items():
        answer = client.call("mcp:tool:register", {"name": f"for-{name}", **tool}, timeout=60)
        assert answer["success"], answer
    for client in sockets.values():
        client.call("mcp:tools:list", {}, timeout=60)

    # The client hands what it hears to threads of its own.
    eventually(lambda: all(heard.values()))
    assert heard == {"red": ["for-red"], "blue": ["for-blue"]}


def test_tokens_are_in_no_ordinary_answer(two: House) -> None:
    """They are records of the log of `default`; no read, search, diff or export shows them."""
    path = two.path
    make_token(path, "hidden-holder", "*:admin", roles={"default": "admin"})
    two.tokens["home"] = make_token(path, "home", "*:admin")
    time.sleep(2 * limits.TOKEN_CHECK_SECONDS)
    two.call("rest", "home", "strata_branch", {"action": "fork", "name": "old"})
    make_token(path, "later-holder", "*:admin")

    merged = two.call(
        "rest", "home", "strata_branch", {"action": "merge", "source": "default", "branch": "old"}
    )
    answers = [
        two.call("rest", "home", name, arguments).text
        for name, arguments in [
            *questions("holder"),
            ("strata_branch", {"action": "diff", "compare": "old"}),
        ]
    ]

    assert merged.error is None, merged
    shown = "".join([merged.text, *answers])
    assert "hidden-holder" not in shown
    assert "later-holder" not in shown
    with opened(path, read_only=True) as runtime:
        store = runtime.foundation.store
        (old,) = [each for each in store.reader().branches.all() if each.name == "old"]
        written = [each for each in store.log() if each.branch == old.id and each.space]
    assert [each for each in written if each.space and each.space.namespace == "access"] == []
