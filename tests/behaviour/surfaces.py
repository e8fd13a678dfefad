"""The ways in that every behaviour is tried on. A new one is one more row in `SURFACES`.

A surface runs an operation by its name on plain JSON and answers in plain JSON; where the
operation is refused, with the envelope of the error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from typer.testing import CliRunner

from stratagem import Stratagem, StratagemError, bootstrap, connect
from stratagem.bootstrap import Runtime, Settings, start
from stratagem.operation import Caller
from stratagem.operations import TABLE
from stratagem.storage.relational.store import Adapters
from stratagem.surfaces.cli.app import app
from stratagem.surfaces.mcp.callers import ProcessCaller
from stratagem.surfaces.mcp.client_identity import process_caller
from stratagem.surfaces.mcp.server import build
from stratagem.surfaces.serving.settings import ServerSettings
from tests.contracts.samples import Clock, salts
from tests.sdk.hosting import Prepared, host

Answer = dict[str, Any]
# The embedded surface once more, with everything in PostgreSQL.
SERVED = "postgres"


@dataclass(frozen=True)
class Wanted:
    """The database that a surface is to stand on: a file, or a workspace of a server."""

    path: Path
    clock: Clock
    embedder: str = "none"
    read_only: bool = False
    address: str | None = None
    # Hosts that tools may call, though they are not public.
    allow_hosts: tuple[str, ...] = ()
    # Commands are started one after the other, and no two draw the same.
    entropy: Callable[[int], bytes] = field(default_factory=salts)

    def start(self) -> Runtime:
        return start(
            Settings(
                self.address or str(self.path),
                durability="fast",
                embedder=self.embedder,
                read_only=self.read_only,
                adapters=Adapters(self.clock, self.entropy),
                zone=UTC,
                allow_hosts=self.allow_hosts,
            )
        )


class Surface(Protocol):
    """`switches`: whether it remembers a current branch from one call to the next."""

    switches: bool

    def run(self, name: str, arguments: Answer) -> Answer: ...

    def close(self) -> None: ...


class Embedded:
    """`db.call` of the SDK."""

    switches = True

    def __init__(self, wanted: Wanted) -> None:
        self._db = Stratagem(wanted.start(), Caller(authority="operator"))

    def run(self, name: str, arguments: Answer) -> Answer:
        try:
            answer = self._db.call(name, arguments)
        except StratagemError as error:
            answer = error.envelope()
        return as_json(answer)

    def close(self) -> None:
        self._db.close()


class Trusted(ProcessCaller):
    """A client behind which a person stands, as behind an administrator's token."""

    def of(self, context: Any) -> Caller:
        caller = super().of(context)
        caller.authority = "operator"
        return caller


class Mcp:
    """The MCP server, with the official client, in this process."""

    switches = True
    # What clients were told about operations, and how they judge answers by that. Each would list all
    # tools before it believes an answer, which takes longer than most tests.
    _schemas: ClassVar[dict[str, Any]] = {}
    _validators: ClassVar[dict[str, Any]] = {}

    def __init__(self, wanted: Wanted) -> None:
        settings = ServerSettings(
            str(wanted.path),
            toolsets=(
                "memory",
                "debugging",
                "debugging_admin",
                "knowledge",
                "knowledge_plus",
                "gateway",
                "registry",
                "admin",
                "memory_plus",
                "developer",
            ),
        )
        self._database = Prepared(settings, wanted.start())
        server = build(settings, self._database, Trusted(process_caller(settings)))
        self._opening = start_blocking_portal()
        self._portal = self._opening.__enter__()
        self._session = self._portal.wrap_async_context_manager(Client(server, mode="legacy"))
        self._client = self._session.__enter__()
        for told, known in self._knowledge():
            told.update(known)

    def run(self, name: str, arguments: Answer) -> Answer:
        result = self._portal.call(self._client.call_tool, name, arguments)
        assert isinstance(result.structured_content, dict)
        assert result.is_error == is_refusal(result.structured_content)
        return result.structured_content

    def _knowledge(self) -> tuple[tuple[dict[str, Any], dict[str, Any]], ...]:
        """Return what the client knows, each beside what all of them know."""
        session = self._client.session
        return (
            (session._tool_output_schemas, self._schemas),  # noqa: SLF001 -- there is no other way
            (session._tool_output_validators, self._validators),  # noqa: SLF001
        )

    def close(self) -> None:
        for told, known in self._knowledge():
            # Tools of the test's own are others in the next one.
            known.update((name, each) for name, each in told.items() if name in TABLE)
        self._portal.call(self._database.leave_loop)
        self._session.__exit__(None, None, None)
        self._opening.__exit__(None, None, None)
        self._database.close()


class Connected:
    """`db.call` of a client of a server."""

    switches = True

    def __init__(self, wanted: Wanted) -> None:
        settings = ServerSettings(str(wanted.path), read_only=wanted.read_only)
        self._database = Prepared(settings, wanted.start())
        self._url = host().add(settings, self._database)
        self._db = connect(self._url, patience=0)

    def run(self, name: str, arguments: Answer) -> Answer:
        try:
            return self._db.call(name, arguments)
        except StratagemError as error:
            return error.envelope()

    def close(self) -> None:
        self._db.close()
        host().remove(self._url)
        self._database.close()


class CommandLine:
    """`stratagem call`, in this process: each call opens the database anew."""

    switches = False

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._runner = CliRunner()
        # A command that only reads makes no database.
        wanted.start().close()

    def run(self, name: str, arguments: Answer) -> Answer:
        wanted = self._wanted
        options = ["--db", str(wanted.path), "--embedder", wanted.embedder]
        options += ["--durability", "fast", *(["--read-only"] if wanted.read_only else [])]
        with pytest.MonkeyPatch.context() as patch:
            # The clock that the test holds, in place of the one on the wall.
            patch.setattr(bootstrap, "start", lambda _settings: wanted.start())
            result = self._runner.invoke(
                app, [*options, "call", name, "-", "--json"], input=json.dumps(arguments)
            )
        answer: Answer = json.loads(result.stdout or result.stderr)
        assert (result.exit_code != 0) == is_refusal(answer), result.output
        return answer

    def close(self) -> None:
        """Nothing is open between two calls."""


def is_refusal(answer: Answer) -> bool:
    """Whether an answer is the envelope of an error; a pipeline that failed is an answer too."""
    return answer.get("success") is False and "hint" in answer


def as_json(answer: Answer) -> Answer:
    """Return an answer as it arrives elsewhere; it must be nothing but JSON."""
    text = json.dumps(answer, allow_nan=False)
    arrived: Answer = json.loads(text)
    assert arrived == answer
    return arrived


SURFACES: dict[str, Callable[[Wanted], Surface]] = {
    "embedded": Embedded,
    SERVED: Embedded,
    "mcp": Mcp,
    "connect": Connected,
    "cli": CommandLine,
}
# Each call of the command line opens and closes the database: minutes, all in all.
SLOW = frozenset({"cli"})
