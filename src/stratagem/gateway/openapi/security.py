"""The credentials of an operation, as templates that contain the names of secrets."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from stratagem.deferred_dataclasses import dataclass
from stratagem.gateway.openapi.document import Document

__all__ = ["Credentials", "credentials_for"]


@dataclass(frozen=True, slots=True)
class Credentials:
    """Headers, query parameters and cookies with credentials; `secrets` describes each secret."""

    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def credentials_for(document: Document, operation: dict[str, Any], prefix: str) -> Credentials:
    """Return the credentials of an operation: the first supported one of its requirements.

    An operation that can be called without credentials gets none.
    """
    required = operation.get("security", document.content.get("security"))
    requirements = (
        [requirement for requirement in required if isinstance(requirement, dict)]
        if isinstance(required, list)
        else []
    )
    if not requirements or {} in requirements:
        return Credentials()
    read = [_read_requirement(document, requirement, prefix) for requirement in requirements]
    return next((each for each in read if not each.unknown), read[0])


def _read_requirement(document: Document, requirement: dict[str, Any], prefix: str) -> Credentials:
    found = Credentials()
    unknown: list[str] = []
    for name in requirement:
        scheme, _ = document.follow(_schemes(document).get(name))
        secret = re.sub(r"[^A-Z0-9_]+", "_", f"{prefix}{name}".upper()).strip("_") or "SECRET"
        secret = f"_{secret}" if secret[0].isdecimal() else secret
        if not isinstance(scheme, dict) or not _add_scheme(scheme, secret, found):
            unknown.append(name)
    return Credentials(found.headers, found.query, found.cookies, found.secrets, tuple(unknown))


def _schemes(document: Document) -> dict[str, Any]:
    components = document.content.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, dict) else None
    return schemes if isinstance(schemes, dict) else {}


def _add_scheme(scheme: dict[str, Any], secret: str, found: Credentials) -> bool:
    """Add the credentials of one security scheme; tell whether the scheme is supported."""
    reference = f"${{{secret}}}"
    kind, place = scheme.get("type"), scheme.get("in")
    if kind == "apiKey" and isinstance(scheme.get("name"), str):
        places = {"header": found.headers, "query": found.query, "cookie": found.cookies}
        if place not in places:
            return False
        places[place][scheme["name"]] = reference
        found.secrets[secret] = f"the API key that goes into the {place} {scheme['name']}"
        return True
    if kind == "http" and str(scheme.get("scheme")).lower() == "basic":
        found.headers["Authorization"] = f"Basic {reference}"
        found.secrets[secret] = "user:password, encoded as base64"
        return True
    if kind in {"oauth2", "openIdConnect"} or (
        kind == "http" and str(scheme.get("scheme")).lower() == "bearer"
    ):
        found.headers["Authorization"] = f"Bearer {reference}"
        found.secrets[secret] = "a bearer token"
        return True
    return False
