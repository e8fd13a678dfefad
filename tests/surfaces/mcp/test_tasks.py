"""Calls that take long are tasks of clients that know tasks, and of no others."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, RequestParams, Result

import stratagem
from stratagem import limits
from tests.security.house import make_token, read_message, serving
from tests.surfaces.mcp import plain_server
from tests.surfaces.mcp.clients import CLIENT, ENVELOPE, MODERN
from tests.surfaces.serving import Service, eventually

TASKS = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ABLE = {**ENVELOPE, CAPABILITIES: {"extensions": {TASKS: {}}, "elicitation": {"form": {}}}}


class Gateway:
    """A server with a tool that takes until it is told to end, spoken to by bare requests."""

    def __init__(self, url: str, path: Path) -> None:
        self.url = url
        self.path = path
        self.go_on = threading.Event()

    def make_slow(self, service: Service) -> None:
        """Have the tool's service wait."""
        service.answers["/slow"] = self._answer

    def _answer(self, _said: Any) -> tuple[int, str, bytes]:
        assert self.go_on.wait(60)
        return 200, "application/json", b'{"answer": 42}'

    def ask(self, method: str, token: str = "", meta: Any = ABLE, **params: Any) -> dict[str, Any]:
        name = params.get("name") or params.get("taskId")
        headers = {
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": MODERN,
            "mcp-method": method,
            **({"mcp-name": name} if name else {}),
            **({"authorization": f"Bearer {token}"} if token else {}),
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        answer = httpx2.post(
            f"{self.url}/mcp", json=body, headers=headers, timeout=60, trust_env=False
        )
        message: dict[str, Any] = read_message(answer)
        return message

    def begin(self, token: str = "", tool: str = "slow") -> str:
        """Call the slow tool by its own name; return the id of its task."""
        result = self.ask("tools/call", token, name=tool, arguments={})["result"]
        assert (result["resultType"], result["status"]) == ("task", "working")
        return str(result["taskId"])

    def get(self, task: str, token: str = "") -> dict[str, Any]:
        found: dict[str, Any] = self.ask("tasks/get", token, taskId=task)["result"]
        return found

    def await_end(self, task: str, token: str = "") -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            found = self.get(task, token)
            return found if found["status"] not in {"working", "input_required"} else None

        state: dict[str, Any] = eventually(ended)
        return state


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        yield running


@pytest.fixture
def gateway(tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    monkeypatch.setattr(limits, "TASK_AFTER_SECONDS", 0.2)
    path = tmp_path / "memory.db"
    handler = {"type": "webhook", "url": service.url("/slow"), "method": "POST"}
    with stratagem.open(str(path), embedder="none") as db:
        tool = {"name": "slow", "description": "d", "inputSchema": {"type": "object"}}
        db.call("tool_register", {**tool, "handler": handler})
    options = {"toolsets": ("gateway", "memory"), "expose": ("*",), "allow_hosts": (service.host,)}
    with serving(path, **options) as house:
        running = Gateway(house.url, path)
        running.make_slow(service)
        yield running
        running.go_on.set()


def test_a_call_that_takes_long_becomes_a_task(gateway: Gateway) -> None:
    discovered = gateway.ask("server/discover")["result"]["capabilities"]["extensions"]
    task = gateway.begin()
    working = gateway.get(task)
    listed = gateway.ask("tools/call", name="work_list", arguments={})
    gateway.go_on.set()
    ended = gateway.await_end(task)
    again = gateway.get(task)

    assert discovered[TASKS] == {}
    assert (working["status"], working["resultType"]) == ("working", "complete")
    assert working["pollIntervalMs"] == 1000
    assert working["createdAt"] <= working["lastUpdatedAt"]
    assert task in json.dumps(listed)
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"] == {"answer": 42}
    assert not ended["result"]["isError"]
    assert again["result"] == ended["result"]


def listened(gateway: Gateway, tasks: list[str], token: str = "", meta: Any = ABLE) -> Any:
    """Give the messages of a subscription, one after the other, until it is closed."""
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": MODERN,
        "mcp-method": "subscriptions/listen",
        **({"authorization": f"Bearer {token}"} if token else {}),
    }
    params = {"notifications": {"taskIds": tasks, "toolsListChanged": True}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 31, "method": "subscriptions/listen", "params": params}
    with httpx2.stream(
        "POST", f"{gateway.url}/mcp", json=body, headers=headers, timeout=60, trust_env=False
    ) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


def test_a_client_is_told_of_its_tasks_instead_of_asking(gateway: Gateway) -> None:
    task = gateway.begin()
    messages = listened(gateway, [task, "exec_nobodys"])

    acknowledged, working = next(messages), next(messages)
    gateway.go_on.set()
    ended = next(messages)
    after = next(listened(gateway, [task]))
    late = [each["params"]["status"] for each in itertools.islice(listened(gateway, [task]), 1, 2)]
    messages.close()

    about = {"io.modelcontextprotocol/subscriptionId": 31}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True, "taskIds": [task]}
    assert {each["method"] for each in (working, ended)} == {"notifications/tasks"}
    assert working["params"]["_meta"] == ended["params"]["_meta"] == about
    assert (working["params"]["taskId"], working["params"]["status"]) == (task, "working")
    known = gateway.get(task)
    assert ended["params"]["status"] == "completed"
    assert ended["params"]["result"] == known["result"]
    # Whoever comes after its end is told of that.
    assert after["params"]["notifications"]["taskIds"] == [task]
    assert late == ["completed"]


def test_only_a_client_that_knows_tasks_is_told_of_them(gateway: Gateway) -> None:
    task = gateway.begin()

    acknowledged = next(listened(gateway, [task], meta=ENVELOPE))

    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}


def test_a_task_is_found_by_the_next_server_too(gateway: Gateway) -> None:
    task = gateway.begin()

    with serving(gateway.path, toolsets=("gateway",)) as house:
        other = Gateway(house.url, gateway.path)
        running = other.get(task)["status"]
        gateway.go_on.set()
        ended = gateway.await_end(task)
        elsewhere = eventually(lambda: other.get(task).get("result"))

    assert running == "working"
    assert elsewhere == ended["result"]


def test_only_a_client_that_says_so_is_given_a_task(gateway: Gateway) -> None:
    timer = threading.Timer(0.6, gateway.go_on.set)
    timer.start()

    answer = gateway.ask("tools/call", meta=ENVELOPE, name="slow", arguments={})["result"]
    refused = gateway.ask("tasks/get", meta=ENVELOPE, taskId="exec_1")["error"]
    short = gateway.ask("tools/call", name="calculator", arguments={"expression": "6 * 7"})
    unknown = [
        gateway.ask(method, taskId="exec_nobody")["error"]["code"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel")
    ]

    assert (answer["resultType"], answer["isError"]) == ("complete", False)
    assert refused["code"] == -32021
    assert refused["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert short["result"]["resultType"] == "complete"
    assert unknown == [-32602] * 3


def test_a_task_is_cancelled_and_its_call_with_it(gateway: Gateway) -> None:
    task = gateway.begin()

    cancelled = gateway.ask("tasks/cancel", taskId=task)["result"]
    ended = gateway.await_end(task)

    assert cancelled["resultType"] == "complete"
    assert ended["status"] == "cancelled"
    assert "result" not in ended
    assert not gateway.go_on.is_set()


def test_a_question_of_a_task_is_asked_and_answered_by_it(gateway: Gateway, tmp_path: Path) -> None:
    file = tmp_path / "go"
    with stratagem.open(str(gateway.path), embedder="none") as db:
        command = {"command": sys.executable, "args": [str(plain_server.__file__), "legacy"]}
        db.call("server_add", {"name": "plain", **command})
    given = {"file": str(file)}
    task = gateway.ask("tools/call", name="ask_later", arguments=given)["result"]["taskId"]
    file.touch()

    asked = eventually(lambda: gateway.get(task).get("inputRequests"))
    again = gateway.get(task)
    ((key, question),) = asked.items()
    ignored = gateway.ask(
        "tasks/update", taskId=task, inputResponses={"other": {"action": "cancel"}}
    )
    still = gateway.get(task)["status"]
    reply = {key: {"action": "accept", "content": {"city": "Oslo"}}}
    gateway.ask("tasks/update", taskId=task, inputResponses=reply)
    ended = gateway.await_end(task)

    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "plain: Which city?"
    assert (again["status"], again["inputRequests"]) == ("input_required", asked)
    assert ignored["result"]["resultType"] == "complete"
    assert still == "input_required"
    assert "Oslo" in ended["result"]["content"][0]["text"]


def test_a_task_belongs_to_its_caller(
    tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TASK_AFTER_SECONDS", 0.2)
    path = tmp_path / "memory.db"
    ann, bob = (make_token(path, name, "*:write", "gateway:execute") for name in ("ann", "bob"))
    handler = {"type": "webhook", "url": service.url("/slow"), "method": "POST"}
    tool = {"name": "slow", "description": "d", "inputSchema": {"type": "object"}}
    with stratagem.open(str(path), embedder="none") as db:
        db.call("tool_register", {**tool, "handler": handler})
    options = {"toolsets": ("gateway",), "expose": ("*",), "allow_hosts": (service.host,)}
    with serving(path, **options) as house:
        gateway = Gateway(house.url, path)
        gateway.make_slow(service)
        task = gateway.begin(ann)
        others = [
            gateway.ask(method, bob, taskId=task)["error"]["code"]
            for method in ("tasks/get", "tasks/update", "tasks/cancel")
        ]
        told = next(listened(gateway, [task], bob))["params"]["notifications"]
        running = gateway.get(task, ann)["status"]
        gateway.go_on.set()
        ended = gateway.await_end(task, ann)
        after = gateway.ask("tasks/get", bob, taskId=task)["error"]["code"]

    assert others == [-32602] * 3
    assert told["taskIds"] == []
    assert running == "working"
    assert ended["status"] == "completed"
    assert after == -32602


class TaskResult(Result):
    """A handle, as the SDK's client is told of it."""

    result_type: Literal["task"] = "task"
    task_id: str


class TaskParams(RequestParams):
    task_id: str


class GetTask(Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class TaskState(Result):
    status: str
    result: dict[str, Any] | None = None


class Tasks(ClientExtension):
    """What a client of the SDK needs to follow tasks."""

    identifier = TASKS

    def __init__(self, on_task: Any) -> None:
        self._on_task = on_task

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=self._resolve)]

    async def _resolve(self, task: TaskResult, context: ClaimContext) -> CallToolResult:
        self._on_task()
        while True:
            request = GetTask(params=TaskParams(task_id=task.task_id))
            state = await context.session.send_request(request, TaskState)
            if state.result is not None:
                return CallToolResult.model_validate(state.result)
            await anyio.sleep(0.05)


@pytest.mark.anyio
async def test_a_client_of_the_sdk_follows_a_task_to_its_end(gateway: Gateway) -> None:
    extension = Tasks(gateway.go_on.set)
    client = Client(
        f"{gateway.url}/mcp",
        client_info=CLIENT,
        extensions=[extension],
    )
    async with client:
        result = await client.call_tool("slow", {})
        executed = await client.call_tool("tool_execute", {"toolName": "slow", "arguments": {}})

    assert result.structured_content == {"answer": 42}
    assert executed.structured_content is not None
    assert executed.structured_content["result"] == {"answer": 42}
