"""Answers as people read them: lines and tables, without boxes, so that they can be copied.

Keys, names and ids are never cut: on a narrow terminal they fold. Values are shown in one line,
as far as there is room; `recall` shows all of one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from stratagem.answers import plural
from stratagem.memory.answer_text import part_of, say_exchange
from stratagem.surfaces.cli.entry_text import entry_facts, origin_facts, printable_value
from stratagem.surfaces.cli.output import printable, shell_words, when, with_own_times

__all__ = [
    "bar",
    "branches_table",
    "brief",
    "miss_text",
    "plural",
    "show",
    "show_branches",
    "show_deleted_namespace",
    "show_entries",
    "show_entry",
    "show_event",
    "show_events",
    "show_fields",
    "show_hits",
    "show_import",
    "show_list",
    "show_namespaces",
    "show_range",
    "show_skipped",
    "show_status",
    "show_tags",
    "table",
    "value_text",
    "when",
]

Answer = Mapping[str, Any]

_VALUE_CHARS: Final = 160
_BAR_CHARS: Final = 8
_UNDER_NAME: Final = (0, 0, 0, _BAR_CHARS + 7)
_MARKED: Final = re.compile(r"\*\*(.+?)\*\*")


def table(*columns: str) -> Table:
    """Return an empty table."""
    made = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold")
    return made


def show(console: Console, rows: Table) -> None:
    """Print a table; into a file or a pipe without the spaces that fill it up."""
    kept = 0
    for column in rows.columns:
        # What cannot be cut keeps its width, and values give way, unless it is very long itself.
        longest = max((cell_len(str(cell)) for cell in column.cells), default=0)
        cuttable = any(isinstance(cell, Text) and cell.no_wrap for cell in column.cells)
        column.no_wrap = not cuttable and longest <= console.width // 2
        kept += _width(column) if column.no_wrap else 0
    while kept > console.width:
        # Better folded than cut, the longest first: an id that is cut is of no use.
        widest = max((each for each in rows.columns if each.no_wrap), key=_width)
        widest.no_wrap = False
        kept -= _width(widest)
    if console.is_terminal:
        console.print(rows)
        return
    with console.capture() as printed:
        console.print(rows)
    lines = [line.rstrip() for line in printed.get().splitlines()]
    console.file.write("\n".join(lines) + "\n")


def _width(column: Column) -> int:
    return max(cell_len(str(cell)) for cell in (column.header, *column.cells)) + 2


def show_entry(console: Console, answer: Answer) -> None:
    """Show one entry: what is known about it, then its value, whole."""
    if not answer["found"]:
        console.print(miss_text(answer), soft_wrap=True)
        return
    title = Text.assemble((printable(answer["key"]), "bold"), (f"  {entry_facts(answer)}", "dim"))
    console.print(title, soft_wrap=True)
    console.print(value_text(answer["value"]), soft_wrap=True)


def show_entries(console: Console, answer: Answer) -> None:
    """Show several entries, a line each."""
    rows = table("KEY", "VERSION", "WHEN", "VALUE")
    for entry in answer["results"]:
        rows.add_row(
            printable(entry["key"]),
            str(entry["version"]),
            when(entry["timestamp"]),
            brief(entry["value"]),
        )
    if answer["results"]:
        show(console, rows)
    from stratagem.memory.listing_operations import say_misses

    for line in say_misses(answer):
        console.print(printable(with_own_times(shell_words(line))), soft_wrap=True)


def miss_text(answer: Answer, *, of_history: bool = False) -> str:
    """Return why nothing was found, as somebody at a terminal reads it."""
    from stratagem.memory.listing_operations import HISTORY_WORDS, say_miss

    words = HISTORY_WORDS if of_history else None
    return printable(with_own_times(shell_words(say_miss(answer, words))))


def show_list(console: Console, answer: Answer) -> None:
    """Show entries, a line each."""
    expiring = any("expires" in entry for entry in answer["results"])
    owned = any(entry.get("owner") == "personal" for entry in answer["results"])
    more = [*(["EXPIRES"] if expiring else ()), *(["MEMORY"] if owned else ())]
    rows = table("KEY", "WHEN", "VALUE", "TAGS", *more)
    for entry in answer["results"]:
        expires = when(entry["expires"]) if "expires" in entry else ""
        rows.add_row(
            printable(entry["key"]),
            when(entry["timestamp"]),
            brief(entry["value"]),
            printable(", ".join(entry["tags"])),
            *([expires] if expiring else ()),
            *([entry.get("owner", "")] if owned else ()),
        )
    if answer["results"]:
        show(console, rows)
    else:
        from stratagem.memory.listing_operations import say_empty_list

        console.print(printable(say_empty_list(answer)), soft_wrap=True)


def show_events(console: Console, answer: Answer) -> None:
    """Show logged events, a line each."""
    imported = any("occurred" in event for event in answer["results"])
    rows = table(
        "SEQUENCE", "WHEN", "EVENT", "DATA", "SESSION", *(["OCCURRED"] if imported else ())
    )
    for event in answer["results"]:
        at = when(event["occurred"]) if "occurred" in event else ""
        rows.add_row(*_event_cells(event), *([at] if imported else ()))
    if answer["results"]:
        show(console, rows)
    else:
        from stratagem.memory.listing_operations import say_no_events

        console.print(printable(say_no_events(answer)), soft_wrap=True)


def show_event(console: Console, event: Answer) -> None:
    """Show one event in a line, as it comes."""
    sequence, at, label, data, session = _event_cells(event)
    line = Text.assemble((f"{sequence}  {at}  ", "dim"), (label, "bold"), "  ", str(data))
    if session:
        line.append(f"  ({session})", "dim")
    if event.get("occurred"):
        line.append(f"  occurred {when(event['occurred'])}", "dim")
    console.print(line, soft_wrap=True)


def _event_cells(event: Answer) -> tuple[str, str, str, Text, str]:
    return (
        str(event["sequence"]),
        when(event["timestamp"]),
        printable(event["event"]),
        brief(event["data"]),
        printable(event.get("session", "")),
    )


def show_namespaces(console: Console, answer: Answer) -> None:
    """Show the namespaces, the current one marked."""
    rows = table("", "NAMESPACE", "ENTRIES", "EVENTS", "LAST WRITTEN")
    for each in answer["results"]:
        current = each["name"] == answer["current"]
        rows.add_row(
            "*" if current else " ",
            Text(printable(each["name"]), "bold green" if current else ""),
            f"{each['entries']:,}",
            f"{each['events']:,}",
            when(each["latest"]),
        )
    if answer["results"]:
        show(console, rows)
    else:
        console.print("Nothing is stored yet.")


def show_deleted_namespace(console: Console, answer: Answer) -> None:
    """Say what was forgotten, and how it comes back."""
    from stratagem.memory.listing_operations import say_deleted

    console.print(printable(shell_words(say_deleted(answer))), soft_wrap=True)


def show_tags(console: Console, answer: Answer) -> None:
    """Show the tags in use."""
    rows = table("TAG", "USED")
    for each in answer["results"]:
        rows.add_row(printable(each["tag"]), f"{each['count']:,}")
    if answer["results"]:
        show(console, rows)
    else:
        console.print("Nothing has a tag.")


def show_hits(console: Console, answer: Answer) -> None:
    """Show what a search found: how well it fits, what it is, and why it was found."""
    for hit in answer["results"]:
        title = hit.get("name") or hit.get("key") or f"{hit['event']} @{hit['sequence']}"
        console.print(
            Text.assemble(
                (bar(hit["score"]), "cyan"),
                f" {hit['score']:.2f}  ",
                (printable(title), "bold"),
                ("  " + printable(" · ".join(_hit_facts(hit))), "dim"),
            ),
            soft_wrap=True,
        )
        console.print(Padding(_snippet(console, hit["snippet"]), _UNDER_NAME, expand=False))
        for line in say_exchange(hit):
            shown = _snippet(console, line)
            shown.stylize("dim")
            console.print(Padding(shown, _UNDER_NAME, expand=False))
    if not answer["results"]:
        # The note of the answer says why.
        more = "more " if answer.get("ended_at") else ""
        console.print(f"Nothing {more}was found.")
    elif answer["mode"] == "lexical":
        console.print("Found by words only, not by meaning.", style="dim")


def _hit_facts(hit: Answer) -> list[str]:
    """Return what is known about a hit: where it is, when it was written, and of how much."""
    facts = [hit["kind"], when(hit["timestamp"])]
    if hit["namespace"] != "default":
        facts.insert(1, hit["namespace"])
    if "name" in hit:
        # What reads the record is given its id.
        facts.insert(1, hit["key"])
    if hit.get("occurred"):
        facts.append(f"occurred {when(hit['occurred'])}")
    if hit.get("session"):
        facts.append(f"session {hit['session']}")
    if hit["tags"]:
        facts.append(f"tags: {', '.join(hit['tags'])}")
    if hit.get("chars"):
        facts.append(part_of(hit))
    if hit.get("lowered"):
        facts.append(hit["lowered"])
    return [*facts, *origin_facts(hit)]


def show_fields(console: Console, answer: Answer) -> None:
    """Show named figures, a line each."""
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(style="dim")
    rows.add_column(overflow="fold")
    for name, value in answer.items():
        if name == "note" or value == []:
            # The note of an answer is said below it.
            continue
        shown = ", ".join(map(_line, value)) if isinstance(value, list) else _line(_plain(value))
        rows.add_row(name.replace("_", " "), printable(shown))
    show(console, rows)


def show_status(console: Console, answer: Answer) -> None:
    """Show figures of the database, and below them what users want from now on."""
    parts = {"instructions", "instructions_more"}
    show_fields(console, {name: value for name, value in answer.items() if name not in parts})
    wanted = answer.get("instructions", ())
    if not wanted:
        return
    console.print("\nStanding instructions and preferences, newest first:", style="dim")
    for each in wanted:
        whose = f" · {each['owner']} memory" if "owner" in each else ""
        told = f"  {when(each['timestamp'])}{whose}"
        text = Text.assemble(printable(each["text"]), (told, "dim"))
        console.print(Text("- ") + text, soft_wrap=True)
    if answer.get("instructions_more"):
        console.print("There are older ones; `stratagem search` finds them by their words.")


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


def branches_table(branches: Sequence[Answer]) -> Table:
    """Return branches, the current one marked."""
    rows = table("", "BRANCH", "FORKED FROM", "AT", "CREATED")
    for branch in branches:
        current = branch["current"]
        rows.add_row(
            "*" if current else " ",
            Text(printable(branch["name"]), "bold green" if current else ""),
            printable(branch.get("parent", "")),
            f"@{branch['forked_at']}" if "forked_at" in branch else "",
            when(branch["created"]),
        )
    return rows


def show_branches(console: Console, answer: Answer) -> None:
    """Show all branches."""
    show(console, branches_table(answer["results"]))


def brief(value: Any) -> Text:
    """Return a value in one line, of which a table shows as much as there is room for."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = printable(" ".join(text[: 2 * _VALUE_CHARS].split()))
    cut = line if len(line) <= _VALUE_CHARS else line[: _VALUE_CHARS - 1] + "…"
    return Text(cut, no_wrap=True, overflow="ellipsis")


def value_text(value: Any) -> Text:
    """Return a value whole: text as it is, anything else as indented JSON."""
    text = Text(printable_value(value))
    if not isinstance(value, str):
        JSONHighlighter().highlight(text)
    return text


def show_import(console: Console, answer: Answer, counted: Iterable[tuple[str, str, str]]) -> None:
    """Show what an import did; of each count its field, what it counts, and what follows that."""
    verb = "Would import" if answer["preview"] else "Imported"
    parts = [f"{plural(answer[name], noun)}{more}" for name, noun, more in counted if answer[name]]
    what = ", ".join(parts) or "nothing"
    place = answer["branch"]
    if namespace := answer.get("namespace"):
        place += f", namespace {namespace!r}"
    console.print(
        f"{verb} {answer['file']} ({answer['format']}) into {place}: {what}.", soft_wrap=True
    )
    show_skipped(console, answer)


def show_skipped(console: Console, answer: Answer) -> None:
    """Say which files of a folder were left out of an import, and why."""
    for each in answer["skipped"]:
        line = f"Left out {each['file']}: {each['reason']}."
        console.print(printable(line), style="yellow", soft_wrap=True)


def show_range(console: Console, answer: Answer) -> None:
    """Show the time range of a branch."""
    branch = printable(answer["branch"])
    if "oldest" not in answer:
        console.print(f"The branch {branch} shows nothing yet.")
        return
    console.print(
        f"The branch {branch} can be seen from {when(answer['oldest'])} "
        f"(@{answer['oldest_sequence']}) to {when(answer['latest'])} "
        f"(@{answer['latest_sequence']}).",
        soft_wrap=True,
    )


def bar(score: float) -> str:
    """Return a score from 0 to 1 as a bar."""
    full = round(score * _BAR_CHARS)
    return "█" * full + "░" * (_BAR_CHARS - full)


def _snippet(console: Console, snippet: str) -> Text:
    """Return a snippet, its marks as colours where there are colours and else as they are."""
    if console.color_system is None:
        return Text(printable(snippet))
    text = Text()
    for place, part in enumerate(_MARKED.split(printable(snippet))):
        text.append(part, "bold yellow" if place % 2 else "")
    return text


def _plain(value: Any) -> Any:
    return {True: "yes", False: "no"}.get(value, value) if isinstance(value, bool) else value
