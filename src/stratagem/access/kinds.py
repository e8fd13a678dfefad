"""The kinds of record that say who may do what, and what was done about it.

All of them are `derived`: no diff shows them and no merge carries them from branch to branch.
None has a text, so that no search finds one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.engine.events import Space
from stratagem.engine.records import EventKind, Projection, RecordKind

__all__ = [
    "ACTS",
    "ACT_PERFORMED",
    "AUTHENTICATION_REFUSED",
    "FACET_TOKEN",
    "KINDS",
    "REFUSALS",
    "SWITCH",
    "TOKENS",
    "TOKENS_TURNED_OFF",
    "TOKEN_CREATED",
    "TOKEN_REVOKED",
]

_NAMESPACE: Final = "access"

TOKENS: Final = Space("token", _NAMESPACE)
SWITCH: Final = Space("token_switch", _NAMESPACE)
REFUSALS: Final = Space("refusal", _NAMESPACE)
ACTS: Final = Space("act", _NAMESPACE)

TOKEN_CREATED: Final = "TokenCreated"  # noqa: S105 -- the name of an event
TOKEN_REVOKED: Final = "TokenRevoked"  # noqa: S105 -- as above
TOKENS_TURNED_OFF: Final = "TokensTurnedOff"
AUTHENTICATION_REFUSED: Final = "AuthenticationRefused"
ACT_PERFORMED: Final = "ActPerformed"

# Every version of a token has it, and that no token is needed: the newest of them says whether
# anything changed.
FACET_TOKEN: Final = "access_token"  # noqa: S105 -- as above


def _token(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(facets=(FACET_TOKEN,))


def _plain(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection()


KINDS: Final = (
    RecordKind(
        TOKENS.kind,
        (EventKind(TOKEN_CREATED, _token), EventKind(TOKEN_REVOKED, _token)),
        writes=TOKEN_CREATED,
        derived=True,
    ),
    RecordKind(
        SWITCH.kind,
        (EventKind(TOKENS_TURNED_OFF, _token),),
        writes=TOKENS_TURNED_OFF,
        derived=True,
    ),
    RecordKind(
        REFUSALS.kind,
        (EventKind(AUTHENTICATION_REFUSED, _plain),),
        writes=AUTHENTICATION_REFUSED,
        derived=True,
    ),
    RecordKind(ACTS.kind, (EventKind(ACT_PERFORMED, _plain),), writes=ACT_PERFORMED, derived=True),
)
