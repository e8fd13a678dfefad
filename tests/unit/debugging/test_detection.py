"""The environment of the process that asks."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from stratagem.debugging import detection
from stratagem.debugging.detection import detect
from stratagem.debugging.environments import canonical

TELLING = [
    *("CI", "GITHUB_ACTIONS", "GITLAB_CI", "CIRCLECI", "JENKINS_URL", "BUILDKITE", "TF_BUILD"),
    *("KUBERNETES_SERVICE_HOST", "AWS_LAMBDA_FUNCTION_NAME", "container", "CONDA_PREFIX"),
    "CUDA_VERSION",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, and nothing said by the environment."""
    for name in TELLING:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_it_finds_system_architecture_and_python() -> None:
    found = detect()

    assert found["os"] == platform.system()
    assert found["python"] == platform.python_version()
    assert canonical(found).as_dict()["language_version"] == platform.python_version()
    assert f"py{sys.version_info.major}" in canonical(found).bucket.split("|")


def test_everything_found_is_text_and_nothing_is_empty() -> None:
    assert all(isinstance(text, str) and text for text in detect().values())


@pytest.mark.parametrize(
    ("file", "language", "bucket"),
    [
        ("package.json", "node", "node"),
        ("go.mod", "go", "go"),
        ("Cargo.toml", "rust", "rust"),
        ("pyproject.toml", "python", "py3"),
    ],
)
def test_the_language_is_the_one_of_the_project(
    folder: Path, file: str, language: str, bucket: str
) -> None:
    (folder / file).touch()

    found = detect()

    assert found["language"] == language
    assert bucket in canonical(found).bucket.split("|")


def test_a_virtual_environment_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/elsewhere")
    assert detect()["virtualenv"] == "venv"

    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert "virtualenv" not in detect()


def test_a_lock_file_names_the_package_manager(folder: Path) -> None:
    (folder / "poetry.lock").touch()

    assert detect()["package_manager"] == "poetry"


@pytest.mark.parametrize(
    ("name", "key", "expected"),
    [
        ("KUBERNETES_SERVICE_HOST", "runtime", "kubernetes"),
        ("AWS_LAMBDA_FUNCTION_NAME", "runtime", "lambda"),
        ("GITHUB_ACTIONS", "ci", "github actions"),
        ("CI", "ci", "true"),
        ("CONDA_PREFIX", "virtualenv", "conda"),
        ("CUDA_VERSION", "cuda", "12.4"),
    ],
)
def test_environment_variables_tell(
    monkeypatch: pytest.MonkeyPatch, name: str, key: str, expected: str
) -> None:
    monkeypatch.setenv(name, "12.4")

    assert detect()[key] == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/proc/1/cgroup": "0::/docker/123"}, "docker"),
        ({"/proc/1/cgroup": "0::/kubepods/123"}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/init.scope"}, "bare"),
        ({}, "bare"),
    ],
)
def test_files_tell_what_encloses_the_process(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: str(path) in files)
    monkeypatch.setattr(Path, "read_text", lambda path, **_: files.get(str(path), ""))

    assert detect()["runtime"] == expected


def test_the_driver_tells_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: str(path) == "/proc/driver/nvidia/version")

    assert detect()["gpu"] == "nvidia"
    assert "cuda" in canonical(detect()).bucket.split("|")


@pytest.mark.parametrize(
    ("system", "release", "bucket"),
    [
        ("Linux", "5.15.90.1-microsoft-standard-WSL2", "linux"),
        ("Darwin", "23.1.0", "macos"),
        ("Windows", "11", "windows"),
        ("", "", ""),
    ],
)
def test_other_systems_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, system: str, release: str, bucket: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "release", lambda: release)

    found = canonical(detect())

    assert found.as_dict().get("os", "") == bucket
    assert found.as_dict().get("wsl") == ("true" if "microsoft" in release else None)


def test_the_tools_on_the_path_are_asked_when_wanted(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    script(folder, "node", "echo v20.11.1")
    script(folder, "java", "echo 'openjdk version \"17.0.1\"' >&2")
    script(folder, "nvidia-smi", "echo '| Driver Version: 550.54   CUDA Version: 12.4 |'")
    script(folder, "go", "exit 3")
    monkeypatch.setenv("PATH", str(folder))

    found = detect(tools=True)

    assert {key: found.get(key) for key in ("node", "java", "cuda", "go", "rust")} == {
        "node": "20.11.1",
        "java": "17.0.1",
        "cuda": "12.4",
        "go": None,
        "rust": None,
    }
    assert "node" not in detect()


def test_a_tool_that_is_stuck_or_broken_is_left_out(
    monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    script(folder, "node", "while :; do :; done")
    (folder / "go").write_bytes(b"\x00not a program")
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(detection, "TOOL_TIMEOUT_SECONDS", 0.2)

    found = detect(tools=True)

    assert "node" not in found
    assert "go" not in found


def test_nothing_makes_it_fail(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    gone = folder / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(platform, "freedesktop_os_release", refuse)
    monkeypatch.setattr(Path, "exists", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(subprocess, "run", refuse)

    assert detect(tools=True)["python"] == platform.python_version()
    assert detect()["runtime"]
    os.chdir(folder)
