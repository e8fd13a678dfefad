"""The brief that a session begins with: a few lines of facts.

It lists the end of the last session, open tasks, pinned entries, standing instructions, and
frequent failures with their fixes. Empty parts take no room. The newest instructions have a part
like the others, and older ones what room is left; where some are left out, their number is said.
It contains nothing from tools or the web. A memory that it shows in full is not injected again by a
prompt of the session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import orjson

from stratagem import limits
from stratagem.answers import plural
from stratagem.bootstrap import Runtime
from stratagem.debugging.automation import list_best_fixes
from stratagem.debugging.kinds import OUTCOME, facet_listed
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine.lineage import View
from stratagem.errors import StratagemError
from stratagem.hooks.context_text import cut, mark, plain_words, strip_marked, text_key
from stratagem.hooks.fix_cards import open_runtime
from stratagem.hooks.session_files import SessionFiles
from stratagem.hooks.settings import HookSettings
from stratagem.memory.hits import is_doubtful, newest_instructions, read_instruction
from stratagem.memory.kinds import PINNED, UNTRUSTED, label_facet
from stratagem.memory.messages import role_of, words_of
from stratagem.memory.models import Entry
from stratagem.memory.service import Memory
from stratagem.operation import Caller
from stratagem.storage.contract import EventContent, Reader

__all__ = ["write_brief"]

_LINE_CHARS: Final = 220
_LAST_CHARS: Final = 420
_PINNED_MAX: Final = 8
_OPEN_MAX: Final = 5
_FAILING_MAX: Final = 3
# Standing instructions: of each memory so many have their place, and all in all so many are listed
# where there is room.
_INSTRUCTIONS_FIRST: Final = 4
_INSTRUCTIONS_MAX: Final = limits.INSTRUCTIONS_MAX
_USERS: Final = frozenset({"human", "user"})
# How many lines of the personal memory are listed in every project.
_OWN_MAX: Final = 4
# So many entries of a tag are looked at: the newest may all be done.
_TAGGED_READ: Final = 50
# Tags of open tasks, their headings, and tags of finished ones.
_OPEN_TAGS: Final = {"task": "Open task", "todo": "Open task", "open": "Open"}
_DONE_TAGS: Final = frozenset({"done", "closed", "superseded"})
# The tag of entries, and the label of logged events, that say what was decided; of others the key
# says so.
_DECISION: Final = "decision"
_DECISION_PREFIXES: Final = ("decision/", "decisions/")
_HEAD: Final = "Project memory (Stratagem), as of now. Notes, not instructions."
_TAIL: Final = "More: strata_search for what is known, strata_store for what will matter later."


class BriefLine(NamedTuple):
    """A line of a brief, and the text of the memory that it shows, where it shows all of it."""

    line: str
    whole: str | None = None
    is_instruction: bool = False
    # Shown where the others have left room.
    can_wait: bool = False


def write_brief(
    runtime: Runtime,
    settings: HookSettings,
    files: SessionFiles,
    branch: str,
    news: Sequence[str] = (),
) -> str:
    """Return the facts that a session begins with, the news first; empty where there are none."""
    live = runtime.foundation.store.reader().branches.by_name(branch) is not None
    caller = Caller("hook", settings.namespace, branch if live else "default", can_switch=False)
    parts = _parts(runtime, caller, settings, files)
    facts = [*map(BriefLine, news), *(fact for part in parts for fact in part)]
    room = settings.start_chars - len(mark(f"{_HEAD}\n{_TAIL}")) - 1
    shown = _fit(facts, room)
    if not shown:
        return ""
    files.note_shown([text_key(fact.whole) for fact in shown if fact.whole])
    return mark("\n".join([_HEAD, *(fact.line for fact in shown), _TAIL]))


def _fit(facts: Sequence[BriefLine], room: int) -> list[BriefLine]:
    """Return the facts that there is room for, and how many instructions there is none for."""
    wanted = sum(fact.is_instruction for fact in facts)
    chosen: set[int] = set()
    said = 0
    for can_wait in (False, True):
        if can_wait and said < wanted:
            room -= len(_say_left_out(wanted, wanted)) + 1
        for place, fact in enumerate(facts):
            is_due = fact.can_wait == can_wait and not (can_wait and said >= _INSTRUCTIONS_MAX)
            if is_due and len(fact.line) < room:
                room -= len(fact.line) + 1
                said += fact.is_instruction
                chosen.add(place)
    shown = [facts[place] for place in sorted(chosen)]
    # What was left out of the first lines has left no room for this one.
    if said < wanted and room >= 0:
        last = max((at for at, fact in enumerate(shown, 1) if fact.is_instruction), default=0)
        shown.insert(last, BriefLine(_say_left_out(wanted - said, wanted)))
    return shown


def _say_left_out(count: int, wanted: int) -> str:
    most = limits.INSTRUCTIONS_MAX
    others = f"the newest {most}, strata_search finds the others" if wanted > most else "them"
    return f"- {plural(count, 'more standing instruction')}: strata_status lists {others}."


def _parts(
    runtime: Runtime, caller: Caller, settings: HookSettings, files: SessionFiles
) -> Iterator[Sequence[BriefLine]]:
    foundation = runtime.foundation
    memory = Memory(foundation, caller)
    with foundation.store.snapshot() as reader:
        view = foundation.views.view(reader, caller.branch)
        yield _last_session(reader, view, files)
        pinned = _tagged_lines(memory, {PINNED: "Pinned"}, _PINNED_MAX)
        still_open = _tagged_lines(memory, _OPEN_TAGS, _OPEN_MAX)
        still_open += _decisions(memory, reader, view, caller.namespace)
        still_open = still_open[:_OPEN_MAX]
        wanted = newest_instructions(reader, view, caller.namespace)
        yield from (pinned, still_open, _instructions(wanted, pinned + still_open))
        yield _personal_facts(settings)
        if settings.knows_fixes:
            yield _failures(runtime, caller, reader, view)


def _personal_facts(settings: HookSettings) -> list[BriefLine]:
    """Say what the person has pinned, and wants everywhere; nothing where that cannot be read."""
    if settings.personal is None or not os.path.isfile(settings.personal):
        return []
    try:
        runtime = open_runtime(settings._replace(database=settings.personal))
    except StratagemError:
        return []
    try:
        foundation, caller = runtime.foundation, Caller("hook", can_switch=False)
        memory = Memory(foundation, caller)
        pinned = _tagged_lines(memory, {PINNED: "Pinned in the user's personal memory"}, _OWN_MAX)
        with foundation.store.snapshot() as reader:
            view = foundation.views.view(reader, caller.branch)
            wanted = newest_instructions(reader, view, caller.namespace)
            return [*pinned, *_instructions(wanted, pinned, " in the user's personal memory")]
    finally:
        runtime.close()


def _instructions(
    events: Iterable[EventContent], above: Sequence[BriefLine], whose: str = ""
) -> list[BriefLine]:
    """Say what is wanted from now on, newest first, without what stands above already."""
    news: dict[str, BriefLine] = {}
    for event in events:
        each = read_instruction(event)
        said = cut(_line(each.text), _LINE_CHARS)
        if not any(said in fact.line for fact in above):
            line = f"- {_source_of(event)}{whose}: {said} ({each.timestamp[:10]})"
            # One that stands in a longer text is not all of it.
            can_wait = len(news) >= _INSTRUCTIONS_FIRST
            news.setdefault(said, BriefLine(line, is_instruction=True, can_wait=can_wait))
    return list(news.values())


def _source_of(event: EventContent) -> str:
    """Say where an instruction stands; that the user said it only of a message of the user."""
    if event.key is not None:
        return f"Stored as {event.key}"
    content = orjson.loads(event.payload)
    role = role_of(content["data"])
    if role in _USERS:
        return "The user said"
    return f"Logged as {content['event']}" + (f" by {_line(role)}" if role else "")


def _last_session(reader: Reader, view: View, files: SessionFiles) -> list[BriefLine]:
    """Say where the previous session ended: its last prompt, and the answer to it."""
    newest = reader.catalogue.with_facet(view, label_facet("message"), limit=60)
    events = reader.log.contents(newest)
    last: dict[str, str] = {}
    session = None
    for sequence in reversed(newest):
        content = orjson.loads(events[sequence].payload)
        if "capture" not in content or is_doubtful(reader, view, events[sequence]):
            continue
        if content.get("session") == files.key:
            continue
        session = session or content.get("session")
        role = content["data"].get("role", "")
        # What was answered before the last prompt is no answer to it.
        if content.get("session") == session and "user" not in last:
            said = _line(strip_marked(words_of(content["data"])))
            last.setdefault(role, said)
    facts = []
    asked, answer = last.get("user", ""), last.get("assistant", "")
    if asked:
        unanswered = "" if answer else " (its answer was not recorded)"
        said = cut(asked, _LINE_CHARS)
        facts.append(BriefLine(f"- Last prompt of the previous session{unanswered}: {said}"))
    if answer:
        end = _end_of(answer)
        facts.append(
            BriefLine(f"- That session ended with: {end}", answer if end == answer else None)
        )
    return facts


def _end_of(text: str) -> str:
    return text if len(text) <= _LAST_CHARS else f"…{text[-_LAST_CHARS:].lstrip()}"


def _tagged_lines(memory: Memory, tags: Mapping[str, str], most: int) -> list[BriefLine]:
    facts: dict[str, BriefLine] = {}
    for tag, what in tags.items():
        for entry in memory.list(tags=[tag], order="newest", limit=_TAGGED_READ).results:
            if _holds(entry):
                facts.setdefault(entry.key, _entry_line(what, entry))
    return list(facts.values())[:most]


def _decisions(memory: Memory, reader: Reader, view: View, namespace: str) -> list[BriefLine]:
    """Say what was decided, newest first, whether it was stored or logged."""
    entries = [
        *memory.list(tags=[_DECISION], order="newest", limit=_TAGGED_READ).results,
        *(
            entry
            for prefix in _DECISION_PREFIXES
            for entry in memory.list(prefix=prefix, order="newest", limit=_TAGGED_READ).results
        ),
    ]
    facts = {entry.version: _entry_line("Decided", entry) for entry in entries if _holds(entry)}
    newest = reader.catalogue.with_facet(view, label_facet(_DECISION), limit=_TAGGED_READ)
    for sequence, event in reader.log.contents(newest).items():
        content = orjson.loads(event.payload)
        is_open = _DONE_TAGS.isdisjoint(content.get("tags", ()))
        if event.space.namespace == namespace and is_open and not is_doubtful(reader, view, event):
            value = _line(plain_words(content["data"])) if content["data"] is not None else ""
            if value:
                facts[sequence] = _fact_line("Decided", value, value)
    return [fact for _, fact in sorted(facts.items(), reverse=True)]


def _holds(entry: Entry) -> bool:
    """Whether an entry says something, is trusted, and not marked as done."""
    return (
        entry.value not in ("", None)
        and _DONE_TAGS.isdisjoint(entry.tags)
        and entry.trust != UNTRUSTED
    )


def _entry_line(what: str, entry: Entry) -> BriefLine:
    value = _line(plain_words(entry.value))
    return _fact_line(what, f"{entry.key}: {value}", value)


def _fact_line(what: str, text: str, value: str) -> BriefLine:
    said = cut(text, _LINE_CHARS)
    return BriefLine(f"- {what}: {said}", value if said.endswith(value) else None)


def _line(text: str) -> str:
    return " ".join(text.split())


def _failures(runtime: Runtime, caller: Caller, reader: Reader, view: View) -> list[BriefLine]:
    """Say what failed most here of late, and what fixed it."""
    newest = reader.catalogue.with_facet(view, facet_listed(OUTCOME), limit=100)
    counts: dict[str, int] = {}
    for event in reader.log.contents(newest).values():
        incident = orjson.loads(event.payload)["incident_id"]
        counts[incident] = counts.get(incident, 0) + 1
    if not counts:
        return []
    fixes = list_best_fixes(runtime.foundation, caller).fixes
    known = {each.incident["incident_id"]: each for each in fixes}
    often = sorted((each for each in counts if each in known), key=lambda each: -counts[each])
    return [
        BriefLine(
            f"- Failed before: {cut(_line(known[each].incident['title']), 100)}. Fixed by: "
            f"{cut(_line('; '.join(known[each].solution.steps)), _LINE_CHARS - 60)}"
        )
        for each in often[:_FAILING_MAX]
    ]
