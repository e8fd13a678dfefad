"""A code analysis pipeline: parse a repository, measure it, scan it, and write a report.

No step names the result of another: what a tool requires and is not given comes from the field of
the same name in the result before.
"""

from __future__ import annotations

import argparse
import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import stratagem


def steps(repository: str, *, format_: str = "pdf") -> list[dict[str, Any]]:
    """Return the steps of the pipeline."""
    return [
        {"tool": "code_parser", "arguments": {"repository": repository}},
        {"tool": "complexity_analyzer", "arguments": {"threshold": 10}},
        {"tool": "security_scanner", "arguments": {"rules": "owasp-top-10"}},
        {"tool": "report_generator", "arguments": {"format": format_}},
    ]


def analyze(db: stratagem.Stratagem, repository: str, *, format_: str = "pdf") -> dict[str, Any]:
    """Run the pipeline and return the report."""
    given = {"name": "code_analysis", "steps": steps(repository, format_=format_)}
    done = db.call("tools_pipeline", given)
    if not done["success"]:
        raise SystemExit(done["error"]["message"])
    report: dict[str, Any] = done["output"]
    return report


def main(arguments: list[str] | None = None) -> None:
    """Analyse a repository and write the report to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository", help="github.com/owner/name, or the address of an archive")
    parser.add_argument("--to", type=Path, default=Path("report.pdf"))
    parser.add_argument("--db", default="analysis.db")
    given = parser.parse_args(arguments)
    # An archive on a host of your own is yours to allow.
    host = urlsplit(given.repository).netloc
    with stratagem.open(given.db, allow_hosts=[host] if host else []) as db:
        report = analyze(db, given.repository)
    given.to.write_bytes(base64.b64decode(report["base64"]))
    print(f"Analysis complete: {given.to} ({report['bytes']:,} bytes)")


if __name__ == "__main__":
    main()
