"""Changes as people read a diff: which branch made them, what it changed, and before → after.

An entry is named by its key, any other record by its kind and title. Of a value that is an object
only the places that differ are shown, of a text of several lines only the lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import paths
from stratagem.engine.values import same
from stratagem.surfaces.cli.entry_text import origin_facts
from stratagem.surfaces.cli.output import printable, shell_words
from stratagem.surfaces.cli.tables import (
    brief,
    miss_text,
    plural,
    show,
    show_events,
    show_range,
    when,
)

__all__ = ["show_conflicts", "show_diff", "show_history", "show_merge"]

Answer = Mapping[str, Any]

_SIGNS: Final = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow")}
# A change of a text of many lines is looked at with a pager; here it is recognised.
_LINES_SHOWN: Final = 40
# A list is compared item by item while the items are as many as before, and can be taken in.
_ITEMS_COMPARED: Final = 50
# At most 27 characters: a time as answers have it.
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
# Between 2001 and 2286, counted in microseconds: no other number of a record is as large.
_TIMES: Final = range(10**15, 10**16)


class _Nothing:
    """What stands where one version has nothing."""


NOTHING: Final = _Nothing()


class _Place(NamedTuple):
    """A place in which two versions differ; `by`: on which branches it was changed."""

    name: str
    before: Any
    after: Any
    by: str = ""


def show_diff(console: Console, answer: Answer) -> None:
    """Show what each of two branches changed since they were alike."""
    here, there = printable(answer["branch"]), printable(answer["compare"])
    if not (answer["results"] or answer["events"] or answer["ours_events"]):
        console.print(f"{there} and {here} show the same.", soft_wrap=True)
        return
    theirs = [f"{answer[name]} {name}" for name in _SIGNS if answer[name]]
    if answer["events"]:
        theirs.append(f"{plural(answer['events'], 'event')} logged")
    said = f"{there} against {here}: {', '.join(theirs) or 'nothing changed there'}"
    if answer["ours"]:
        said += f"; {here} changed {answer['ours']} since"
    if answer["ours_events"]:
        said += f"; {plural(answer['ours_events'], 'event')} only on {here}"
    if answer["both"]:
        said += f"; {answer['both']} changed on both"
    console.print(said, style="bold", soft_wrap=True)
    names = {"ours": f"on {here}", "theirs": f"on {there}", "both": "on both"}
    for side, title in (
        ("theirs", f"Changed on {there} only:"),
        ("ours", f"Changed on {here} only:"),
        ("both", f"Changed on both, {here} → {there}:"),
    ):
        changes = [each for each in answer["results"] if each["side"] == side]
        if changes:
            console.print(title, style="dim", soft_wrap=True)
            _show_changes(console, changes, names)


def show_merge(console: Console, answer: Answer) -> None:
    """Show what a merge did, or would do."""
    verb = "Would merge" if answer["preview"] else "Merged"
    entries, events = plural(answer["merged"], "change"), plural(answer["events"], "event")
    console.print(
        printable(
            f"{verb} {entries} and {events} from {answer['source']} into {answer['target']}."
        ),
        soft_wrap=True,
    )
    for notice in answer.get("notices") or ():
        console.print(printable(shell_words(notice)), style="yellow", soft_wrap=True)
    _show_changes(console, answer["results"])
    if answer["conflicts"]:
        console.print(f"{plural(len(answer['conflicts']), 'conflict')} to decide:")
        show_conflicts(console, answer)


def show_conflicts(console: Console, answer: Answer) -> None:
    """Show the sides of each conflict, and what decides for them."""
    target, source = answer["target"], answer["source"]
    for conflict in answer["conflicts"]:
        console.print(
            Text.assemble(
                ("! ", "bold red"),
                (f"{printable(conflict['title'])}  " if "title" in conflict else "", "bold"),
                (printable(conflict["id"]), "dim" if "title" in conflict else "bold"),
                (f"  at {printable(conflict['path'])}", "dim"),
            ),
            soft_wrap=True,
        )
        rows = _grid()
        rows.add_row("", "before", _value(conflict.get("base", NOTHING), ""), "")
        rows.add_row("", printable(target), _value(conflict.get("ours", NOTHING), ""), "=target")
        rows.add_row("", printable(source), _value(conflict.get("theirs", NOTHING), ""), "=source")
        show(console, rows)


def show_history(console: Console, answer: Answer) -> None:
    """Show what each version of an entry changed, newest first, or the time range of a branch."""
    if "results" not in answer:
        show_range(console, answer)
        return
    versions: Sequence[Answer] = answer["results"]
    is_key_asked = "event" not in versions[0] if versions else "key" in answer
    if not is_key_asked:
        show_events(console, answer)
        return
    if not versions:
        console.print(miss_text(answer, of_history=True), soft_wrap=True)
    for place, version in enumerate(versions):
        older = versions[place + 1] if place + 1 < len(versions) else None
        _show_version(console, version, older)


def _show_version(console: Console, version: Answer, older: Answer | None) -> None:
    by = f"  by {printable(version['actor'])}" if version.get("actor") else ""
    by += "".join(f"  {printable(each)}" for each in origin_facts(version))
    heading = Text.assemble(
        (f"@{version['version']}", "bold cyan"), f"  {when(version['timestamp'])}", (by, "dim")
    )
    if version["deleted"]:
        said = "erased" if version.get("erased") else "forgotten"
        console.print(heading + Text(f"  {said}", "red"), soft_wrap=True)
        return
    console.print(heading, soft_wrap=True)
    known = older is not None and not older["deleted"]
    if older is None or not known:
        _show_places(console, [_Place("", NOTHING, version["value"]), *_particulars({}, version)])
        return
    places = [*_value_places(older["value"], version["value"]), *_particulars(older, version)]
    if places:
        _show_places(console, places)
    else:
        console.print("    the same again", style="dim")


def _show_changes(
    console: Console, changes: Sequence[Answer], names: Mapping[str, str] | None = None
) -> None:
    """Show changes; `names` say on which branches a place was changed."""
    for change in changes:
        sign, style = _SIGNS[change["change"]]
        line = Text.assemble((f"{sign} ", style), _name(change, style))
        places = [_with_side(each, change, names or {}) for each in _places(change)]
        if change["change"] != "changed" and "kind" not in change:
            value = change.get("after" if change["change"] == "added" else "before")
            if _has_lines(value):
                sides = (NOTHING, value) if change["change"] == "added" else (value, NOTHING)
                places.insert(0, _Place("", *sides))
            else:
                # One value fits beside its key.
                line.append_text(Text("  ") + _value(value, ""))
        console.print(line, soft_wrap=not console.is_terminal, overflow="fold")
        _show_places(console, places)


def _name(change: Answer, style: str) -> Text:
    if "kind" in change:
        kind = change["kind"].replace("_", " ")
        title = change.get("title") or change["key"]
        return Text.assemble((f"{kind} ", "dim"), (printable(title), style))
    name = Text(printable(change["key"]), style)
    if change["namespace"] != "default":
        name.append(f"  in {printable(change['namespace'])}", "dim")
    return name


def _places(change: Answer) -> Iterator[_Place]:
    """Yield the places of a record that a change is about."""
    before, after = (change.get(side) for side in ("before", "after"))
    if "kind" in change:
        for name, old, new, _by in _value_places(before or {}, after or {}):
            yield _Place(name, _readable_time(old), _readable_time(new))
        return
    if change["change"] == "changed":
        yield from _value_places(before, after)
    if change["change"] != "changed":
        for side in ("expires_before", "expires_after"):
            if side in change:
                yield _Place("expires", NOTHING, _time(change[side]))
    elif "expires" in change.get("differs", ()):
        before, after = (_time(change.get(side)) for side in ("expires_before", "expires_after"))
        yield _Place("expires", before, after)
    if "tags_before" in change:
        yield _Place("tags", _tags(change["tags_before"]), _tags(change["tags_after"]))


def _with_side(place: _Place, change: Answer, names: Mapping[str, str]) -> _Place:
    """Return a place with the branches that changed it, where both changed the record."""
    changed = change.get("changed_by", {})
    outer = paths.enclosing_place(changed, place.name or "$")
    if "kind" in change:
        place = place._replace(name=place.name.removeprefix("$."))
    return place if outer is None else place._replace(by=names[changed[outer]])


def _readable_time(value: Any) -> Any:
    """Return a time of a record as people read it, and anything else as it is."""
    return Text(when(value)) if isinstance(value, str) and _MOMENT.fullmatch(value) else value


def _particulars(older: Answer, version: Answer) -> Iterator[_Place]:
    """Yield what two versions of an entry say differently beside its value."""
    before, after = (each.get("expires") for each in (older, version))
    if before != after:
        yield _Place("expires", _time(before) if older else NOTHING, _time(after))
    tags = [_tags(each.get("tags", [])) for each in (older, version)]
    if tags[0] != tags[1]:
        yield _Place("tags", tags[0] if older else NOTHING, tags[1])


def _value_places(before: Any, after: Any, steps: paths.Steps = ()) -> Iterator[_Place]:
    """Yield the places in which two values differ, the outermost of each."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before | after:
            old, new = (each.get(name, NOTHING) for each in (before, after))
            yield from _value_places(old, new, (*steps, name))
    elif _are_lists_alike(before, after):
        for place, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _value_places(old, new, (*steps, place))
    elif not same(before, after):
        yield _Place(paths.render(steps) if steps else "", before, after)


def _are_lists_alike(before: Any, after: Any) -> bool:
    lists = isinstance(before, list) and isinstance(after, list)
    return lists and len(before) == len(after) <= _ITEMS_COMPARED


def _show_places(console: Console, places: Sequence[_Place]) -> None:
    rows = _grid()
    if len(places) > 1:
        places = [each._replace(name=each.name or "value") for each in places]
    for place in places:
        if _is_shown_by_lines(place):
            _show_rows(console, rows)
            rows = _grid()
            _show_lines(console, place)
        elif place.name:
            rows.add_row("", printable(place.name), _transition(place), place.by)
        else:
            alone = Table.grid(padding=(0, 2, 0, 0))
            alone.add_column(width=2)
            alone.add_row("", _transition(place))
            show(console, alone)
    _show_rows(console, rows)


def _show_rows(console: Console, rows: Table) -> None:
    if rows.row_count:
        show(console, rows)


def _grid() -> Table:
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(width=2)
    rows.add_column(style="dim", overflow="fold")
    rows.add_column(overflow="fold")
    rows.add_column(style="dim", overflow="fold")
    return rows


def _transition(place: _Place) -> Text:
    if place.before is NOTHING:
        return _value(place.after, "green")
    if place.after is NOTHING:
        return (
            _value(place.before, "red")
            if not place.name
            else Text.assemble(_value(place.before, "red"), (" → ", "dim"), ("nothing", "dim"))
        )
    return Text.assemble(_value(place.before, "red"), (" → ", "dim"), _value(place.after, "green"))


def _value(value: Any, style: str) -> Text:
    if value is NOTHING:
        return Text("nothing", "dim")
    if isinstance(value, Text):
        return Text(value.plain, style)
    if isinstance(value, int) and not isinstance(value, bool) and value in _TIMES:
        return Text(when(datetime.fromtimestamp(value / 10**6, UTC).isoformat()), style)
    return Text(brief(value).plain, style)


def _time(expires: str | None) -> Text:
    return Text(when(expires) if expires else "never")


def _tags(tags: Sequence[str]) -> Text:
    return Text(printable(", ".join(tags)) or "none")


def _has_lines(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value


def _is_shown_by_lines(place: _Place) -> bool:
    """Whether two texts are compared line by line: one of them has lines, and nothing is none."""
    sides = (place.before, place.after)
    texts = all(side is NOTHING or isinstance(side, str) for side in sides)
    return texts and any(map(_has_lines, sides))


def _lines(side: Any) -> list[str]:
    return [] if side is NOTHING else side.splitlines()


def _show_lines(console: Console, place: _Place) -> None:
    """Show the lines in which two texts differ, with a line around them."""
    if place.name:
        console.print(f"    {printable(place.name)}  {place.by}".rstrip(), style="dim")
    lines = list(unified_diff(_lines(place.before), _lines(place.after), n=1, lineterm=""))[2:]
    if NOTHING in (place.before, place.after):
        # All of it is new, or gone: there is no place to tell.
        lines = lines[1:]
    for line in lines[:_LINES_SHOWN]:
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        console.print(Text(f"    {printable(line)}", style), soft_wrap=True)
    if len(lines) > _LINES_SHOWN:
        console.print(f"    … {len(lines) - _LINES_SHOWN} more lines", style="dim")
