"""25. Developer mode: rights, transactions of others, bundles and endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import pytest

from stratagem import limits
from stratagem.operations import TABLE
from stratagem.surfaces.rest import app as rest_app
from tests.security.house import SURFACES, House, Surface, make_token, serving

SECRET = "zanzibarium"
# Arguments with which each row would write, were it allowed to, where its example is not enough.
GIVEN: dict[str, dict[str, Any]] = {
    "strata_bundle_export": {"name": "mine"},
    "strata_bundle_import": {"name": "kept"},
    "strata_branch_create": {"name": "n"},
    "strata_branch_delete": {"name": "trial"},
    "strata_branch_fork": {"name": "n"},
    "strata_branch_merge": {"source": "trial"},
    "strata_configure_model": {"endpoint": "https://example.com/v1", "model": "m"},
    "strata_event_append_many": {"events": [{"event": "e", "content": "c"}]},
    "strata_generate": {"prompt": "hello"},
    "strata_txn_commit": {"transaction": "{transaction}"},
    "strata_txn_rollback": {"transaction": "{transaction}"},
}
WRITING = [
    name
    for name, row in TABLE.items()
    if "developer" in row.toolsets and row.right_for({}) != "read" and not row.reading_actions
]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Give a server in developer mode with two workspaces besides its own."""
    path = tmp_path_factory.mktemp("developer") / "memory.db"
    bundles = path.parent / "bundles"
    bundles.mkdir()
    many: Any = {"rate": 1_000_000}
    tokens = {
        "admin": make_token(path, "admin", "*:admin", **many),
        "reader": make_token(path, "reader", "*:read", **many),
        "other": make_token(path, "other", "*:write", "*:execute", **many),
        "red": make_token(path, "red", "*:admin", roles={"red": "admin"}, **many),
        "blue": make_token(path, "blue", "*:admin", roles={"blue": "admin"}, **many),
    }
    with serving(path, toolsets=("developer", "gateway"), bundles=str(bundles)) as running:
        running.tokens = tokens
        for token in ("admin", "red"):
            running.call("rest", token, "strata_kv_put", {"key": "k", "value": SECRET})
            running.call("rest", token, "strata_branch_fork", {"name": "trial"})
            made = running.call("rest", token, "strata_bundle_export", {"name": f"of-{token}"})
            assert made.error is None, made
        yield running


def begin(house: House, token: str) -> str:
    begun = house.call("rest", token, "strata_txn_begin", {})
    assert begun.error is None, begun
    return str(begun.answer["transaction"])


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("name", WRITING)
def test_a_token_that_reads_writes_by_no_row(house: House, surface: Surface, name: str) -> None:
    given = GIVEN.get(name, dict(TABLE[name].example or {}))
    given = {
        key: begin(house, "admin") if each == "{transaction}" else each
        for key, each in given.items()
    }

    outcome = house.call(surface, "reader", name, given)

    assert outcome.error == "permission_denied", outcome


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("token", ["other", "red"])
def test_a_transaction_of_somebody_else_is_not_taken_part_in(
    house: House, surface: Surface, token: str
) -> None:
    transaction = begin(house, "admin")
    written = {"key": "hidden", "value": SECRET, "transaction": transaction}
    house.call("rest", "admin", "strata_kv_put", written)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("strata_kv_get", {"key": "hidden"}),
        ("strata_kv_put", {"key": "hidden", "value": "theirs"}),
        ("strata_txn_info", {}),
        ("strata_txn_commit", {}),
        ("strata_kv_get", {"key": "hidden", "branch": f"\u0000{transaction}"}),
        ("strata_kv_get", {"key": "hidden", "branch": transaction}),
    ]

    outcomes = [
        house.call(
            surface,
            token,
            name,
            {**({} if "branch" in given else {"transaction": transaction}), **given},
        )
        for name, given in calls
    ]
    ended = house.call(surface, token, "strata_txn_rollback", {"transaction": transaction})
    own = house.call(
        "rest", "admin", "strata_kv_get", {"key": "hidden", "transaction": transaction}
    )

    assert all(each.error is not None for each in outcomes), outcomes
    assert all(SECRET not in each.text for each in outcomes)
    assert ended.error is not None or ended.answer["rolled_back"] is False
    assert own.answer["value"] == SECRET


@pytest.mark.parametrize("surface", SURFACES)
def test_no_workspace_reads_the_bundles_of_another(house: House, surface: Surface) -> None:
    for name in ("of-red", "of-admin", "workspaces/red/of-red", "../of-admin", "workspaces"):
        for row in ("strata_bundle_import", "strata_bundle_validate"):
            outcome = house.call(surface, "blue", row, {"name": name})
            assert outcome.error == "validation_error", (row, name, outcome)
            assert "of-red" not in outcome.text.replace(name, "")
            assert "of-admin" not in outcome.text.replace(name, "")
    own = house.call(surface, "red", "strata_bundle_validate", {"name": "of-red"})

    assert own.answer["valid"] is True


def test_no_workspace_replaces_a_bundle_of_another(house: House) -> None:
    given = {"name": "of-admin", "overwrite": True}

    written = house.call("rest", "red", "strata_bundle_export", {**given, "branch": "trial"})
    kept = house.call("rest", "admin", "strata_bundle_validate", {"name": "of-admin"})

    assert written.error is None
    assert kept.answer["branch"] == "default"


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("token", ["other", "blue"])
def test_nobody_elsewhere_is_told_where_files_are(
    house: House, surface: Surface, token: str
) -> None:
    """A token of another workspace, or of one that is no administrator's, is of no machine."""
    folder = str(house.path.parent)
    bundles = house.path.parent / "bundles"
    damaged = (bundles if token == "other" else bundles / "workspaces" / token) / "damaged.jsonl"
    damaged.parent.mkdir(parents=True, exist_ok=True)
    damaged.write_text("{}\n")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("strata_db_info", {}),
        ("strata_bundle_validate", {"name": "damaged"}),
        ("strata_bundle_import", {"name": "damaged"}),
        ("strata_bundle_export", {"name": "damaged"}),
        ("strata_db_compact", {}),
    ]

    outcomes = {name: house.call(surface, token, name, given) for name, given in calls}
    status = house.call("rest", token, "strata_status", {})
    own = house.call(surface, "admin", "strata_db_info", {})

    assert outcomes["strata_bundle_import"].error is not None
    assert [name for name, each in outcomes.items() if folder in each.text] == []
    assert status.answer["database"] in {"memory.db", "blue.db"}
    assert folder in own.text


def test_a_path_is_compared_with_others_away_from_the_event_loop(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[int] = []

    def compare_in_thread(path: str, *given: Any, **more: Any) -> list[str]:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        compared.append(len(path))
        return get_close_matches(path, *given, **more)

    monkeypatch.setattr(rest_app, "get_close_matches", compare_in_thread)
    near = house.client("other").post("/api/memory/strata_serch", json={})
    house.client("other").get("/api/memory/" + "strata_" * 1000)

    assert near.json()["details"]["similar"][0] == "/api/memory/strata_search"
    assert compared == [len("/api/memory/strata_serch"), limits.KEY_CHARS_MAX]


def test_answers_are_kept_in_no_cache(house: House) -> None:
    client = house.client("other")

    for path in ("/index.json", "/memory.json", "/api/mcp/tools", "/api/mcp/nothing"):
        headers = client.get(path).headers
        assert headers["cache-control"] == "no-store", path
        assert headers["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize("endpoint", ["file:///etc/passwd", "gopher://h/", "https://me:word@h/v1"])
def test_an_endpoint_is_an_address_without_a_password(house: House, endpoint: str) -> None:
    given = {"endpoint": endpoint, "model": "m"}

    outcome = house.call("rest", "admin", "strata_configure_model", given)

    assert outcome.error == "validation_error"


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://127.0.0.1:{port}",
        "http://169.254.169.254/latest",
        "http://[::ffff:127.0.0.1]:{port}",
        "http://localtest.invalid:{port}",
    ],
)
def test_no_prompt_is_sent_to_a_private_address(house: House, endpoint: str) -> None:
    place = endpoint.format(port=house.address[1])
    made = house.call("rest", "blue", "strata_configure_model", {"endpoint": place, "model": "m"})

    outcome = house.call("rest", "blue", "strata_generate", {"prompt": SECRET})

    assert made.error is None, made
    assert outcome.error == "generation_unavailable", outcome
    assert "answered" not in outcome.answer["message"]
