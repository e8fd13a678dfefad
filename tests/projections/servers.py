"""Real servers on the loopback, each started by a test run and ended by its process."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.registries import cache_folder, fetch_once

HERE = Path(__file__).parent / "neo4j"
PATIENCE_SECONDS = 60.0
# Maven waits for minutes, several times over, where its repository does not answer. Only Maven
# knows where that is, so it is told to give up early: milliseconds, by the names of two transports.
_IMPATIENT = (
    "-Daether.connector.connectTimeout=5000",
    "-Daether.connector.requestTimeout=30000",
    "-Daether.connector.http.retryHandler.count=0",
    "-Dmaven.wagon.rto=30000",
    "-Dmaven.wagon.http.retryHandler.count=0",
)


def until(what: Callable[[], bool], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Wait for something that is under way."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Server(ABC):
    """A process that listens on a port, and keeps its data in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        assert self._process is None
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT
            )
        until(lambda: self._gone() or listens(self.port))
        assert not self._gone(), (self.folder / "server.log").read_text()

    def kill(self) -> None:
        """End the server as a power switch would."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None
            process.stdin.close()

    def restart(self) -> None:
        self.kill()
        self.start()

    @abstractmethod
    def command(self) -> list[str]:
        """Return what starts it."""

    def _gone(self) -> bool:
        return self._process is None or self._process.poll() is not None


class ChromaServer(Server):
    """`chroma run`, as its package installs it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        program = Path(sys.executable).parent / "chroma"
        place = ["--path", str(self.folder / "data"), "--host", "127.0.0.1"]
        return [str(program), "run", *place, "--port", str(self.port)]


class Neo4jServer(Server):
    """Neo4j's community edition, put together from its parts."""

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        jars, classes = neo4j_parts()
        path = os.pathsep.join((str(classes), f"{jars}/*"))
        options = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
        data = str(self.folder / "data")
        return ["java", *options, "-cp", path, "Launcher", data, str(self.port)]


def neo4j_parts() -> tuple[Path, Path]:
    """Return where the parts of Neo4j are, fetching and compiling them where that is to be done.

    They are kept outside of the repository, and for tests alone.
    """
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"Neo4j cannot be put together without {program}")
    source = [HERE / "pom.xml", HERE / "Launcher.java"]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in source)).hexdigest()[:12]
    parts = cache_folder("neo4j", version)
    if reason := fetch_once(parts, _put_together):
        pytest.skip(reason)
    return parts / "jars", parts / "classes"


def _put_together(folder: Path) -> str | None:
    """Fetch the jars and compile the launcher; say why where nothing can be fetched."""
    maven = ["mvn", "--batch-mode", "--quiet", "--file", str(HERE / "pom.xml")]
    maven += [f"-Dmaven.repo.local={cache_folder('maven')}", *_IMPATIENT]
    fetched = subprocess.run(
        [*maven, "dependency:copy-dependencies", f"-DoutputDirectory={folder / 'jars'}"],
        capture_output=True,
        check=False,
    )
    if fetched.returncode:
        return f"Maven could not fetch Neo4j: {fetched.stdout.decode()[-300:]}"
    compiler = ["javac", "-cp", f"{folder / 'jars'}/*", "-d", str(folder / "classes")]
    subprocess.run([*compiler, str(HERE / "Launcher.java")], check=True, capture_output=True)
    return None
