"""Request bodies: the choice of a media type, and the encoding of arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

import orjson

from stratagem.errors import ValidationFailed
from stratagem.gateway.outbound.results import decode_base64, is_json
from stratagem.gateway.outbound.templates import text_of

__all__ = ["FORM", "MULTIPART", "choose_media_type", "encode_body"]

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_TEXT: Final = "text/plain"


def choose_media_type(content: Any) -> str | None:
    """Return the preferred one of the media types: JSON, then forms, then text, then the first."""
    if not isinstance(content, dict) or not content:
        return None
    offered: dict[str, str] = {kind.partition(";")[0].strip().lower(): kind for kind in content}
    for plain, kind in offered.items():
        if is_json(plain) or plain in {"*/*", "application/*"}:
            return kind
    return next(
        (offered[kind] for kind in (FORM, MULTIPART, _TEXT) if kind in offered),
        str(next(iter(content))),
    )


def encode_body(
    body: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[bytes | None, str | None]:
    """Return the body of a request and its media type, or (None, None) if there is no body.

    Raises:
        ValidationFailed: A binary argument is not base64.
    """
    kind = str(body["contentType"])
    if "argument" in body:
        if body["argument"] not in arguments:
            return None, None
        return _encode_whole(arguments[body["argument"]], kind, is_binary=bool(body.get("binary")))
    values = {
        field["name"]: arguments[field["argument"]]
        for field in body["fields"]
        if field["argument"] in arguments
    }
    if body.get("extra"):
        taken = set(body.get("taken", ())) | {field["argument"] for field in body["fields"]}
        values |= {name: value for name, value in arguments.items() if name not in taken}
    if not values and not body.get("required"):
        return None, None
    if kind == FORM:
        return urlencode(_form_pairs(values)).encode(), FORM
    if kind == MULTIPART:
        files = {field["name"] for field in body["fields"] if field.get("binary")}
        return _encode_multipart(values, files)
    return orjson.dumps(values), kind


def _encode_whole(value: Any, kind: str, *, is_binary: bool) -> tuple[bytes, str]:
    if is_binary:
        return _decode_bytes(value, "body"), kind
    if isinstance(value, str) and not is_json(kind):
        return value.encode(), kind
    if kind == FORM and isinstance(value, Mapping):
        return urlencode(_form_pairs(value)).encode(), kind
    return orjson.dumps(value), kind


def _form_pairs(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in values.items():
        if value is not None:
            pairs += [
                (name, text_of(each)) for each in (value if isinstance(value, list) else [value])
            ]
    return pairs


def _encode_multipart(values: Mapping[str, Any], files: set[str]) -> tuple[bytes, str]:
    parts = [
        _encode_part(name, each, is_file=name in files)
        for name, value in values.items()
        for each in (value if isinstance(value, list) else [value])
        if each is not None
    ]
    # A hash of the parts, so that it cannot be chosen to occur in them.
    boundary = hashlib.sha256(b"".join(parts)).hexdigest()[:32]
    lines = b"".join(b"--%s\r\n%s\r\n" % (boundary.encode(), part) for part in parts)
    return lines + b"--%s--\r\n" % boundary.encode(), f"{MULTIPART}; boundary={boundary}"


def _encode_part(name: str, value: Any, *, is_file: bool) -> bytes:
    # Escaped as browsers do, so that a name cannot end the line or the quotes.
    escaped = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = f'Content-Disposition: form-data; name="{escaped}"'
    if is_file:
        head += f'; filename="{escaped}"\r\nContent-Type: application/octet-stream'
        content = _decode_bytes(value, name)
    elif isinstance(value, Mapping | list):
        head += "\r\nContent-Type: application/json"
        content = orjson.dumps(value)
    else:
        content = text_of(value).encode()
    return head.encode() + b"\r\n\r\n" + content


def _decode_bytes(value: Any, name: str) -> bytes:
    data = decode_base64(value) if isinstance(value, str) else None
    if data is None:
        raise ValidationFailed(
            f"`{name}` is not base64.", field=name, hint="Send the bytes encoded as base64."
        )
    return data
