"""What the lean path does by itself is what the thorough parts do."""

from __future__ import annotations

import json
import math
import os
from array import array
from pathlib import Path

import platformdirs
import pytest

import stratagem
from stratagem import limits
from stratagem.git_branches import memory_branch_of
from stratagem.hooks.clients import CLIENTS, HookEvent, format_answer, parse_event
from stratagem.hooks.context_text import mark, pack_lines, strip_marked, tokens_in
from stratagem.hooks.credit import find_retries, spool_retries
from stratagem.hooks.fixes import cards_path
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import read_settings
from stratagem.hooks.tools import command_key, handle_tool
from stratagem.projects import find_memory, user_config_folder, user_folder
from stratagem.search.embedding import StaticEmbedder
from stratagem.search.plain_embedding import cosine, embed_text
from stratagem.storage.sqlite import direct_reader
from stratagem.storage.sqlite import format as sqlite_format

# In microseconds; nothing here expires.
NOW = 1_800_000_000_000_000


def test_the_formats_are_those_of_the_store() -> None:
    assert direct_reader.FORMAT == sqlite_format.VERSION
    assert direct_reader.READ_MODELS_FORMAT == sqlite_format.READ_MODELS_VERSION


@pytest.mark.parametrize(
    "text",
    [
        "How do I deploy to staging?",
        "getUserName in snake_case_name.py fails with ModuleNotFoundError",
        "Füße naïve café",
        "the the the quick quick fox",
        "x" * 300,
        "zzzxqj fails in übung. " * 20 + "The cat is asleep.",
    ],
)
def test_a_text_has_the_same_vector_without_numpy(text: str) -> None:
    expected = StaticEmbedder().embed([text])[0]

    found = embed_text(text)

    if found is None:
        assert not expected.any()
    else:
        assert math.isclose(cosine(found, expected.tobytes()), 1.0, abs_tol=1e-5)


def test_a_text_without_known_words_has_no_vector() -> None:
    assert embed_text("日本語") is None
    assert math.isnan(cosine(array("f", [1.0]), b"12"))


def test_a_persons_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "/somewhere/else"):
        monkeypatch.setenv("XDG_DATA_HOME", value)
        monkeypatch.setenv("XDG_CONFIG_HOME", value)

        assert user_folder() == platformdirs.user_data_dir("stratagem", appauthor=False)
        assert user_config_folder() == platformdirs.user_config_dir("stratagem", appauthor=False)


def test_a_worktree_elsewhere_has_the_memory_of_its_repository(tmp_path: Path) -> None:
    repository, worktree = tmp_path / "repo", tmp_path / "elsewhere" / "feature"
    (repository / ".git" / "worktrees" / "feature").mkdir(parents=True)
    (repository / ".stratagem").mkdir()
    (worktree / "src").mkdir(parents=True)
    (worktree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/feature\n")

    assert find_memory(str(worktree / "src")) == str(repository / ".stratagem")
    assert find_memory(str(tmp_path)) is None


def test_what_a_view_shows_is_what_the_store_shows(tmp_path: Path) -> None:
    database = tmp_path / "memory.db"
    with stratagem.open(database) as db:
        db.memory.store("city", "Oslo harbour")
        db.memory.store("gone", "harbour of nowhere")
        db.memory.fork("trial")
        db.memory.store("city", "Bergen harbour", branch="trial")
        db.memory.store("town", "Voss harbour", branch="trial")
        db.memory.forget("gone", branch="trial")
        db.memory.store("late", "harbour after the fork")
        shown = {
            branch: {hit.key for hit in db.memory.search("harbour", branch=branch).results}
            for branch in ("default", "trial")
        }
        values = {
            branch: {str(hit.value) for hit in db.memory.search("harbour", branch=branch).results}
            for branch in ("default", "trial")
        }

    for branch in ("default", "trial"):
        reader = direct_reader.DirectReader(str(database), branch, NOW)
        rows = reader.matches('"harbour"', without_facet="untrusted", limit=50)
        found = reader.contents([row[0] for row in rows])
        assert {each.key for each in found.values()} == shown[branch]
        assert {each.content["value"] for each in found.values()} == values[branch]
        reader.close()


def test_a_value_that_was_altered_is_not_shown(tmp_path: Path) -> None:
    import apsw

    database = tmp_path / "memory.db"
    with stratagem.open(database) as db:
        version = db.memory.store("city", "Oslo").version
    connection = apsw.Connection(str(database))
    change = "UPDATE events SET payload = CAST(replace(payload, 'Oslo', 'Evil') AS BLOB)"
    connection.execute(change)
    connection.close()

    reader = direct_reader.DirectReader(str(database), "default", NOW)

    assert reader.contents([version]) == {}


def test_marked_texts_are_taken_out_wherever_they_stand() -> None:
    assert strip_marked(f"before {mark('a')} between {mark('b')} after") == "before  between  after"
    assert strip_marked(f"cut off {mark('a')[:20]}") == "cut off"


def test_lines_are_packed_within_their_tokens() -> None:
    text, count = pack_lines("Head", ["word " * 100, "second line"], tokens_max=60)

    assert count == 1
    assert tokens_in(text) <= 60
    assert text.endswith("…\n</stratagem-memory>")


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("python -m pytest -q tests", "pytest tests"),
        ("cd /srv && python -m pytest tests -x 2>&1 | tail -20", "pytest tests"),
        ("uv run pytest tests", "pytest tests"),
        ("mysql --password=hunter22 -h db", "mysql db"),
        ("curl https://ann:hunter22@example.com", "curl https://[secret]@example.com"),
        ("CI=1 npm test", "npm test"),
        ("make test > out.txt", "make test"),
    ],
)
def test_a_command_is_known_again(command: str, key: str) -> None:
    event = HookEvent(
        "claude-code", "PostToolUse", "tool", "s", "/", arguments={"command": command}
    )

    assert command_key(event, read_settings("/")) == key


def _line(what: str, at: float, **details: str) -> dict[str, object]:
    return {"what": what, "at": at, **details}


def test_a_recovery_is_a_failure_something_done_and_a_success() -> None:
    failed = _line("failed", 1.0, command="make test", error="boom")
    edit = _line("done", 2.0, command="", action="Edit a.py")
    worked = _line("done", 3.0, command="make test", action="Run: make test")

    [recovery] = find_retries([failed, edit, worked], {})
    [again] = find_retries([failed, worked], {})

    assert recovery.actions == ["Edit a.py"]
    assert again.actions == []
    seen = _line("recovered", 4.0, recovery=recovery.id)
    assert list(find_retries([failed, edit, worked, seen], {})) == []


@pytest.mark.parametrize(
    ("steps", "action", "is_credited"),
    [
        ("apt install libpq-dev", "Run: sudo apt install libpq-dev", True),
        ("apt install libpq-dev", "Run: apt install python3-venv", False),
        ("pip install pyyaml", "Run: pip install requests", False),
        ("Run npm install again", "Run: npm install", True),
        ("go mod tidy", "Run: go mod tidy", True),
        ("go mod tidy", "Run: go build", False),
    ],
)
def test_a_fix_is_credited_only_for_what_it_names(
    tmp_path: Path, steps: str, action: str, *, is_credited: bool
) -> None:
    files = SessionFiles(str(tmp_path / "stratagem.db"), "claude-code", "s")
    files.note("failed", command="make test", error="boom", solution="sol_1", lookup="look_1")
    files.note("done", command="", action=action)
    files.note("done", command="make test", action="Run: make test")

    spool_retries(files, "default", {"sol_1": [steps]})

    [spooled] = (tmp_path / "stratagem.db-hooks" / "spool").iterdir()
    [done] = json.loads(spooled.read_text())
    assert done["do"] == ("outcome" if is_credited else "draft")


@pytest.mark.parametrize(
    ("steps", "actions", "has_failed"),
    [
        (["apt install libpq-dev"], ["Run: sudo apt-get install -y libpq-dev"], True),
        (["Install the missing module: pip install pyyaml"], ["Run: pip install pyyaml"], True),
        (["Run `npm ci`, then run the tests again"], ["Run: npm ci"], True),
        (["Restart the postgresql service"], ["Run: sudo systemctl restart postgresql"], True),
        (
            ["Delete node_modules and run npm install again"],
            ["Run: rm -rf node_modules && npm install"],
            True,
        ),
        (
            ["Pin numpy below 2 in requirements.txt", "pip install -r requirements.txt"],
            [
                "Edit requirements.txt: replace `numpy scipy` by `numpy<2 scipy`",
                "Run: pip install -r requirements.txt",
            ],
            True,
        ),
        (["apt install libpq-dev"], ["Run: apt install python3-venv"], False),
        (["Restart the postgresql service"], ["Run: sudo systemctl restart redis"], False),
        (["pip install numpy==1.26"], ["Run: pip install numpy==2.0"], False),
        (["Run npm ci"], ["Run: npm install"], False),
        (["go mod tidy"], ["Run: go mod download"], False),
        (["npm install --legacy-peer-deps"], ["Run: npm install --force"], False),
        (["docker system prune -af"], ["Run: docker system prune -f"], False),
        (["Run the tests again"], [], False),
        (
            ["Delete node_modules and run npm install again"],
            ["Run: rm -rf node_modules"],
            False,
        ),
        (
            ["Pin numpy below 2 in requirements.txt", "pip install -r requirements.txt"],
            ["Edit requirements.txt: replace `numpy scipy` by `numpy<2 scipy`"],
            False,
        ),
        (
            ["Set max_connections to 200 in postgresql.conf"],
            ["Edit postgresql.conf: replace `shared_buffers = 100` by `shared_buffers = 200`"],
            False,
        ),
    ],
)
def test_a_fix_has_failed_only_if_all_of_it_was_done(
    tmp_path: Path, steps: list[str], actions: list[str], *, has_failed: bool
) -> None:
    files = SessionFiles(str(tmp_path / "stratagem.db"), "claude-code", "s")
    shown = {"solution": "sol_1", "lookup": "look_1", "incident": "inc_1"}
    files.note("failed", command="make test", error="boom", **shown)
    for action in actions:
        files.note("done", command="", action=action)
    files.note("failed", command="make test", error="boom", incidents=["inc_1"])

    for _ in range(2):
        spool_retries(files, "default", {"sol_1": steps})

    spooled = [json.loads(each.read_text()) for each in _spooled(tmp_path)]
    assert [(item["solution_id"], item["worked"]) for [item] in spooled] == (
        [("sol_1", False)] if has_failed else []
    )


def test_an_error_in_place_of_the_one_that_a_fix_was_for_is_no_failure_of_the_fix(
    tmp_path: Path,
) -> None:
    files = SessionFiles(str(tmp_path / "stratagem.db"), "claude-code", "s")
    shown = {"solution": "sol_1", "lookup": "look_1", "incident": "inc_1"}
    files.note("failed", command="make test", error="boom", **shown)
    files.note("done", command="", action="Run: pip install pyyaml")
    files.note("failed", command="make test", error="bang", incidents=["inc_2"])
    files.note("failed", command="make lint", error="boom", incidents=["inc_1"])

    spool_retries(files, "default", {"sol_1": ["pip install pyyaml"]})

    assert _spooled(tmp_path) == []


def test_a_fix_that_failed_is_not_credited_for_what_helped_then(tmp_path: Path) -> None:
    files = SessionFiles(str(tmp_path / "stratagem.db"), "claude-code", "s")
    shown = {"solution": "sol_1", "lookup": "look_1", "incident": "inc_1"}
    files.note("failed", command="make test", error="boom", **shown)
    files.note("done", command="", action="Run: pip install pyyaml")
    files.note("failed", command="make test", error="boom", incidents=["inc_1"])
    files.note("done", command="", action="Run: uv sync")
    files.note("done", command="make test", action="Run: make test")

    spool_retries(files, "default", {"sol_1": ["pip install pyyaml"]})

    [failed], [draft] = [json.loads(each.read_text()) for each in _spooled(tmp_path)]
    assert (failed["do"], failed["worked"]) == ("outcome", False)
    assert (draft["do"], draft["incident"]["steps"]) == ("draft", ["Run: uv sync"])


def _spooled(folder: Path) -> list[Path]:
    spool = folder / "stratagem.db-hooks" / "spool"
    return sorted(spool.iterdir()) if spool.is_dir() else []


@pytest.mark.parametrize("client", CLIENTS)
def test_silence_is_what_the_client_takes_for_it(client: str) -> None:
    said = format_answer(client, "", "")

    assert said in {"", "{}"}


def test_an_event_can_be_named_by_an_argument() -> None:
    text = json.dumps({"session_id": "s", "cwd": os.sep, "prompt": "hello"})

    event = parse_event("claude-code", text, "user-prompt-submit")

    assert event is not None
    assert (event.name, event.kind, event.prompt) == ("UserPromptSubmit", "prompt", "hello")


def test_a_git_branch_with_a_long_name_has_a_memory_branch_of_its_own(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    names = []
    for name in ("feature/" + "a" * 150, "feature/" + "a" * 151, "feature/short"):
        (tmp_path / ".git" / "HEAD").write_text(f"ref: refs/heads/{name}\n")
        names.append(memory_branch_of(str(tmp_path)))

    assert len(set(names)) == 3
    assert max(map(len, names)) <= limits.BRANCH_NAME_CHARS_MAX
    assert names[2] == "feature/short"


def test_cards_of_branches_with_like_names_are_kept_apart() -> None:
    names = ("feature/a", "feature-a", "feature.a", "f" * 200, "f" * 201)

    assert len({cards_path("m.db", name) for name in names}) == len(names)


@pytest.mark.parametrize(
    ("tool", "given", "result", "failed"),
    [
        ("WebFetch", {"url": "https://a.example"}, {"code": 200, "result": "Welcome"}, False),
        ("Read", {"file_path": "ci.log"}, "Exit code: 1\nError: it broke", False),
        (
            "Bash",
            {"command": "cat ci.log"},
            "\n".join(["x"] * 20 + ["Exit code: 1"] + ["x"] * 20),
            False,
        ),
        ("Bash", {"command": "make"}, "Exit code: 2\nmake: *** [all] Error 1", True),
        ("Bash", {"command": "make"}, "make: *** [all] Error 1\nCommand exited with code 2", True),
        ("Bash", {"command": "make"}, {"output": "no", "metadata": {"exit_code": 2}}, True),
        ("mcp__tickets__find", {"id": 7}, {"isError": True, "content": [{"text": "gone"}]}, True),
    ],
)
def test_a_failure_is_what_the_client_says_and_not_what_was_read(
    tool: str, given: dict[str, object], result: object, failed: bool
) -> None:
    text = json.dumps(
        {
            "hook_event_name": "PostToolUse",
            "tool_name": tool,
            "tool_input": given,
            "tool_response": result,
        }
    )
    event = parse_event("claude-code", text)

    assert event is not None
    assert event.failed is failed


@pytest.mark.parametrize(
    ("client", "result"),
    [
        ("codex", "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n{said}"),
        ("codex", "Chunk ID: 1\nWall time: 0.1 s\nProcess exited with code 1\nOutput:\n{said}"),
        (
            "gemini",
            "Command: make\nDirectory: (root)\nOutput: {said}\nError: (none)\nExit Code: 1",
        ),
        (
            "gemini",
            "Command: a\nb\nDirectory: (root)\nStdout: (empty)\nStderr: {said}\nExit Code: 1\nSignal: 9",
        ),
        ("gemini", "Output: {said}\nExit Code: 1\nProcess Group PGID: 42"),
        ("claude-code", "{said}"),
    ],
)
def test_an_error_is_read_without_what_the_client_writes_around_it(
    client: str, result: str
) -> None:
    said = "Something went badly wrong\nin step two"
    told = result.format(said=said)
    given = {
        "hook_event_name": "AfterTool" if client == "gemini" else "PostToolUse",
        "session_id": "one",
        "tool_name": "Shell",
        "tool_input": {"command": "make"},
        "tool_response": {"llmContent": told} if client == "gemini" else told,
    }

    event = parse_event(client, json.dumps(given))

    assert event is not None
    assert event.failed is (told != said)
    assert event.error == said
    assert event.output == told


def test_a_patch_of_codex_is_an_edit_and_no_command(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-import yaml\n+import json\n*** End Patch"
    given = {
        "hook_event_name": "PostToolUse",
        "session_id": "one",
        "cwd": str(tmp_path),
        "tool_name": "apply_patch",
        "tool_input": {"command": patch},
        "tool_response": "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM a.py",
    }
    event = parse_event("codex", json.dumps(given))
    assert event is not None
    files = SessionFiles(str(tmp_path / "memory.db"), "codex", "one")

    handle_tool(event, read_settings(str(tmp_path)), files, wanted=True)

    [noted] = files.read()
    assert event.command == ""
    assert noted["command"] == ""
    assert noted["action"] == "Edit a.py: replace `import yaml` by `import json`"


@pytest.mark.parametrize(
    ("command", "is_change"),
    [
        ("sudo systemctl status docker", False),
        ("docker ps -a | grep web", False),
        ("kubectl describe pod web && kubectl logs web", False),
        ("pip show numpy 2>/dev/null", False),
        ("node --version", False),
        ("grep '>' notes.txt", False),
        ("cat app.log 2>&1 | tail", False),
        ("sudo systemctl restart docker", True),
        ("docker compose up -d", True),
        ("pip install numpy", True),
        ("echo PORT=80 >> .env", True),
        ("cat > settings.ini <<EOF", True),
        ("find . -name '*.lock' -delete", True),
        ("echo 80 | sudo tee /etc/port", True),
    ],
)
def test_a_command_that_only_looks_is_nothing_that_was_done(
    tmp_path: Path, command: str, is_change: bool
) -> None:
    (tmp_path / ".stratagem").mkdir()
    settings = read_settings(str(tmp_path))
    files = SessionFiles(settings.database, "claude-code", "s")
    event = HookEvent(
        "claude-code", "PostToolUse", "tool", "s", str(tmp_path), tool="Bash",
        arguments={"command": command},
    )  # fmt: skip

    handle_tool(event, settings, files, wanted=True)

    [noted] = files.read()
    assert bool(noted["action"]) is is_change
