"""Under which names the prompts, resources and templates of upstream servers are served.

They keep their names and addresses. Where two servers have the same, or the registry has a prompt
of that name, each is served with its server before it: `files_summary`,
`stratagem://servers/files/demo://note`. That form is understood for any of them, so that what a
client has noted stays right when another server comes or goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ResourceNotFound, ValidationFailed
from stratagem.function_cache import cache_texts

if TYPE_CHECKING:
    from mcp.shared.uri_template import UriTemplate

__all__ = [
    "SERVER_PREFIX",
    "ServedPrimitive",
    "locate_prompt",
    "locate_resource",
    "prefixed_uri",
    "serve",
]

SERVER_PREFIX: Final = "stratagem://servers/"
_OWN_SCHEME: Final = "stratagem:"


@dataclass(frozen=True, slots=True)
class ServedPrimitive:
    """A prompt, resource or template of a server, and the name or address it is served under."""

    server: str
    served: str
    prefixed: str
    own: str
    primitive: Mapping[str, Any]


def serve(
    identifier: str,
    by_server: Mapping[str, Sequence[Mapping[str, Any]]],
    taken: Collection[str] = (),
) -> list[ServedPrimitive]:
    """Return what the servers list, each under its own name or one that nothing else has."""
    counts = Counter(each[identifier] for listed in by_server.values() for each in listed)
    found = []
    for server, listed in sorted(by_server.items()):
        for each in listed:
            own = each[identifier]
            prefixed = f"{server}_{own}" if identifier == "name" else prefixed_uri(server, own)
            clashes = counts[own] > 1 or own in taken or own.startswith(_OWN_SCHEME)
            found.append(ServedPrimitive(server, prefixed if clashes else own, prefixed, own, each))
    return found


def prefixed_uri(server: str, uri: str) -> str:
    """Return the address of a resource that names its server."""
    return f"{SERVER_PREFIX}{server}/{uri}"


def locate_prompt(name: str, prompts: Iterable[ServedPrimitive]) -> ServedPrimitive:
    """Return the prompt of a name.

    Raises:
        ResourceNotFound: No server has one of that name.
    """
    known = list(prompts)
    for attribute in ("served", "prefixed"):
        for each in known:
            if getattr(each, attribute) == name:
                return each
    raise ResourceNotFound(
        f"No upstream server has a prompt {name!r}.",
        field="name",
        hint="List the prompts; one that two servers have is named with its server before it.",
        prompts=sorted(each.served for each in known)[:20],
    )


def locate_resource(
    uri: str,
    resources: Sequence[ServedPrimitive],
    templates: Sequence[ServedPrimitive],
    servers: Collection[str],
) -> tuple[str, str]:
    """Return the server that has a resource, and its address there.

    An address that no server lists belongs to the one whose template it fits, or else to the only
    one that has addresses of its scheme: a tool may answer with a link to what is in no list.

    Raises:
        ResourceNotFound: No server has it.
        ValidationFailed: Several may have it.
    """
    if uri.startswith(SERVER_PREFIX):
        server, slash, own = uri.removeprefix(SERVER_PREFIX).partition("/")
        if server in servers and slash and own:
            return server, own
    for candidates in (
        {each.server for each in resources if each.own == uri},
        {each.server for each in templates if _fits(each.own, uri)},
        {each.server for each in (*resources, *templates) if _scheme(each.own) == _scheme(uri)},
    ):
        if len(candidates) == 1:
            return candidates.pop(), uri
        if candidates:
            ways = [prefixed_uri(each, uri) for each in sorted(candidates)]
            raise ValidationFailed(
                f"Several servers have {uri!r}.", field="uri", hint=f"Read {' or '.join(ways)}."
            )
    raise ResourceNotFound(
        f"No upstream server has a resource {uri!r}.",
        field="uri",
        hint="List the resources and templates, or name the server.",
        uri=uri,
    )


def _fits(template: str, uri: str) -> bool:
    is_short = len(template) <= limits.UPSTREAM_TEMPLATE_PARSED_CHARS
    parsed = _parsed_template(template) if is_short else _parse_template(template)
    return parsed is not None and parsed.match(uri) is not None


def _parse_template(template: str) -> UriTemplate | None:
    # Whoever has such a template has the SDK loaded; commands that have none are spared it.
    from mcp.shared.uri_template import UriTemplate

    try:
        return UriTemplate.parse(template)
    except ValueError:
        return None


# A read of a resource that no server lists asks for all templates.
_parsed_template = cache_texts(limits.UPSTREAM_TEMPLATES_PARSED)(_parse_template)


def _scheme(uri: str) -> str:
    try:
        return urlsplit(uri.partition("{")[0]).scheme
    except ValueError:
        return ""
