"""The docs tell the truth: every snippet in README.md and docs/ is run.

`python`
    Run in order, in one namespace and one empty folder for each page. Where an `output`
    block follows, it must equal what was printed.
`console`
    Lines that begin with `$ ` are run by the shell in the same folder, with `stratagem` on
    the path and a database of the page's own. The lines below a command must equal its
    output; a command without lines below it has only to succeed.
`json`, `toml`
    Must parse.
`text`, `sql`, `mermaid`
    Shown only. No other kind of block is allowed.

In expected output a line of `...` stands for any lines, and `...` within a line for any text.
A comment above a block changes how it is run: `<!-- not run: reason -->` leaves it out,
`<!-- exit: 3 -->` expects the commands to end with that status.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import stratagem
from tests import forkserver
from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
PAGES = [path for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if path.exists()]
ALL_PAGES = sorted({*PAGES, *ROOT.glob("*.md")})

PARSED: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
SHOWN_ONLY = {"mermaid", "sql", "text"}
COMMAND_SECONDS_MAX = 60

FENCE = re.compile(r"(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
NOTE = re.compile(r"<!--\s*(?P<key>not run|exit)\s*(:\s*(?P<value>.*?))?\s*-->")
# The port that pages serve at. Each run has another, so that several can go on at once.
PORT = "7459"
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)#\s]+)[^)]*\)")


@dataclass(frozen=True)
class Block:
    line: int
    language: str
    text: str
    notes: dict[str, str]


class SnippetWrong(AssertionError):
    """A snippet does not do what its page says."""


def test_the_example_of_the_readme_is_typed(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text("utf-8")
    example = tmp_path / "example.py"
    example.write_text(
        "\n".join(each.text for each in blocks_of(page) if each.language == "python")
    )

    # What `make lint` found out about the package is used again.
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml"),
            str(example),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert checked.returncode == 0, checked.stdout


def blocks_of(page: str) -> Iterator[Block]:
    lines = page.splitlines()
    notes: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if fence := FENCE.match(line):
            end = closing_line(lines, at, fence["ticks"])
            text = textwrap.dedent("\n".join(lines[at + 1 : end]))
            yield Block(at + 1, fence["language"], text, notes)
            at, notes = end, {}
        elif note := NOTE.fullmatch(line.strip()):
            notes = {**notes, note["key"]: note["value"] or ""}
        elif line.strip():
            notes = {}
        at += 1


def closing_line(lines: list[str], start: int, ticks: str) -> int:
    for at in range(start + 1, len(lines)):
        mark = lines[at].strip()
        if len(mark) >= len(ticks) and set(mark) == set(ticks):
            return at
    raise SnippetWrong(f"line {start + 1}: the block is never closed")


def prose_of(page: str) -> str:
    lines = page.splitlines()
    for block in blocks_of(page):
        for at in range(block.line, block.line + block.text.count("\n") + 1):
            lines[at] = ""
    return "\n".join(lines)


def matches(expected: str, actual: str) -> bool:
    pattern = ""
    for line in tidy_lines(expected):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in tidy_lines(actual))) is not None


def tidy_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def check_output(where: str, expected: str, actual: str) -> None:
    if not matches(expected, actual):
        raise SnippetWrong(f"{where}\n--- the page says\n{expected}\n--- it printed\n{actual}")


class Runner:
    """Runs the blocks of one page, one after another."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        # What an output block coming next is compared with, if it may come at all.
        self.printed: str | None = None
        self.skipped = False

    def run(self, block: Block) -> None:
        where = f"{self.name}:{block.line}"
        if block.language == "output":
            self.check_printed(where, block)
            return
        self.printed, self.skipped = None, "not run" in block.notes
        if self.skipped:
            if not block.notes["not run"]:
                raise SnippetWrong(f"{where} is not run and gives no reason")
        elif block.language == "python":
            self.printed = self.run_python(block)
        elif block.language == "console":
            self.run_console(where, block)
        elif block.language in PARSED:
            PARSED[block.language](block.text)
        elif block.language not in SHOWN_ONLY:
            raise SnippetWrong(f"{where} has a block of kind {block.language!r}")

    def check_printed(self, where: str, block: Block) -> None:
        if self.printed is not None:
            check_output(where, block.text, self.printed)
        elif not self.skipped:
            raise SnippetWrong(f"{where} does not follow a python block")

    def run_python(self, block: Block) -> str:
        # Blank lines in front make a traceback point at the line of the page.
        code = compile("\n" * block.line + block.text, self.name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, self.namespace)  # noqa: S102 - the page is ours
        return printed.getvalue()

    def run_console(self, where: str, block: Block) -> None:
        status = int(block.notes.get("exit", "0"))
        for command, expected in commands_of(where, block.text):
            done = subprocess.run(
                ["sh", "-c", command],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS_MAX,
                text=True,
                check=False,
            )
            if done.returncode != status:
                raise SnippetWrong(
                    f"{where} $ {command}\nended with {done.returncode}:\n{done.stdout}"
                )
            if expected.strip():
                check_output(f"{where} $ {command}", expected, done.stdout)


def commands_of(where: str, text: str) -> list[tuple[str, str]]:
    """Return each command with the output shown below it; a backslash continues a command."""
    commands: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], ""))
        elif not commands:
            raise SnippetWrong(f"{where} does not begin with a command")
        else:
            command, expected = commands[-1]
            continues = command.endswith("\\") and not expected
            commands[-1] = (
                (f"{command}\n{line}", "") if continues else (command, f"{expected}{line}\n")
            )
    return commands


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty folder with a home and a database of its own, as the current one."""
    home = tmp_path / "home"
    work = tmp_path / "work"
    home.mkdir()
    work.mkdir()
    monkeypatch.chdir(work)
    commands = Path(forkserver.program("stratagem", "-m", "stratagem")).parent
    found = [str(commands), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(found))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("STRATAGEM_DB", str(home / "stratagem.db"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return work


def run_page(name: str, page: str, folder: Path) -> None:
    runner = Runner(name, folder)
    for block in blocks_of(page):
        runner.run(block)


def names_of(pages: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in pages]


@pytest.mark.parametrize("path", PAGES, ids=names_of(PAGES))
def test_snippets_do_what_the_page_says(path: Path, folder: Path) -> None:
    page = path.read_text(encoding="utf-8").replace(PORT, str(free_port()))

    run_page(str(path.relative_to(ROOT)), page, folder)


def test_the_example_of_the_readme_runs_twice_on_one_database(folder: Path) -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    runner = Runner("README.md", folder)

    for block in [each for each in blocks_of(page) if each.language in {"python", "output"}] * 2:
        runner.run(block)


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text("utf-8")

    pages = {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"}

    assert [name for name in sorted(pages) if f"({name})" not in index] == []


def test_every_call_that_the_page_for_agents_shows_works(tmp_path: Path) -> None:
    page = (ROOT / "docs/for-agents.md").read_text("utf-8")
    text = "\n".join(block.text for block in blocks_of(page) if block.language == "text")
    calls = [line.split(" ", 1) for line in text.splitlines() if line]

    with stratagem.open(tmp_path / "agent.db", embedder="none") as db:
        for name, arguments in calls:
            db.call(name, json.loads(arguments))

    assert {name for name, _arguments in calls} >= {
        "strata_search",
        "strata_store",
        "strata_branch",
    }
    # A model reads it whole.
    assert len(page) < 6_000


@pytest.mark.parametrize("path", ALL_PAGES, ids=names_of(ALL_PAGES))
def test_links_lead_somewhere(path: Path) -> None:
    targets = [link["target"] for link in LINK.finditer(prose_of(path.read_text(encoding="utf-8")))]
    local = [target for target in targets if not re.match(r"[a-z]+:", target)]

    assert [target for target in local if not (path.parent / target).exists()] == []


GOOD = [
    "```python\nx = 2\n```\n\n```python\nprint(x)\n```\n\n```output\n2\n```",
    "```python\nprint('took 12 ms')\n```\n\n```output\ntook ... ms\n```",
    "```python\nprint(1)\nprint(2)\nprint(3)\n```\n```output\n1\n...\n```",
    "```console\n$ echo one > file\n$ cat file\none\n```\n```python\nwith open('file'): pass\n```",
    "```console\n$ echo one \\\n  two\none two\n```",
    "<!-- exit: 3 -->\n```console\n$ exit 3\n```",
    "<!-- not run: needs a network -->\n```console\n$ false\n```",
    "<!-- not run: random -->\n```python\nboom()\n```\n```output\nbang\n```",
    '```json\n{"a": 1}\n```\n```toml\na = 1\n```\n```text\nanything\n```',
    "- in a list:\n\n  ```python\n  if True:\n      pass\n  ```",
    "````text\n```nonsense\n```\n````",
]


@pytest.mark.parametrize("page", GOOD)
def test_a_true_page_passes(page: str, folder: Path) -> None:
    run_page("page.md", page, folder)


BAD = [
    ("```python\nprint(1)\n```\n```output\n2\n```", SnippetWrong, "it printed"),
    ("```python\nprint(1)\nprint(2)\n```\n```output\n1\n```", SnippetWrong, "it printed"),
    ("```python\nboom()\n```", NameError, "boom"),
    ("```output\n1\n```", SnippetWrong, "does not follow"),
    ("```console\n$ echo one\ntwo\n```", SnippetWrong, "the page says"),
    ("```console\n$ false\n```", SnippetWrong, "ended with 1"),
    ("```console\necho one\n```", SnippetWrong, "begin with a command"),
    ("<!-- not run -->\n```console\n$ false\n```", SnippetWrong, "no reason"),
    ("```json\n{,}\n```", json.JSONDecodeError, "Expecting"),
    ("```bash\necho one\n```", SnippetWrong, "'bash'"),
    ("```\nplain\n```", SnippetWrong, "kind ''"),
    ("```python\npass", SnippetWrong, "never closed"),
    ("<!-- not run: far above -->\n\nText.\n\n```python\nboom()\n```", NameError, "boom"),
]


@pytest.mark.parametrize(("page", "error", "words"), BAD)
def test_a_false_page_fails(page: str, error: type[Exception], words: str, folder: Path) -> None:
    with pytest.raises(error, match=re.escape(words)):
        run_page("page.md", page, folder)
