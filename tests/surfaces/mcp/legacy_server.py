"""An upstream server of the handshake era, on stdio: prompts, resources, changes and questions.

It speaks JSON-RPC itself, so that it is started in a moment and does just what it says here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [
    {"name": name, "description": description, "inputSchema": {"type": "object"}}
    for name, description in {
        "change": "Change all lists and a resource.",
        "ask": "Ask the user for a city.",
        "sample": "Ask the client's model.",
        "meta": "Say what came with the call.",
    }.items()
]
PROMPTS = [{"name": "greet", "title": "Greet", "arguments": [{"name": "who", "required": True}]}]
RESOURCES = [{"uri": "demo://one", "name": "one", "mimeType": "text/plain"}]
TEMPLATES = [{"uriTemplate": "demo://{place}/weather", "name": "weather"}]


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the client, and answer with what it says."""
    send(id="question", method=method, params=params)
    answer = json.loads(sys.stdin.readline())
    while answer.get("id") != "question":
        answer = json.loads(sys.stdin.readline())
    return text(answer.get("result") or answer["error"])


def call(name: str, meta: dict[str, Any]) -> dict[str, Any]:
    if name == "change":
        PROMPTS.append({"name": "part", "description": "Say goodbye."})
        for kind in ("tools", "prompts", "resources"):
            send(method=f"notifications/{kind}/list_changed")
        send(method="notifications/resources/updated", params={"uri": "demo://one"})
    if name == "ask":
        return ask("elicitation/create", {"message": "Which city?", "requestedSchema": SCHEMA})
    if name == "sample":
        said = {"role": "user", "content": {"type": "text", "text": "A city?"}}
        return ask("sampling/createMessage", {"messages": [said], "maxTokens": 5})
    return text(meta)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    changes = {"listChanged": True}
    answers: dict[str, Callable[[], dict[str, Any]]] = {
        "initialize": lambda: {
            "protocolVersion": "2025-06-18",
            "capabilities": {
                "tools": changes,
                "prompts": changes,
                "resources": {**changes, "subscribe": True},
                "completions": {},
            },
            "serverInfo": {"name": "legacy", "version": "0"},
        },
        "tools/list": lambda: {"tools": TOOLS},
        "tools/call": lambda: call(params["name"], params.get("_meta", {})),
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


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        result = answer(request["method"], request.get("params") or {})
        if result is None:
            send(id=request["id"], error={"code": -32601, "message": "Method not found"})
        else:
            send(id=request["id"], result=result)


if __name__ == "__main__":
    main()
