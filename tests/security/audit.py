"""What is installed, and what is known to be wrong with it: `make audit`.

Writes an SBOM (CycloneDX) and asks a vulnerability service about everything in it. A weakness
that can be mended by an upgrade fails the build, and so does one without a fix that is not listed
with a reason in `accepted.toml`. Where the service cannot be reached, that is said, and fails
nothing: a build must work offline.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = Path(__file__).with_name("accepted.toml")
SBOM = ROOT / "build" / "sbom.json"
SECONDS_MAX = 240


class Judgement(NamedTuple):
    """What has to be done, and what is to be said besides."""

    problems: list[str]
    notes: list[str]


def judge(report: Mapping[str, Any] | None, accepted: Sequence[Mapping[str, str]]) -> Judgement:
    """Say what a report means; None is no report at all."""
    packages = report["dependencies"] if report is not None else []
    checked = [each for each in packages if "skip_reason" not in each]
    if not checked:
        return Judgement([], ["The vulnerability service cannot be reached: nothing was checked."])
    known = {(each["package"], each["id"]): each["reason"] for each in accepted}
    problems: list[str] = []
    notes = [f"{len(checked)} of {len(packages)} packages were checked."]
    for package in checked:
        for found in package.get("vulns", ()):
            name = f"{package['name']} {package['version']}: {found['id']}"
            reason = known.pop((package["name"], found["id"]), "")
            if found.get("fix_versions"):
                problems.append(f"{name} is mended in {', '.join(found['fix_versions'])}")
            elif reason:
                notes.append(f"{name} has no fix; accepted: {reason}")
            else:
                problems.append(f"{name} has no fix: list it in {ACCEPTED.name} with a reason")
    notes += [f"{id_} of {name} is accepted, and no longer found." for name, id_ in known]
    return Judgement(problems, notes)


def read_accepted() -> list[dict[str, str]]:
    """Return the weaknesses that are lived with, each with its reason."""
    found: list[dict[str, str]] = tomllib.loads(ACCEPTED.read_text("utf-8")).get("accepted", [])
    return found


def main() -> int:
    """Write the SBOM, ask about it, and return the status to end with."""
    SBOM.parent.mkdir(exist_ok=True)
    beside = Path(sys.executable).parent
    subprocess.run(
        [
            str(beside / "cyclonedx-py"),
            "environment",
            sys.executable,
            "--output-reproducible",
            "--output-file",
            str(SBOM),
        ],
        check=True,
        capture_output=True,
        timeout=SECONDS_MAX,
    )
    components = len(json.loads(SBOM.read_text("utf-8"))["components"])
    judgement = judge(_report(beside), read_accepted())
    lines = [f"{SBOM.relative_to(ROOT)} lists {components} packages.", *judgement.notes]
    lines += [f"PROBLEM {each}" for each in judgement.problems]
    print("\n".join(lines))  # noqa: T201 -- what it was started for
    return 1 if judgement.problems else 0


def _report(beside: Path) -> Mapping[str, Any] | None:
    command = [str(beside / "pip-audit"), "--format", "json", "--progress-spinner", "off"]
    try:
        # It ends with 1 where it found something; the report says what.
        done = subprocess.run(
            [*command, "--skip-editable", "--timeout", "10"],
            check=False,
            capture_output=True,
            timeout=SECONDS_MAX,
        )
        report: Mapping[str, Any] = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None
    return report


if __name__ == "__main__":
    sys.exit(main())
