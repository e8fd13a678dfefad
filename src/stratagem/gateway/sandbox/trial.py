"""The trial of a layer: attacks that run in it before any code of a caller does.

Targets are planted on the machine: listening sockets, a file with a secret, a process to signal.
The attacking code gets their locations and reports which attacks succeeded. The targets are
checked afterwards as well, since code can lie. An endless loop and a flood of output are separate
runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Final

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import StratagemError
from stratagem.gateway.sandbox import processes
from stratagem.gateway.sandbox.layers import BASE_ENVIRONMENT, NOBODY, Layer, Mode, Task
from stratagem.gateway.sandbox.permissions import Permissions
from stratagem.gateway.sandbox.results import Language, LayerName

__all__ = [
    "MODES",
    "LayerReport",
    "Targets",
    "attack_code",
    "plant_targets",
    "run_attacks",
    "try_layer",
]

MODES: Final[Mapping[tuple[LayerName, Language], Mode]] = {
    ("monty", "python"): "monty",
    ("quickjs", "javascript"): "quickjs",
    ("bubblewrap", "python"): "python",
    ("bubblewrap", "javascript"): "node",
    ("landlock", "python"): "python",
    ("landlock", "javascript"): "node",
}
_FILES: Final[Mapping[Mode, str]] = {
    "monty": "monty_attacks.txt",
    "quickjs": "quickjs_attacks.js",
    "python": "python_attacks.py",
    "node": "javascript_attacks.js",
}
_LOOPS: Final[Mapping[Language, str]] = {
    "python": "while True: pass",
    "javascript": "/(a+)+$/.test('a'.repeat(40) + 'b')",
}
_FLOODS: Final[Mapping[Language, str]] = {
    "python": "while True: print('x' * 65536)",
    "javascript": "while (true) console.log('x'.repeat(65536))",
}
_LOOP_SECONDS: Final = 0.2
# Long enough for a busy machine.
_ATTACK_SECONDS: Final = 20.0
_ATTACK_MEMORY_BYTES: Final = 64 << 20
_VICTIM_SECONDS: Final = 60
_VICTIM: Final = """
import os, sys, time
if os.geteuid() == 0:
    user = int(sys.argv[1])
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
os.write(1, b".")
time.sleep(int(sys.argv[2]))
"""
_ALLOWED_NAMES: Final = ("HOME", "TMPDIR", "LC_CTYPE", "OPENSSL_CONF", "PWD", *BASE_ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class LayerReport:
    """The result of the attacks on one layer in one language.

    `attacks` maps each attack to what it achieved, None if it failed. `missing` says why the
    layer cannot be used at all.
    """

    layer: LayerName
    language: Language
    missing: str | None = None
    attacks: Mapping[str, str | None] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Tell whether code may run in this layer."""
        return self.missing is None and self.breach is None

    @property
    def breach(self) -> str | None:
        """Return the attacks that succeeded, as text, or None."""
        through = [f"{name} ({what})" for name, what in self.attacks.items() if what is not None]
        return ", ".join(through) or None

    def as_json(self) -> dict[str, Any]:
        """Return the report in the form of the interface."""
        return {
            "layer": self.layer,
            "language": self.language,
            "holds": self.holds,
            "missing": self.missing,
            "breach": self.breach,
            "attacks": len(self.attacks),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Targets:
    """The planted targets: the inputs of the attacking code, and what is checked afterwards."""

    attack_inputs: Mapping[str, Any]
    folder: Path
    text: str
    victim: subprocess.Popen[bytes]

    def damage(self) -> str | None:
        """Return what happened to the targets, as text, or None."""
        secret = self.folder / "secret"
        if not secret.exists() or secret.read_text("utf-8") != self.text:
            return "the secret was changed"
        if secret.stat().st_mode & 0o777 != 0o644 or not secret.stat().st_mtime:  # noqa: PLR2004
            return "the mode or time of the secret was changed"
        if list((self.folder / "outside").iterdir()):
            return "something was written outside"
        if self.victim.poll() is not None:
            return "another process was killed"
        return None


async def try_layer(layer: Layer, language: Language) -> LayerReport:
    """Try all attacks on a layer; a fault of the layer is reported, not raised."""
    missing = layer.missing_requirement(language)
    mode = MODES.get((layer.name, language))
    if missing is not None or mode is None:
        return LayerReport(layer.name, language, missing or f"it does not run {language}")
    begun = time.perf_counter()
    try:
        attacks = await _run_all(layer, mode, language)
    except StratagemError as error:
        return LayerReport(layer.name, language, error.message, seconds=time.perf_counter() - begun)
    return LayerReport(layer.name, language, None, attacks, time.perf_counter() - begun)


async def _run_all(layer: Layer, mode: Mode, language: Language) -> dict[str, str | None]:
    bound = Permissions(memory_bytes=_ATTACK_MEMORY_BYTES, seconds=_ATTACK_SECONDS)
    short = replace(bound, seconds=_LOOP_SECONDS)
    with plant_targets() as targets:
        found, loop, flood = await asyncio.gather(
            run_attacks(layer, mode, bound, targets.attack_inputs),
            _run_task(layer, Task(mode, short, _code_input(_LOOPS[language]))),
            _run_task(layer, Task(mode, bound, _code_input(_FLOODS[language]))),
        )
        found["damage"] = targets.damage()
    found["endless_loop"] = None if loop.stopped == "time" else f"ended with {loop.status}"
    found["flood"] = None if flood.stopped == "output" else f"ended with {flood.status}"
    return found


async def run_attacks(
    layer: Layer,
    mode: Mode,
    permissions: Permissions,
    attack_inputs: Mapping[str, Any],
    workdir: str | None = None,
) -> dict[str, str | None]:
    """Run the attacking code and return what each attack achieved."""
    task = Task(mode, permissions, _code_input(attack_code(mode), attack_inputs), workdir=workdir)
    outcome = await _run_task(layer, task)
    result = outcome.report.get("result")
    if not isinstance(result, dict) or not result:
        said = outcome.texts["stderr"].strip()[-300:]
        return {"attacks": f"gave no result, ended with {outcome.status}: {said}"}
    return {str(name): None if what is None else str(what) for name, what in result.items()}


def attack_code(mode: Mode) -> str:
    """Return the code that attacks an interpreter."""
    return (Path(__file__).parent / "attacks" / _FILES[mode]).read_text("utf-8")


def _code_input(code: str, inputs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"code": code, "inputs": inputs and dict(inputs), "hand_on": False}


async def _run_task(layer: Layer, task: Task) -> processes.ProcessResult:
    seconds = task.permissions.seconds
    return await processes.run(layer.launch(task), seconds=seconds, stdin=None, on_output=None)


@contextlib.contextmanager
def plant_targets(*, processes_max: int = 0, left_out: tuple[str, ...] = ()) -> Iterator[Targets]:
    """Plant the targets, accessible to every user, so that only the layer can protect them."""
    text = secrets.token_hex(16)
    abstract = f"sandbox-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sandbox-")))
        folder.chmod(0o755)
        (folder / "secret").write_text(text, "utf-8")
        (folder / "secret").chmod(0o644)
        (folder / "outside").mkdir()
        (folder / "outside").chmod(0o777)
        attack_inputs = {
            **_open_listeners(stack, folder, abstract),
            "secret": str(folder / "secret"),
            "outside": str(folder / "outside"),
            "environment": list(_ALLOWED_NAMES),
            "file_bytes_max": limits.SANDBOX_FILE_BYTES_MAX,
            "processes_max": processes_max,
            "left_out": list(left_out),
        }
        victim = stack.enter_context(_start_victim(folder))
        yield Targets({**attack_inputs, "victim": victim.pid}, folder, text, victim)


def _open_listeners(stack: contextlib.ExitStack, folder: Path, abstract: str) -> dict[str, Any]:
    """Open a listening socket of each kind."""

    def open_socket(family: int, kind: int, address: Any) -> socket.socket:
        made = stack.enter_context(socket.socket(family, kind))
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen()
        return made

    tcp = open_socket(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    udp = open_socket(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
    path = str(folder / "socket")
    open_socket(socket.AF_UNIX, socket.SOCK_STREAM, path)
    Path(path).chmod(0o777)
    if sys.platform == "linux":
        open_socket(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{abstract}")
        open_socket(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{abstract}-datagram")
    return {
        "host": "127.0.0.1",
        "tcp": tcp.getsockname()[1],
        "udp": udp.getsockname()[1],
        "unix": path,
        "abstract": abstract,
        "abstract_datagram": f"{abstract}-datagram",
    }


@contextlib.contextmanager
def _start_victim(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process as the user that the code runs as, so that only the layer protects it."""
    # It becomes that user by itself: with the option `user`, Python would fork this whole
    # process, and locks held by other threads at that moment would stay locked in the child.
    command = [sys.executable, "-I", "-S", "-c", _VICTIM, str(NOBODY), str(_VICTIM_SECONDS)]
    with subprocess.Popen(  # noqa: S603 - a fixed command
        command, cwd=folder, stdout=subprocess.PIPE
    ) as victim:
        try:
            assert victim.stdout is not None, "asked for when starting"
            victim.stdout.read(1)
            yield victim
        finally:
            victim.kill()
