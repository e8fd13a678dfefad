"""Processes on one address are one server to Socket.IO clients, without anything but themselves."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import httpx2
import psutil  # type: ignore[import-untyped]
import pytest
from mcp import Client as McpClient
from typer.testing import CliRunner

from stratagem import limits
from stratagem.surfaces.cli.app import app
from stratagem.surfaces.cluster.channel import encode_messages
from stratagem.surfaces.cluster.local import CLIENT_HEADER
from tests.surfaces.server.conftest import Team
from tests.surfaces.serving import eventually, serving
from tests.surfaces.socket.clients import Client, javascript_client

WORKERS = 2
TOOL: dict[str, Any] = {"description": "Hosted.", "inputSchema": {"type": "object"}}


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Serve with several processes."""
    try:
        javascript_client()
    except LookupError as reason:
        pytest.skip(str(reason))
    place = Path(tmp_path_factory.mktemp("together") / "together.db")
    options = ("--workers", str(WORKERS), "--log-format", "json", "--expose", "*")
    with (
        TemporaryDirectory() as meeting,
        serving(place, *options, env={"TMPDIR": meeting}) as served,
    ):
        running = Team(served, str(place))
        running.meeting = Path(meeting)
        eventually(lambda: len(running.workers()) == WORKERS and running.all_answer(), 60)
        yield running


@pytest.fixture
def clients(team: Team) -> Iterator[Callable[..., list[Client]]]:
    """Connect clients, enough of them that no process has none."""
    with ExitStack() as stack:

        def connected(count: int, transport: str = "websocket") -> list[Client]:
            made = [stack.enter_context(Client(team.url, transport)) for _ in range(count)]
            for each in made:
                assert each.first.get("connected"), each.first
            return made

        yield connected


def process_of(client: Client) -> str:
    """Return the number of the process that a client is connected to."""
    return str(client.first["connected"]).partition(".")[0]


def spread(clients: Callable[..., list[Client]], transport: str = "websocket") -> list[Client]:
    """Return clients of at least two processes."""
    made: list[Client] = []
    while len({process_of(each) for each in made}) < 2:
        assert len(made) < 40
        made += clients(1, transport)
    return made


def test_workers_that_have_nothing_to_do_sleep(team: Team) -> None:
    """uvicorn wakes up ten times a second; asking each other for news would add fifty."""
    workers = team.settled()

    def switches() -> list[int]:
        return [each.num_ctx_switches().voluntary for each in workers]

    def wake_ups_per_second() -> float:
        before, began = switches(), time.monotonic()
        time.sleep(2)
        most = max(now - then for now, then in zip(switches(), before, strict=True))
        return most / (time.monotonic() - began)

    # What an earlier test began may still be ending.
    eventually(lambda: wake_ups_per_second() < 35, 60)


@pytest.mark.parametrize("transport", ["polling", "both"])
def test_clients_that_poll_are_served(
    team: Team, clients: Callable[..., list[Client]], transport: str
) -> None:
    made = clients(3, transport)
    for client in made:
        for _ in range(5):
            answer = client.ask("mcp:tools:list", {"search": "calculator"})
            assert answer["success"], answer

    # Requests of one socket met several processes; a request is logged after it was answered.
    eventually(lambda: len(set(team.answered("/socket.io"))) >= WORKERS)
    if transport == "both":
        for client in made:
            assert client.hear(lambda each: "upgraded" in each)["upgraded"] == "websocket"
            assert client.ask("mcp:tools:list", {})["success"]


def test_an_event_reaches_the_clients_of_every_process_once(
    team: Team, clients: Callable[..., list[Client]]
) -> None:
    made = spread(clients)
    for client in made:
        assert client.ask("mcp:tools:list", {})["success"]
    names = [f"heard{number}" for number in range(6)]
    for name in names:
        handler = {"type": "webhook", "url": f"https://example.com/{name}"}
        response = httpx2.post(
            f"{team.url}/api/mcp/tools",
            json={"name": name, "handler": handler, **TOOL},
            trust_env=False,
            timeout=60,
        )
        assert response.status_code == 201
    heard = [[each.event("mcp:tool:available")["name"] for _ in names] for each in made]

    assert [sorted(each) for each in heard] == [names] * len(made)
    assert all(each.none("mcp:tool:available") for each in made)


def test_a_tool_of_a_client_is_called_from_every_process(
    team: Team, clients: Callable[..., list[Client]]
) -> None:
    host, *others = spread(clients)
    assert host.ask("mcp:tool:register", {"name": "shout", **TOOL})["success"]
    asked = {"toolName": "shout", "arguments": {"text": "hi"}}
    answers = [each.ask("mcp:tool:execute", asked) for each in others]
    for _ in range(6):
        response = httpx2.post(
            f"{team.url}/api/mcp/tools/shout/execute",
            json={"arguments": {"text": "you"}},
            trust_env=False,
            timeout=60,
        )
        assert response.json()["data"]["result"] == {"said": "YOU"}, response.text

    assert {process_of(each) for each in others} - {process_of(host)}
    assert [each["data"]["result"] for each in answers] == [{"said": "HI"}] * len(others)


def test_a_client_that_hangs_or_leaves_elsewhere_hurts_only_the_call(
    clients: Callable[..., list[Client]],
) -> None:
    *hosts, caller = spread(clients)
    host = next(each for each in hosts if process_of(each) != process_of(caller))
    assert host.ask("mcp:tool:register", {"name": "hang", **TOOL})["success"]
    hung: dict[str, Any] = {}
    # On a busy machine a call may be stopped before it reaches the client.
    for milliseconds in (500, 5_000, 20_000):
        asked = {"toolName": "hang", "arguments": {}, "options": {"timeout": milliseconds}}
        hung = caller.ask("mcp:tool:execute", asked)
        if not host.none("mcp:tool:call"):
            break
    call = host.event("mcp:tool:call")
    told = host.event("mcp:tool:cancel")
    leaving = caller.send("mcp:tool:execute", {"toolName": "hang", "arguments": {}})
    host.event("mcp:tool:call", lambda data: data["executionId"] != call["executionId"])
    began = time.monotonic()
    host.process.kill()
    left = caller.hear(lambda each: each.get("ack") == leaving)["data"]

    assert hung["error"]["code"] == "TIMEOUT"
    assert told["toolName"] == "hang"
    assert not left["success"]
    # Without waiting for an answer as long as a call may take.
    assert time.monotonic() - began < limits.EXECUTION_SECONDS_DEFAULT - 5
    # The tool went with its client, so that another one can host it.
    eventually(lambda: not caller.ask("mcp:tool:get", {"toolId": "hang"})["success"])


def test_a_tool_of_a_client_that_is_there_is_not_taken_over(
    clients: Callable[..., list[Client]],
) -> None:
    *hosts, other = spread(clients)
    host = next(each for each in hosts if process_of(each) != process_of(other))
    assert host.ask("mcp:tool:register", {"name": "late", **TOOL})["success"]
    answer = other.ask("mcp:tool:register", {"name": "late", **TOOL})

    assert answer["error"]["message"] == "There is a tool named 'late'.", answer


@pytest.mark.anyio
async def test_mcp_clients_are_told_of_changes_that_another_process_made(team: Team) -> None:
    statuses = set()
    async with (
        McpClient(f"{team.url}/mcp") as client,
        client.listen(tools_list_changed=True) as events,
    ):
        with anyio.fail_after(60):
            # Each on a connection of its own, so that either process is met.
            for number in range(4):
                statuses.add(await anyio.to_thread.run_sync(save_pipeline, team, f"pipe{number}"))
                async for event in events:
                    assert type(event).__name__ == "ToolsListChanged"
                    break

    assert statuses == {200}


def save_pipeline(team: Team, name: str) -> int:
    steps = [{"tool": "calculator", "arguments": {"expression": "1 + 1"}}]
    given = {"name": name, "saveAs": name, "steps": steps, "description": "Two."}
    path = f"{team.url}/api/gateway/tools_pipeline"
    return httpx2.post(path, json=given, trust_env=False, timeout=60).status_code


def test_whoever_claims_to_be_handed_on_is_not_believed(team: Team) -> None:
    told = httpx2.post(f"{team.url}/messages", json={"messages": []}, trust_env=False, timeout=60)
    odd = [
        httpx2.get(
            f"{team.url}/socket.io/",
            params={"EIO": "4", "transport": "polling", "sid": sid},
            headers={CLIENT_HEADER: "10.0.0.1"},
            trust_env=False,
            timeout=60,
        ).status_code
        for sid in ("0.nobody", "1.nobody", "2.nobody", "77.x", "-1.x", "٣.x", "." * 500)
        for _ in range(3)
    ]

    assert told.status_code == 404
    assert set(odd) == {400}


def test_a_process_that_is_killed_leaves_its_clients_to_begin_anew(
    team: Team, clients: Callable[..., list[Client]]
) -> None:
    made = spread(clients, "polling")
    before = set(team.workers())
    doomed = psutil.Process(team.answered("/socket.io")[-1])
    doomed.kill()
    eventually(lambda: len(team.workers()) == WORKERS and before - set(team.workers()), 60)
    eventually(team.all_answer, 60)
    answers = [each.ask("mcp:tools:list", {})["success"] for each in clients(4, "polling")]

    assert all(answers)
    assert made


def refuses_strangers(team: Team) -> bool:
    """Whether every process knows that tokens are needed."""
    path = "/api/mcp/strangers"
    statuses = [
        httpx2.get(
            f"{team.url}{path}",
            headers={"connection": "close"},
            trust_env=False,
            verify=False,
            timeout=60,
        ).status_code
        for _ in range(4)
    ]
    return set(statuses) == {401} and len({*team.answered(path)[-len(statuses) :]}) >= WORKERS


def create_token(team: Team, name: str) -> str:
    options = ["token", "create", name, "--admin", "--rate", "60", "--json"]
    made = CliRunner().invoke(app, ["--db", team.place, *options])
    eventually(lambda: refuses_strangers(team), 60)
    return str(json.loads(made.stdout)["token"])


def test_a_rate_holds_for_all_processes_together(team: Team) -> None:
    """Among the last of this server: from the first token on everybody needs one."""
    token = create_token(team, "ada")
    began = time.monotonic()
    # A connection of its own each time, so that all processes are met.
    statuses = [
        httpx2.get(
            f"{team.url}/api/mcp/tools",
            headers={"authorization": f"Bearer {token}", "connection": "close"},
            trust_env=False,
            verify=False,
            timeout=60,
        ).status_code
        for _ in range(110)
    ]
    refilled = time.monotonic() - began
    met = {*team.answered("/api/mcp/tools")}

    assert len(met) >= WORKERS
    assert set(statuses) == {200, 429}
    # Each process alone would grant 60.
    assert statuses.count(200) <= 60 + refilled + 30


def test_wrong_tokens_are_counted_by_all_processes_together(team: Team) -> None:
    create_token(team, "bob")
    began = time.monotonic()
    statuses = []
    for _ in range(limits.WRONG_TOKENS_PER_MINUTE + 40):
        answer = httpx2.get(
            f"{team.url}/api/mcp/wrong",
            headers={"authorization": "Bearer strat_wrong", "connection": "close"},
            trust_env=False,
            verify=False,
            timeout=60,
        )
        statuses.append(answer.status_code)
        # The processes tell each other a few times a second.
        time.sleep(0.02)
    refilled = time.monotonic() - began

    assert len({*team.answered("/api/mcp/wrong")}) >= WORKERS
    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= limits.WRONG_TOKENS_PER_MINUTE + refilled + 30


def test_nothing_is_left_of_where_they_met(team: Team) -> None:
    (folder,) = team.meeting.iterdir()
    private = folder.stat().st_mode & 0o077
    found = sorted(each.name for each in folder.iterdir())
    workers = team.workers()
    team.served.kill()
    psutil.wait_procs(workers, timeout=60)

    assert private == 0
    assert found == [f"{number}.sock" for number in range(WORKERS)]
    assert list(team.meeting.iterdir()) == []


@pytest.mark.parametrize("wrong", [2**70, "\ud800", {1, 2}])
def test_what_cannot_be_told_keeps_nothing_else_from_being_told(
    wrong: Any, caplog: pytest.LogCaptureFixture
) -> None:
    written = encode_messages("me", [("first", 1), ("wrong", {"value": wrong}), ("last", [2])])

    assert json.loads(written) == {"from": "me", "messages": [["first", 1], ["last", [2]]]}
    assert "messages about wrong" in caplog.text
