"""Upstream servers that we start: real processes of the official SDK."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp.client.session import ClientSession

from stratagem import limits
from stratagem.errors import ExecutionFailed, ExecutionTimeout, PermissionDenied, ServiceUnavailable
from stratagem.gateway.definitions.contract import ListedTool
from tests.unit.gateway.handlers.upstream.servers import (
    ODD_SERVER,
    eventually,
    handler_of,
    is_alive,
    run_of,
    stdio,
    upstreams_of,
    value_of,
)

pytestmark = pytest.mark.anyio


async def test_tools_are_listed_with_their_schemas_as_sent() -> None:
    async with upstreams_of(stdio()) as upstreams:
        listed = {tool.name: tool for tool in await upstreams.list_tools("up")}

    add = listed["add"]
    assert add.description == "Add two numbers."
    assert add.input_schema["required"] == ["a", "b"]
    assert add.output_schema is not None
    assert add.output_schema["properties"]["total"]["type"] == "integer"
    assert add.handler["type"] == "mcp"
    assert add.handler["fingerprint"].startswith("sha256:")


async def test_results_are_plain_json() -> None:
    async with upstreams_of(stdio()) as upstreams:
        structured = await value_of(upstreams, handler_of("up", "add"), run_of({"a": 1, "b": 2}))
        parsed = await value_of(upstreams, handler_of("up", "environment"), run_of())
        text = await value_of(upstreams, handler_of("up", "words"), run_of())
        blocks = await value_of(upstreams, handler_of("up", "picture"), run_of())

    assert structured == {"total": 3}
    assert isinstance(parsed, dict)
    assert text == {"content": [{"type": "text", "text": "version 1.10"}]}
    assert blocks["content"][0]["text"] == "a dot"
    assert blocks["content"][0]["_meta"] == {"for": "clients"}
    assert blocks["content"][1] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}


async def test_a_tool_that_fails_is_a_failed_execution_with_its_words() -> None:
    async with upstreams_of(stdio()) as upstreams:
        with pytest.raises(ExecutionFailed, match="out of paper") as failed:
            await value_of(upstreams, handler_of("up", "fail"), run_of())

    assert not failed.value.safe


async def test_the_environment_is_what_was_named_and_nothing_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STRATAGEM_TOKEN", "ours")
    monkeypatch.setenv("OPENAI_API_KEY", "ours")
    server = stdio(NAMED="plain", KEY="Bearer ${NOTES_KEY}")

    async with upstreams_of(server, secrets={("NOTES_KEY", "mcp:up"): "s3"}) as upstreams:
        seen = await value_of(upstreams, handler_of("up", "environment"), run_of())

    assert seen["NAMED"] == "plain"
    assert seen["KEY"] == "Bearer s3"
    assert seen["PATH"] == os.environ["PATH"]
    assert "ours" not in seen.values()
    assert "s3" not in str(upstreams.servers())


async def test_a_secret_that_was_not_granted_keeps_the_server_from_starting() -> None:
    async with upstreams_of(stdio(KEY="${OTHER}")) as upstreams:
        with pytest.raises(PermissionDenied):
            await upstreams.list_tools("up")

        assert not upstreams.status("up")["connected"]


async def test_progress_is_passed_on() -> None:
    told: list[tuple[float | None, str | None]] = []
    run = run_of({"count": 4}, progress=lambda done, message: told.append((done, message)))

    async with upstreams_of(stdio()) as upstreams:
        await value_of(upstreams, handler_of("up", "steps"), run)

    assert told == [(0.25, "step 1"), (0.5, "step 2"), (0.75, "step 3"), (1.0, "step 4")]


async def test_cancelling_a_call_cancels_the_work_upstream(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with upstreams_of(stdio(NOTES=str(notes))) as upstreams:
        await upstreams.list_tools("up")
        call = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
        await eventually(lambda: "hanging" in notes.read_text())

        call.cancel()

        await eventually(lambda: "cancelled" in notes.read_text())
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await value_of(upstreams, handler_of("up", "add"), run_of({"a": 1, "b": 1})) == {
            "total": 2
        }


async def test_a_call_out_of_time_is_a_timeout_and_stops_the_work(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with upstreams_of(stdio(NOTES=str(notes))) as upstreams:
        await upstreams.list_tools("up")

        with pytest.raises(ExecutionTimeout):
            await value_of(upstreams, handler_of("up", "hang"), run_of(seconds=0.3))

        await eventually(lambda: "cancelled" in notes.read_text())


async def test_all_calls_share_one_process(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with upstreams_of(stdio(NOTES=str(notes))) as upstreams:
        calls = [
            value_of(upstreams, handler_of("up", "add"), run_of({"a": at, "b": 1}))
            for at in range(50)
        ]
        results = await asyncio.gather(*calls)

    assert [result["total"] for result in results] == list(range(1, 51))
    assert notes.read_text().count("started") == 1


async def test_a_crash_fails_the_calls_in_flight_and_the_next_call_starts_anew(
    tmp_path: Path,
) -> None:
    async with upstreams_of(stdio(NOTES=str(tmp_path / "notes"))) as upstreams:
        await upstreams.list_tools("up")
        hanging = asyncio.create_task(value_of(upstreams, handler_of("up", "hang"), run_of()))
        await eventually(lambda: "hanging" in (tmp_path / "notes").read_text())

        with pytest.raises(ExecutionFailed, match="status 3") as crashed:
            await value_of(upstreams, handler_of("up", "crash"), run_of())
        with pytest.raises(ExecutionFailed) as hung:
            await hanging
        again = await value_of(upstreams, handler_of("up", "add"), run_of({"a": 1, "b": 2}))

    assert "the last words" in crashed.value.message
    assert not crashed.value.safe
    assert not hung.value.safe
    assert again == {"total": 3}


async def test_a_killed_server_is_started_anew() -> None:
    async with upstreams_of(stdio()) as upstreams:
        await upstreams.list_tools("up")
        first = upstreams.status("up")["pid"]
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: not upstreams.status("up")["connected"])

        result = await value_of(upstreams, handler_of("up", "add"), run_of({"a": 1, "b": 2}))

        assert result == {"total": 3}
        assert upstreams.status("up")["pid"] != first


async def test_a_server_that_cannot_start_says_why_and_is_left_alone_for_a_while() -> None:
    async with upstreams_of(stdio(script=f"{ODD_SERVER} dead")) as upstreams:
        with pytest.raises(ExecutionFailed, match="cannot find my settings") as first:
            await value_of(upstreams, handler_of("up", "good"), run_of())
        with pytest.raises(ExecutionFailed) as second:
            await value_of(upstreams, handler_of("up", "good"), run_of())

        assert upstreams.status("up")["failures"] == 1

    assert first.value.safe
    assert "\x1b" not in first.value.message
    assert second.value.safe
    assert 0 < second.value.details["retry_after"] <= limits.UPSTREAM_BACKOFF_SECONDS_MIN


async def test_a_server_that_is_slow_to_answer_is_spoken_to_in_its_own_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    discover = ClientSession.send_discover

    async def give_up_once(session: ClientSession, version: str) -> dict[str, Any]:
        try:
            return await discover(session, version)
        finally:
            monkeypatch.undo()

    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", 0.01)
    monkeypatch.setattr(ClientSession, "send_discover", give_up_once)

    async with upstreams_of(stdio()) as upstreams:
        await upstreams.list_tools("up")

        assert upstreams.status("up")["protocolVersion"] == "2026-07-28"


async def test_a_program_that_is_not_there_is_named() -> None:
    server = {"name": "up", "transport": "stdio", "command": "no-such-program"}
    async with upstreams_of(server) as upstreams:
        with pytest.raises(ExecutionFailed, match="no-such-program") as failed:
            await upstreams.list_tools("up")

    assert failed.value.safe


async def test_a_changed_description_is_told_and_its_tool_refused() -> None:
    told: list[Sequence[ListedTool]] = []
    async with upstreams_of(stdio(), on_change=lambda _server, listed: told.append(listed)) as up:
        listed = await up.list_tools("up")
        approved = {tool.name: tool.handler for tool in listed}
        assert await value_of(up, approved["add"], run_of({"a": 1, "b": 2})) == {"total": 3}

        await value_of(up, handler_of("up", "rewrite"), run_of())
        await eventually(lambda: len(told) == 2)

        with pytest.raises(PermissionDenied, match="changed since it was approved"):
            await value_of(up, approved["add"], run_of({"a": 1, "b": 2}))
        assert await value_of(up, approved["words"], run_of())
        changed = [tool.name for tool in told[1] if tool.handler != approved[tool.name]]
        assert changed == ["add"]
        again = next(tool for tool in told[1] if tool.name == "add")
        assert await value_of(up, again.handler, run_of({"a": 1, "b": 2})) == {"total": 3}


async def test_closing_ends_the_processes() -> None:
    async with upstreams_of(stdio("one"), stdio("two")) as upstreams:
        await asyncio.gather(upstreams.list_tools("one"), upstreams.list_tools("two"))
        pids = [upstreams.status(name)["pid"] for name in ("one", "two")]
        assert all(pid is not None and is_alive(pid) for pid in pids)

    assert not any(pid is not None and is_alive(pid) for pid in pids)


async def test_changing_a_definition_ends_the_old_process_and_uses_the_new_one() -> None:
    async with upstreams_of(stdio(MARK="old")) as upstreams:
        await upstreams.list_tools("up")
        pid = upstreams.status("up")["pid"]
        assert pid is not None
        await upstreams.define(stdio(MARK="old"))
        assert upstreams.status("up")["pid"] == pid

        await upstreams.define(stdio(MARK="new"))

        assert not is_alive(pid)
        assert (await value_of(upstreams, handler_of("up", "environment"), run_of()))[
            "MARK"
        ] == "new"
        await upstreams.remove("up")
        with pytest.raises(ServiceUnavailable):
            await value_of(upstreams, handler_of("up", "add"), run_of())


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells of a parent's death on Linux")
async def test_the_process_ends_when_ours_is_killed(tmp_path: Path) -> None:
    # A server that ignores the end of its input, so that only the kernel can end it.
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text("import time\ntime.sleep(60)\n")
    program = f"""
        import asyncio
        from stratagem.gateway.handlers.upstream.stdio import open_process

        async def main():
            async with open_process({sys.executable!r}, ({str(stubborn)!r},), {{}}) as process:
                print(process.pid, flush=True)
                await asyncio.sleep(60)

        asyncio.run(main())
    """
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", textwrap.dedent(program), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    assert is_alive(child)

    parent.kill()
    await parent.wait()

    await eventually(lambda: not is_alive(child))


async def test_a_server_that_crashes_again_and_again_is_left_alone_for_longer() -> None:
    crash = handler_of("up", "crash")
    async with upstreams_of(stdio()) as upstreams:
        for _ in range(2):
            with pytest.raises(ExecutionFailed, match="status 3"):
                await value_of(upstreams, crash, run_of())

        with pytest.raises(ExecutionFailed, match="cannot be reached") as refused:
            await value_of(upstreams, handler_of("up", "add"), run_of({"a": 1, "b": 1}))

        assert refused.value.safe
        assert refused.value.details["retry_after"] > 0
        assert upstreams.status("up")["failures"] == 2


async def test_an_observer_that_fails_does_not_keep_a_list_from_being_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(_server: str, _listed: Sequence[ListedTool]) -> None:
        raise ValueError("no")

    async with upstreams_of(stdio(), on_change=broken) as upstreams:
        assert await upstreams.list_tools("up")

    assert "noting a changed list of up failed" in caplog.text
