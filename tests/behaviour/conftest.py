from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.behaviour.surfaces import SERVED, SLOW, SURFACES, Answer, Surface, Wanted, is_refusal
from tests.contracts.samples import Clock
from tests.postgres import a_workspace


class Refused(Exception):
    """An operation answered with an error."""

    def __init__(self, envelope: Answer) -> None:
        super().__init__(f"{envelope['error']}: {envelope['message']}")
        self.envelope = envelope


class Call:
    """Runs operations on one surface; `call.store(key=…)` is `strata_store`."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def __call__(self, name: str, /, **arguments: Any) -> Answer:
        if arguments.get("action") == "switch" and not self._surface.switches:
            pytest.skip("this surface has nothing to remember a branch by")
        answer = self._surface.run(name, arguments)
        if is_refusal(answer):
            raise Refused(answer)
        return answer

    def __getattr__(self, name: str) -> Callable[..., Answer]:
        return lambda **arguments: self(f"strata_{name}", **arguments)

    def value(self, key: str, **view: Any) -> Any:
        """Return the value under a key; `Ellipsis` where there is none."""
        answer = self("strata_recall", key=key, **view)
        return answer["value"] if answer["found"] else ...

    def keys(self, query: str, **options: Any) -> list[str]:
        """Return the keys of entries and the labels of events that a search finds."""
        found = self("strata_search", query=query, **options)["results"]
        return [hit.get("key") or hit["event"] for hit in found]

    def head(self) -> str:
        """Return where the log ends; any write moves it."""
        head: str = self("strata_status")["head"]
        return head

    def refusal(self, name: str, /, **arguments: Any) -> Answer:
        """Run an operation that must be refused without a trace; return the error."""
        before = self.head()
        envelope = self.failure(name, **arguments)
        assert self.head() == before, "something was written"
        return envelope

    def failure(self, name: str, /, **arguments: Any) -> Answer:
        """Run an operation that must fail, as a call of a tool may; return the error."""
        envelope = self._surface.run(name, arguments)
        assert envelope.get("success") is False, envelope
        assert set(envelope) == {"success", "error", "message", "details", "hint"}
        assert envelope["message"]
        assert envelope["hint"]
        return envelope


Opener = Callable[..., Call]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SURFACES
    ]
)
def surface(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def server_place(surface: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    """Where the test's database is, if not in a file of its own."""
    if surface != SERVED:
        return {}
    return {"address": f"{request.getfixturevalue('postgres_address')}#{a_workspace()}"}


@pytest.fixture
def call_type() -> type[Call]:
    """What a test calls operations by; a folder with short ways of its own has another."""
    return Call


@pytest.fixture
def opened(
    surface: str,
    tmp_path: Path,
    clock: Clock,
    server_place: dict[str, Any],
    call_type: type[Call],
) -> Iterator[Opener]:
    """Open the test's one database over the surface, with other settings or once more."""
    with ExitStack() as stack:

        def open_call(**settings: Any) -> Call:
            wanted = Wanted(tmp_path / "memory.db", clock, **server_place, **settings)
            return call_type(stack.enter_context(closing(SURFACES[surface](wanted))))

        yield open_call


@pytest.fixture
def call(opened: Opener) -> Call:
    return opened()
