"""Creating, listing and revoking tokens, and the record of what administrators did."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from stratagem import limits
from stratagem.access import kinds
from stratagem.access.scopes import check_role, check_scopes
from stratagem.access.tokens import ID_BYTES, Token, digest, new_secret
from stratagem.access.workspaces import check_workspace
from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import OPEN_END
from stratagem.engine.moments import iso
from stratagem.errors import PermissionDenied, ResourceNotFound, ValidationFailed
from stratagem.operation import Caller
from stratagem.search.foundation import Foundation
from stratagem.storage.contract import LogReader, Reader, Transaction, Version

__all__ = ["Access", "every_token", "record_act", "tokens_needed"]

BRANCH: Final = "default"
_NAME: Final = re.compile(rf"[\w.@+-]{{1,{limits.TOKEN_NAME_CHARS_MAX}}}", re.ASCII)
_SECOND: Final = 1_000_000
# What the gateway separates the parts of its keys by.
_KEY_SEPARATOR: Final = "\x1f"

# The one record that says that no token is needed.
_SWITCH: Final = "off"


class Access:
    """The tokens of a database."""

    def __init__(
        self, foundation: Foundation, caller: Caller, entropy: Callable[[int], bytes]
    ) -> None:
        self._foundation = foundation
        self._caller = caller
        self._entropy = entropy

    def create(
        self,
        name: str,
        scopes: Iterable[str],
        roles: Mapping[str, str],
        *,
        seconds: int | None = None,
        rate: int | None = None,
        concurrency: int | None = None,
        tool_sets: Iterable[str] | None = None,
        budget: Mapping[str, Any] | None = None,
    ) -> tuple[Token, str]:
        """Make a token, and return it with its secret, which is kept nowhere.

        Raises:
            ValidationFailed: The name is taken, or something given cannot be.
        """
        secret = new_secret(self._entropy(32))
        token = Token(
            id=self._entropy(ID_BYTES).hex(),
            name=_checked_name(name),
            hash=digest(secret),
            scopes=check_scopes(scopes),
            roles={check_workspace(each): check_role(role) for each, role in roles.items()},
            rate=rate,
            concurrency=concurrency,
            tool_sets=None if tool_sets is None else frozenset(tool_sets),
            budget=budget,
        )
        if not token.roles:
            raise ValidationFailed("A token opens at least one workspace.", field="workspace")

        def work(transaction: Transaction) -> Token:
            # A name is what events are written under: it never means somebody else later.
            if any(each.name == name for each in every_token(transaction, self._foundation)):
                raise ValidationFailed(
                    f"A token named {name!r} exists or existed; names are not used twice.",
                    field="name",
                    hint="Choose another.",
                )
            expires = None if seconds is None else transaction.wall + seconds * _SECOND
            made = replace(token, created_at=transaction.wall, expires_at=expires)
            self._append(transaction, kinds.TOKEN_CREATED, kinds.TOKENS, made.id, made.content())
            return made

        return self._foundation.write(self._caller, work), secret

    def now(self) -> int:
        """Return the time that tokens are measured by."""
        return self._foundation.store.now()

    def every(self) -> list[Token]:
        """Return every token, revoked ones too, oldest first."""
        with self._foundation.store.snapshot() as reader:
            tokens = every_token(reader, self._foundation)
        return sorted(tokens, key=lambda token: token.created_at)

    def revoke(self, which: str) -> Token:
        """End a token, by its name or id.

        Raises:
            ResourceNotFound: There is none of that name.
        """

        def work(transaction: Transaction) -> Token:
            for token in every_token(transaction, self._foundation):
                if which in {token.name, token.id}:
                    break
            else:
                raise ResourceNotFound(
                    f"There is no token {which!r}.", hint="List them: stratagem token list"
                )
            if token.revoked_at is not None:
                return token
            ended = replace(token, revoked_at=transaction.wall)
            content = ended.content()
            self._append(transaction, kinds.TOKEN_REVOKED, kinds.TOKENS, ended.id, content)
            return ended

        return self._foundation.write(self._caller, work)

    def are_needed(self) -> bool:
        """Whether every client of a server on this database needs a token."""
        with self._foundation.store.snapshot() as reader:
            return tokens_needed(reader, self._foundation)

    def turn_off(self) -> int:
        """Revoke every token and need none from now on; return how many were revoked.

        The next token that is made turns them on again.
        """

        def work(transaction: Transaction) -> int:
            live = [
                each
                for each in every_token(transaction, self._foundation)
                if each.revoked_at is None
            ]
            for token in live:
                ended = replace(token, revoked_at=transaction.wall)
                self._append(
                    transaction, kinds.TOKEN_REVOKED, kinds.TOKENS, ended.id, ended.content()
                )
            # Last: whatever comes after it is a token that was made later.
            content = {"revoked": len(live)}
            self._append(transaction, kinds.TOKENS_TURNED_OFF, kinds.SWITCH, _SWITCH, content)
            return len(live)

        return self._foundation.write(self._caller, work)

    def audit(self, limit: int, also: Sequence[Space] = ()) -> list[dict[str, Any]]:
        """Return the latest refusals, administrative acts and changes of tokens, newest first.

        `also` are other records that say who may do what, those that are removed now too.
        """
        with self._foundation.store.snapshot() as reader:
            lineage = self._foundation.views.view(reader, BRANCH).lineage
            found = [
                {
                    "at": iso(version.at),
                    "sequence": version.sequence,
                    "event": version.kind,
                    **({"actor": version.actor} if space in also else {}),
                    **_shown_content(key, version.payload),
                }
                for space in (kinds.REFUSALS, kinds.ACTS, kinds.TOKENS, kinds.SWITCH, *also)
                for key, version in reader.records.versions_in(
                    lineage, space, before=OPEN_END, limit=limit
                )
            ]
        return sorted(found, key=lambda each: -each["sequence"])[:limit]

    def _append(
        self,
        transaction: Transaction,
        kind: str,
        space: Space,
        key: str,
        content: Mapping[str, Any],
    ) -> None:
        view = self._foundation.views.view(transaction, BRANCH)
        transaction.append(view.branch, [Draft(kind, content, space, key)])


def every_token(reader: Reader, foundation: Foundation) -> list[Token]:
    """Return every token that a state of the log has, revoked ones too."""
    return [
        _by_the_clock(reader.log, version, Token.read(orjson.loads(version.payload)))
        for _key, version in _every(reader, foundation, kinds.TOKENS)
        if version.payload is not None
    ]


def tokens_needed(reader: Reader, foundation: Foundation) -> bool:
    """Whether there is, or was, a token that was made after tokens were turned off.

    Revoking the last one opens nothing.
    """
    view = foundation.views.view(reader, BRANCH)
    turned_off = reader.records.current(view.lineage, kinds.SWITCH, _SWITCH)
    since = 0 if turned_off is None else turned_off.sequence
    return any(
        version.sequence > since for _key, version in _every(reader, foundation, kinds.TOKENS)
    )


def _by_the_clock(log: LogReader, version: Version, token: Token) -> Token:
    """Return a token with the end that the clock gives it.

    The first release counted from the recorded time, which may lie years ahead of the clock.
    Such a token says that it was created at the recorded time of its event.
    """
    if token.expires_at is None or token.created_at != version.at:
        return token
    wall = log.wall_of(version.sequence)
    ahead = version.at - wall if wall is not None else 0
    return replace(token, expires_at=token.expires_at - ahead) if ahead else token


def record_act(foundation: Foundation, caller: Caller, operation: str) -> None:
    """Note that somebody used an administrator's right.

    Raises:
        PermissionDenied: It cannot be noted, so it must not be done.
    """
    if foundation.store.read_only:
        raise PermissionDenied(f"{operation} needs a database that can be written to.")

    def work(transaction: Transaction) -> None:
        view = foundation.views.view(transaction, BRANCH)
        content = {"operation": operation, "actor": caller.actor, "branch": caller.branch}
        key = f"{transaction.log.head().sequence:020}"
        transaction.append(view.branch, [Draft(kinds.ACT_PERFORMED, content, kinds.ACTS, key)])

    foundation.write(caller, work)


def _every(reader: Reader, foundation: Foundation, space: Space) -> Iterator[tuple[str, Version]]:
    view = foundation.views.view(reader, BRANCH)
    after: str | None = ""
    while after is not None:
        page, after = reader.records.page(view.lineage, space, after=after)
        yield from page


def _shown_content(key: str, payload: bytes | None) -> dict[str, Any]:
    """Return what may be shown of an event; of one that was erased, what it was about."""
    if payload is None:
        return {"name": key.replace(_KEY_SEPARATOR, " "), "erased": True}
    content: dict[str, Any] = orjson.loads(payload)
    for hidden in ("hash", "encrypted", "state"):
        content.pop(hidden, None)
    return content


def _checked_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValidationFailed(
            f"{name[:100]!r} cannot be the name of a token.",
            field="name",
            limit=limits.TOKEN_NAME_CHARS_MAX,
            hint="Letters, digits and . @ + - _, such as alice or build-server.",
        )
    return name
