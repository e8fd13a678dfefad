"""Changing the key by which secrets and credentials are encrypted, while servers go on using them.

The new key is put before the old one, so that both can be read. Then everything is encrypted with
the new one, a record at a time, and the old ciphertexts are erased from the log. Last, if
requested, the old key is dropped. An interruption leaves everything readable, and the next run
continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from stratagem.engine import moments
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import DEFAULT_BRANCH, OPEN_END
from stratagem.gateway import names
from stratagem.gateway.registry.credentials import place_of_credentials
from stratagem.gateway.registry.encryption import SecretCipher
from stratagem.gateway.registry.secret_values import place_of_secret
from stratagem.gateway.registry.sign_ins import place_of_client
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction, Version, WriteRequest

__all__ = ["encrypt_anew", "is_current"]

# What its ciphertext is bound to, by the key of the record, and the event that writes one.
_KINDS: Final[dict[Space, tuple[Callable[[str], str], str]]] = {
    names.SECRETS: (place_of_secret, names.SECRET_SET),
    names.CREDENTIALS: (place_of_credentials, names.CREDENTIAL_SET),
    names.OAUTH_CLIENTS: (place_of_client, names.OAUTH_CLIENT_KEPT),
}
_PAGE: Final = 1000
_WHY: Final = "encrypted with a new key"


def is_current(foundation: Foundation, key: str) -> bool:
    """Whether all that is encrypted in a workspace was encrypted with a key."""
    return not _find_old(foundation, key)


def encrypt_anew(foundation: Foundation, cipher: SecretCipher, caller: Caller) -> int:
    """Encrypt everything of a workspace with the first key; return how much was not before.

    Raises:
        SecretUnavailable: Something was encrypted with a key that is not there.
    """
    current = cipher.key_ids()[0]
    count = 0
    # A server may not know of the new key until it meets it: what it wrote meanwhile is left.
    while found := _find_old(foundation, current):
        for space, key in found:
            count += _replace(foundation, cipher, caller, space, key)
    _erase_old(foundation, caller, current)
    return count


def _find_old(foundation: Foundation, current: str) -> list[tuple[Space, str]]:
    with foundation.store.snapshot() as reader:
        return [
            (space, key)
            for space in _KINDS
            for key, content in _every(reader, foundation, space)
            if content["encrypted"]["key"] != current
        ]


def _every(
    reader: Reader, foundation: Foundation, space: Space
) -> Iterator[tuple[str, dict[str, Any]]]:
    lineage = foundation.views.view(reader, DEFAULT_BRANCH).lineage
    after: str | None = ""
    while after is not None:
        page, after = reader.records.page(lineage, space, after=after)
        for key, version in page:
            if version.payload is not None:
                yield key, orjson.loads(version.payload)


def _replace(
    foundation: Foundation, cipher: SecretCipher, caller: Caller, space: Space, key: str
) -> int:
    """Encrypt one record anew, if it is still there; return whether it was."""
    place_of, event = _KINDS[space]

    def work(transaction: Transaction) -> int:
        view = foundation.views.view(transaction, DEFAULT_BRANCH)
        version = transaction.records.current(view.lineage, space, key)
        if version is None or version.payload is None:
            return 0
        content = _with_origin(version)
        earlier = content["encrypted"]
        opened = cipher.decrypt(earlier, place_of(key))
        content["encrypted"] = cipher.encrypt(opened, place_of(key), [earlier["key"]])
        transaction.append(view.branch, [Draft(event, content, space, key)])
        return 1

    return foundation.write(caller, work)


def _with_origin(version: Version) -> dict[str, Any]:
    """Return what is kept in a record, with when and by whom it was set, and why it is written."""
    assert version.payload is not None
    content: dict[str, Any] = orjson.loads(version.payload)
    content.setdefault("setAt", moments.iso(version.at))
    content.setdefault("setBy", version.actor)
    content["reason"] = _WHY
    return content


def _erase_old(foundation: Foundation, caller: Caller, current: str) -> None:
    """Erase for good what earlier keys encrypted: they open nothing in the log any more."""
    for space in _KINDS:
        before = OPEN_END
        doomed: list[int] = []
        with foundation.store.snapshot() as reader:
            lineage = foundation.views.view(reader, DEFAULT_BRANCH).lineage
            while page := reader.records.versions_in(lineage, space, before=before, limit=_PAGE):
                before = page[-1][1].sequence
                doomed += [each.sequence for _, each in page if _is_old(each, current)]
        if doomed:
            foundation.store.purge(
                WriteRequest(caller.actor), space=space, key=None, sequence=None, sequences=doomed
            )


def _is_old(version: Version, current: str) -> bool:
    content = orjson.loads(version.payload) if version.payload is not None else {}
    return "encrypted" in content and content["encrypted"]["key"] != current
