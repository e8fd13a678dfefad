"""Events that a running server answers, so that no process is started for them.

The answers, and the files between events, are those of the command: a session may begin with one of
them and continue with the other. A server answers for its own database only. It reads the settings
of the folder that the agent works in, but nothing in them names another database, and it never
reads the person's own.
"""

from __future__ import annotations

import logging
import os

from stratagem.bootstrap import Runtime
from stratagem.hooks.clients import START, HookEvent, format_answer, parse_event
from stratagem.hooks.handlers import handle_event
from stratagem.hooks.settings import HookSettings, read_settings
from stratagem.projects import DATABASE_NAME, is_address

__all__ = ["answer_event"]

logger = logging.getLogger(__name__)


def answer_event(client: str, text: str, runtime: Runtime, *, knows_fixes: bool = True) -> str:
    """Return what answers a client's event, which may be its way to say nothing.

    Where it is not to know of fixes, failures are neither answered nor learned from.
    Whatever goes wrong is logged and answered with nothing: a hook never gets in the way.
    """
    event = parse_event(client, text)
    if event is None or not runtime.hooks_place:
        return format_answer(client, "", "")
    try:
        settings = _settings_for(event, runtime.hooks_place)
        if settings is not None and not knows_fixes:
            off = settings.off | {"failure"}
            settings = settings._replace(off=off, knows_fixes=False)
        context = "" if settings is None else handle_event(event, settings, runtime)
    except Exception:
        logger.exception("A hook was not answered")
        context = ""
    return format_answer(client, event.name, context)


def _settings_for(event: HookEvent, place: str) -> HookSettings | None:
    """Return what is in force for an event; None where it is not this server's to answer.

    A project with another memory is left to the command, and so is the start of a session: it may
    run git, which a server does not do in a folder that a request names.
    """
    if event.kind == START:
        return None
    settings = read_settings(event.folder or os.getcwd())
    own = os.path.join(settings.memory, DATABASE_NAME) if settings.memory else None
    if "all" in settings.off or (own is not None and not _is_same(own, place)):
        return None
    return settings._replace(database=place, personal=None)


def _is_same(database: str, place: str) -> bool:
    return not is_address(place) and os.path.realpath(database) == os.path.realpath(place)
