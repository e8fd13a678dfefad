"""What `doctor` says about the sandbox, which it tries for real."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

from stratagem.surfaces.cli.output import Output

if TYPE_CHECKING:
    from stratagem.gateway.sandbox import Sandbox

__all__ = ["begin_sandbox_check", "show_sandbox"]

_WAYS = {"snippet": "snippets run in {}", "full": "everything else runs behind {}"}


def begin_sandbox_check() -> Future[dict[str, Any]]:
    """Try the sandbox in a thread of its own, while the database is examined."""
    executor = ThreadPoolExecutor(1)
    future = executor.submit(_check)
    # The task goes on; only no second one is taken.
    executor.shutdown(wait=False)
    return future


def show_sandbox(output: Output, sandbox: Mapping[str, Any]) -> None:
    """Say which code runs here, with what, and what to do for the rest."""
    for language, layers in sandbox["languages"].items():
        ways = [words.format(layers[kind]) for kind, words in _WAYS.items() if layers[kind]]
        style = "" if ways else "yellow"
        output.line(f"Sandbox: {language}: {', '.join(ways) or 'cannot run here'}.", style)
    bounds = sandbox["limits"]
    network = "with permission" if sandbox["network"] else "none"
    output.line(
        f"Sandbox: network {network}; {bounds['memoryBytes'] >> 20} MB and {bounds['seconds']:g} "
        "s for each run unless it asks for more."
    )
    for advice in sandbox["advice"]:
        output.line(f"Sandbox, for more: {advice}.", "yellow")


def _check() -> dict[str, Any]:
    from stratagem.gateway.sandbox.diagnosis import diagnose
    from stratagem.gateway.settings import GatewaySettings

    network = GatewaySettings().sandbox_network
    return diagnose(_sandbox(), network=network).as_json()


@cache
def _sandbox() -> Sandbox:
    """Return the one sandbox of this process: it remembers what the attacks on it showed."""
    from stratagem.gateway.sandbox import Sandbox

    return Sandbox()
