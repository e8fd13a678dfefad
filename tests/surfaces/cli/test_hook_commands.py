"""hook log, on and off."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import forkserver
from tests.hooks.client import Client, make_project


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return forkserver.run(
        [sys.executable, "-m", "stratagem", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_what_was_injected_can_be_looked_up_and_switched_off(tmp_path: Path) -> None:
    make_project(tmp_path)
    client = Client("claude-code", tmp_path)
    shown = client.send("prompt").context

    log = json.loads(run(tmp_path, "hook", "log", "--json").stdout)
    off = run(tmp_path, "hook", "off", "prompt")
    client.session = "session-2"
    silent = client.send("prompt").context
    on = run(tmp_path, "hook", "on")
    client.session = "session-3"
    again = client.send("prompt").context

    [line] = log["results"]
    assert (line["event"], line["session"], line["text"]) == (
        "prompt",
        "claude-code-session-1",
        shown,
    )
    assert line["tokens"] == log["tokens"] > 0
    assert line["why"][0].startswith("project:default/deploy/staging ")
    assert "Off: prompt." in off.stdout
    assert silent == ""
    assert "All hooks are on." in on.stdout
    assert again == shown


def test_a_switch_leaves_the_rest_of_the_file_as_it_is(tmp_path: Path) -> None:
    make_project(tmp_path)
    file = tmp_path / ".stratagem" / "config.toml"
    file.write_text('# ours\nredaction = "strict"\nhooks_off = "start" # for now')

    run(tmp_path, "hook", "off", "capture")

    assert file.read_text() == '# ours\nredaction = "strict"\nhooks_off = "start,capture"'


@pytest.mark.parametrize("arguments", [("off", "everything"), ("off",)])
def test_a_switch_that_means_nothing_is_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, "hook", *arguments, "--json")

    assert done.returncode != 0
    assert json.loads(done.stdout or done.stderr)["error"] == "validation_error"
