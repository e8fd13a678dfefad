"""Answers about tools as people read them: what to use, how tools differ, what to do in order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from stratagem.answers import plural
from stratagem.surfaces.cli.output import printable, shell_words
from stratagem.surfaces.cli.tables import bar, brief, show, table, value_text

if TYPE_CHECKING:
    from stratagem.gateway.advice.answers import (
        ErrorRecovery,
        ToolComparison,
        ToolDiscovery,
        ToolRecommendations,
        ToolValidation,
        WorkflowPlan,
    )

__all__ = [
    "offers_table",
    "reasons",
    "say",
    "share",
    "show_compared",
    "show_discovered",
    "show_fix",
    "show_offers",
    "show_plan",
    "show_recommended",
    "show_recovery",
    "show_refusal",
    "show_run",
    "show_validated",
]

Answer = Mapping[str, Any]

# Below the bar and the score that a tool begins with.
_UNDER_NAME: Final = (0, 0, 0, 15)
_NOTHING: Final = "–"
# The steps of a correction are told one after the other, each beginning with its place.
_STEP: Final = re.compile(r"(?<=\.) (?=\$)")


def say(console: Console, text: str, style: str = "") -> None:
    """Print a sentence that may hold anything; a terminal breaks it between words."""
    console.print(Text(printable(text), style))


def reasons(reasoning: str) -> list[str]:
    """Return the steps of a correction, each with its place."""
    return _STEP.split(reasoning)


def share(value: float | None) -> str:
    """Return a share in percent; of nothing there is none."""
    return _NOTHING if value is None else f"{value:.0%}"


def show_recommended(console: Console, answer: ToolRecommendations) -> None:
    """Show the tools for a request, best first, and why."""
    for each in answer["recommendedTools"]:
        _show_tool(console, each)
    if answer["note"]:
        say(console, shell_words(answer["note"]))
    if answer["mode"] == "lexical":
        console.print("Found by words only, not by meaning.", style="dim")
    _show_missing(console, answer)


def show_recovery(console: Console, answer: ErrorRecovery) -> None:
    """Show what to do after a call that failed."""
    say(console, f"{answer['failedTool']}: {answer['errorType']}", "bold")
    show_fix(console, answer["knownFix"])
    for each in answer.get("parameterCorrections") or ():
        say(console, f"Call it with  {_json(each['suggested'])}")
        say(console, f"              {each['confidence']:.0%} sure: {each['reason']}", "dim")
    if answer["alternatives"]:
        console.print("Or use:")
    for other in answer["alternatives"]:
        _show_tool(console, other)
    for tip in answer["preventionTips"]:
        say(console, f"- {shell_words(tip)}")
    _show_missing(console, answer)


def show_validated(console: Console, answer: ToolValidation) -> None:
    """Show which tools can be called now."""
    rows = table("TOOL", "CAN BE CALLED", "NOTE")
    for each in answer["results"]:
        checked = each.get("configuration") or {"errors": (), "warnings": ()}
        reasons = [each.get("reason"), *checked["errors"], *checked["warnings"]]
        state = Text("yes", "green") if each["available"] else Text("no", "red")
        said = " ".join(dict.fromkeys(filter(None, reasons)))
        rows.add_row(printable(each["toolName"]), state, printable(said))
    show(console, rows)


def show_discovered(console: Console, answer: ToolDiscovery) -> None:
    """Show the tools that fit."""
    if not answer["tools"]:
        console.print("No tool fits.")
        return
    rows = table("NAME", "CATEGORY", "SOURCE", "DESCRIPTION")
    for each in answer["tools"]:
        rows.add_row(
            printable(each["name"]),
            printable(each["category"]),
            each["source"],
            brief(each["description"]),
        )
    show(console, rows)
    left = answer["filteredCount"] - len(answer["tools"])
    more = f" {left:,} of them are not shown; see --limit." if left > 0 else ""
    said = f"{answer['filteredCount']:,} of {plural(answer['totalAvailable'], 'tool')}.{more}"
    console.print(said, style="dim")


def show_compared(console: Console, answer: ToolComparison) -> None:
    """Show tools next to each other, then what each has otherwise than the first."""
    scored = any("relevanceScore" in each for each in answer["tools"])
    rows = table("TOOL", "CALLS", "WORKED", "RELIABILITY", "MS", *(["FITS"] if scored else ()),
                 "TAKES")  # fmt: skip
    for each in answer["tools"]:
        evidence = each["evidence"]
        rows.add_row(
            printable(each["name"]),
            f"{evidence['totalCalls']:,}" if evidence else _NOTHING,
            share(evidence["successRate"] if evidence else None),
            _figure(evidence["reliability"] if evidence else None, 2),
            _figure(evidence["avgLatency"] if evidence else None, 1),
            *([f"{each['relevanceScore']:.2f}"] if scored else ()),
            printable(", ".join(_parameters(each))),
        )
    show(console, rows)
    console.print("* is required.", style="dim")
    for pair in answer["differences"]:
        told = "; ".join(_differences(pair["difference"])) or "takes the same"
        say(console, f"{pair['to']} against {pair['from']}: {told}")
    for measure, name in answer["best"].items():
        if name is not None:
            say(console, f"Best by {measure}: {name}", "dim")
    _show_missing(console, answer)


def show_plan(console: Console, answer: WorkflowPlan) -> None:
    """Show the steps to a goal, each argument with where it comes from."""
    if not answer["steps"]:
        console.print("No tool fits. Describe it in other words, or choose the tools with --tool.")
        return
    rows = table("STEP", "TOOL", "ARGUMENT", "FROM")
    for number, step in enumerate(answer["steps"], 1):
        sources: list[tuple[str, Answer | None]] = [*step["sources"].items()] or [("", None)]
        for at, (name, source) in enumerate(sources):
            first = at == 0
            rows.add_row(
                str(number) if first else "",
                printable(step["tool"]) if first else "",
                printable(name),
                printable(_source(source, answer["missing"])) if source else "",
            )
    show(console, rows)
    for number, step in enumerate(answer["steps"], 1):
        say(console, f"{number}. {step['reasoning']}", "dim")
        for other in step["alternatives"]:
            needs = f"; needs {', '.join(other['open'])}" if other["open"] else ""
            say(console, f"   or {other['tool']} ({other['score']:.2f}{needs})", "dim")
    if answer["missing"]:
        say(console, f"You have to give: {', '.join(answer['missing'])} (--inputs JSON).")
    for line in _plan_faults(answer):
        say(console, line, "red")
    if answer["runnable"]:
        console.print("It can be run: add --run.")


def _plan_faults(answer: Answer) -> Iterator[str]:
    """Say why a plan cannot be run, beside what is missing."""
    yield from (f"{name} cannot be used: {why}" for name, why in answer["invalid"].items())
    yield from (f"No tool does this: {part}" for part in answer["unmatched"])
    for part in answer["omitted"]:
        yield f"Left out, because there are too many steps (--steps): {part}"
    yield from (f"Not proven: {each}" for each in answer["unproven"])


def show_run(console: Console, answer: Answer) -> None:
    """Show what became of each step, then what came out in the end."""
    rows = table("STEP", "TOOL", "STATUS", "MS")
    for number, step in enumerate(answer["steps"], 1):
        took = step.get("duration")
        rows.add_row(
            str(number),
            printable(str(step.get("tool") or step.get("id"))),
            str(step.get("status")),
            _NOTHING if took is None else f"{took:.0f}",
        )
    show(console, rows)
    if answer["success"]:
        console.print(value_text(answer["output"]), soft_wrap=True)
    elif error := answer.get("error"):
        told = error.get("message") if isinstance(error, Mapping) else error
        say(console, f"It failed: {told}", "red")


def show_refusal(console: Console, details: Answer) -> None:
    """Show what is wrong with a call besides the first thing, and what it may have meant."""
    violations = _objects_in(details.get("violations"))
    for each in violations if len(violations) > 1 else ():
        say(console, f"  {each['path']}: {each['message']}")
    for each in _objects_in(details.get("choices")):
        options = ", ".join(map(str, each["options"]))
        say(console, f"  {each['path']}: {each['question']} {options}")
    show_offers(console, _objects_in(details.get("corrections")))
    show_fix(console, details.get("knownFix"))


def show_offers(console: Console, offers: Sequence[Answer]) -> None:
    """Show corrections: what each would call the tool with, and how sure that is."""
    if not offers:
        return
    show(console, offers_table(offers))
    for each in offers:
        if len(offers) > 1:
            say(console, f"{each['correctionId']}:", "dim")
        for step in reasons(each["reasoning"]):
            say(console, f"  {step}", "dim")


def offers_table(offers: Sequence[Answer]) -> Any:
    """Return corrections as a table."""
    rows = table("CORRECTION", "SURE", "RISK", "ARGUMENTS")
    for each in offers:
        rows.add_row(
            printable(each["correctionId"]),
            share(each["confidence"]),
            each["riskLevel"],
            printable(_json(each["correctedParameters"])),
        )
    return rows


def show_fix(console: Console, fix: Any) -> None:
    """Show what the debugging memory knows to help."""
    if isinstance(fix, Mapping) and (steps := fix.get("steps")):
        lines = steps if isinstance(steps, list) else [steps]
        say(console, f"Known fix: {'; '.join(map(str, lines))}", "green")


def _show_tool(console: Console, tool: Answer) -> None:
    score = tool["relevanceScore"]
    insights = tool.get("validationInsights") or {}
    rate = insights.get("successRate")
    facts = [tool["category"], *([f"{rate:.0%} worked"] if rate is not None else ())]
    console.print(
        Text.assemble(
            (bar(min(score, 1.0)), "cyan"),
            f" {score:.2f}  ",
            (printable(tool["name"]), "bold"),
            ("  " + printable(" · ".join(facts)), "dim"),
        ),
        soft_wrap=True,
    )
    # One by one: several lines would be filled up with spaces to the longest.
    for line in (tool["description"], f"Why: {tool['reasoning']}", *_more(tool)):
        console.print(Padding(Text(printable(line)), _UNDER_NAME, expand=False))


def _more(tool: Answer) -> Iterator[str]:
    for example in (tool.get("parameterExamples") or ())[:1]:
        if not example["example"]:
            continue
        yield f"Arguments: {_json(example['example'])} ({example['description']})"
    for twin in tool.get("twins") or ():
        told = "; ".join(_differences(twin["difference"])) or "takes the same"
        yield f"Much like it: {twin['name']} ({told})"


def _parameters(tool: Answer) -> Iterator[str]:
    required = set(tool["required"])
    for name in tool["parameters"]:
        yield f"{name}*" if name in required else name


def _differences(difference: Answer) -> Iterator[str]:
    """Say what a tool has otherwise than another."""
    words = {"lacks": "lacks", "adds": "adds", "requires": "requires",
             "leavesOptional": "does not require", "words": "speaks of"}  # fmt: skip
    for name, value in difference.items():
        if name in words:
            yield f"{words[name]} {', '.join(map(str, value))}"
        elif name == "choices":
            yield from (f"other choices of {each}" for each in value)
        elif isinstance(value, Mapping):
            yield from (f"{each}: {_arrow(pair)}" for each, pair in value.items())


def _arrow(pair: Any) -> str:
    """Return what something was and what it is."""
    return " → ".join(map(_plain, pair)) if isinstance(pair, list) else _json(pair)


def _plain(value: Any) -> str:
    return "nothing" if value is None else value if isinstance(value, str) else _json(value)


def _source(source: Answer, missing: Sequence[str]) -> str:
    if source["from"] == "input":
        return "to be given" if source["name"] in missing else "given"
    if source["from"] == "step":
        return f"step {source['step']}: {source['path'] or 'its result'}"
    value = f" {_json(source['value'])}" if source["from"] == "default" else ""
    return f"{source['from']}{value}"


def _show_missing(console: Console, answer: Answer) -> None:
    if answer.get("fallbackMode"):
        away = [name for name, state in answer["serviceStatus"].items() if state == "unavailable"]
        say(console, f"Answered without: {', '.join(away)}.", "yellow")


def _objects_in(given: Any) -> Sequence[Answer]:
    return [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else ()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _figure(value: float | None, digits: int) -> str:
    return _NOTHING if value is None else f"{value:.{digits}f}"
