"""Code that means no harm: it works, alike in both languages and behind every wall."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from stratagem.errors import ValidationFailed
from stratagem.gateway.sandbox import Permissions, Sandbox
from stratagem.gateway.sandbox.layers import Layer
from stratagem.gateway.sandbox.results import Language
from tests.unit.gateway.sandbox.test_attacks import workdir_in
from tests.unit.gateway.sandbox.walls import (
    FULL,
    LAYERS,
    PAIRS,
    PLENTY,
    PYTHON,
    SMALL,
    named,
    need,
    only,
    run_code,
)

ROOT = Path(__file__).resolve().parents[4]

# The same program in both languages, and what it gives.
ALIKE: list[tuple[str, str, Any]] = [
    ("1 + 2", "1 + 2", 3),
    ("x = 5", "let x = 5", None),
    ("x = 5\nx * 2", "const x = 5\nx * 2", 10),
    ("result = {'a': [1, 2.5, None, True]}\n7", "const result = {a: [1, 2.5, null, true]}\n7", {"a": [1, 2.5, None, True]}),
    ("sum(inputs['numbers'])", "inputs.numbers.reduce((a, b) => a + b, 0)", 6),
    ("import json\njson.loads(json.dumps({'k': inputs['name']}))", "JSON.parse(JSON.stringify({k: inputs.name}))", {"k": "Zoë"}),
    ("import math\nmath.floor(math.sqrt(17))", "Math.floor(Math.sqrt(17))", 4),
    ("float('nan')", "NaN", None),
    ("async def f():\n    return 'later'\nf()" , "async function f() { return 'later' }\nf()", "later"),
    ("'ü' * 3", "'ü'.repeat(3)", "üüü"),
    ("", "", None),
]  # fmt: skip
INPUTS = {"numbers": [1, 2, 3], "name": "Zoë"}


@pytest.mark.parametrize(
    ("layer", "language"), [pair for pair in PAIRS if pair[1] == "javascript"], ids=named
)
@pytest.mark.parametrize(
    ("code", "stdout", "result"),
    [
        ("console.log(await Promise.resolve(5))", "5\n", None),
        ("const result = await Promise.resolve({a: 1})", "", {"a": 1}),
        ("console.log('await'); 7", "await\n", 7),
    ],
)
def test_javascript_may_wait_at_its_top(
    layer: Layer, language: Language, code: str, stdout: str, result: Any
) -> None:
    ended = run_code(layer, language, code)

    assert (ended.stdout, ended.stderr, ended.result) == (stdout, "", result)


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
@pytest.mark.parametrize("case", range(len(ALIKE)))
def test_a_result_is_found_alike(layer: Layer, language: Language, case: int) -> None:
    python, javascript, expected = ALIKE[case]
    if layer.name == "monty" and "async" in python:
        pytest.skip("Monty gives a coroutine as its text")

    ended = run_code(layer, language, python if language == "python" else javascript, inputs=INPUTS)

    assert (ended.stderr, ended.exit_code, ended.killed) == ("", 0, None)
    assert ended.result == expected
    assert ended.layer == layer.name
    assert ended.succeeded


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_output_and_errors(layer: Layer, language: Language) -> None:
    code = {
        "python": "print('before')\nraise ValueError('went wrong')",
        "javascript": "console.log('before'); throw new Error('went wrong')",
    }[language]
    heard: list[tuple[str, str]] = []

    ended = run_code(layer, language, code, on_output=lambda *said: heard.append(said))

    assert ended.stdout == "before\n"
    assert "went wrong" in ended.stderr
    assert (ended.exit_code, ended.killed, ended.result) == (1, None, None)
    assert "".join(text for stream, text in heard if stream == "stdout") == ended.stdout
    assert "".join(text for stream, text in heard if stream == "stderr") == ended.stderr


@pytest.mark.parametrize(("layer", "language"), FULL, ids=named)
def test_standard_input_and_the_exit_code(layer: Layer, language: Language) -> None:
    code = {
        "python": "import sys\nprint(len(sys.stdin.read()))\nsys.exit(3)",
        "javascript": "console.log(require('fs').readFileSync(0).length); process.exit(3)",
    }[language]

    ended = run_code(layer, language, code, stdin=b"x" * 200_000)

    assert (ended.stdout, ended.exit_code, ended.killed) == ("200000\n", 3, None)


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_the_whole_of_python(layer: Layer) -> None:
    code = """
import asyncio, collections, dataclasses, datetime, decimal, enum, re, sqlite3, statistics, threading
import hashlib, zlib, uuid, textwrap
class Colour(enum.Enum):
    RED = 1
def numbers():
    yield from range(3)
async def wait():
    await asyncio.sleep(0.01)
    return 'waited'
seen = []
thread = threading.Thread(target=lambda: seen.append('thread'))
thread.start(); thread.join()
rows = sqlite3.connect(':memory:').execute('select 1 + 1').fetchall()
(Colour.RED.name, list(numbers()), asyncio.run(wait()), seen, rows, statistics.mean([1, 2, 3]),
 datetime.date(2024, 2, 29).isoformat(), str(decimal.Decimal('0.1') + 1), {1, 2}, {3: datetime.date(2024, 1, 1)})
"""

    ended = run_code(layer, "python", code)

    assert ended.stderr == ""
    assert ended.result == [
        "RED",
        [0, 1, 2],
        "waited",
        ["thread"],
        [[2]],
        2,
        "2024-02-29",
        "1.1",
        [1, 2],
        {"3": "2024-01-01"},
    ]


@pytest.mark.parametrize("layer", [LAYERS["bubblewrap"], LAYERS["landlock"]], ids=named)
def test_the_whole_of_node(layer: Layer) -> None:
    code = """
const crypto = require('crypto');
const zlib = require('zlib');
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
  await wait(10);
  const url = new URL('http://example.com/a?b=1');
  return [crypto.createHash('sha256').update('x').digest('hex').slice(0, 8),
    zlib.gunzipSync(zlib.gzipSync('text')).toString(), url.searchParams.get('b'),
    Buffer.from('hi').toString('base64'), 10n ** 20n];
})();
"""

    ended = run_code(layer, "javascript", code)

    assert ended.stderr == ""
    assert ended.result == ["2d711642", "text", "1", "aGk=", "100000000000000000000"]


@pytest.mark.parametrize(("layer", "language"), FULL, ids=named)
def test_files_in_the_directory(layer: Layer, language: Language, tmp_path: Path) -> None:
    folder = workdir_in(tmp_path)
    (folder / "in.txt").write_text("given", "utf-8")
    (folder / "in.txt").chmod(0o644)
    code = {
        "python": "import os\nos.mkdir('made')\ntext = open('in.txt').read()\nopen('made/out.txt', 'w').write(text.upper())",
        "javascript": "const fs = require('fs'); fs.mkdirSync('made'); fs.writeFileSync('made/out.txt', fs.readFileSync('in.txt', 'utf8').toUpperCase())",
    }[language]

    ended = run_code(layer, language, code, Permissions(filesystem="workdir"), workdir=folder)

    assert ended.stderr == ""
    assert (folder / "made" / "out.txt").read_text("utf-8") == "GIVEN"
    again = run_code(
        layer,
        language,
        {
            "python": "open('made/out.txt', 'a').write('!')",
            "javascript": "require('fs').appendFileSync('made/out.txt', '!')",
        }[language],
        Permissions(filesystem="workdir"),
        workdir=folder,
    )
    assert again.stderr == ""
    assert (folder / "made" / "out.txt").read_text("utf-8") == "GIVEN!"


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_a_directory_to_read(layer: Layer, tmp_path: Path) -> None:
    folder = workdir_in(tmp_path)
    (folder / "in.txt").write_text("given", "utf-8")
    (folder / "in.txt").chmod(0o644)
    folder.chmod(0o777)

    read = run_code(
        layer, "python", "open('in.txt').read()", Permissions(filesystem="readonly"), workdir=folder
    )
    written = run_code(
        layer, "python", "open('new.txt', 'w')", Permissions(filesystem="readonly"), workdir=folder
    )
    hidden = run_code(layer, "python", f"open({str(folder / 'in.txt')!r}).read()", workdir=folder)

    assert read.result == "given"
    assert written.exit_code == 1
    assert not (folder / "new.txt").exists()
    assert hidden.exit_code == 1


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_a_directory_of_ones_own_is_gone_afterwards(layer: Layer) -> None:
    code = "import os\nopen('a', 'w').write('x')\nos.getcwd()"

    ended = run_code(layer, "python", code, Permissions(filesystem="workdir"))

    assert ended.stderr == ""
    assert not Path(ended.result).exists()


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_programs_with_the_permission_and_without(layer: Layer) -> None:
    code = (
        "import subprocess\nsubprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout"
    )

    allowed = run_code(layer, "python", code, Permissions(process_execution=True))
    refused = run_code(layer, "python", code)

    assert allowed.result == "hi\n"
    assert "PermissionError" in refused.stderr


@pytest.mark.parametrize("layer", PYTHON, ids=named)
def test_code_sees_nothing_of_the_servers_environment(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_SECRET", "canary")

    ended = run_code(layer, "python", "import os\ndict(os.environ)")

    assert "canary" not in ended.result.values()
    assert "PATH" in ended.result


def test_a_snippet_goes_to_the_small_interpreter() -> None:
    for layer, language in SMALL:
        need(layer, language)

    async def both() -> list[str]:
        sandbox = Sandbox()
        return [
            (await sandbox.run_code(language, "1 + 1", permissions=PLENTY)).layer
            for language in ("python", "javascript")
        ]

    assert asyncio.run(both()) == ["monty", "quickjs"]


@pytest.mark.parametrize(
    ("language", "code", "expected", "reason"),
    [
        ("python", "import statistics\nstatistics.mean([1, 3])", 2, "statistics"),
        ("python", "print('once')\nclass A(dict): pass\nlen(A(x=1))", 1, "inheritance"),
        ("python", "print('once')\ndef g():\n    yield 5\nlist(g())", [5], "yield"),
        ("python", "print('once')\nlen(globals()) > 0", True, "globals"),
        ("python", "async def f():\n    return 7\nf()", 7, "coroutine"),
        ("javascript", "Buffer.from('a').length", 1, "Buffer"),
    ],
)
def test_code_that_needs_more_is_handed_on(
    language: Language, code: str, expected: Any, reason: str
) -> None:
    for layer, one in [*SMALL, (LAYERS["bubblewrap"], language)]:
        need(layer, one)

    ended = asyncio.run(Sandbox().run_code(language, code, permissions=PLENTY))

    assert (ended.result, ended.stderr) == (expected, "")
    assert ended.layer in {"bubblewrap", "landlock"}
    assert reason in (ended.handed_on or "")
    assert ended.stdout in {"", "once\n"}, "output is not given twice"


def test_without_a_full_interpreter_the_small_one_says_what_it_lacks() -> None:
    need(LAYERS["quickjs"], "javascript")
    sandbox = only(LAYERS["quickjs"])

    harmless = asyncio.run(
        sandbox.run_code("javascript", "// no import here\n3", permissions=PLENTY)
    )
    lacking = asyncio.run(sandbox.run_code("javascript", "Buffer.from('a')", permissions=PLENTY))

    assert (harmless.result, harmless.layer) == (3, "quickjs")
    assert "Buffer" in lacking.stderr
    assert not lacking.succeeded


def test_a_snippet_that_is_asked_for_stays_one() -> None:
    need(LAYERS["monty"], "python")
    sandbox = Sandbox(network=True)

    ended = asyncio.run(
        sandbox.run_code("python", "class A(dict): pass", permissions=PLENTY, engine="snippet")
    )
    with pytest.raises(ValidationFailed):
        asyncio.run(
            sandbox.run_code("python", "1", permissions=Permissions(network=True), engine="snippet")
        )

    assert (ended.layer, ended.exit_code) == ("monty", 1)
    assert "inheritance" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"language": "cobol"}, "language"),
        ({"code": "x" * (256 * 1024 + 1)}, "code"),
        ({"inputs": {"a": object()}}, "inputs"),
        ({"inputs": "x" * (5 << 20)}, "inputs"),
        ({"stdin": b"x" * (5 << 20)}, "stdin"),
        ({"workdir": "/etc", "permissions": Permissions(filesystem="workdir")}, "workdir"),
        ({"workdir": "/", "permissions": Permissions(filesystem="readonly")}, "workdir"),
        ({"workdir": "/no/such", "permissions": Permissions(filesystem="workdir")}, "workdir"),
    ],
)
def test_bad_arguments_name_the_field(arguments: dict[str, Any], field: str) -> None:
    need(LAYERS["bubblewrap"], "python")
    given = {"language": "python", "code": "1", "permissions": Permissions(), **arguments}

    with pytest.raises(ValidationFailed) as caught:
        asyncio.run(Sandbox(small=[]).run_code(**given))

    assert caught.value.details["field"] == field


@pytest.mark.parametrize(("layer", "language"), PAIRS, ids=named)
def test_cancelling_kills_the_whole_run(layer: Layer, language: Language) -> None:
    code = {"python": "while True: pass", "javascript": "while (true);"}[language]
    need(layer, language)
    # Earlier tests of this process may have left theirs.
    others = set(below())

    async def cancelled() -> None:
        sandbox = only(layer)
        await sandbox.run_code(language, "1", permissions=PLENTY)
        task = asyncio.create_task(sandbox.run_code(language, code, permissions=PLENTY))
        while not set(below()) - others:  # noqa: ASYNC110 - another process's state raises no event
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert set(below()) <= others


def below() -> list[psutil.Process]:
    """Processes that this one started and that are not over."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            if child.status() != psutil.STATUS_ZOMBIE:
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def test_many_runs_at_once_do_not_disturb_each_other() -> None:
    need(LAYERS["bubblewrap"], "python")

    async def many() -> list[Any]:
        sandbox = only(LAYERS["bubblewrap"])
        codes = [f"import os\nopen('/tmp/mine', 'x').write('{n}')\n{n} * 2" for n in range(8)]
        runs = [sandbox.run_code("python", code, permissions=PLENTY) for code in codes]
        return [ended.result for ended in await asyncio.gather(*runs)]

    assert asyncio.run(many()) == [n * 2 for n in range(8)]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root to become another user"
)
def test_an_ordinary_user_has_the_same_walls() -> None:
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if system is None or version not in os.path.realpath(system):
        pytest.skip("there is no interpreter of this version that every user can start")
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT / 'src')!r}, {packages!r}]\n"
        "from stratagem.gateway.sandbox import Sandbox\n"
        "for report in Sandbox(small=[]).self_test():\n"
        "    print(report.layer, report.holds, report.missing, report.breach)\n"
    )

    done = subprocess.run(
        [system, "-B", "-c", code],
        user=54321,
        group=54321,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd="/",
    )

    if "PermissionError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("this checkout cannot be read by every user")
    reports = [line.split(" ", 2) for line in done.stdout.splitlines()]
    assert len(reports) == 4, done.stderr
    for name, holds, rest in reports:
        assert holds == "True" or not rest.startswith("None"), (name, rest)
