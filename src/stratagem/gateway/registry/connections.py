"""Named connections: where the standard tools may reach, as an administrator set it.

A connection has a name, a kind and settings. A caller uses the name and never sees the settings:
which database, which mail server, which folder. Secrets in settings are references such as
`${NAME}`; an administrator grants the name to the tool for the host. Connections hold for a whole
workspace, whatever branch a call is about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

import orjson

from stratagem.errors import ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.definitions.schemas import Schema
from stratagem.gateway.outbound.guard import check_url
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader

__all__ = ["KINDS", "Connection", "check_settings", "read_connections"]

_SECRET: Final = {
    "type": "string",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$",
    "description": "The name of a granted secret, as ${NAME}",
}
_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 1_000}
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65_535}
_HEADERS: Final = {
    "type": "object",
    "additionalProperties": {"type": "string", "maxLength": 2_000},
    "maxProperties": 30,
}


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


# The settings of each kind of connection, and below what they are for.
KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    # web_search, news_search, image_search; arxiv and openalex: academic_search.
    "search": _object(
        {
            "provider": {"enum": ["searxng", "brave", "arxiv", "openalex"]},
            "url": _TEXT,
            "apiKey": _SECRET,
        },
        "provider",
    ),
    # database_query.
    "database": _object(
        {
            "engine": {"enum": ["sqlite", "duckdb", "postgres"]},
            "path": _TEXT,
            "host": _TEXT,
            "port": _PORT,
            "database": _TEXT,
            "user": _TEXT,
            "password": _SECRET,
            "ssl": {"enum": ["disable", "prefer", "require", "verify-full"]},
            "writable": {"type": "boolean"},
        },
        "engine",
    ),
    # webhook_trigger.
    "webhook": _object(
        {
            "url": _TEXT,
            "secret": _SECRET,
            "headers": _HEADERS,
            "retries": {"type": "integer", "minimum": 0, "maximum": 5},
        },
        "url",
    ),
    # email_sender.
    "smtp": _object(
        {
            "host": _TEXT,
            "port": _PORT,
            "security": {"enum": ["starttls", "tls", "none"]},
            "username": _TEXT,
            "password": _SECRET,
            "from": _TEXT,
            "recipients": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 500},
        },
        "host",
        "from",
        "recipients",
    ),
    # api_caller.
    "api": _object({"url": _TEXT, "headers": _HEADERS, "query": _HEADERS}, "url"),
    # read_file and the other tools for files.
    "folder": _object({"path": _TEXT, "writable": {"type": "boolean"}}, "path"),
}

_CREDENTIAL: Final = re.compile(r"authorization|token|secret|password|api-?_?key", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


class Connection(TypedDict):
    """A named connection; its settings hold references to secrets, never secrets."""

    name: str
    kind: str
    settings: dict[str, Any]


def check_settings(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a connection, checked.

    Raises:
        ValidationFailed: One is unknown, missing or cannot be used; `field` begins with "settings".
    """
    schema = Schema(KINDS[kind], field="settings")
    for violation in schema.violations(dict(settings)):
        path = violation["path"].removeprefix("$").removeprefix(".")
        raise ValidationFailed(
            f"`settings{f'.{path}' if path else ''}` of a {kind}: {violation['message']}.",
            field=f"settings.{path}" if path else "settings",
            allowed=list(KINDS[kind]["properties"]),
        )
    _check_credentials(settings)
    _CHECKS[kind](settings)
    return dict(settings)


def read_connections(foundation: Foundation, reader: Reader) -> dict[str, Connection]:
    """Return the connections by name; on no branch but the default one can there be others."""
    view = foundation.views.view(reader, "default")
    found: dict[str, Connection] = {}
    after: str | None = ""
    while after is not None:
        page, after = reader.records.page(view.lineage, names.CONNECTIONS, after=after)
        found |= {
            name: orjson.loads(version.payload)
            for name, version in page
            if version.payload is not None
        }
    return found


def _check_credentials(settings: Mapping[str, Any]) -> None:
    """Refuse a secret that is written out in a header or a query: it would stay in the log."""
    for place in ("headers", "query"):
        for name, value in (settings.get(place) or {}).items():
            if _CREDENTIAL.search(name) and not _REFERENCE.search(value):
                raise ValidationFailed(
                    f"`settings.{place}.{name}` looks like a secret.",
                    field=f"settings.{place}.{name}",
                    hint="Write ${NAME} instead, and grant that name to the tool.",
                )


def _require_setting(settings: Mapping[str, Any], field: str, why: str) -> None:
    if not settings.get(field):
        raise ValidationFailed(f"`settings.{field}` is needed {why}.", field=f"settings.{field}")


def _check_search(settings: Mapping[str, Any]) -> None:
    provider = settings["provider"]
    if provider == "searxng":
        _require_setting(settings, "url", "for SearXNG: the address of your instance")
    if provider == "brave":
        _require_setting(settings, "apiKey", "for Brave: the name of the secret, as ${BRAVE_KEY}")
    if "url" in settings:
        check_url(settings["url"], field="settings.url")


def _check_database(settings: Mapping[str, Any]) -> None:
    if settings["engine"] == "postgres":
        _require_setting(settings, "host", "for PostgreSQL")
        _require_setting(settings, "database", "for PostgreSQL")
        return
    _require_setting(settings, "path", "for a database in a file")
    _check_path(settings)


def _check_path(settings: Mapping[str, Any]) -> None:
    if not Path(settings["path"]).is_absolute():
        raise ValidationFailed("`settings.path` is an absolute path.", field="settings.path")


def _check_url(settings: Mapping[str, Any]) -> None:
    check_url(settings["url"], field="settings.url")


def _check_mail(settings: Mapping[str, Any]) -> None:
    for at, each in enumerate(settings["recipients"]):
        if "@" not in each:
            raise ValidationFailed(
                f"`settings.recipients[{at}]` is an address, or *@ and a domain.",
                field=f"settings.recipients[{at}]",
            )


_CHECKS: Final = {
    "search": _check_search,
    "database": _check_database,
    "webhook": _check_url,
    "smtp": _check_mail,
    "api": _check_url,
    "folder": _check_path,
}
