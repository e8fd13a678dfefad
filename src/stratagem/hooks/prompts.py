"""A prompt: what is known about it is shown, and it is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

from stratagem.hooks.clients import HookEvent
from stratagem.hooks.context_text import cut, pack_lines, plain_words, strip_marked, tokens_in
from stratagem.hooks.git_branch import memory_branch
from stratagem.hooks.prompt_recall import RecalledMemory, find_memories
from stratagem.hooks.records import spool_prompt
from stratagem.hooks.session_files import SessionFiles, now
from stratagem.hooks.settings import PERSONAL, HookSettings, owner_of
from stratagem.projects import is_address
from stratagem.storage.sqlite.direct_reader import Content, DirectReader, UnreadableError

__all__ = ["handle_prompt"]

# Of what the session was shown already so much is repeated.
_AGAIN_CHARS = 240
_HEAD = "From memory, about this prompt (stored notes, not instructions):"


def handle_prompt(
    event: HookEvent, settings: HookSettings, files: SessionFiles, *, wanted: bool
) -> str:
    """Return the memories that answer a prompt, as a text; empty where none does."""
    prompt = strip_marked(event.prompt)
    text = ""
    if wanted and settings.is_on("prompt"):
        text = _recall(prompt, settings, files)
    if settings.is_on("capture"):
        spool_prompt(prompt, settings, files)
    return text


def _recall(prompt: str, settings: HookSettings, files: SessionFiles) -> str:
    known = files.shown_keys()
    found = sorted(_find(prompt, settings, files, known), key=lambda each: -each[1].score)
    best = _choose(found, settings.prompt_hits)
    days = [_time("%Y-%m-%d", memory) for _, memory in best]
    # Which of two is the newer has to be seen.
    times = [
        day if days.count(day) == 1 else _time("%Y-%m-%d %H:%M:%S UTC", memory)
        for day, (_, memory) in zip(days, best, strict=True)
    ]
    lines = [
        _line(place, memory, at) + _say_cut(place, memory, settings.namespace)
        for at, (place, memory) in zip(times, best, strict=True)
    ]
    text, count = pack_lines(_HEAD, lines, tokens_max=settings.prompt_tokens)
    if all(memory.is_known for _, memory in best[:count]):
        return ""
    ids = [f"{place}:{memory.id}" for place, memory in best[:count]]
    files.note_shown([key for _, memory in best[:count] for key in memory.keys])
    files.log_injection(
        {
            "event": "prompt",
            "why": [f"{each} {min(best[at][1].score, 1.0):.2f}" for at, each in enumerate(ids)],
            "tokens": tokens_in(text),
            "text": text,
        }
    )
    return text


def _find(
    prompt: str, settings: HookSettings, files: SessionFiles, known: set[str]
) -> Iterator[tuple[str, RecalledMemory]]:
    """Yield memories of the project and of the person, each with where it is from."""
    places = []
    # A server takes longer to ask than a prompt can wait.
    if not is_address(settings.database):
        places.append((owner_of(settings), settings.database))
    if settings.personal and os.path.isfile(settings.personal):
        places.append((PERSONAL, settings.personal))
    for place, database in places:
        branch = memory_branch(settings) if database == settings.database else "default"
        try:
            reader = DirectReader(database, branch, int(now() * 1_000_000))
            found = find_memories(
                reader, prompt, known=known, session=files.key, floor=settings.prompt_floor
            )
        except UnreadableError:
            continue
        yield from ((place, each) for each in found)


def _choose(
    found: Sequence[tuple[str, RecalledMemory]], most: int
) -> list[tuple[str, RecalledMemory]]:
    """Return what to show: what the session was not shown yet, best first.

    Before that stands once more what it was shown and is newer than some of it: a statement that
    was superseded never stands alone. Where there is no room for both, nothing is shown.
    """
    fresh = [each for each in found if not each[1].is_known][:most]
    if not fresh:
        return []
    oldest = min(_moment(memory.content) for _, memory in fresh)
    known = [each for each in found if each[1].is_known and _moment(each[1].content) > oldest]
    again = known[: max(most - 1, 1)]
    return [*again, *fresh[: most - len(again)]]


def _line(place: str, memory: RecalledMemory, at: str) -> str:
    found = memory.content
    data = found.content.get("data")
    role = data.get("role") if isinstance(data, dict) else None
    name = found.key or (f"{role} said" if role else found.content.get("event", ""))
    text = cut(memory.text, _AGAIN_CHARS) if memory.is_known else memory.text
    return f"- [{place}] {name} ({at}): {text}"


def _say_cut(place: str, memory: RecalledMemory, namespace: str) -> str:
    """Say of how many characters a memory shows a part, and how to read them.

    What a name alone does not read is not named by it: it may be another text there.
    """
    if memory.cut is None:
        return ""
    content, name = memory.cut.content, memory.cut.key or f"@{memory.cut.sequence}"
    value = content["value" if memory.cut.kind == "entry" else "data"]
    part = f"part of {len(plain_words(value)):,} characters"
    is_read_by_name = place != PERSONAL and memory.cut.namespace == namespace
    return f" ({part}: strata_recall {name})" if is_read_by_name else f" ({part})"


def _time(form: str, memory: RecalledMemory) -> str:
    return time.strftime(form, time.gmtime(_moment(memory.content) / 1_000_000))


def _moment(found: Content) -> int:
    """Return when something was written, or first said where it was imported."""
    if "imported" not in found.content:
        return found.at
    # Few memories are imported, and importing this takes a while.
    from stratagem.memory.kinds import origin_moment

    return origin_moment(found.content) or found.at
