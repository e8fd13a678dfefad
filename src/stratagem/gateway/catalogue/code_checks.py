"""Issues in code: ruff and bandit as processes, and patterns for secrets and dangerous calls."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.gateway.catalogue.source_files import SourceFile
from stratagem.gateway.handlers.child_processes import run_program

__all__ = ["OWASP", "check_quality", "check_security", "find_secrets"]

Issue = dict[str, Any]

# Errors, bugs, and what makes code hard to read; how it is laid out is a matter of taste.
_RUFF_RULES: Final = "E9,F,B,C90,PLE,PLW,RET,SIM,UP,ARG,ERA,PERF"
OWASP: Final[Mapping[str, tuple[int, ...]]] = {
    "A01:2021 Broken Access Control": (22, 276, 284, 352, 377, 379, 552, 601, 732),
    "A02:2021 Cryptographic Failures": (295, 310, 319, 326, 327, 328, 330, 338, 759),
    "A03:2021 Injection": (20, 74, 77, 78, 79, 80, 88, 89, 94, 95, 116, 134, 611, 643),
    "A04:2021 Insecure Design": (209, 256, 400, 434, 703),
    "A05:2021 Security Misconfiguration": (16, 489, 605, 614, 776, 1004),
    "A06:2021 Vulnerable Components": (937, 1104),
    "A07:2021 Authentication Failures": (259, 287, 321, 798),
    "A08:2021 Integrity Failures": (345, 353, 494, 502, 829),
    "A09:2021 Logging Failures": (117, 223, 532, 778),
    "A10:2021 Request Forgery": (918,),
}
_SECRETS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("AWS access key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,251}\b"),
        ("Slack token", r"\bxox[abprs]-[A-Za-z0-9-]{10,200}"),
        ("Google API key", r"\bAIza[A-Za-z0-9_-]{35}\b"),
        ("Stripe key", r"\b[sr]k_live_[A-Za-z0-9]{16,200}"),
        ("OpenAI or Anthropic key", r"\bsk-[A-Za-z0-9_-]{20,200}"),
        ("Private key", r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----"),
        (
            "JSON Web Token",
            r"\beyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,500}",
        ),
        (
            "A password or key",
            r"(?i)\b(?:password|passwd|secret|api_?key|auth_?token|access_?token)\b['\"]?[ \t]{0,4}"
            r"(?::=|[:=])[ \t]{0,4}['\"][^'\"\s$<{]{8,200}['\"]",
        ),
    )
)
_SCRIPTS: Final = frozenset({"javascript", "typescript", "tsx"})
_CALLS: Final = tuple(
    (languages, re.compile(pattern), words, cwe)
    for languages, pattern, words, cwe in (
        (_SCRIPTS, r"\beval\(", "eval runs text as code", 95),
        (_SCRIPTS, r"\.innerHTML[ \t]{0,4}\+?=(?!=)", "innerHTML inserts unescaped markup", 79),
        (_SCRIPTS, r"\bdocument\.write\(", "document.write inserts unescaped markup", 79),
        (_SCRIPTS, r"dangerouslySetInnerHTML", "markup is inserted unescaped", 79),
        (
            _SCRIPTS,
            r"\bexec(?:Sync)?\([ \t]{0,4}[`'\"][^`'\"\n]{0,200}\$\{",
            "a shell command is built from values",
            78,
        ),
        (
            frozenset({"php"}),
            r"\b(?:eval|system|shell_exec|passthru)[ \t]{0,4}\(",
            "runs text as code or a command",
            78,
        ),
        (
            frozenset({"php"}),
            r"\bunserialize[ \t]{0,4}\(",
            "unserialize creates objects from text",
            502,
        ),
        (frozenset({"java"}), r"\bRuntime\.getRuntime\(\)\.exec\(", "a command is run", 78),
        (frozenset({"java"}), r"\bObjectInputStream\b", "objects are deserialized from bytes", 502),
        (
            frozenset({"java", "csharp", "go", "php", "ruby"}) | _SCRIPTS,
            r"(?i)[\"'`](?:SELECT|INSERT INTO|UPDATE|DELETE FROM) [^\"'`\n]{0,300}[\"'`][ \t]{0,4}(?:\+|\.)[ \t]{0,4}[\w$]",
            "SQL is built from values",
            89,
        ),
        (
            frozenset({"c", "cpp"}),
            r"\b(?:gets|strcpy|strcat|sprintf)[ \t]{0,4}\(",
            "the length is not checked",
            120,
        ),
        (frozenset({"c", "cpp"}), r"\bsystem[ \t]{0,4}\(", "a command is run", 78),
        (
            frozenset({"go"}),
            r"\bInsecureSkipVerify:[ \t]{0,4}true",
            "certificates are not checked",
            295,
        ),
        (frozenset({"rust"}), r"\bunsafe[ \t]{0,4}\{", "the compiler's checks are off", 119),
        (frozenset({"csharp"}), r"\bBinaryFormatter\b", "objects are deserialized from bytes", 502),
        (
            frozenset({"ruby"}),
            r"\b(?:eval|instance_eval|Marshal\.load|YAML\.load)\b[ \t]{0,4}\(",
            "text is run or deserialized",
            502,
        ),
        (
            _SCRIPTS | {"java", "php", "ruby", "csharp", "go"},
            r"(?i)\b(?:MD5|SHA1)(?:\.new|\.hexdigest|CryptoServiceProvider|\.Create|\.New|\.Sum)?\(|getInstance\(\"(?:MD5|SHA-?1)\"",
            "a hash that can be forged",
            327,
        ),
    )
)


async def check_quality(files: Sequence[SourceFile], seconds: float) -> list[list[Issue]]:
    """Return what ruff says of each file; of what is not Python it says nothing."""
    found: list[list[Issue]] = [[] for _ in files]
    program = _find_ruff()
    with tempfile.TemporaryDirectory(prefix="stratagem-code-") as folder:
        paths = _write_python(files, folder)
        if not paths or program is None:
            return found
        command = [program, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero"]
        command += ["--output-format=json", f"--select={_RUFF_RULES}", folder]
        done = await run_program(command, seconds=seconds, folder=folder)
        for each in _json(done.output, []):
            at = paths.get(Path(each["filename"]).name)
            if at is not None and len(found[at]) < limits.CODE_ISSUES_MAX:
                found[at].append(_from_ruff(each))
    return found


def _from_ruff(each: Mapping[str, Any]) -> Issue:
    code = each.get("code") or "syntax"
    severity = (
        "error" if code in {"syntax", "invalid-syntax"} or code[:2] in {"E9", "F8"} else "warning"
    )
    issue = {
        "rule": code,
        "message": each["message"],
        "line": each["location"]["row"],
        "severity": severity,
        "by": "ruff",
    }
    return {**issue, "more": each["url"]} if each.get("url") else issue


async def check_security(
    files: Sequence[SourceFile], seconds: float, *, python: bool = True
) -> list[list[Issue]]:
    """Return what is dangerous in each file: bandit for Python, patterns for the rest, secrets."""
    found = [[*find_secrets(each["content"]), *_dangerous_calls(each)] for each in files]
    if python:
        for issues, more in zip(found, await _bandit(files, seconds), strict=True):
            issues.extend(more)
    return [
        sorted(issues, key=lambda each: each["line"])[: limits.CODE_ISSUES_MAX] for issues in found
    ]


async def _bandit(files: Sequence[SourceFile], seconds: float) -> list[list[Issue]]:
    found: list[list[Issue]] = [[] for _ in files]
    with tempfile.TemporaryDirectory(prefix="stratagem-code-") as folder:
        paths = _write_python(files, folder)
        if not paths:
            return found
        command = [sys.executable, "-I", "-m", "bandit", "-q", "-r", folder, "-f", "json"]
        done = await run_program(command, seconds=seconds, folder=folder)
        for each in _json(done.output, {}).get("results", ()):
            at = paths.get(Path(each["filename"]).name)
            if at is not None:
                cwe = (each.get("issue_cwe") or {}).get("id")
                found[at].append(
                    {
                        "rule": each["test_id"],
                        # Of a password it would quote the password.
                        "message": each["issue_text"].split(": '")[0],
                        "line": each["line_number"],
                        "severity": each["issue_severity"].lower(),
                        "confidence": each["issue_confidence"].lower(),
                        "by": "bandit",
                        **_classification(cwe),
                    }
                )
    return found


def find_secrets(text: str) -> list[Issue]:
    """Return what looks like a secret, without the secret."""
    return [
        {
            "rule": "secret",
            "message": f"{name} in the code. Move it to the environment and replace it with "
            "a new one.",
            "line": text.count("\n", 0, found.start()) + 1,
            "severity": "high",
            "confidence": "medium",
            "by": "patterns",
            **_classification(798),
        }
        for name, pattern in _SECRETS
        for found in pattern.finditer(text)
    ]


def _dangerous_calls(file: SourceFile) -> Iterator[Issue]:
    for languages, pattern, words, cwe in _CALLS:
        if file["language"] not in languages:
            continue
        for found in pattern.finditer(file["content"]):
            yield {
                "rule": f"cwe-{cwe}",
                "message": f"{found[0][:60].strip()}: {words}.",
                "line": file["content"].count("\n", 0, found.start()) + 1,
                "severity": "medium",
                "confidence": "low",
                "by": "patterns",
                **_classification(cwe),
            }


def _classification(cwe: int | None) -> dict[str, Any]:
    if cwe is None:
        return {}
    category = next((name for name, known in OWASP.items() if cwe in known), None)
    return {"cwe": cwe, "owasp": category} if category else {"cwe": cwe}


def _find_ruff() -> str | None:
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.exists() else shutil.which("ruff")


def _write_python(files: Sequence[SourceFile], folder: str) -> dict[str, int]:
    """Write the files in Python under names of ours; return which is which."""
    paths: dict[str, int] = {}
    for at, file in enumerate(files):
        if file["language"] == "python":
            name = f"file_{at}.py"
            Path(folder, name).write_text(file["content"], "utf-8", errors="replace")
            paths[name] = at
    return paths


def _json(output: bytes, default: Any) -> Any:
    try:
        return orjson.loads(output)
    except orjson.JSONDecodeError:
        return default
