"""An upstream server on stdio: prompts, resources, changes and questions.

It speaks JSON-RPC itself, so that it is started in a moment and does just what it says here: the
protocol of the handshake era, or with the argument `modern` that of 2026.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

IS_MODERN = sys.argv[-1] == "modern"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
QUESTION = {"message": "Which city?", "requestedSchema": SCHEMA}
TOOLS = [
    {"name": name, "description": description, "inputSchema": {"type": "object"}}
    for name, description in {
        "change": "Change all lists and a resource.",
        "ask": "Ask the user for a city.",
        "wait_and_ask": "Ask it once another call has come.",
        "ask_later": "Ask it once a file is there.",
        "sample": "Ask the client's model.",
        "meta": "Say what came with the call.",
    }.items()
]
PROMPTS = [{"name": "greet", "title": "Greet", "arguments": [{"name": "who", "required": True}]}]
RESOURCES = [{"uri": "demo://one", "name": "one", "mimeType": "text/plain"}]
TEMPLATES = [{"uriTemplate": "demo://{place}/weather", "name": "weather"}]


# Requests that came while another was answered.
waiting: list[dict[str, Any]] = []


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def ask(method: str, params: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Ask the client, and answer with what it says."""
    if IS_MODERN:
        return ask_in_answer(method, params, given)
    send(id="question", method=method, params=params)
    answer = json.loads(sys.stdin.readline())
    while answer.get("id") != "question":
        answer = json.loads(sys.stdin.readline())
    return text(answer.get("result") or answer["error"])


def ask_in_answer(method: str, params: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    if method.split("/", maxsplit=1)[0] not in given["_meta"][CAPABILITIES]:
        return {"isError": True, **text("Nobody can be asked.")}
    if "inputResponses" in given:
        assert given["requestState"] == "state"
        return text(given["inputResponses"]["it"])
    return {
        "resultType": "input_required",
        "inputRequests": {"it": {"method": method, "params": params}},
        "requestState": "state",
    }


def call(given: dict[str, Any]) -> dict[str, Any]:
    name = given["name"]
    if name == "change":
        PROMPTS.append({"name": "part", "description": "Say goodbye."})
        for kind in ("tools", "prompts", "resources"):
            send(method=f"notifications/{kind}/list_changed")
        send(method="notifications/resources/updated", params={"uri": "demo://one"})
    if name == "wait_and_ask":
        waiting.append(json.loads(sys.stdin.readline()))
    if name == "ask_later":
        while not Path(given["arguments"]["file"]).exists():
            time.sleep(0.01)
    if name in {"ask", "wait_and_ask", "ask_later"}:
        return ask("elicitation/create", QUESTION, given)
    if name == "sample":
        said = {"role": "user", "content": {"type": "text", "text": "A city?"}}
        return ask("sampling/createMessage", {"messages": [said], "maxTokens": 5}, given)
    return text(given.get("_meta", {}))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    changes = {"listChanged": True}
    capabilities = {
        "tools": changes,
        "prompts": changes,
        "resources": {**changes, "subscribe": True},
        "completions": {},
    }
    handshake = {
        "protocolVersion": "2025-06-18",
        "capabilities": capabilities,
        "serverInfo": {"name": "plain", "version": "0"},
    }
    discovery = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
    }
    answers: dict[str, Callable[[], dict[str, Any]]] = {
        **({"server/discover": lambda: discovery} if IS_MODERN else {}),
        "initialize": lambda: handshake,
        "tools/list": lambda: {"tools": TOOLS},
        "tools/call": lambda: call(params),
        "prompts/list": lambda: {"prompts": PROMPTS},
        "prompts/get": lambda: {
            "messages": [{"role": "user", "content": {"type": "text", "text": str(params)}}]
        },
        "resources/list": lambda: {"resources": RESOURCES},
        "resources/templates/list": lambda: {"resourceTemplates": TEMPLATES},
        "resources/read": lambda: {"contents": [{"uri": params["uri"], "text": "first"}]},
        "resources/subscribe": dict,
        "resources/unsubscribe": dict,
        "completion/complete": lambda: {"completion": {"values": [params["argument"]["value"]]}},
    }
    return answers[method]() if method in answers else None


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)
        while waiting:
            yield waiting.pop(0)


def main() -> None:
    for request in requests():
        if "id" not in request or "method" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        if result is None:
            send(id=request["id"], error={"code": -32601, "message": "Method not found"})
        else:
            send(id=request["id"], result=result)


if __name__ == "__main__":
    main()
