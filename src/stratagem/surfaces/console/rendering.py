"""From a page to a response: HTML by a template, or the same data as JSON.

Templates escape whatever they are given. The policy that goes with each page lets a browser run
and load nothing but the few files in `static`, so that even markup that slipped through would be
dead text.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Any, Final

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from stratagem.answers import plural
from stratagem.errors import BranchNotFound, RouteNotFound, StratagemError
from stratagem.knowledge.context import relation_words
from stratagem.surfaces.console import charts, value_views
from stratagem.surfaces.console.pages import ConsolePage, Done
from stratagem.surfaces.console.visits import Visit
from stratagem.surfaces.serving.responses import error_response, success_response
from stratagem.version import VERSION

__all__ = ["error_page", "html", "keep_note", "plain_page", "render", "static_file", "wants_json"]

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": _POLICY,
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "vary": "accept, authorization, cookie",
}
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_NOTE: Final = "stratagem_note"
_THEMES: Final = frozenset({"light", "dark"})
# In the order of the navigation: section, path, words, the key after `g`.
SECTIONS: Final = (
    ("overview", "/", "Overview", "o"),
    ("memory", "/memory", "Memory", "m"),
    ("sessions", "/sessions", "Sessions", "s"),
    ("branches", "/branches", "Branches", "b"),
    ("debugging", "/debugging", "Debug memory", "d"),
    ("knowledge", "/knowledge", "Knowledge", "k"),
    ("tools", "/tools", "Tools", "t"),
    ("review", "/review", "Review", "r"),
    ("system", "/system", "System", "y"),
)


def wants_json(request: Request) -> bool:
    """Whether a request asks for data rather than for a page."""
    accept = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or "text/html" not in accept


async def render(visit: Visit, page: ConsolePage) -> Response:
    """Return a page in the form that was asked for."""
    if wants_json(visit.request):
        return success_response({**page.data, "view": visit.state()}, enveloped=False)
    note = _taken_note(visit)
    bar = await _bar(visit)
    shown = {
        "bar": bar,
        "note": note,
        "title": page.title,
        "section": page.section,
        "present": page.present,
    }
    text = await asyncio.to_thread(
        _render_template, page.template, {**page.data, **_common(visit), **shown}
    )
    response = html(text, page.status)
    if note:
        response.delete_cookie(_NOTE)
    return response


def _render_template(name: str, data: Mapping[str, Any]) -> str:
    value_views.begin_page()
    return str(_template(name).render(data))


async def error_page(visit: Visit, error: StratagemError, status: int) -> Response:
    """Return an error as a page: what is wrong, and what to do next."""
    bar = await _bar(visit)
    hint = error.hint
    # Every link of the page would lead back to it.
    if isinstance(error, BranchNotFound):
        visit.settings.pop("branch", None)
        hint = hint if error.details.get("similar") else "Choose a branch above."
    if bar["moment"] is None:
        visit.settings.pop("at", None)
    data = {
        "code": error.code,
        "message": error.message,
        "hint": hint,
        "details": {name: value for name, value in error.details.items() if name != "reason"},
    }
    shown = {"bar": bar, "note": None, "title": "Not done", "section": "", "present": ""}
    text = _template("error.html").render({**data, **_common(visit), **shown})
    return html(text, status)


def plain_page(template: str, **data: Any) -> str:
    """Return a page that needs no visit: somebody who has not signed in."""
    return str(_template(template).render(**data, static=_static_address, version=VERSION))


def html(text: str, status: int = 200) -> Response:
    """Return a page with the headers that each of them has."""
    return Response(text, status, dict(_HEADERS), "text/html; charset=utf-8")


def keep_note(visit: Visit, response: Response, done: Done) -> Response:
    """Add what the next page says about what was done, and how it is undone."""
    content = [done.said[:1000], done.undo if _is_small(done.undo) else {}, done.undo_path]
    sealed = visit.console.authenticator.sessions.seal(content)
    response.set_cookie(_NOTE, sealed, max_age=60, httponly=True, samesite="strict")
    return response


def _is_small(undo: Mapping[str, Any]) -> bool:
    # A cookie holds four kilobytes, sealed.
    return len(orjson.dumps(undo)) < 2_000  # noqa: PLR2004 -- see above


def _taken_note(visit: Visit) -> dict[str, Any] | None:
    sealed = visit.request.cookies.get(_NOTE)
    match visit.console.authenticator.sessions.unseal(sealed):
        case [str(said), dict(undo), str(path)]:
            return {"said": said, "undo": undo, "path": path}
        case _:
            return None


def _common(visit: Visit) -> dict[str, Any]:
    """Return what every template may use."""
    theme = visit.request.cookies.get("stratagem_theme", "")
    return {
        "visit": visit,
        "url": visit.url,
        "here": visit.here,
        "can": visit.can,
        "sections": SECTIONS,
        "theme": theme if theme in _THEMES else "auto",
        "form_token": visit.console.authenticator.sessions.form_token(visit.cookie),
        "version": VERSION,
        "static": _static_address,
        "now": visit.now,
    }


async def _bar(visit: Visit) -> dict[str, Any]:
    """Return what the bar above each page shows: workspace, branch, moment and activity."""
    activity = await visit.read_counts("strata_activity", buckets=charts.ACTIVITY_BARS)
    branches = await visit.try_read("strata_branch", action="list")
    return {
        "activity": activity,
        "branches": [each["name"] for each in branches.get("results", [])],
        "workspaces": await _workspaces(visit),
        "moment": await _moment(visit),
    }


async def _moment(visit: Visit) -> dict[str, str | None] | None:
    """Return the past moment that is looked at, with what was written last by then; None is now."""
    if visit.moment is None:
        return None
    try:
        return {"words": visit.moment, "last": await visit.last_shown()}
    except StratagemError:
        # It is no moment, which the page says.
        return None


async def _workspaces(visit: Visit) -> list[str]:
    principal = visit.principal
    if principal is None:
        return [visit.workspace]
    if principal.identity.key != "operator":
        return sorted(principal.identity.rights)
    home = visit.console.authenticator.home
    found = await asyncio.to_thread(visit.console.database.workspaces)
    return [each or home for each in found]


async def static_file(request: Request) -> Response:
    """Return one of the few files that pages consist of besides themselves."""
    name = request.path_params["name"]
    known = _static()
    if name not in known:
        error = RouteNotFound(f"There is no file {name[:100]!r}.", hint="Begin at /.")
        return error_response(error, enveloped=False)
    content, tag = known[name]
    age = "public, max-age=31536000, immutable" if request.url.query == tag else "no-cache"
    headers = {**_HEADERS, "cache-control": age, "vary": "accept-encoding"}
    return Response(content, 200, headers, _TYPES[name.rpartition(".")[2]])


@cache
def _static() -> Mapping[str, tuple[bytes, str]]:
    """Return the static files by name, each with a mark that changes when it does."""
    found = {}
    for file in (resources.files(__package__) / "static").iterdir():
        if file.name.rpartition(".")[2] in _TYPES:
            content = file.read_bytes()
            found[file.name] = (content, hashlib.sha256(content).hexdigest()[:12])
    return found


def _static_address(name: str) -> str:
    return f"/static/{name}?{_static()[name][1]}"


@cache
def _template(name: str) -> Any:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("stratagem.surfaces.console"),
        autoescape=select_autoescape(default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "when": when,
        "ago": ago,
        "tojson_text": value_views.json_text,
        "brief": value_views.brief,
        "counted": plural,
        "number": lambda value: f"{value:,}",
        "percent": lambda value: f"{100 * value:.0f} %",
        "size": value_views.size_text,
    }
    environment.globals |= {
        "charts": charts,
        "json_tree": value_views.json_tree,
        "markdown": value_views.markdown,
        "mark_matches": value_views.mark_matches,
        "field_changes": value_views.field_changes,
        "record_changes": value_views.record_changes,
        "text_changes": value_views.text_changes,
        "relation_words": relation_words,
    }
    return environment


def when(moment: str | None) -> Markup:
    """Return a time as an element that scripts show in the reader's own time zone."""
    if not moment:
        return Markup("–")
    shown = moment[:16].replace("T", " ")
    return Markup('<time datetime="{}">{}</time>').format(moment, shown)


def ago(moment: str | None, now: str) -> Markup:
    """Return how long ago something was, with the time itself as its title."""
    if not moment:
        return Markup("–")
    seconds = (datetime.fromisoformat(now) - datetime.fromisoformat(moment)).total_seconds()
    words = value_views.duration_text(seconds)
    return Markup('<time datetime="{}" title="{}" data-ago>{}</time>').format(moment, moment, words)
