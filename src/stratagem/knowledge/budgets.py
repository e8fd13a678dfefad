"""Answers of knowledge, cut to what fits beside a conversation.

An answer that was cut says so, says how much was left out, and how to read the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from stratagem.answers import (
    add_note,
    chars_of,
    check_begin,
    fit_list,
    is_whole,
    piece_of,
    take_fitting,
)
from stratagem.deferred_tuples import NamedTuple

__all__ = [
    "fit_concept",
    "fit_hierarchy",
    "fit_path",
    "fit_prerequisites",
    "fit_results",
]

Answer = dict[str, Any]

# Room for what an answer says about having been cut.
_NOTE_CHARS: Final = 400
# However small the budget, of an explanation at least this much is shown.
_ROOM_MIN: Final = 100


def fit_results(answer: Answer, chars_max: int, begin: int, *, field: str) -> Answer:
    """Keep as many of a page as fit, which begins at some place; `total` counts what is kept."""
    fitted = fit_list(answer, chars_max, lambda kept: str(begin + kept), field=field)
    return fitted | {"total": len(fitted[field])}


def fit_prerequisites(answer: Answer, chars_max: int, begin: int) -> Answer:
    """Keep as many prerequisites as fit, and count those that are left out."""
    shown = len(answer["prerequisites"])
    fitted = fit_results(answer, chars_max, begin, field="prerequisites")
    cut = shown - fitted["total"]
    return fitted | {"left_out": answer.get("left_out", 0) + cut} if cut else fitted


def fit_path(answer: Answer, chars_max: int, begin: int) -> Answer:
    """Keep as many concepts of a learning path as fit, in their steps."""
    rest = [(step, each) for step in answer["steps"] for each in step["concepts"]][begin:]
    room = chars_max - chars_of(answer | {"steps": []}) - _NOTE_CHARS
    steps: list[Answer] = []
    kept = 0
    for step, concept in rest:
        opens = not steps or steps[-1]["step"] != step["step"]
        heading = step | {"concepts": []}
        size = chars_of(concept) + 1 + (chars_of(heading) if opens else 0)
        if kept and size > room and not is_whole():
            break
        if opens:
            steps.append(heading)
        steps[-1]["concepts"].append(concept)
        room -= size
        kept += 1
    left = len(rest) - kept
    fitted = answer | {"steps": steps}
    if not left:
        return fitted
    following = str(begin + kept)
    told = f"{left} more concepts were left out to stay within {chars_max} characters"
    fitted |= {"truncated": True, "next": following}
    return add_note(fitted, f"{told}; call again with cursor={following!r}.")


def fit_concept(answer: Answer, chars_max: int, begin: int) -> Answer:
    """Cut a long explanation, and keep as many of the earlier ones as there is room for."""
    concept = dict(answer["concept"])
    history = concept.pop("explanation_history", None)
    text = concept["explanation"]
    check_begin(begin, len(text), "explanation")
    around = answer | {"concept": concept | {"explanation": ""}}
    room = max(chars_max - chars_of(around) - _NOTE_CHARS, _ROOM_MIN)
    piece = piece_of(text, begin, room)
    cut = answer | {"concept": concept | {"explanation": piece}}
    end = begin + len(piece)
    if begin or end < len(text):
        cut = add_note(cut, f"Characters {begin} to {end} of {len(text)} of the explanation.")
    if end < len(text):
        cut = add_note(
            cut | {"truncated": True, "next": str(end)}, f"Go on with cursor={str(end)!r}."
        )
    return cut if history is None else _with_history(cut, history, room - chars_of(piece))


def _with_history(answer: Answer, history: list[Answer], room: int) -> Answer:
    """Add the explanations that a concept had: the newest that fit, oldest first."""
    shortened = [
        _shorten_explanation(each, max(room // 4, _ROOM_MIN)) for each in reversed(history)
    ]
    kept = list(reversed(take_fitting(shortened, room)))
    fitted = answer | {"concept": answer["concept"] | {"explanation_history": kept}}
    left = len(history) - len(kept)
    if left:
        fitted = add_note(fitted, f"{left} earlier explanations were left out.")
    if left or any("explanation_truncated" in each for each in kept):
        told = "Pass as_of with a timestamp to read the concept as it was then, or raise max_chars."
        fitted = add_note(fitted | {"truncated": True}, told)
    return fitted


def _shorten_explanation(revision: Answer, room: int) -> Answer:
    text = revision["explanation"]
    piece = piece_of(text, 0, room)
    if len(piece) == len(text):
        return revision
    return revision | {"explanation": f"{piece}…", "explanation_truncated": True}


class _Leaf(NamedTuple):
    """A subtopic, and the headings it stands under."""

    area: Answer
    topic: Answer
    subtopic: Answer


def fit_hierarchy(answer: Answer, chars_max: int, begin: int) -> Answer:
    """Keep as many subtopics as fit, each under its headings, which keep their whole counts."""
    leaves = list(_leaves(answer))[begin:]
    room = chars_max - chars_of(answer | {"areas": []}) - _NOTE_CHARS
    areas: list[Answer] = []
    kept = 0
    for leaf in leaves:
        size = sum(map(chars_of, _headings(areas, leaf))) + chars_of(leaf.subtopic) + 1
        if kept and size > room:
            break
        _grow(areas, leaf)
        room -= size
        kept += 1
    fitted = answer | {"areas": areas}
    left = len(leaves) - kept
    if not left:
        return fitted
    following = str(begin + kept)
    told = f"{left} more subtopics were left out to stay within {chars_max} characters"
    fitted |= {"truncated": True, "next": following}
    return add_note(fitted, f"{told}; call again with cursor={following!r}.")


def _leaves(answer: Answer) -> Iterator[_Leaf]:
    for area in answer["areas"]:
        for topic in area["topics"]:
            for subtopic in topic["subtopics"]:
                yield _Leaf(area | {"topics": []}, topic | {"subtopics": []}, subtopic)


def _headings(areas: list[Answer], leaf: _Leaf) -> Iterator[Answer]:
    """Return the headings that a subtopic needs and that are not there yet."""
    same_area = bool(areas) and areas[-1]["name"] == leaf.area["name"]
    if not same_area:
        yield leaf.area
    if not same_area or areas[-1]["topics"][-1]["name"] != leaf.topic["name"]:
        yield leaf.topic


def _grow(areas: list[Answer], leaf: _Leaf) -> None:
    """Add a subtopic, and the headings that are not there yet."""
    if not areas or areas[-1]["name"] != leaf.area["name"]:
        areas.append(leaf.area | {"topics": []})
    topics = areas[-1]["topics"]
    if not topics or topics[-1]["name"] != leaf.topic["name"]:
        topics.append(leaf.topic | {"subtopics": []})
    topics[-1]["subtopics"].append(leaf.subtopic)
