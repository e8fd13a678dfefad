"""Permissions: both spellings of the document, bad values, and narrowing."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.sandbox import Permissions, read_permissions
from stratagem.gateway.sandbox.layers import Mode, Task
from stratagem.gateway.sandbox.restrictions import resource_limits

MIB = 1024 * 1024


def test_nothing_is_allowed_that_is_not_said() -> None:
    assert read_permissions({}) == Permissions(False, "none", False, 256 * MIB, 30.0)


def test_the_spelling_of_a_tool() -> None:
    said = {
        "network_access": True,
        "file_system": False,
        "process_execution": False,
        "memory_limit": "256MB",
        "time_limit": 30000,
    }

    assert read_permissions(said) == Permissions(True, "none", False, 256 * MIB, 30.0)


def test_the_spelling_of_a_call() -> None:
    said = {"network": False, "filesystem": "readonly", "memory": "128MB", "timeout": 5000}

    assert read_permissions(said) == Permissions(False, "readonly", False, 128 * MIB, 5.0)


def test_what_a_caller_leaves_out_is_as_the_tool_has_it() -> None:
    tool = Permissions(network=True, filesystem="workdir", seconds=10)

    assert read_permissions({"timeout": 5000}, base=tool) == Permissions(
        network=True, filesystem="workdir", seconds=5
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [(True, "workdir"), (False, "none"), ("none", "none"), ("workdir", "workdir")],
)
def test_the_file_system_is_a_flag_or_a_word(said: Any, meant: str) -> None:
    assert read_permissions({"file_system": said}).filesystem == meant


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("64MB", 64 * MIB),
        ("64 MiB", 64 * MIB),
        ("65536kb", 64 * MIB),
        ("0.5g", 512 * MIB),
        (64 * MIB, 64 * MIB),
    ],
)
def test_sizes(said: Any, size: int) -> None:
    assert read_permissions({"memory": said}).memory_bytes == size


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"network": "yes"}, "permissions.network"),
        ({"network_access": 1}, "permissions.network_access"),
        ({"filesystem": "everything"}, "permissions.filesystem"),
        ({"file_system": 3}, "permissions.file_system"),
        ({"process_execution": None}, "permissions.process_execution"),
        ({"memory": "lots"}, "permissions.memory"),
        ({"memory": "1KB"}, "permissions.memory"),
        ({"memory_limit": "900GB"}, "permissions.memory_limit"),
        ({"memory": float("nan")}, "permissions.memory"),
        ({"memory": True}, "permissions.memory"),
        ({"timeout": 0}, "permissions.timeout"),
        ({"timeout": -5}, "permissions.timeout"),
        ({"time_limit": 10**9}, "permissions.time_limit"),
        ({"timeout": "5s"}, "permissions.timeout"),
        ({"timeout": float("inf")}, "permissions.timeout"),
        ({"sudo": True}, "permissions.sudo"),
        ({"network": False, "network_access": True}, "permissions.network_access"),
        ([], "permissions"),
    ],
)
def test_bad_values_name_the_field(given: Any, field: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        read_permissions(given)

    assert caught.value.details["field"] == field


def test_a_bound_names_its_limit() -> None:
    with pytest.raises(ValidationFailed) as caught:
        read_permissions({"timeout": 10**9})

    assert caught.value.details["limit"] == [1.0, 600_000.0]


permissions = st.builds(
    Permissions,
    network=st.booleans(),
    filesystem=st.sampled_from(["none", "readonly", "workdir"]),
    process_execution=st.booleans(),
    memory_bytes=st.integers(16 * MIB, 4096 * MIB),
    seconds=st.floats(0.001, 600),
)
ORDER = ["none", "readonly", "workdir"]


@given(permissions, permissions)
def test_narrowing_never_widens(tool: Permissions, caller: Permissions) -> None:
    both = tool.intersect(caller)

    for one in (tool, caller):
        assert both.network <= one.network
        assert ORDER.index(both.filesystem) <= ORDER.index(one.filesystem)
        assert both.process_execution <= one.process_execution
        assert both.memory_bytes <= one.memory_bytes
        assert both.seconds <= one.seconds
    assert both == caller.intersect(tool)
    assert tool.intersect(tool) == tool


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of Linux")
def test_a_snippet_has_room_for_what_other_programs_of_its_user_start() -> None:
    def room(mode: Mode) -> int:
        task = Task(mode, Permissions(), {})
        return resource_limits(task, processes=1_000)["RLIMIT_NPROC"] - 1_000

    assert room("python") == limits.SANDBOX_PROCESSES_MAX
    assert room("monty") >= 8 * limits.SANDBOX_PROCESSES_MAX
