"""Making the cards that failures are answered from: the best fix of each incident, for here."""

from __future__ import annotations

from stratagem.bootstrap import Runtime, Settings, start
from stratagem.debugging.automation import BestFix, list_best_fixes
from stratagem.debugging.signatures import stated_particulars
from stratagem.hooks.fixes import EVIDENCE_KINDS, FixCard, cards_path, read_cards, write_cards
from stratagem.hooks.session_files import now
from stratagem.hooks.settings import HookSettings
from stratagem.operation import Caller
from stratagem.projections.settings import ExternalSettings
from stratagem.projects import is_address
from stratagem.storage.sqlite.direct_reader import DirectReader, UnreadableError

__all__ = ["open_runtime", "refresh_cards", "update_cards"]


def open_runtime(settings: HookSettings, *, embeds: bool = False) -> Runtime:
    """Open the database of a project, without services outside of it.

    What is written gets its vector later, unless it `embeds`: reading the model takes longer than
    all the rest.
    """
    return start(
        Settings(
            settings.database,
            redaction=settings.level,
            embedder=None if embeds else "none",
            deliver=False,
            external=ExternalSettings(),
        )
    )


def refresh_cards(settings: HookSettings, branch: str) -> None:
    """Make the cards of a branch anew."""
    runtime = open_runtime(settings)
    try:
        update_cards(runtime, settings, branch)
    finally:
        runtime.close()


def update_cards(runtime: Runtime, settings: HookSettings, branch: str) -> None:
    """Make the cards of a branch anew where anything that they rest on was written since."""
    path = cards_path(settings.database, branch)
    # Before anything is read: what is written meanwhile makes the cards old.
    newest = _newest_evidence(runtime, settings.database, branch)
    if newest is None:
        return
    about, _ = read_cards(path, "")
    if about is not None and about["newest"] == newest:
        return
    live = runtime.foundation.store.reader().branches.by_name(branch)
    caller = Caller("hook", branch=branch if live else "default", can_switch=False)
    known = list_best_fixes(runtime.foundation, caller)
    write_cards(path, newest, known.env_bucket, [_card(each) for each in known.fixes])


def _newest_evidence(runtime: Runtime, database: str, branch: str) -> int | None:
    """Return the newest event that cards may rest on; None where the file cannot be asked."""
    if is_address(database):
        # There any event may be one: cards are made anew a little too often.
        return runtime.foundation.store.reader().log.head().sequence
    try:
        reader = DirectReader(database, branch, int(now() * 1_000_000))
        newest = reader.newest_of(EVIDENCE_KINDS)
        reader.close()
    except UnreadableError:
        return None
    return newest


def _card(known: BestFix) -> FixCard:
    incident, best = known.incident, known.solution
    first = incident["headlines"][0]
    words = [*first.get("names", ()), *first.get("words", ())]
    # A word is looked for in the failure's own spelling: what has a space or a tab is left out.
    usable = [word.lower() for word in words if word and not any(map(str.isspace, word))]
    return FixCard(
        " ".join(usable) or "\u0000",
        best.incident_id,
        best.solution_id,
        incident["title"],
        best.steps,
        best.why,
        incident.get("fingerprint") or "",
        list(incident["headlines"]),
        best.final_solution_score,
        best.reliability_score,
        sorted(stated_particulars(incident.get("error_signature") or "")),
    )
