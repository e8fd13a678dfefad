"""The credentials of users for upstream servers, encrypted like secrets.

A user is a caller, named as in the log. Values that a definition names `${user.NAME}`, and the
tokens of an OAuth sign-in, are stored for one user of one server and one origin: a server that
moves to another origin gets none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

import orjson

from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.gateway import names
from stratagem.gateway.registry.answers import CredentialEntry
from stratagem.gateway.registry.encryption import EncryptedDocument, SecretCipher
from stratagem.gateway.registry.secret_values import encryption_keys, erase_earlier
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction, Version

__all__ = ["CredentialStore", "UserCredentials", "place_of_credentials"]


class UserCredentials(TypedDict):
    """What one user is let in to a server by, as it is encrypted."""

    origin: str
    values: NotRequired[dict[str, str]]
    oauth: NotRequired[dict[str, Any]]


class _KeptCredentials(TypedDict):
    server: str
    user: str
    origin: str
    kinds: list[str]
    encrypted: EncryptedDocument
    # Where it was encrypted anew since.
    setAt: NotRequired[str]


class CredentialStore:
    """Keeps users' credentials."""

    def __init__(self, foundation: Foundation, cipher: SecretCipher) -> None:
        self._foundation = foundation
        self._cipher = cipher

    def read(self, server: str, user: str, origin: str) -> UserCredentials | None:
        """Return what a user has for a server at an origin.

        Raises:
            SecretUnavailable: It cannot be decrypted.
        """
        kept = self._current(self._foundation.store.reader(), server, user)
        if kept is None or kept[1]["origin"] != origin:
            return None
        opened = self._cipher.decrypt(
            kept[1]["encrypted"], place_of_credentials(_key(server, user))
        )
        return cast("UserCredentials", opened)

    def stamp(self, server: str, user: str) -> int:
        """Return a value that changes with every change of a user's credentials."""
        kept = self._current(self._foundation.store.reader(), server, user)
        return 0 if kept is None else kept[0].sequence

    def write(self, server: str, user: str, credentials: UserCredentials, caller: Caller) -> None:
        """Store a user's credentials.

        The replaced ones stay encrypted in the log until old executions are erased: erasing
        rebuilds the read models, which is too expensive for every refreshed token.

        Raises:
            SecretUnavailable: It cannot be encrypted.
        """
        key = _key(server, user)

        def work(transaction: Transaction) -> None:
            known = encryption_keys(transaction, self._foundation)
            kept: _KeptCredentials = {
                "server": server,
                "user": user,
                "origin": credentials["origin"],
                "kinds": sorted({"values", "oauth"}.intersection(credentials)),
                "encrypted": self._cipher.encrypt(
                    credentials, place_of_credentials(_key(server, user)), known
                ),
            }
            self._append(transaction, names.CREDENTIAL_SET, kept, key)

        self._foundation.write(caller, work)

    def remove(self, server: str, user: str, caller: Caller) -> bool:
        """Remove a user's credentials; return whether there were any."""
        key = _key(server, user)

        def work(transaction: Transaction) -> int | None:
            if self._current(transaction, server, user) is None:
                return None
            gone = {"server": server, "user": user}
            return self._append(transaction, names.CREDENTIAL_REMOVED, gone, key)

        written = self._foundation.write(caller, work)
        if written is not None:
            erase_earlier(self._foundation, caller, names.CREDENTIALS, key, before=written)
        return written is not None

    def remove_all(self, server: str, caller: Caller) -> None:
        """Remove the credentials of all users of a server."""
        with self._foundation.store.snapshot() as reader:
            users = [
                kept["user"] for _version, kept in self._every(reader) if kept["server"] == server
            ]
        for user in users:
            self.remove(server, user, caller)

    def entries(self, user: str | None) -> list[CredentialEntry]:
        """Return who has credentials for which server, or what one user has; never a value."""
        with self._foundation.store.snapshot() as reader:
            return [
                {
                    "server": kept["server"],
                    "user": kept["user"],
                    "origin": kept["origin"],
                    "kinds": kept["kinds"],
                    "setAt": kept.get("setAt", moments.iso(version.at)),
                }
                for version, kept in self._every(reader)
                if user in {None, kept["user"]}
            ]

    def _current(
        self, reader: Reader, server: str, user: str
    ) -> tuple[Version, _KeptCredentials] | None:
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        version = reader.records.current(view.lineage, names.CREDENTIALS, _key(server, user))
        if version is None or version.payload is None:
            return None
        return version, orjson.loads(version.payload)

    def _every(self, reader: Reader) -> list[tuple[Version, _KeptCredentials]]:
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        found: list[tuple[Version, _KeptCredentials]] = []
        after: str | None = ""
        while after is not None:
            page, after = reader.records.page(view.lineage, names.CREDENTIALS, after=after)
            found += [
                (version, orjson.loads(version.payload))
                for _key_, version in page
                if version.payload is not None
            ]
        return found

    def _append(
        self, transaction: Transaction, kind: str, content: Mapping[str, Any], key: str
    ) -> int:
        view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
        draft = Draft(kind, content, names.CREDENTIALS, key)
        return transaction.append(view.branch, [draft])[0].sequence


def _key(server: str, user: str) -> str:
    return f"{server}{names.PART}{user}"


def place_of_credentials(key: str) -> str:
    """Return what the ciphertext of a user's credentials is bound to, by the key of the record."""
    return "\0".join(("credential", *key.split(names.PART)))
