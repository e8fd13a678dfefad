"""Environments in canonical form, their buckets, and how alike two of them are."""

import random
import sys
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stratagem import limits
from stratagem.debugging import spelling, vocabulary
from stratagem.debugging.environment_fields import role_of
from stratagem.debugging.environments import (
    Environment,
    canonical,
    contradictions,
    from_bucket,
    similarity,
)
from stratagem.errors import ValidationFailed

KEYS = [
    *vocabulary.ROLES,
    *("os_family", "OS Family", "osVersion", "language_version", "lang-version", "gpu_version"),
    *(
        "python",
        "py",
        "python_version",
        "node",
        "nodejs",
        "Node.js",
        "go",
        "rust",
        "java",
        "dotnet",
    ),
    *("framework_version", "torch", "pytorch", "tensorflow", "react", "next.js", "typescript"),
    *("docker", "k8s", "browser", "cuda", "cuda_version", "rocm", "nvidia", "wsl", "distro"),
    *("package_manager", "ci", "postgres", "shell", "hostname", "c", "versions", "packages"),
]
VALUES = [
    *("Linux", "Ubuntu 22.04", "win32", "Windows 11", "darwin", "macOS 14.2", "WSL2", "arch"),
    *("linux/amd64", "x86_64-unknown-linux-gnu", "Linux-5.15.0-91-generic-x86_64", "haiku"),
    *("Python 3.11.4 (main)", "python3", "py311", "3.11", "v20.1.0", "^18.2", ">=3.9,<4", "1.8.0"),
    *("Node.js 20", "TypeScript", "C#", ".NET 8", "c++17", "es2022", "R", "brainfuck 2", "log4j2"),
    *("PyTorch 2.1", "torch==2.1.0+cu121", "react@18", "Spring Boot 3", "acme 3", "d3 7", "web3js"),
    *("docker", "Docker 24.0", "bare metal", "k8s", "nodejs18.x", "chrome 120", "riscv64"),
    *(
        "A100",
        "NVIDIA RTX 4090",
        "2x H100",
        "cuda:0",
        "Apple M1",
        "none",
        "unknown",
        "cpu",
        "mi300x",
    ),
    *("amd64", "aarch64", "arm", "mips64el", "", " ", "?", "latest", "true", "worker-3"),
]

scalars: st.SearchStrategy[Any] = (
    st.sampled_from(VALUES) | st.text(max_size=12) | st.none() | st.booleans() | st.integers()
) | st.floats()
values = scalars | st.lists(scalars, max_size=3)
keys = st.sampled_from(KEYS) | st.text(max_size=8)
nested = st.dictionaries(keys | st.sampled_from(["name", "version"]), values, max_size=3)
environments = st.dictionaries(keys, values | nested, max_size=6)
plain = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=6)


def bucket(**env: Any) -> str:
    return canonical(env).bucket


def likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    return similarity(canonical(one), canonical(other))


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        (
            {"os": "Linux", "python": "3.11", "pytorch": "2.1", "cuda": "12.1", "docker": True},
            "linux|py3|torch2|cuda12|docker",
        ),
        (
            {
                "os_family": "Darwin",
                "language": "Python",
                "language_version": 3.11,
                "framework": "PyTorch",
                "framework_version": "2.1.0",
                "runtime": "bare",
            },
            "macos|py3|torch2|bare",
        ),
        (
            {"platform": "win32", "nodejs": "v20.1.0", "framework": "react@18.2"},
            "windows|node20|react18",
        ),
        ({"os": "ubuntu 22.04", "go": "1.22", "container": "docker"}, "linux|go1|docker"),
    ],
)
def test_the_known_examples_come_out_exactly(env: dict[str, Any], expected: str) -> None:
    assert canonical(env).bucket == expected


@pytest.mark.parametrize(
    "text",
    [
        *("linux", "Linux", "GNU/Linux", "ubuntu", "Ubuntu 22.04 LTS", "Debian GNU/Linux 12"),
        *("Windows Subsystem for Linux", "Windows Subsystem for Linux 2 (Ubuntu 22.04)"),
        *("Red Hat Enterprise Linux 9", "alpine:3.19", "Amazon Linux 2", "WSL2", "Arch Linux"),
        *("Linux-5.15.0-91-generic", "manylinux2014", "Linux 5.15.90.1-microsoft-standard-WSL2"),
    ],
)
def test_every_distribution_is_linux(text: str) -> None:
    assert bucket(os=text) == "linux"


@pytest.mark.parametrize("text", ["macos", "darwin", "Mac OS X 10.15", "osx", "macOS 14 Sonoma"])
def test_every_mac_is_macos(text: str) -> None:
    assert bucket(os=text) == "macos"


@pytest.mark.parametrize("text", ["windows", "Windows 11", "win32", "Windows_NT", "win10", "win64"])
def test_every_windows_is_windows(text: str) -> None:
    assert bucket(os=text) == "windows"


@pytest.mark.parametrize(
    "env",
    [
        {"python": "3.11"},
        {"python": 3.11},
        {"py": 3},
        {"PYTHON_VERSION": "3.11.4"},
        {"pythonVersion": "3.11"},
        {"language": "python", "language_version": "3.12"},
        {"language": "Python 3.11.4 (main, Jun 2023) [GCC 11]"},
        {"lang": "python3"},
        {"language": "py311"},
        {"language": "python3", "python": "3.11.2"},
        {"language": {"name": "Python", "version": "3.11"}},
        {"python": {"version": "3.11"}},
        {"versions": {"python": "3.11"}},
        {"runtime": "python3.11"},
        {"language": "python", "language_version": ">=3.9,<4"},
    ],
)
def test_python_is_python_however_it_is_written(env: dict[str, Any]) -> None:
    assert canonical(env).bucket == "py3"


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"language": "TypeScript", "language_version": "5.4", "node": 20}, "node20"),
        ({"language": "javascript", "runtime": "Node.js 18"}, "node18"),
        ({"language": "javascript", "language_version": "2022"}, "node"),
        ({"language": "C#", "language_version": 12, "framework": ".NET 8"}, "dotnet8"),
        ({"java": "1.8.0_292"}, "java8"),
        ({"language": "openjdk version 17.0.1"}, "java17"),
        ({"go": "go version go1.21.3 linux/amd64"}, "go1"),
        ({"language": "c++17"}, "cpp17"),
        ({"framework": "Ruby on Rails 7.1", "language": "ruby 3.2"}, "ruby3|rails7"),
        ({"framework": "Spring Boot", "framework_version": "3.2"}, "spring3"),
        ({"frameworks": ["next 14", "react 18"]}, "react18"),
        ({"python": "3.11", "packages": {"torch": "2.1", "numpy": "1.26"}}, "py3|torch2"),
        ({"framework": "docker"}, "docker"),
        ({"language": "3.11"}, "unknown"),
        ({"framework": "!!"}, "unknown"),
        ({"python": "yes"}, "py"),
        ({"python": "CPython 3.12"}, "py3"),
        ({"python": "/usr/bin/env"}, "unknown"),
        ({"node": "worker-3"}, "unknown"),
        ({"python": False}, "unknown"),
    ],
)
def test_languages_and_frameworks_are_found_where_they_are(
    env: dict[str, Any], expected: str
) -> None:
    assert canonical(env).bucket == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"docker": True}, "docker"),
        ({"docker": "24.0.7"}, "docker"),
        ({"docker": False}, "bare"),
        ({"docker": False, "kubernetes": True}, "kubernetes"),
        ({"container": True}, "container"),
        ({"container": "none"}, "bare"),
        ({"runtime": "bare metal"}, "bare"),
        ({"runtime": "k8s"}, "kubernetes"),
        ({"runtime": "wasmtime"}, "runtime:wasmtime"),
        ({"platform": "aws lambda"}, "lambda"),
        ({"platform": "the web"}, "unknown"),
        ({"host": "10.0.0.1"}, "unknown"),
        ({"gpu": "NVIDIA A100-SXM4-80GB"}, "cuda"),
        ({"gpu": "A100", "cuda_version": 12.1}, "cuda12"),
        ({"gpu": "2x RTX 4090"}, "cuda"),
        ({"gpu": True, "cuda": "11.8"}, "cuda11"),
        ({"cuda": "cu121"}, "cuda12"),
        ({"device": "cuda:0"}, "cuda"),
        ({"gpu": 4}, "gpu"),
        ({"gpu": "MI300X"}, "rocm"),
        ({"gpu": "M2 Max"}, "mps"),
        ({"gpu": None}, "unknown"),
        ({"gpu": "none"}, "cpu"),
        ({"cuda": False}, "cpu"),
        ({"nvidia": "535.104"}, "cuda"),
        ({"arch": "aarch64"}, "arm64"),
        ({"machine": "Apple M1"}, "arm64"),
        ({"machine": "prod-01"}, "unknown"),
        ({"arch": "mips64el"}, "arch:mips64el"),
        ({"arch": "?!"}, "unknown"),
        ({"platform": "linux/arm64"}, "linux|arm64"),
        ({"os": "x86_64-unknown-linux-gnu"}, "linux"),
        ({"arch": "AMD64"}, "unknown"),
    ],
)
def test_runtimes_gpus_and_architectures_are_found(env: dict[str, Any], expected: str) -> None:
    assert canonical(env).bucket == expected


@pytest.mark.parametrize("name", ["Windows Subsystem for Linux", "windows-subsystem-for-linux 2"])
def test_the_windows_subsystem_for_linux_is_linux_without_a_version(name: str) -> None:
    assert canonical({"os": name}).as_dict() == {"os": "linux", "wsl": "true"}


@given(environments, environments)
def test_environments_contradict_each_other_alike_and_none_itself(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    mine, theirs = canonical(one), canonical(other)

    assert contradictions(mine, theirs) == contradictions(theirs, mine)
    assert contradictions(mine, mine) == 0
    assert contradictions(mine, canonical({})) == 0


def test_another_name_or_major_version_contradicts_and_silence_does_not() -> None:
    here = canonical({"os": "linux", "python": "3.12", "framework": "torch 2.1", "cuda": "12.1"})

    assert contradictions(here, canonical({"os": "linux", "python": "3.9"})) == 0
    assert contradictions(here, canonical({"os": "macos", "python": "3.12"})) == 1
    assert contradictions(here, canonical({"os": "windows", "python": "2.7"})) == 2
    assert contradictions(here, canonical({"framework": "torch 1.13", "docker": True})) == 1


def test_wsl_is_linux_and_noted() -> None:
    env = canonical({"os": "Windows 11", "wsl": True})

    assert env.bucket == "linux"
    assert env.as_dict() == {"os": "linux", "wsl": "true"}
    assert bucket(os="windows", wsl=False) == "windows"


def test_detail_is_kept_in_the_fields() -> None:
    env = canonical(
        {"OS": "Ubuntu 22.04", "Language": "TypeScript 5.4", "node": "20.1", "Postgres": 15}
    )

    assert env.bucket == "linux|node20"
    assert env.as_dict() == {
        "os": "linux",
        "language": "node",
        "language_version": "20.1",
        "distro": "ubuntu",
        "os_version": "22.04",
        "postgres": "15",
    }


def test_what_is_not_heard_stays_a_free_field() -> None:
    env = canonical({"language": "python", "node": 20, "typescript": 5.4, "frameworks": ["a", "b"]})

    assert env.as_dict() == {
        "language": "py",
        "framework": "a",
        "b": "true",
        "node": "20",
        "typescript": "5.4",
    }


def test_an_object_in_place_of_a_text_is_read_by_its_name_and_version() -> None:
    env = canonical({"gpu": {"model": "A100", "count": 8}, "a": {"b": {"c": {"d": {"e": 1}}}}})

    assert env.as_dict() == {"gpu": "cuda", "gpu_count": "8"}


def test_a_list_of_free_values_is_one_field() -> None:
    assert canonical({"flags": ["b", "a"]}).as_dict() == {"flags": "a, b"}


def test_an_unknown_framework_stands_bare_only_beside_a_system_or_a_language() -> None:
    assert bucket(framework="acme 2", python=3) == "py3|acme2"
    assert bucket(framework="acme 2") == "framework:acme2"


def test_an_empty_environment_is_unknown() -> None:
    assert canonical({}) == Environment((), "unknown")


@pytest.mark.parametrize("env", ["auto", None, 3, ["linux"], [("os", "linux")], True])
def test_what_is_no_mapping_is_refused(env: object) -> None:
    with pytest.raises(ValidationFailed, match="`env` must be an object") as caught:
        canonical(env)  # type: ignore[arg-type]

    assert caught.value.details["field"] == "env"
    assert '{"os": "linux"' in caught.value.hint


def test_free_fields_beyond_the_limit_are_left_out_and_crowd_out_nothing() -> None:
    env = canonical(
        {f"a{number}": "x" * 500 for number in range(1000)} | {"python": 3, "os": "mac"}
    )

    assert env.bucket == "macos|py3"
    assert len(env.fields) == limits.ENV_FIELDS_MAX
    assert max(len(text) for _, text in env.fields) == limits.ENV_VALUE_CHARS_MAX


@given(environments)
@example({"java": "1.1.8"})
@example({"java": "1.008"})
@example({"framework": ["react", "os"]})
@example({"language": ["amd64", -1]})
@example({"gpu": [False, -1]})
@example({"gpu": "py311"})
@example({"nvidia": ["Linux", 1]})
@example({"nvidia": "00"})
@example({"framework": "a.5"})
@example({"framework": ".4b"})
@example({"language": ["py", "pythonversion"]})
@example({"language": "javascript", "language_version": "es2022", "node": 20})
def test_canonicalisation_is_idempotent(env: dict[str, Any]) -> None:
    once = canonical(env)

    assert canonical(once.as_dict()) == once
    assert canonical(once) is once
    assert len(once.as_dict()) == len(once.fields) <= limits.ENV_FIELDS_MAX
    assert all(text and len(text) <= limits.ENV_VALUE_CHARS_MAX for _, text in once.fields)


@given(environments)
@example({"framework": "riscv 64", "os": "linux"})
@example({"framework": "unknown2", "os": "linux"})
def test_a_bucket_stands_for_an_environment_with_that_bucket(env: dict[str, Any]) -> None:
    given_bucket = canonical(env).bucket

    found = from_bucket(given_bucket)

    assert found is not None
    assert canonical(found.as_dict()).bucket == given_bucket


@given(environments, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(env: dict[str, Any], chance: random.Random) -> None:
    pairs = list(env.items())
    chance.shuffle(pairs)

    assert canonical(dict(pairs)) == canonical(env)


@given(plain)
def test_case_and_spaces_do_not_matter(env: dict[str, str]) -> None:
    loud = {
        f" {key.upper()} ": f"  {text.upper().replace(' ', '   ')} " for key, text in env.items()
    }
    # Two keys that differ by case alone were two fields before, and are one now.
    if len({key.strip() for key in loud}) == len(env):
        assert canonical(loud) == canonical(env)


@given(plain, st.dictionaries(st.text(), scalars, max_size=5))
def test_unknown_keys_are_safe(env: dict[str, str], more: dict[str, Any]) -> None:
    free = {key: value for key, value in more.items() if role_of(spelling.key_of(key)) is None}

    assert canonical(free | env).bucket == canonical(env).bucket


@given(
    st.sampled_from(["python", "node", "torch", "react", "cuda", "java", "docker"]),
    st.integers(2, 30),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_the_detail_of_a_version_does_not_change_the_bucket(
    key: str, major: int, detail: list[int]
) -> None:
    detailed = ".".join(map(str, [major, *detail]))
    short = major if key != "python" else f"{major}.0"

    assert canonical({key: detailed if detail else short}).bucket == canonical({key: short}).bucket


def test_folding_any_letter_twice_is_folding_it_once() -> None:
    """Folding works letter by letter, so all letters prove it for all texts."""
    letters = "\n".join(map(chr, range(sys.maxunicode + 1)))

    folded = normalize("NFKD", normalize("NFKD", letters).casefold())

    assert normalize("NFKD", folded.casefold()) == folded


@pytest.mark.parametrize(
    "text",
    [
        *("", "Linux|py3", "linux|python3", "py3|linux", "linux|py3.11", "linux|linux", "linux5"),
        *(
            "linux|",
            "prod",
            "default",
            "linux|x86_64",
            "linux||py3",
            "nonsense:x",
            "a\nb",
            "os:linux",
        ),
        *("docker24", "linux|py3|py3", "Unknown", "|", "linux |py3", "framework:torch2"),
    ],
)
def test_what_is_not_in_canonical_form_is_no_bucket(text: str) -> None:
    assert from_bucket(text) is None


@given(st.text() | st.lists(st.sampled_from(VALUES + KEYS)).map("|".join))
def test_any_text_is_a_bucket_or_none(text: str) -> None:
    found = from_bucket(text)

    assert found is None or found.bucket == text


def test_a_bucket_gives_back_its_parts() -> None:
    found = from_bucket("linux|py3|acme2|cuda12|docker|arm64")

    assert found is not None
    assert found.as_dict() == {
        "os": "linux",
        "language": "py",
        "language_version": "3",
        "framework": "acme",
        "framework_version": "2",
        "gpu": "cuda",
        "gpu_version": "12",
        "runtime": "docker",
        "arch": "arm64",
    }


def test_every_name_in_a_bucket_belongs_to_one_slot_and_reads_as_itself() -> None:
    owners: dict[str, str] = {}
    for slot, table in vocabulary.NAMES.items():
        for name in set(table.values()):
            assert owners.setdefault(name, slot) == slot
            assert spelling.name_of(name) == name
            assert name not in vocabulary.ARCHITECTURES
            assert bucket(**{slot: name}) == name


def test_every_alias_is_spelled_as_it_is_compared() -> None:
    aliases = [alias for table in vocabulary.NAMES.values() for alias in table]

    assert [alias for alias in aliases if spelling.key_of(alias).replace("_", "") != alias] == []


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({}, {}, 1.0),
        ({"os": "linux"}, {}, 0.5),
        ({"os": "linux"}, {"os": "macos"}, 0.0),
        ({"python": "3.11"}, {"python": "3.11.4"}, 1.0),
        ({"python": "3.11"}, {"python": "3"}, 1.0),
        ({"python": "3.11"}, {"python": "3.12"}, 0.75),
        ({"python": "3.11"}, {"python": "2.7"}, 0.5),
        ({"python": "3.11"}, {"language": "python"}, 0.75),
        ({"python": "3.11"}, {"node": "20"}, 0.0),
        ({"os": "linux", "python": 3}, {"os": "linux", "python": 2}, (2 + 1) / 4),
        ({"os": "linux", "docker": True}, {"os": "linux", "docker": False}, 2 / 3),
        ({"os": "linux", "arch": "x64"}, {"os": "linux", "arch": "arm64"}, 2 / 3),
        ({"os": "linux", "cuda": 12}, {"os": "linux"}, 2.5 / 3),
        ({"os": "linux", "postgres": 15}, {"os": "linux", "postgres": 14}, 2.25 / 2.5),
        ({"os": "linux", "ci": "github"}, {"os": "linux", "ci": "gitlab"}, 2 / 2.5),
        ({"os": "linux", "a": 1, "b": 2}, {"os": "linux"}, 2.5 / 3),
        ({"torch": "2.1", "react": 18}, {"torch": "2.0", "react": 18}, (1.5 + 0.5) / 2.5),
    ],
)
def test_likeness_is_the_weighted_share_of_what_agrees(
    one: dict[str, Any], other: dict[str, Any], expected: float
) -> None:
    assert likeness(one, other) == pytest.approx(expected)


@given(environments, environments)
def test_likeness_is_symmetric_and_between_0_and_1(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    assert 0 <= likeness(one, other) <= 1
    assert likeness(one, other) == likeness(other, one)
    assert likeness(one, one) == 1


@given(plain)
def test_an_environment_is_not_unlike_its_own_bucket(env: dict[str, str]) -> None:
    whole = canonical(env)
    known = from_bucket(whole.bucket)

    assert known is not None
    assert similarity(whole, known) >= 0.5
