"""Root's own folders are closed to everyone else; the sandbox works with what lies in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stratagem
from tests.postgres import link_or_copy
from tests.unit.gateway.sandbox.walls import LAYERS, need

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root gives up the rights of a user"
)

# Modules in packages, and in libraries of their own, that nothing has imported before.
CODE = "import asyncio, sqlite3, ctypes.util, xml.dom.minidom\nasyncio.run(asyncio.sleep(0, 7))"
PROGRAM = """
import asyncio, json, sys
from stratagem.gateway.sandbox import Permissions, Sandbox
from stratagem.gateway.sandbox.bubblewrap import Bubblewrap
from stratagem.gateway.sandbox.landlock import Landlock
layer = {"bubblewrap": Bubblewrap, "landlock": Landlock}[sys.argv[1]]()
sandbox = Sandbox(small=[], full=[layer])
reports = [report.as_json() for report in sandbox.self_test()]
code, workdir = sys.argv[2:]
async def run(language, code):
    given = Permissions(filesystem="workdir")
    ended = await sandbox.run_code(
        language, code, permissions=given, engine="full", workdir=workdir
    )
    return [ended.result, ended.stderr]
python = asyncio.run(run("python", code + "\\nopen('made', 'w').write('x')\\nresult = 7"))
node = asyncio.run(run("javascript", "require('fs').readFileSync('made', 'utf8')"))
print(json.dumps({"reports": reports, "python": python, "node": node}))
"""


@pytest.fixture(scope="module")
def private() -> Iterator[Path]:
    """Give a folder of root's with the package and an interpreter in it."""
    folder = Path(tempfile.mkdtemp(prefix="stratagem-private-"))
    package = Path(stratagem.__file__).parent
    library = Path(sysconfig.get_path("stdlib"))
    left_out = shutil.ignore_patterns(
        "__pycache__", "site-packages", "dist-packages", "test", "config-*"
    )
    for source, target in (
        (package, folder / "packages" / package.name),
        (library, folder / "python" / "lib" / library.name),
    ):
        shutil.copytree(source, target, copy_function=link_or_copy, ignore=left_out)
    (folder / "python" / "bin").mkdir()
    shutil.copy2(os.path.realpath(sys.executable), _interpreter(folder))
    yield folder
    shutil.rmtree(folder)


def _interpreter(folder: Path) -> Path:
    return folder / "python" / "bin" / f"python3.{sys.version_info.minor}"


def _is_library_left_behind() -> bool:
    """Whether Python is linked to a library of its own, and the system's is another version."""
    is_linked = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    return is_linked and not Path(f"/usr/bin/python3.{sys.version_info.minor}").exists()


def tried_in(private: Path, layer: str) -> dict[str, Any]:
    workdir = private / f"work-{layer}"
    workdir.mkdir(exist_ok=True)
    done = subprocess.run(
        [_interpreter(private), "-B", "-c", PROGRAM, layer, CODE, workdir],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{private / 'packages'}:{sysconfig.get_path('purelib')}",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("layer", ["bubblewrap", "landlock"])
def test_code_runs_with_the_package_and_python_in_a_private_folder(
    private: Path, layer: str
) -> None:
    for language in ("python", "javascript"):
        need(LAYERS[layer], language)
    if layer == "bubblewrap" and _is_library_left_behind():
        pytest.skip("the copy of this Python needs a library that is not in the private folder")

    tried = tried_in(private, layer)

    assert [(each["missing"], each["breach"]) for each in tried["reports"]] == [(None, None)] * 2
    assert (tried["python"], tried["node"]) == ([7, ""], ["x", ""])


def test_a_python_that_only_root_may_read_does_not_count_as_one(private: Path) -> None:
    library = private / "python" / "lib" / f"python3.{sys.version_info.minor}"
    code = (
        "from stratagem.gateway.sandbox import interpreters\n"
        "print(next(interpreters.find_pythons()).startable_by_anyone(), interpreters.NO_PYTHON)"
    )
    packages = f"{private / 'packages'}:{sysconfig.get_path('purelib')}"

    told = []
    for mode in (0o755, 0o700):
        library.chmod(mode)
        command = [str(_interpreter(private)), "-B", "-c", code]
        told.append(subprocess.check_output(command, env={"PYTHONPATH": packages}, text=True))
    library.chmod(0o755)

    assert [said.split()[0] for said in told] == ["True", "False"]
    assert f"chmod -R go+rX {private / 'python'}" in told[1]
