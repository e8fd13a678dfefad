"""Answers about corrections as people read them: state, policy, tests, figures, lessons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from stratagem.answers import plural
from stratagem.surfaces.cli.advice_tables import say, share, show_fix, show_offers
from stratagem.surfaces.cli.output import printable, shell_words
from stratagem.surfaces.cli.tables import brief, show, table, value_text, when

if TYPE_CHECKING:
    from stratagem.gateway.learning.answers import (
        CallDiagnosis,
        CorrectionBreakers,
        CorrectionInsights,
        CorrectionPatterns,
        CorrectionStatus,
        CorrectionTestReport,
        PolicyUpdate,
    )

__all__ = [
    "show_circuits",
    "show_configured",
    "show_diagnosis",
    "show_insights",
    "show_patterns",
    "show_status",
    "show_tested",
]

Answer = Mapping[str, Any]


def show_diagnosis(console: Console, answer: CallDiagnosis) -> None:
    """Show what is wrong with a call, and how it could be mended."""
    diagnosed, correction = answer["diagnosis"], answer["autoCorrection"]
    say(console, f"{diagnosed['errorType']} ({diagnosed['severity']})", "bold")
    for cause in filter(None, (diagnosed["rootCause"] or "").split("; ")):
        say(console, f"  {cause}")
    if diagnosed["basis"].endswith("the parameters fit the schema"):
        console.print("The arguments fit: nothing is wrong with them.", style="green")
    show_fix(console, answer.get("knownFix"))
    show_offers(console, correction["corrections"])
    if correction["appliedCorrection"] is not None:
        console.print("A call would be corrected on the way.", style="green")
    elif correction.get("withheld"):
        say(console, f"A call would be refused: {correction['withheld']}", "yellow")
    for each in correction.get("choices") or ():
        options = ", ".join(map(str, each["options"]))
        say(console, f"{each['path']}: {each['question']} {options}")
    for other in answer.get("alternatives") or ():
        say(console, f"Or {other['toolName']}: {other['reasoning']}")
    for tip in answer["preventionTips"]:
        say(console, f"- {shell_words(tip)}")
    _show_missing(console, answer)


def show_status(console: Console, answer: CorrectionStatus) -> None:
    """Show whether corrections work, their figures and what they may do."""
    system, settings = answer["systemStatus"], answer["settings"] or {}
    state = {True: "on", False: "off", None: "unknown"}[system["enabled"]]
    health = "healthy" if system["healthy"] else "limited"
    say(console, f"Corrections are {state} and {health}.", "bold")
    for part, fault in (answer.get("faults") or {}).items():
        say(console, f"  {part}: {fault}", "red")
    if metrics := answer.get("metrics"):
        _show_metrics(console, metrics)
    _show_strategies(console, answer.get("strategyPerformance") or {}, settings)
    for name, value in settings.items():
        if name not in {"enabled", "strategies"} and value not in ([], False):
            say(console, f"{name}: {_plain(value)}", "dim")
    for tool, own in (answer["toolSettings"] or {}).items():
        say(console, f"{tool}: {_plain(own)}", "dim")
    for each in answer.get("activeCorrections") or ():
        say(console, f"Running: {each['toolName']}, attempt {each['attempt']}")


def show_configured(console: Console, answer: PolicyUpdate) -> None:
    """Show what a change of the policy changed, or would change."""
    for change in answer["changesApplied"]:
        say(console, change)
    if not answer["changesApplied"]:
        console.print("Nothing changed.")
    elif not answer["configurationUpdated"]:
        console.print("This would change; nothing was changed.", style="dim")


def show_tested(console: Console, answer: CorrectionTestReport) -> None:
    """Show what would become of each call."""
    rows = table("TEST", "", "CORRECTED", "SURE", "MS", "ARGUMENTS")
    for each in answer["testResults"]:
        details = each["details"]
        arguments = details["correctedParameters"]
        shown = details["originalParameters"] if arguments is None else arguments
        rows.add_row(
            printable(each["testName"]),
            Text("passed", "green") if each["passed"] else Text("failed", "red"),
            "yes" if each["correctionApplied"] else "no",
            share(each["confidence"]),
            f"{each['executionTime']:.2f}",
            brief(shown),
        )
    show(console, rows)
    for each in answer["testResults"]:
        if not each["passed"]:
            reason = each.get("reason") or "It was corrected to something else."
            say(console, f"{each['testName']}: {reason}", "red")
    overall = answer["overallResults"]
    console.print(f"{overall['passed']:,} of {plural(overall['totalTests'], 'test')} passed.")
    for part in (answer.get("performance"), answer.get("diagnostics")):
        for field, value in (part or {}).items():
            say(console, f"{field}: {_plain(value)}", "dim")


def show_insights(console: Console, answer: CorrectionInsights) -> None:
    """Show what the records of a time say about corrections."""
    overall = answer["overallMetrics"]
    say(
        console,
        f"In {answer['timeRange']['duration']}: {overall['successfulCorrections']:,} "
        f"of {plural(overall['totalCorrections'], 'correction')} worked, "
        f"{plural(overall['refusedCalls'], 'call')} "
        f"refused, {plural(answer['trends']['newPatternsLearned'], 'new lesson')}.",
        "bold",
    )
    _show_rows(
        console,
        answer.get("toolBreakdown") or (),
        {"TOOL": "toolName", "CORRECTED": "correctionsApplied", "REFUSED": "refusedCalls",
         "HELD": "successRate", "ERRORS": "commonErrors", "HELPED": "mostEffectiveStrategies"},
    )  # fmt: skip
    _show_rows(
        console,
        answer.get("topPatterns") or (),
        {"PATTERN": "id", "USED": "usageCount", "HELD": "successRate", "TOOLS": "toolsApplied"},
    )
    _show_rows(
        console,
        answer.get("agentBreakdown") or (),
        {"AGENT": "agentId", "CORRECTED": "correctionsUsed", "REFUSED": "refusedCalls",
         "HELD": "successRate", "ERRORS": "topErrorTypes"},
    )  # fmt: skip
    _show_rows(
        console,
        answer.get("failurePatterns") or (),
        {"NOT CORRECTED": "errorType", "COUNT": "count", "TOOLS": "affectedTools",
         "WHAT HELPS": "recommendations"},
    )  # fmt: skip
    for each in answer["recommendations"]:
        say(console, f"- {each}")


def show_patterns(console: Console, answer: CorrectionPatterns) -> None:
    """Show what was learned, one tool's profile, a backup, or what was restored."""
    if "backup" in answer:
        console.print(value_text(answer["backup"]), soft_wrap=True)
    elif "restored" in answer:
        console.print(f"Restored {answer['restored']:,}; {answer['unchanged']:,} existed already.")
    elif "profile" in answer:
        _show_profile(console, answer)
    elif not answer["patterns"]:
        console.print("No correction was made yet, so nothing was learned.")
    else:
        rows = table("PATTERN", "TOOL", "USED", "HELD", "BELIEF", "STATE", "MEANS")
        for each in answer["patterns"]:
            certain = "" if each["certain"] else ", offered only"
            means = each.get("description") or f"{each['path']}: {each['meaning']}"
            rows.add_row(
                printable(each["name"]),
                printable(each["toolName"]),
                f"{each['usageCount']:,}",
                share(each["successRate"]),
                f"{each['confidence']:.2f}",
                f"{each['status']}{certain}",
                brief(means),
            )
        show(console, rows)


def show_circuits(console: Console, answer: CorrectionBreakers) -> None:
    """Show the breakers of corrections, or what a reset did."""
    if "reset" in answer:
        was = "was closed" if answer["reset"] else "was not open"
        say(console, f"The breaker of {answer['toolName']} {was}.")
        return
    if not answer["circuitBreakers"]:
        console.print(
            "No breaker is open in this process; a server has its own breakers: ask the server."
        )
        return
    rows = table("TOOL", "STATE", "FAILURES", "LAST FAILURE", "REASON")
    for each in answer["circuitBreakers"]:
        last = each["lastFailure"]
        rows.add_row(
            printable(each["toolName"]),
            each["status"],
            str(each["failures"]),
            "" if last is None else when(datetime.fromtimestamp(last / 1000, UTC).isoformat()),
            brief(each["reason"]),
        )
    show(console, rows)


def _show_metrics(console: Console, metrics: Answer) -> None:
    took = metrics["averageCorrectionTime"]
    say(
        console,
        f"{metrics['successfulCorrections']:,} of {metrics['totalCorrections']:,} worked, "
        f"{plural(metrics['refusedCalls'], 'call')} refused, "
        f"{plural(metrics['newPatternsLearned'], 'new lesson')}"
        + (f", {took:.1f} ms on average." if took is not None else "."),
    )


def _show_strategies(console: Console, done: Answer, settings: Answer) -> None:
    known = settings.get("strategies") or {}
    if not known:
        return
    rows = table("STRATEGY", "", "FROM", "TRIED", "HELD")
    for name, setting in known.items():
        figures = done.get(name) or {"attempts": 0, "successRate": None}
        rows.add_row(
            name,
            Text("on", "green") if setting["enabled"] else Text("off", "dim"),
            share(setting["confidence"]),
            f"{figures['attempts']:,}" if done else "",
            share(figures["successRate"]) if done else "",
        )
    show(console, rows)


def _show_profile(console: Console, answer: Answer) -> None:
    profile = answer["profile"]
    say(console, f"{answer['toolName']}: {plural(profile['calls'], 'call')} that worked.", "bold")
    rows = table("PARAMETER", "GIVEN", "TYPES", "FORMS", "USUAL")
    for each in profile["parameters"]:
        rows.add_row(
            printable(each["path"]),
            f"{each['given']:,} ({each['share']:.0%})",
            _counts_text(each["types"]),
            _counts_text(each["forms"]),
            brief(_plain(each["usual"]) if "usual" in each else ""),
        )
    if profile["parameters"]:
        show(console, rows)


def _show_rows(console: Console, rows: Any, columns: Mapping[str, str]) -> None:
    """Show rows by their fields, below an empty line; nothing where there are none."""
    if not rows:
        return
    made = table(*columns)
    for each in rows:
        made.add_row(*(_cell(name, each[name]) for name in columns.values()))
    console.print()
    show(console, made)


def _cell(name: str, value: Any) -> str:
    if name.endswith("Rate"):
        return share(value)
    if name == "recommendations":
        return shell_words(" ".join(value))
    # One below the other: a narrow column would break them in the middle of a word.
    return printable("\n".join(map(str, value)) if isinstance(value, list) else str(value))


def _show_missing(console: Console, answer: Answer) -> None:
    if answer.get("fallbackMode"):
        away = [name for name, state in answer["serviceStatus"].items() if state != "healthy"]
        say(console, f"Answered without: {', '.join(away)}.", "yellow")


def _counts_text(counts: Any) -> str:
    return printable(", ".join(f"{name} {count}" for name, count in counts.items()))


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
