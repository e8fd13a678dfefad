"""What an operator sees of a server: whether it is ready, its log, and the files to deploy it."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from stratagem.surfaces.cli.app import app
from stratagem.surfaces.cli.settings import SETTINGS
from tests.postgres import Server, a_workspace
from tests.surfaces.serving import Served, eventually, serving

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
SECRET = "strat_thisIsNoTokenOfThisServerAtAll0123456789ab"
PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    """A PostgreSQL server of these tests' own, which they can stop."""
    server = Server.create()
    yield server
    server.destroy()


@pytest.fixture(scope="module")
def served(database: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("operating")
    user = database.address.replace("postgres@", f"postgres:{PASSWORD}@")
    place = f"{user}#{a_workspace()}"
    with serving(folder / "operating.db", "--db", place, "--log-format", "json") as running:
        yield running


def lines(served: Served) -> list[dict[str, Any]]:
    text = served.log.read_text("utf-8")
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_each_request_has_an_id_that_is_in_its_answer_and_in_the_log(served: Served) -> None:
    own = served.client.get("/health", headers={"x-request-id": "mine-1"})
    made = served.client.get("/api/nowhere")
    odd = served.client.get("/health", headers={"x-request-id": "a b;" * 10})

    assert own.headers["x-request-id"] == "mine-1"
    assert re.fullmatch(r"[0-9a-f]{16}", made.headers["x-request-id"])
    assert re.fullmatch(r"[0-9a-f]{16}", odd.headers["x-request-id"])
    logged = {line["requestId"]: line for line in lines(served) if "requestId" in line}
    line = logged[made.headers["x-request-id"]]
    assert (line["method"], line["path"], line["status"]) == ("GET", "/api/nowhere", 404)
    assert line["milliseconds"] >= 0
    assert line["level"] == "info"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert "mine-1" in logged


def test_a_client_that_leaves_is_not_logged_as_a_failure_of_the_server(served: Served) -> None:
    address = served.client.base_url
    head = (
        "POST /api/memory/strata_store HTTP/1.1",
        f"Host: {address.host}:{address.port}",
        "X-Request-Id: left-1",
        "Content-Length: 5000",
    )
    with socket.create_connection((address.host, address.port)) as half:
        half.sendall("\r\n".join([*head, "", "{"]).encode())

    def logged() -> list[int]:
        return [line["status"] for line in lines(served) if line.get("requestId") == "left-1"]

    eventually(lambda: logged() != [])
    assert logged() == [499]


def test_no_secret_is_logged(served: Served) -> None:
    served.client.get(f"/api/mcp/tools?token={SECRET}")
    served.client.get("/health", headers={"authorization": f"Bearer {SECRET}"})
    served.client.get(f"/api/{SECRET}")
    served.client.get("/health", headers={"x-request-id": SECRET})
    served.client.post(
        "/api/memory/strata_store", json={"key": "k", "value": {"password": PASSWORD}, "as": 1}
    )
    text = served.log.read_text("utf-8")

    assert lines(served)
    assert SECRET not in text
    assert PASSWORD not in text


def test_a_server_is_ready_while_its_database_is_there(served: Served, database: Server) -> None:
    assert served.client.get("/ready").json() == {"status": "ready"}

    database.stop("immediate")
    away = eventually(lambda: served.client.get("/ready").status_code == 503)
    told = served.client.get("/ready").json()
    alive = served.client.get("/health").status_code
    database.start()
    back = eventually(lambda: served.client.get("/ready").status_code == 200, 30)

    assert away
    assert told["status"] == "unready"
    assert alive == 200
    assert back


def test_a_server_without_a_file_can_say_so(tmp_path: Path) -> None:
    """Opening fails: nothing but the state is told."""
    place = tmp_path / "text.db"
    place.write_text("not a database" * 1000, "utf-8")
    with serving(place) as server:
        response = server.client.get("/ready")

    assert response.status_code == 503
    assert response.json() == {"status": "unready", "error": "database_corrupt"}


def test_a_server_that_is_told_twice_to_stop_says_nothing_of_it(tmp_path: Path) -> None:
    with serving(tmp_path / "twice.db") as running:
        said = running.log.read_text("utf-8")
        running.process.terminate()
        # It takes no connections any more, and is about to end what is open.
        eventually(lambda: is_closed(running.url))
        running.process.terminate()
        running.process.wait(timeout=30)

        assert running.log.read_text("utf-8") == said


def is_closed(url: str) -> bool:
    """Whether nobody takes connections at an address."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


def test_the_systemd_unit_is_sound(tmp_path: Path) -> None:
    analyse = shutil.which("systemd-analyze")
    if analyse is None:
        pytest.skip("systemd-analyze is not installed")
    unit = (DEPLOY / "stratagem.service").read_text("utf-8")
    # The one thing that is not there before it was installed.
    unit = unit.replace("/opt/stratagem/bin/stratagem", "/bin/true")
    file = tmp_path / "stratagem.service"
    file.write_text(unit, "utf-8")
    done = subprocess.run(
        [analyse, "verify", "--man=no", str(file)], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["Containerfile", "stratagem.service"])
def test_the_files_name_commands_and_variables_that_exist(name: str) -> None:
    text = (DEPLOY / name).read_text("utf-8")
    known = {each.variable for each in SETTINGS.values()}
    help_of_serve = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).stdout

    assert set(re.findall(r"STRATAGEM_[A-Z_]+[A-Z]", text)) <= known
    for option in re.findall(r'"(--[a-z-]+)"', text):
        assert option in help_of_serve
    assert "serve" in text


def test_the_container_copies_what_there_is_and_installs_extras_that_exist() -> None:
    text = (DEPLOY / "Containerfile").read_text("utf-8")
    root = DEPLOY.parent
    project = (root / "pyproject.toml").read_text("utf-8")
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE):
        for each in copied.split():
            assert (root / each).exists(), each
    extras = re.search(r"\[([a-z,]+)\]", text)
    assert extras is not None
    for extra in extras[1].split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
    assert re.search(r"^USER (?!root)", text, re.MULTILINE)
    instructions = {line.split()[0] for line in text.splitlines() if re.match(r"[A-Z]+ ", line)}
    assert instructions <= {
        "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "EXPOSE", "HEALTHCHECK", "CMD", "VOLUME",
    }  # fmt: skip
