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
from contextlib import closing
from pathlib import Path

import pytest

from stratagem.projections.bolt import Bolt
from tests.ports import free_port
from tests.registries import cache_folder, fetch_once

HERE = Path(__file__).parent / "neo4j"
PATIENCE_SECONDS = 60.0
# Neo4j takes seconds of processor time to start, and a busy machine a minute.
_START_SECONDS_MAX = 240.0
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
        until(lambda: self._gone() or listens(self.port), seconds=_START_SECONDS_MAX)
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


# What the command `chroma` does, without the client's modules that it imports: two seconds of them.
_CHROMA = (
    "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])"
)


class ChromaServer(Server):
    """`chroma run`, as its package has it."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        place = ["--path", str(self.folder / "data"), "--host", "127.0.0.1"]
        return [sys.executable, "-c", _CHROMA, "run", *place, "--port", str(self.port)]


class Neo4jServer(Server):
    """Neo4j's community edition, put together from its parts."""

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def command(self) -> list[str]:
        path = _class_path()
        # Without the archive, or with one of another Java, the classes are read from the jars.
        shared = ["-Xshare:auto", f"-XX:SharedArchiveFile={_class_archive(path)}"]
        return _java(path, shared, self.folder / "data", self.port)


_ARCHIVE = "classes.jsa"
# One of each kind that a projection has.
_TYPICAL_STATEMENTS = (
    "CREATE CONSTRAINT typical FOR (c:Concept) REQUIRE (c.log, c.concept_id) IS UNIQUE",
    "UNWIND ['a', 'b', 'c'] AS id MERGE (c:Concept {log: '', concept_id: id}) SET c.name = id",
    "MATCH (a:Concept {concept_id: 'a'}), (b:Concept {concept_id: 'b'}) MERGE (a)-[r:LEADS]->(b) SET r.n = 1",
    "MATCH (a:Concept {log: '', concept_id: 'a'})-[r:LEADS*1..3]->(b) RETURN b.name, [x IN r | type(x)] LIMIT 5",
    "MATCH p = shortestPath((a {name: 'a'})-[*..3]-(b {name: 'b'})) RETURN [n IN nodes(p) | n.name]",
    "MATCH (c:Concept) WHERE c.log = '' RETURN c {.*}, count(*) ORDER BY c.name SKIP 1 LIMIT 2",
    "MATCH (c:Concept) DETACH DELETE c",
    "DROP CONSTRAINT typical",
)  # fmt: skip


def _java(path: str, options: list[str], data: Path, port: int) -> list[str]:
    """Return the command that serves a Neo4j database in a folder on a port."""
    common = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return ["java", *common, *options, "-cp", path, "Launcher", str(data), str(port)]


def _class_path() -> str:
    """Return where Java finds the classes of a server; an archive takes those of jars alone."""
    parts = neo4j_parts()
    kept = parts.with_name(f"{parts.name}-launcher")

    def pack(folder: Path) -> None:
        command = ["jar", "--create", "--file", str(folder / "launcher.jar")]
        subprocess.run([*command, "-C", str(parts / "classes"), "."], check=True)

    fetch_once(kept, pack)
    return os.pathsep.join((str(kept / "launcher.jar"), f"{parts / 'jars'}/*"))


def _class_archive(path: str) -> Path:
    """Return a file of the classes that a server uses, ready to be used; have Java write it.

    Reading and checking them in their jars took half of the time of a start.
    """

    def write(folder: Path) -> None:
        port = free_port()
        option = f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}"
        with subprocess.Popen(
            _java(path, [option], folder / "data", port),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            until(lambda: process.poll() is not None or listens(port), seconds=_START_SECONDS_MAX)
            with closing(Bolt(f"bolt://127.0.0.1:{port}", "", "")) as bolt:
                for statement in _TYPICAL_STATEMENTS:
                    bolt.alone(statement)
            # With its input closed it ends, and writes the archive.
        shutil.rmtree(folder / "data")

    statements = "".join(_TYPICAL_STATEMENTS).encode()
    kept = cache_folder(
        "neo4j", f"classes-{hashlib.sha256(path.encode() + statements).hexdigest()[:12]}"
    )
    fetch_once(kept, write)
    return kept / _ARCHIVE


def neo4j_parts() -> Path:
    """Return where the parts of Neo4j are, fetching and compiling them where that is to be done.

    They are kept outside of the repository, and for tests alone.
    """
    for program in ("java", "javac", "jar", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"Neo4j cannot be put together without {program}")
    source = [HERE / "pom.xml", HERE / "Launcher.java"]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in source)).hexdigest()[:12]
    parts = cache_folder("neo4j", version)
    if reason := fetch_once(parts, _put_together):
        pytest.skip(reason)
    return parts


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
