"""A failure is answered with the fix of that error, and of no other with another code."""

from __future__ import annotations

import json
import platform
from pathlib import Path

import pytest

import stratagem
from stratagem.hooks.clients import STOP, HookEvent
from stratagem.hooks.fix_cards import refresh_cards
from stratagem.hooks.fixes import FixCard, cards_path, find_fix, read_cards, write_cards
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings, read_settings
from stratagem.hooks.tools import handle_tool
from stratagem.hooks.turns import handle_turn

DENIED = "botocore.exceptions.ClientError: access to the bucket is denied"
STEPS = ["Renew the licence of the build server"]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HookSettings:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "project" / ".stratagem").mkdir(parents=True)
    return read_settings(str(tmp_path / "project"))


def answer_to(settings: HookSettings, *, known: str, failure: str) -> str:
    """Return what a failure is answered with where one error and its fix are known."""
    with stratagem.open(settings.database, embedder="none") as db:
        added = db.debugging.add_incident(
            "The build failed", STEPS, "auto", True, error_signature=known
        )
        assert added.solution_id is not None
        db.debugging.record_outcome(added.solution_id, True, "auto")
    return find_fix(failed_with(settings, failure), settings, session_files(settings, "s"))


def failed_with(settings: HookSettings, output: str) -> HookEvent:
    return HookEvent(
        "claude-code", "PostToolUse", "tool", "s", settings.folder, tool="Bash",
        arguments={"command": "make"}, output=output, failed=True,
    )  # fmt: skip


def session_files(settings: HookSettings, session: str) -> SessionFiles:
    return SessionFiles(settings.database, "claude-code", session)


@pytest.mark.parametrize(
    ("known", "failure"),
    [
        ("E2000", "E1234"),
        ("The start failed with E2000", "The start failed with E1234"),
        ("Error: ORA-00942", "Error: ORA-01017"),
        (
            "The service did not start\nError code: 0x80070005",
            "The service did not start\nError code: 0x80004005",
        ),
        ("HTTP 500", "HTTP 500"),
        ("HTTP 500", "HTTP 502"),
        ("HTTP 404 Not Found", "HTTP 404 Not Found"),
        ("Error: not found", "Error: not found"),
        ("504 Gateway Timeout", "504 Gateway Timeout"),
        ("uvx: command not found", "service: command not found"),
        ("HTTP 500", "\x1b[31mHTTP 500\x1b[0m"),
        ("Command failed: exit code 1", "Command failed: exit code 1"),
    ],
)
def test_a_code_is_not_answered_with_the_fix_of_another_nor_a_bare_status(
    settings: HookSettings, known: str, failure: str
) -> None:
    assert answer_to(settings, known=known, failure=failure) == ""


@pytest.mark.parametrize(
    "said",
    [
        "The start failed: {}",
        "The start failed (error {})",
        "The start failed [{}]",
        "The start failed, code={}",
        "The start failed with code ({})",
        "The start failed with error #{}",
        "The start failed with result {}",
        "The start failed with status {}",
        "The start failed with '{}'",
        "The start failed with `{}`",
        "The start failed with {},",
        "The start failed with {};",
        "The start failed with {} (see log)",
        "The start failed with\t{}\r",
        "\x1b[31mThe start failed with {}\x1b[0m",
        "The start failed with \x1b[1m{}\x1b[0m",
    ],
)
def test_a_code_decides_however_it_is_written(settings: HookSettings, said: str) -> None:
    known = said.format("E2000")

    other = answer_to(settings, known=known, failure=said.format("E1234"))
    same = find_fix(failed_with(settings, known), settings, session_files(settings, "next"))

    assert other == ""
    assert STEPS[0] in same


@pytest.mark.parametrize("package", ["got", "chalk"])
def test_a_package_is_not_answered_with_the_fix_of_another(
    settings: HookSettings, package: str
) -> None:
    said = "require() of ES Module /app/node_modules/{}/src/index.js from /app/a.js not supported."
    known, failure = (f"Error [ERR_REQUIRE_ESM]: {said}".format(each) for each in ("got", package))

    answer = answer_to(settings, known=known, failure=f"Exit code 1\n{failure}")

    assert bool(answer) == (package == "got")


@pytest.mark.parametrize(("port", "is_answered"), [(8081, True), (5432, False)])
def test_the_port_of_a_service_is_not_answered_with_the_fix_for_any_other(
    settings: HookSettings, port: int, *, is_answered: bool
) -> None:
    taken = "Error: listen EADDRINUSE: address already in use :::{}"

    answer = answer_to(settings, known=taken.format(3000), failure=taken.format(port))

    assert bool(answer) is is_answered


def test_another_test_that_failed_is_not_answered_with_a_fix(settings: HookSettings) -> None:
    said = "==== FAILURES ====\nFAILED tests/test_cart.py::{} - assert {} == 200"

    other = answer_to(
        settings, known=said.format("test_total", 401), failure=said.format("test_coupon", 500)
    )
    same = find_fix(
        failed_with(settings, said.format("test_total", 401)),
        settings,
        session_files(settings, "next"),
    )

    assert other == ""
    assert STEPS[0] in same


def test_colours_within_a_word_do_not_hide_an_error(settings: HookSettings) -> None:
    failure = "\x1b[1mModuleNot\x1b[31mFoundError\x1b[0m: No module named 'ya\x1b[1mml\x1b[0m'"

    answer = answer_to(
        settings, known="ModuleNotFoundError: No module named 'yaml'", failure=failure
    )

    assert STEPS[0] in answer


@pytest.mark.parametrize(
    ("known", "failure"),
    [
        ("The start failed with E2000", "The start failed with E2000"),
        ("The start failed with E2000", "make: going on\nThe start failed with E2000"),
        ("Order 4711 failed: no such customer", "Order 4712 failed: no such customer"),
        (
            "ModuleNotFoundError: No module named 'yaml'",
            "HTTP 500\nModuleNotFoundError: No module named 'yaml'",
        ),
        ("service: command not found", "service: command not found"),
        ("code: command not found", "code: command not found"),
        ("Request timeout", "Request timeout"),
        ("Build failed: not found", "Build failed: not found"),
        (f"{DENIED}\nREQ-118273", f"{DENIED}\nREQ-993817"),
        (f"{DENIED}\nrequest failed with req-118273", f"{DENIED}\nrequest failed with req-993817"),
        (f"abc1234\n{DENIED}", f"def5678\n{DENIED}"),
        (f"{DENIED}\nexited with code 0x80070005", f"{DENIED}\nnpm error code ELIFECYCLE"),
    ],
)
def test_the_same_error_is_answered_with_its_fix(
    settings: HookSettings, known: str, failure: str
) -> None:
    assert STEPS[0] in answer_to(settings, known=known, failure=failure)


def test_a_fix_that_was_learned_since_the_cards_were_made_is_shown(settings: HookSettings) -> None:
    found = "FATAL: the harbour cache is poisoned"
    with stratagem.open(settings.database, embedder="none"):
        refresh_cards(settings, "default")

    assert STEPS[0] in answer_to(settings, known=found, failure=found)


def test_a_fix_that_has_only_failed_is_not_shown(settings: HookSettings) -> None:
    with stratagem.open(settings.database, embedder="none") as db:
        db.debugging.add_incident("The build failed", STEPS, "auto", False, error_signature=DENIED)

    shown = find_fix(failed_with(settings, DENIED), settings, session_files(settings, "s"))

    assert shown == ""


def test_a_fix_that_worked_on_another_system_only_is_not_shown_where_it_failed(
    settings: HookSettings,
) -> None:
    here = {"os": platform.system()}
    elsewhere = {"os": "linux" if here["os"] == "Darwin" else "macos"}
    with stratagem.open(settings.database, embedder="none") as db:
        added = db.debugging.add_incident(
            "The build failed", STEPS, elsewhere, True, error_signature=DENIED
        )
        assert added.solution_id is not None
        for env, worked in ((elsewhere, True), (elsewhere, True), (here, False)):
            db.debugging.record_outcome(added.solution_id, worked, env)

    shown = find_fix(failed_with(settings, DENIED), settings, session_files(settings, "s"))

    assert shown == ""


def test_cards_of_another_format_are_made_again(settings: HookSettings) -> None:
    known, other = "The start failed with E2000", "The start failed with E1234"
    assert STEPS[0] in answer_to(settings, known=known, failure=known)
    path = Path(cards_path(settings.database, "default"))
    head, card, _ = path.read_text().split("\n")
    older = json.loads(head)
    del older["format"]
    words, _, rest = card.partition("\t")
    path.write_text(f"{json.dumps(older)}\n{words}\t{json.dumps(json.loads(rest)[:-1])}\n")

    answer = find_fix(failed_with(settings, other), settings, session_files(settings, "next"))

    assert answer == ""
    assert path.read_text().split("\n") == [head, card, ""]


def test_cards_of_another_format_are_made_again_at_the_end_of_a_turn(
    settings: HookSettings,
) -> None:
    known = "The start failed with E2000"
    assert STEPS[0] in answer_to(settings, known=known, failure=known)
    path = Path(cards_path(settings.database, "default"))
    written = path.read_text()
    for changed in (written.replace('"format": ', '"format": 9'), "", "{"):
        path.write_text(changed)

        refresh_cards(settings, "default")

        assert path.read_text() == written


def test_what_a_later_version_added_to_a_card_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "fixes.tsv"
    card = FixCard("e2000", "i", "s", "title", STEPS, "why", "f", [], 1.0, 0.9, ["code e2000"])
    write_cards(str(path), 7, "here", [card])
    path.write_text(path.read_text().replace('["code e2000"]]', '["code e2000"], "more", 5]'))

    about, cards = read_cards(str(path), "it ended with E2000")

    assert about is not None
    assert (about["newest"], about["env_bucket"]) == (7, "here")
    assert cards == [card]


def test_a_fix_that_was_done_when_its_error_came_again_has_failed(settings: HookSettings) -> None:
    error = "ModuleNotFoundError: No module named 'yaml'"
    with stratagem.open(settings.database, embedder="none") as db:
        db.debugging.add_incident(
            "yaml is missing", ["pip install pyyaml"], "auto", True, error_signature=error
        )
    files = session_files(settings, "s")
    failure = failed_with(settings, error)
    done = failure._replace(
        arguments={"command": "pip install pyyaml"}, output="Installed", failed=False
    )

    shown = [handle_tool(each, settings, files, wanted=True) for each in (failure, done, failure)]
    handle_turn(HookEvent("claude-code", "Stop", STOP, "s", settings.folder), settings, files)

    assert [bool(text) for text in shown] == [True, False, False]
    with stratagem.open(settings.database, embedder="none") as db:
        [solution] = db.debugging.list_solutions().results
    assert (solution.worked, solution.failed) == (1, 1)
