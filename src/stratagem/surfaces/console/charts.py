"""Pictures in SVG, drawn by the server: activity, beliefs, bars, lines, graphs.

Colours are classes of the style sheet, so that a picture is as light or dark as its page. Each
has a title for whoever cannot see it. Positions are attributes: no style is written inline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

__all__ = [
    "ACTIVITY_BARS",
    "activity",
    "belief",
    "branch_graph",
    "columns",
    "concept_graph",
    "share",
    "trend",
]

ACTIVITY_BARS: Final = 120
# The column of a single day is not as wide as the page.
_COLUMNS_MIN: Final = 14
_ROW: Final = 34
_LEFT: Final = 16
_BELIEF_POINTS: Final = 48
_MARGIN: Final = 24
_NAME_CHARS: Final = 26
# A thousand of them stay within a page.
_EXPLANATION_CHARS: Final = 60


def _svg(
    width: float,
    height: float,
    kind: str,
    title: str,
    parts: Iterable[Markup],
    *,
    stretch: bool = False,
) -> Markup:
    ratio = Markup(' preserveAspectRatio="none"') if stretch else Markup("")
    return Markup(
        '<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}"{}>{}</svg>'
    ).format(kind, _n(width), _n(height), title, ratio, Markup("").join(parts))


def _n(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _rect(x: float, y: float, width: float, height: float, kind: str, *, title: str = "") -> Markup:
    told = Markup("<title>{}</title>").format(title) if title else Markup("")
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}">{}</rect>').format(
        kind, _n(x), _n(y), _n(width), _n(height), told
    )


def _path(points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> Markup:
    line = " L".join(f"{_n(x)} {_n(y)}" for x, y in points)
    return Markup('<path class="{}" d="M{}{}"/>').format(kind, line, "Z" if closed else "")


def _text(x: float, y: float, words: str, kind: str, anchor: str = "start") -> Markup:
    return Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
        kind, _n(x), _n(y), anchor, words
    )


def activity(buckets: Sequence[Mapping[str, Any]]) -> Markup:
    """Return how much was written when, as bars below the slider."""
    most = max((each["events"] for each in buckets), default=0) or 1
    bars = []
    for place, each in enumerate(buckets):
        if each["events"]:
            # Square roots, so that the peak of an import does not hide ordinary days.
            height = max(28 * math.sqrt(each["events"] / most), 1.5)
            bars.append(_rect(place, 30 - height, 0.8, height, "column"))
    total = sum(each["events"] for each in buckets)
    return _svg(len(buckets) or 1, 30, "activity", f"{total} events over time", bars, stretch=True)


def columns(
    rows: Sequence[Mapping[str, Any]], value: str, kind: str = "column", *, scale: str | None = None
) -> Markup:
    """Return a column for each row by one of its numbers; `label` says what it is.

    The highest column is the greatest number of `scale`, which is the value itself by default.
    """
    most = max((each[scale or value] for each in rows), default=0) or 1
    places = max(len(rows), _COLUMNS_MIN)
    bars = [
        _rect(
            place * 10 + 1,
            60 - 56 * each[value] / most,
            8,
            max(56 * each[value] / most, 0.5 if each[value] else 0),
            kind,
            title=f"{each['label']}: {each[value]:,}",
        )
        for place, each in enumerate(rows, places - len(rows))
    ]
    highest = max((each[value] for each in rows), default=0)
    title = f"{value}: {sum(each[value] for each in rows):,} in all, at most {highest:,}"
    return _svg(10 * places, 60, "columns", title, bars, stretch=True)


def share(good: float, bad: float) -> Markup:
    """Return how much spoke for and against something, as one bar in two colours."""
    total = good + bad
    width = 100 * good / total if total else 0
    parts = [_rect(0, 0, 100, 8, "empty"), _rect(0, 0, width, 8, "good")]
    if bad:
        parts.append(_rect(width, 0, 100 - width, 8, "bad"))
    return _svg(100, 8, "share", f"{good:g} for, {bad:g} against", parts, stretch=True)


def belief(alpha: float, beta: float, mean: float | None = None) -> Markup:
    """Return how likely something is to work, as the curve of a beta distribution.

    Narrow is sure, wide is unsure; the line stands at the mean.
    """
    points = [(place + 0.5) / _BELIEF_POINTS for place in range(_BELIEF_POINTS)]
    scale = math.lgamma(alpha + beta) - math.lgamma(alpha) - math.lgamma(beta)
    logs = [scale + (alpha - 1) * math.log(x) + (beta - 1) * math.log(1 - x) for x in points]
    heights = [math.exp(min(each, 50)) for each in logs]
    most = max(heights) or 1
    curve = [(100 * x, 38 - 34 * height / most) for x, height in zip(points, heights, strict=True)]
    middle = 100 * (alpha / (alpha + beta) if mean is None else mean)
    parts = [
        _path([(0, 38), *curve, (100, 38)], "area", closed=True),
        _path(curve, "line"),
        _rect(middle - 0.5, 2, 1, 36, "mean"),
    ]
    return _svg(100, 40, "belief", f"likely to work: {middle:.0f} %", parts, stretch=True)


def trend(values: Sequence[float], words: str = "trend") -> Markup:
    """Return a small line, oldest first; values from 0 to 1."""
    if len(values) < 2:  # noqa: PLR2004 -- no line
        return Markup("")
    step = 100 / (len(values) - 1)
    points = [(place * step, 22 - 20 * each) for place, each in enumerate(values)]
    said = f"{words}: from {values[0]:.0%} to {values[-1]:.0%}"
    return _svg(100, 24, "trend", said, [_path(points, "line")], stretch=True)


def branch_graph(
    branches: Sequence[Mapping[str, Any]], merges: Sequence[Mapping[str, Any]], head: int
) -> Markup:
    """Return the branches as lanes from the beginning of the log to now, with forks and merges."""
    rows = {each["name"]: place for place, each in enumerate(branches)}
    width, height = 720, _ROW * len(branches) + 14
    label = max((len(each["name"]) for each in branches), default=4) * 7.2 + 24

    def x(sequence: float) -> float:
        return label + (width - label - _LEFT) * sequence / max(head, 1)

    def y(name: str) -> float:
        return 20.0 + _ROW * rows[name]

    parts: list[Markup] = []
    for each in branches:
        parts += _lane(each, x, y, head, rows)
    for merge in merges:
        if merge["source"] in rows and merge["target"] in rows:
            at = x(merge["sequence"])
            up, down = y(merge["source"]), y(merge["target"])
            parts.append(_path([(max(at - 14, label), up), (at, down)], "merge"))
            parts.append(
                _dot(at, down, "merge-dot", f"{merge['source']} merged at @{merge['sequence']}")
            )
    title = f"{len(branches)} branches, {len(merges)} merges"
    return _svg(width, height, "branch-graph", title, parts)


def _lane(
    branch: Mapping[str, Any], x: Any, y: Any, head: int, rows: Mapping[str, int]
) -> list[Markup]:
    name, parent = branch["name"], branch.get("parent")
    start = branch.get("forked_at") or 0
    kind = "lane gone" if branch.get("deleted") else "lane current" if branch["current"] else "lane"
    parts = [_text(8, y(name) + 4, name, "lane-name")]
    if parent in rows:
        at = x(start)
        parts.append(_path([(at, y(parent)), (min(at + 14, x(head)), y(name))], "fork"))
        parts.append(_dot(at, y(parent), "fork-dot", f"{name} forked at @{start}"))
        parts.append(_path([(min(at + 14, x(head)), y(name)), (x(head), y(name))], kind))
    else:
        parts.append(_path([(x(start), y(name)), (x(head), y(name))], kind))
    if not branch.get("deleted"):
        parts.append(_dot(x(head), y(name), "head-dot", f"{name}, now"))
    return parts


def _dot(x: float, y: float, kind: str, title: str) -> Markup:
    return Markup('<circle class="{}" cx="{}" cy="{}" r="4"><title>{}</title></circle>').format(
        kind, _n(x), _n(y), title
    )


def concept_graph(
    graph: Mapping[str, Any],
    colour: str,
    on_path: Sequence[str],
    url: Callable[..., str],
) -> Markup:
    """Return concepts at their places, each a link to its page, with lines to what builds on it."""
    at = {each["id"]: (each["x"], each["y"]) for each in graph["concepts"]}
    steps = set(pairwise(on_path))
    parts = [
        _edge(at[each["source"]], at[each["target"]], _edge_kind(each, steps))
        for each in graph["links"]
        if each["source"] in at and each["target"] in at
    ]
    kinds = {True: "area", False: "band"}
    for each in graph["concepts"]:
        trait = each["area"] if colour == "area" else each["certainty_band"]
        kind = f"{kinds[colour == 'area']}-{trait}"
        chosen = each["id"] in on_path or each["id"] == graph.get("root")
        address = url("/knowledge/concept", id=each["id"])
        parts.append(_concept(each, address, f"node {kind}{' chosen' if chosen else ''}"))
    width, height = graph["width"] + 2 * _MARGIN, graph["height"] + 2 * _MARGIN
    title = f"{len(graph['concepts'])} concepts, {len(graph['links'])} relationships"
    return Markup(
        '<svg class="chart concept-graph" viewBox="{} {} {} {}" role="group" aria-label="{}" '
        "data-graph>{}</svg>"
    ).format(-_MARGIN, -_MARGIN, _n(width), _n(height), title, Markup("").join(parts))


def _concept(concept: Mapping[str, Any], address: str, kind: str) -> Markup:
    x, y = concept["x"], concept["y"]
    sure = f"{concept['certainty']:.0f} of 100 sure"
    said = f"{concept['name']}: {concept['explanation'][:_EXPLANATION_CHARS]} ({sure})"
    return Markup(
        '<a href="{}" class="{}"><title>{}</title>'
        '<circle cx="{}" cy="{}" r="6"/><text x="{}" y="{}">{}</text></a>'
    ).format(
        address,
        kind,
        said,
        _n(x),
        _n(y),
        _n(x + 10),
        _n(y + 4),
        _short(concept["name"]),
    )


def _short(name: str) -> str:
    return name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"


def _edge_kind(link: Mapping[str, Any], steps: set[tuple[str, str]]) -> str:
    ends = (link["source"], link["target"])
    if ends in steps or ends[::-1] in steps:
        return "edge chosen"
    return "edge needs" if link["type"].upper() == "PREREQUISITE" else "edge"


def _edge(start: tuple[float, float], end: tuple[float, float], kind: str) -> Markup:
    (x, y), (to_x, to_y) = start, end
    bend = (to_x - x) / 2
    return Markup('<path class="{}" d="M{} {}C{} {} {} {} {} {}"/>').format(
        kind, _n(x), _n(y), _n(x + bend), _n(y), _n(to_x - bend), _n(to_y), _n(to_x), _n(to_y)
    )
