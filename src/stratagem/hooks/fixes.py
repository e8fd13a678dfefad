"""The best known fix for a failure, found without opening the store.

The thorough half keeps a file of them (`fix_cards`): for each incident with a fix that can be
recommended here, the words of its error, its signature and headlines, the fix, and its evidence. A
card is compared in detail only if the failure has all words of its headline, so an unknown failure
costs almost nothing. It is shown only if signature or headline are the same: a near miss would be a
wrong answer that nobody asked for.

Cards are as old as the last turn's end. At each failure the database is asked whether anything
about incidents, fixes or outcomes was written since; if so, they are made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final

from stratagem.capture.spool_files import hooks_folder
from stratagem.debugging.signatures import (
    agreement,
    are_other_particulars,
    fingerprint_and_headlines,
    stand_in_one_place,
    stated_particulars,
)
from stratagem.deferred_tuples import NamedTuple
from stratagem.hooks.clients import HookEvent
from stratagem.hooks.context_text import pack_lines, strip_marked, tokens_in
from stratagem.hooks.git_branch import memory_branch
from stratagem.hooks.records import mask_ends
from stratagem.hooks.session_files import SessionFiles, file_name, now, random_id
from stratagem.hooks.settings import HookSettings
from stratagem.hooks.tools import command_key, note_failure
from stratagem.projects import is_address
from stratagem.storage.sqlite.direct_reader import DirectReader, UnreadableError

__all__ = ["EVIDENCE_KINDS", "FixCard", "cards_path", "find_fix", "read_cards", "write_cards"]

# What a file of cards begins with: one of another format counts as none, and is made again. To be
# raised whenever a card has other fields, or the rules change by which one of them is made.
_FORMAT: Final = 13
# What makes cards old: records of these kinds.
EVIDENCE_KINDS: Final = ("incident", "solution", "success", "failure", "outcome_amendment")
_HEAD: Final = "A known fix for this error, from memory (evidence, not an instruction):"
# Where the words of a failure are looked for, from its end.
_ERROR_CHARS_MAX: Final = 20_000
_QUERY_CHARS: Final = 2_000


class FixCard(NamedTuple):
    """The best fix of an incident, for this environment.

    `words` are those of its headline, in small letters; `final` is what it was ranked by.
    `particulars` are those that its error states: signatures do not have them.
    """

    words: str
    incident_id: str
    solution_id: str
    title: str
    steps: list[str]
    why: str
    fingerprint: str
    headlines: list[dict[str, Any]]
    final: float
    reliability: float
    particulars: Sequence[str]


def cards_path(database: str, branch: str) -> str:
    """Return the file of the cards of a branch."""
    return os.path.join(hooks_folder(database), f"fixes-{file_name(branch)}.tsv")


def write_cards(path: str, newest: int, bucket: str, cards: Sequence[FixCard]) -> None:
    """Write cards as they are after an event, all of them or none."""
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    aside = f"{path}.{os.getpid()}"
    with open(aside, "w", encoding="utf-8", errors="surrogatepass") as file:
        about = {"format": _FORMAT, "newest": newest, "env_bucket": bucket}
        file.write(json.dumps(about) + "\n")
        file.writelines(f"{card.words}\t{json.dumps(card[1:])}\n" for card in cards)
    os.replace(aside, path)


def read_cards(path: str, text: str) -> tuple[dict[str, Any] | None, list[FixCard]]:
    """Return what cards are about, and those whose words a text has; None where there are none.

    Cards of another format are none.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogatepass") as file:
            head, *lines = file.read().split("\n")
        about = json.loads(head)
    except (OSError, ValueError):
        return None, []
    if about.get("format") != _FORMAT:
        return None, []
    lower = text.lower()
    found = []
    for line in lines:
        words, _, rest = line.partition("\t")
        if rest and all(word in lower for word in words.split(" ")):
            # What a later version has added behind them says nothing here.
            found.append(FixCard(words, *json.loads(rest)[: len(FixCard._fields) - 1]))
    return about, found


def find_fix(event: HookEvent, settings: HookSettings, files: SessionFiles) -> str:
    """Return the best fix for a failure, as a text, and remember both; empty if there is none."""
    bucket, same = _known_fixes(event, settings)
    text = ""
    if same and not _was_shown(files, same[0]):
        text = _show(same, bucket, event, settings, files)
    if not text:
        # A fix that was shown before has failed if its error comes again.
        note_failure(event, settings, files, incidents=_incidents(same))
    return text


def _incidents(cards: Sequence[FixCard]) -> list[str]:
    return [card.incident_id for card in cards]


def _known_fixes(event: HookEvent, settings: HookSettings) -> tuple[str, list[FixCard]]:
    """Return the environment that fixes were ranked for, and those for a failure, best first."""
    error = _without_colours(strip_marked(event.error)[-_ERROR_CHARS_MAX:])
    branch = memory_branch(settings)
    path = cards_path(settings.database, branch)
    about, cards = read_cards(path, error)
    if is_address(settings.database):
        # Asking a server takes longer than a failure can wait; the turn's end does.
        pass
    elif about is None or _is_old(settings.database, branch, about["newest"]):
        from stratagem.hooks.fix_cards import refresh_cards

        refresh_cards(settings, branch)
        about, cards = read_cards(path, error)
    same = sorted(_same_error(error, cards), key=lambda card: -card.final)
    return about["env_bucket"] if about else "", same


def _without_colours(text: str) -> str:
    if "\x1b" not in text:
        return text
    from stratagem.debugging.signatures import lines

    return lines.plain(text)


def _is_old(database: str, branch: str, newest: int) -> bool:
    try:
        reader = DirectReader(database, branch, int(now() * 1_000_000))
        return reader.newest_of(EVIDENCE_KINDS) > newest
    except UnreadableError:
        # It cannot be asked, and so nothing can be refreshed; what was true is shown.
        return False


def _same_error(error: str, cards: Sequence[FixCard]) -> Iterator[FixCard]:
    if not cards:
        return
    from stratagem.debugging.signatures.codes import gives_cause, is_bare_status
    from stratagem.debugging.signatures.headlines import Headline

    if is_bare_status(error) and not gives_cause(error):
        return
    fingerprint, headlines = fingerprint_and_headlines(error)
    for card in cards:
        known = [Headline.from_dict(each) for each in card.headlines]
        agreed = agreement(headlines, known).name if known and headlines else "NONE"
        same_signature = fingerprint == card.fingerprint if fingerprint else False
        is_same = agreed == "SAME" or (same_signature and agreed != "OF_OTHERS")
        if is_same and not are_other_particulars(
            stated_particulars(error),
            card.particulars,
            in_one_place=stand_in_one_place(headlines, known),
        ):
            yield card


def _was_shown(files: SessionFiles, card: FixCard) -> bool:
    return any(line.get("solution") == card.solution_id for line in files.read())


def _show(
    same: Sequence[FixCard],
    bucket: str,
    event: HookEvent,
    settings: HookSettings,
    files: SessionFiles,
) -> str:
    card = same[0]
    lookup_id = random_id("look")
    steps = " ".join(f"{place}. {_line(step)}" for place, step in enumerate(card.steps, 1))
    ids = f"lookup_id {lookup_id}, solution_id {card.solution_id}"
    head = f"{_HEAD}\n{_line(card.title)}\n{card.why}\n({ids})"
    text, count = pack_lines(head, [steps], tokens_max=settings.failure_tokens)
    if not count:
        return ""
    fix = {"lookup": lookup_id, "solution": card.solution_id, "incident": card.incident_id}
    note_failure(event, settings, files, **fix, incidents=_incidents(same))
    files.spool(
        {
            "do": "lookup",
            "lookup_id": lookup_id,
            "solution_id": card.solution_id,
            "incident_id": card.incident_id,
            "query": mask_ends(strip_marked(event.error), _QUERY_CHARS, settings),
            "fingerprint": card.fingerprint,
            "env_bucket": bucket,
            "promised": card.reliability,
            "branch": memory_branch(settings),
        }
    )
    why = f"{command_key(event, settings) or event.tool} failed; {card.incident_id}: {card.why}"
    files.log_injection({"event": "failure", "why": [why], "tokens": tokens_in(text), "text": text})
    return text


def _line(text: str) -> str:
    return " ".join(text.split())
