"""What every test stands on."""

import dataclasses
import gc
import os
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, settings

from stratagem import limits, operations
from stratagem.operation import Operation
from tests import forkserver
from tests.manifest import promises_of
from tests.postgres import shared_server

# Speed is measured by benchmarks, never by a test; a failure prints how to repeat it. How fast and
# how often examples are drawn depends on the machine and on chance, and fails no test.
settings.register_profile(
    "house",
    deadline=None,
    print_blob=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)
settings.load_profile("house")


# The MCP SDK checks answers by jsonschema, which would compile a grammar for a format that no schema
# of ours has, where it finds this package of a tool: half a second in each worker.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

# Files in memory, where the system has such a place, and how much must be free for a whole run.
_MEMORY = Path("/dev/shm")
_MEMORY_BYTES_MIN = 4 << 30
_TEMPORARY_ROOT = "PYTEST_DEBUG_TEMPROOT"


def pytest_configure() -> None:
    """Put the folders of the tests into memory, unless whoever runs them chose a place.

    Making a database and closing it syncs files eight times, which took ten times as long as all
    the rest; what a test writes need not survive the test.
    """
    if not os.environ.keys() & {_TEMPORARY_ROOT, "TMPDIR"} and _has_room_in_memory():
        os.environ[_TEMPORARY_ROOT] = str(_MEMORY)


def _has_room_in_memory() -> bool:
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return False
    free = min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available)
    return bool(free >= _MEMORY_BYTES_MIN)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the files of slow tests alone, where making thousands of cases takes seconds."""
    is_soak = collection_path.name.endswith("_soak.py")
    return True if is_soak and config.getoption("markexpr") == "not slow" else None


# By default garbage is looked for after 700 new objects, which tests make in no time.
_NEW_OBJECTS = 10_000


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare the search for garbage what was collected.

    Thousands of tests and all that they import stay to the end: looking through them again and
    again took a fifth of the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        # What is garbage by now stays too: looking for it once takes longer than all that it holds is worth.
        gc.freeze()
        gc.set_threshold(_NEW_OBJECTS, *gc.get_threshold()[1:])
        gc.enable()


# Of the tests that run on every surface, those whose values also depend on the store.
_STORED = frozenset({"test_store", "test_search", "test_log"})
# Surfaces that hand calls on to the same process, so that a promise need be tried there but once.
_HANDING_ON = frozenset({"mcp", "connect"})


# Last, so that what `-m` and `-k` leave out does not count.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try every value in this process, the first in the other store, and each promise elsewhere.

    Behind one table of operations a value cannot mean one thing here and another there, so more
    of them would show nothing.
    """
    tried: set[tuple[str, str]] = set()
    repeated = [item for item in items if _is_repeated(item, tried)]
    if repeated:
        config.hook.pytest_deselected(items=repeated)
        left_out = set(map(id, repeated))
        items[:] = [item for item in items if id(item) not in left_out]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = _spread(items, workers)


# What takes longest, mostly by servers that a worker starts once for all of them; then single tests of
# many seconds, which would be waited for if they came last. Folders and files, by how long they take.
_LONGEST = (
    "projections",
    "surfaces/server",
    "surfaces/cli",
    "surfaces/console",
    "test_docs.py",
    "properties",
    "hooks",
    "behaviour/gateway/catalogue",
    "security/test_17_patterns.py",
    "test_retry.py",
)


def _spread(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Have each worker begin with some of the longest tests.

    A worker is given an equal share of the list, in order, and one that has no more takes from the end
    of another's: what came late would be parted, and its servers started once more by whoever took it.
    """
    tests = Path(__file__).parent
    first: list[list[pytest.Item]] = [[] for _ in range(workers)]
    # There and back again, so that whoever has the longest group has the shortest as well.
    turns = [*range(workers), *reversed(range(workers))]
    chosen = {name: turns[number % len(turns)] for number, name in enumerate(_LONGEST)}
    others: list[pytest.Item] = []
    for item in items:
        file = item.path.relative_to(tests)
        worker = chosen.get(file.as_posix(), chosen.get(file.parent.as_posix()))
        (others if worker is None else first[worker]).append(item)
    spread: list[pytest.Item] = []
    for number, begin in enumerate(first):
        share = (len(items) - len(spread)) // (workers - number)
        size = max(0, share - len(begin))
        spread += begin + others[:size]
        del others[:size]
    return spread + others


def _is_repeated(item: pytest.Item, tried: set[tuple[str, str]]) -> bool:
    """Whether an earlier test on the same surface shows all that this one does."""
    values = getattr(item, "callspec", None)
    surface = values.params.get("surface") if values is not None else None
    if surface in {None, "embedded"} or "behaviour" not in item.path.parts:
        return False
    if surface == "postgres" and item.path.stem in _STORED:
        return False
    test = (item.nodeid.partition("[")[0],)
    promises = promises_of(getattr(item, "function", None)) if surface in _HANDING_ON else ()
    shown = {(each, str(surface)) for each in promises or test}
    is_repeated = shown <= tried
    tried |= shown
    return is_repeated


@pytest.fixture(scope="session", autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's own database and settings out of the tests."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("STRATAGEM_", "XDG_"))]:
            patch.delenv(name)
        patch.setenv("HOME", str(home))
        yield


@pytest.fixture(scope="session", autouse=True)
def _forkserver(tmp_path_factory: pytest.TempPathFactory, _own_home: None) -> Iterator[None]:
    """Share one process that has imported the package; it is started when it is first needed."""
    with forkserver.shared_server(_common_folder(tmp_path_factory)):
        yield


def _common_folder(factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all workers of a run have in common."""
    base = factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


# Limits by the clock that a busy machine reaches where nothing is wrong; a test that is about one of
# them sets it itself.
_PATIENT_LIMITS = {
    "ADVICE_SECONDS": 60.0,
    "SANDBOX_START_SECONDS_MAX": 60.0,
    "SECRET_COMMAND_SECONDS": 60.0,
    # Less than the lease of whoever delivers.
    "SERVICE_TIMEOUT_SECONDS": 25.0,
}


@pytest.fixture(autouse=True)
def _patience(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer than the product does; the docs are compared as they are."""
    if request.path.parent != Path(__file__).parent:
        for name, seconds in _PATIENT_LIMITS.items():
            monkeypatch.setattr(limits, name, seconds)
        monkeypatch.setattr("stratagem.search.index._SETTLING_SECONDS_MAX", 30.0)


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run coroutines as the product does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the PostgreSQL server that all tests of a run share; each has its own workspace."""
    with shared_server(_common_folder(tmp_path_factory)) as address:
        yield address


@pytest.fixture
def add_row(monkeypatch: pytest.MonkeyPatch) -> Callable[[Operation], None]:
    """Add a row to the table of operations, for one test."""

    def add(made: Operation) -> None:
        # No schema was generated for it: it has that of a row that takes nothing.
        plain = operations.find("strata_status")
        own = {"input": plain.parameters, "output": plain.output_schema}
        row = made if made.schemas else dataclasses.replace(made, schemas=own)
        systems = (*operations.SYSTEMS, (lambda: (row,), (row.toolset,)))
        monkeypatch.setattr(operations, "SYSTEMS", systems)
        monkeypatch.setattr(operations, "TABLE", operations.Table())
        monkeypatch.setattr(operations, "TOOLSETS", (*operations.TOOLSETS, row.toolset))

    return add
