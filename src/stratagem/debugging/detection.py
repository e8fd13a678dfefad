"""Detection of the environment that this process runs in.

The language is the one of the project in the working directory, if its files say so: an agent
that works on a Node project starts this Python process too.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from shutil import which
from typing import Final

__all__ = ["detect"]

# A tool that takes longer is stuck.
TOOL_TIMEOUT_SECONDS: Final = 3.0

_TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("node", "--version"),
    "go": ("go", "version"),
    "rust": ("rustc", "--version"),
    "java": ("java", "-version"),
    "ruby": ("ruby", "--version"),
    "dotnet": ("dotnet", "--version"),
    "cuda": ("nvidia-smi",),
}
_CUDA: Final = re.compile(r"CUDA Version:\s*([0-9.]+)")
_VERSION: Final = re.compile(r"(?<![0-9])[0-9]++(?:\.[0-9]++)+")

# Files that only one kind of project has. Python is last: many projects have some for their tools.
_PROJECTS: Final = {
    "package.json": "node",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "pom.xml": "java",
    "build.gradle": "java",
    "build.gradle.kts": "java",
    "Gemfile": "ruby",
}
_PYTHON_PROJECTS: Final = ("pyproject.toml", "setup.py", "requirements.txt", "Pipfile")
_LOCKS: Final = {
    "uv.lock": "uv",
    "poetry.lock": "poetry",
    "Pipfile.lock": "pipenv",
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "package-lock.json": "npm",
    "Cargo.lock": "cargo",
    "go.sum": "go",
    "Gemfile.lock": "bundler",
}
_CI: Final = {
    "GITHUB_ACTIONS": "github actions",
    "GITLAB_CI": "gitlab",
    "CIRCLECI": "circleci",
    "JENKINS_URL": "jenkins",
    "BUILDKITE": "buildkite",
    "TF_BUILD": "azure pipelines",
    "CI": "true",
}


def detect(*, tools: bool = False) -> dict[str, str]:
    """Return the environment of this process, in fields that `canonical` understands.

    It never fails: a field that cannot be detected is left out. With `tools` the versions of the
    languages and of CUDA on the path are asked for, which starts programs and can take seconds.
    """
    found = _system() | _runtime() | _python() | _project(_working_directory())
    if tools:
        found |= _versions()
    elif cuda := os.environ.get("CUDA_VERSION"):
        found["cuda"] = cuda
    elif _exists("/proc/driver/nvidia/version"):
        found["gpu"] = "nvidia"
    return {key: text for key, text in found.items() if text}


def _system() -> dict[str, str]:
    found = {"os": platform.system(), "arch": platform.machine()}
    release = platform.release()
    if found["os"] == "Darwin":
        return found | {"os_version": platform.mac_ver()[0]}
    if found["os"] != "Linux":
        return found | {"os_version": release}
    with suppress(OSError):
        names = platform.freedesktop_os_release()
        found |= {"distro": names.get("ID", ""), "os_version": names.get("VERSION_ID", "")}
    return found | {"wsl": "true" if "microsoft" in release.casefold() else ""}


def _runtime() -> dict[str, str]:
    environ = os.environ
    ci = next((name for key, name in _CI.items() if environ.get(key)), "")
    return {"runtime": _box(environ), "ci": ci}


def _box(environ: Mapping[str, str]) -> str:
    """Return what encloses this process."""
    if environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    if environ.get("AWS_LAMBDA_FUNCTION_NAME"):
        return "lambda"
    if _exists("/.dockerenv"):
        return "docker"
    if _exists("/run/.containerenv"):
        return "podman"
    control_groups = _text("/proc/1/cgroup")
    named = (box for box in ("docker", "kubepods", "lxc") if box in control_groups)
    box = next(named, environ.get("container", ""))
    return {"kubepods": "kubernetes"}.get(box, box) or "bare"


def _python() -> dict[str, str]:
    environ = os.environ
    found = {"python": platform.python_version()}
    if environ.get("CONDA_PREFIX"):
        found["virtualenv"] = "conda"
    elif sys.prefix != sys.base_prefix:
        found["virtualenv"] = "venv"
    return found


def _project(folder: Path | None) -> dict[str, str]:
    if folder is None:
        return {}
    manager = _first(folder, _LOCKS)
    language = _first(folder, _PROJECTS)
    python = any(_exists(folder / name) for name in _PYTHON_PROJECTS)
    return {"package_manager": manager, "language": "python" if python else language}


def _versions() -> dict[str, str]:
    """Return the versions of the tools on the path, all asked at once."""
    present = {name: command for name, command in _TOOLS.items() if which(command[0])}
    with ThreadPoolExecutor(max_workers=len(_TOOLS)) as workers:
        said = dict(zip(present, workers.map(_run, present.values()), strict=True))
    patterns = {"cuda": _CUDA}
    found = {name: patterns.get(name, _VERSION).search(text) for name, text in said.items()}
    return {
        name: match[match.re.groups] if match.re.groups else match[0]
        for name, match in found.items()
        if match
    }


def _run(command: tuple[str, ...]) -> str:
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 -- the commands are the ones listed above
            command,
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TOOL_TIMEOUT_SECONDS,
        )
        # Java says its version on the error channel.
        return done.stdout + done.stderr
    return ""


def _working_directory() -> Path | None:
    with suppress(OSError):
        return Path.cwd()
    return None


def _first(folder: Path, names: Mapping[str, str]) -> str:
    return next((name for file, name in names.items() if _exists(folder / file)), "")


def _exists(path: str | Path) -> bool:
    with suppress(OSError):
        return Path(path).exists()
    return False


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""
