"""Where the values of secrets come from: set while running, a file, a command, the environment.

A secret that was set is a record of the log, encrypted, of one workspace; it may also say that the
value is in a file or is printed by a command. What was not set is taken from the server's
environment, `STRATAGEM_SECRET_NAME`. No value is ever shown again, and a replaced value is erased
for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NotRequired, TypedDict

import orjson

from stratagem import limits
from stratagem.deferred_tuples import NamedTuple
from stratagem.engine import moments
from stratagem.engine.events import Draft
from stratagem.engine.lineage import DEFAULT_BRANCH
from stratagem.errors import ResourceNotFound, SecretUnavailable
from stratagem.gateway import names
from stratagem.gateway.registry.answers import SecretEntry
from stratagem.gateway.registry.encryption import EncryptedDocument, SecretCipher
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import Reader, Transaction, Version, WriteRequest

__all__ = [
    "PREFIX",
    "RESERVED_NAMES",
    "SecretSource",
    "SecretValues",
    "encryption_keys",
    "erase_earlier",
    "place_of_secret",
]

# The server's environment variable of a secret begins with this, so that no definition can
# reach what else is in the environment.
PREFIX: Final = "STRATAGEM_SECRET_"
# With the prefix these are the key by which secrets are encrypted.
RESERVED_NAMES: Final = frozenset({"KEY", "KEY_FILE"})

SourceKind = Literal["stored", "file", "command"]


class SecretSource(TypedDict, total=False):
    """Where a value comes from, as it is encrypted: one of the three."""

    value: str
    file: str
    command: list[str]


class _KeptSecret(TypedDict):
    """A secret as it is kept; `setAt` and `setBy` where it was encrypted anew since."""

    name: str
    source: SourceKind
    encrypted: EncryptedDocument
    setAt: NotRequired[str]
    setBy: NotRequired[str]


class _Fetched(NamedTuple):
    """What a command printed, and until when that holds."""

    sequence: int
    value: str
    until: float


class SecretValues:
    """The values of a database's secrets."""

    def __init__(
        self, foundation: Foundation, cipher: SecretCipher, environment: Mapping[str, str]
    ) -> None:
        self._foundation = foundation
        self.cipher = cipher
        self._environment = environment
        self._fetched: dict[str, _Fetched] = {}
        self._fetching: dict[str, asyncio.Lock] = {}

    def set(self, name: str, source: SecretSource, caller: Caller) -> SourceKind:
        """Keep where a secret comes from; whatever was kept of it before is erased.

        Raises:
            SecretUnavailable: It cannot be encrypted.
        """
        kind: SourceKind = (
            "stored" if "value" in source else "file" if "file" in source else "command"
        )

        def work(transaction: Transaction) -> int:
            known = encryption_keys(transaction, self._foundation)
            encrypted = self.cipher.encrypt(source, place_of_secret(name), known)
            kept: _KeptSecret = {"name": name, "source": kind, "encrypted": encrypted}
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            draft = Draft(names.SECRET_SET, kept, names.SECRETS, name)
            return transaction.append(view.branch, [draft])[0].sequence

        written = self._foundation.write(caller, work)
        erase_earlier(self._foundation, caller, names.SECRETS, name, before=written)
        return kind

    def remove(self, name: str, caller: Caller) -> None:
        """Delete a secret for good.

        Raises:
            ResourceNotFound: None was set under that name.
        """

        def work(transaction: Transaction) -> int:
            if self._read(transaction, name) is None:
                raise ResourceNotFound(
                    f"No secret {name!r} was set.", field="name", hint="See: stratagem secrets list"
                )
            view = self._foundation.views.view(transaction, DEFAULT_BRANCH)
            draft = Draft(names.SECRET_REMOVED, {"name": name}, names.SECRETS, name)
            return transaction.append(view.branch, [draft])[0].sequence

        written = self._foundation.write(caller, work)
        self._fetched.pop(name, None)
        erase_earlier(self._foundation, caller, names.SECRETS, name, before=written)

    def is_set(self, reader: Reader, name: str) -> bool:
        """Whether a secret was set in this database, rather than in the environment."""
        return self._read(reader, name) is not None

    def entries(self, reader: Reader) -> list[SecretEntry]:
        """Return every secret that is known here, without its value."""
        found: list[SecretEntry] = [
            {
                "name": each["name"],
                "source": each["source"],
                "setAt": each.get("setAt", moments.iso(version.at)),
                "setBy": each.get("setBy", version.actor),
            }
            for version, each in self._every(reader)
        ]
        known = {each["name"] for each in found} | RESERVED_NAMES
        found += [
            {"name": name, "source": "environment"}
            for variable in sorted(self._environment)
            if variable.startswith(PREFIX) and (name := variable.removeprefix(PREFIX)) not in known
        ]
        return sorted(found, key=lambda each: each["name"])

    async def fetch(
        self, wanted: Collection[str], own: Collection[str]
    ) -> dict[str, str | SecretUnavailable]:
        """Return the values of some secrets, or why one cannot be had.

        Of those that are `own`, only what was set in this database is looked at.
        """
        return {name: await self._fetch(name, own_only=name in own) for name in wanted}

    def stamp(self, reader: Reader, wanted: Collection[str]) -> list[int]:
        """Return a value that changes whenever one of some secrets is set."""
        found = (self._read(reader, name) for name in sorted(wanted))
        return [0 if each is None else each[0].sequence for each in found]

    async def _fetch(self, name: str, *, own_only: bool) -> str | SecretUnavailable:
        try:
            kept = await self._foundation.read_async(
                lambda: self._read(self._foundation.store.reader(), name)
            )
            if kept is not None:
                return await self._open(name, *kept)
        except SecretUnavailable as error:
            return error
        value = None
        if not own_only and name not in RESERVED_NAMES:
            value = self._environment.get(PREFIX + name)
        if value is not None:
            return value
        return SecretUnavailable(
            f"There is no secret {name}.",
            reason="not_set",
            secret=name,
            command=f"stratagem secrets set {name}",
            hint=f"Set it: stratagem secrets set {name}, or start the server with {PREFIX}{name}.",
        )

    async def _open(self, name: str, version: Version, kept: _KeptSecret) -> str:
        source: SecretSource = self.cipher.decrypt(kept["encrypted"], place_of_secret(name))
        if "value" in source:
            return source["value"]
        if "file" in source:
            return await asyncio.to_thread(_read_file, name, source["file"])
        lock = self._fetching.setdefault(name, asyncio.Lock())
        async with lock:
            known = self._fetched.get(name)
            now = time.monotonic()
            if known is None or known.sequence != version.sequence or known.until < now:
                value = await _run_command(name, source["command"], self._environment)
                known = _Fetched(version.sequence, value, now + limits.SECRET_COMMAND_KEPT_SECONDS)
                self._fetched[name] = known
        return known.value

    def _read(self, reader: Reader, name: str) -> tuple[Version, _KeptSecret] | None:
        # Only the default branch counts: the right to write to another branch must not be enough to
        # set a secret.
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        version = reader.records.current(view.lineage, names.SECRETS, name)
        if version is None or version.payload is None:
            return None
        return version, orjson.loads(version.payload)

    def _every(self, reader: Reader) -> list[tuple[Version, _KeptSecret]]:
        view = self._foundation.views.view(reader, DEFAULT_BRANCH)
        page, _next = reader.records.page(view.lineage, names.SECRETS)
        return [
            (version, orjson.loads(version.payload)) for _key, version in page if version.payload
        ]


def encryption_keys(reader: Reader, foundation: Foundation) -> set[str]:
    """Return by which keys secrets and credentials of a database were encrypted."""
    view = foundation.views.view(reader, DEFAULT_BRANCH)
    found: set[str] = set()
    for space in (names.SECRETS, names.CREDENTIALS, names.OAUTH_CLIENTS):
        page, _next = reader.records.page(view.lineage, space)
        found |= {
            orjson.loads(version.payload)["encrypted"]["key"]
            for _key, version in page
            if version.payload is not None
        }
    return found


def erase_earlier(
    foundation: Foundation, caller: Caller, space: Any, key: str, *, before: int
) -> None:
    """Erase for good what was kept of a record before an event; its hashes stay."""
    with foundation.store.snapshot() as reader:
        lineage = foundation.views.view(reader, DEFAULT_BRANCH).lineage
        earlier = reader.records.history(lineage, space, key, before=before, limit=100)
    doomed = [version.sequence for version in earlier if version.payload is not None]
    if doomed:
        foundation.store.purge(
            WriteRequest(caller.actor), space=space, key=None, sequence=None, sequences=doomed
        )


def place_of_secret(name: str) -> str:
    """Return what the ciphertext of a secret is bound to."""
    return f"secret\0{name}"


def _read_file(name: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            data = file.read(limits.SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise SecretUnavailable(
            f"The file of the secret {name} cannot be read: {error.strerror or error}.",
            reason="file",
            secret=name,
        ) from None
    return _check_value(name, data)


async def _run_command(name: str, command: list[str], environment: Mapping[str, str]) -> str:
    """Return what a command prints: in the server's environment, without its secrets."""
    passed = {key: value for key, value in environment.items() if not key.startswith(PREFIX)}
    process = None
    try:
        async with asyncio.timeout(limits.SECRET_COMMAND_SECONDS):
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                # What it says there may hold anything, and goes nowhere.
                stderr=asyncio.subprocess.DEVNULL,
                env=passed,
                start_new_session=True,
            )
            assert process.stdout is not None
            data = await process.stdout.read(limits.SECRET_BYTES_MAX + 1)
            status = await process.wait()
    except TimeoutError:
        seconds = limits.SECRET_COMMAND_SECONDS
        raise _command_error(name, f"did not end within {seconds:g} seconds") from None
    except OSError as error:
        raise _command_error(name, f"cannot be run: {error.strerror or error}") from None
    finally:
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            await process.wait()
    if status:
        raise _command_error(name, f"ended with status {status}")
    return _check_value(name, data)


def _command_error(name: str, what: str) -> SecretUnavailable:
    return SecretUnavailable(
        f"The command of the secret {name} {what}.",
        reason="command",
        secret=name,
        hint="Run it yourself as the user of the server: it has to print the secret.",
    )


def _check_value(name: str, data: bytes) -> str:
    """Return a value that was read, without the end of its line."""
    if len(data) > limits.SECRET_BYTES_MAX:
        raise SecretUnavailable(
            f"The secret {name} has more than {limits.SECRET_BYTES_MAX:,} bytes.",
            reason="size",
            secret=name,
            limit=limits.SECRET_BYTES_MAX,
        )
    try:
        value = data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        value = ""
    if not value:
        raise SecretUnavailable(
            f"The value of the secret {name} is empty or not text.",
            reason="empty",
            secret=name,
        )
    return value
