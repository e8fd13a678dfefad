"""Finding the holder of a token in microseconds, and noticing revocations of other processes.

Every token is held in memory by its hash. Before a look-up that comes later than a moment after
the last check, the log is asked for the newest change of any token, which is one indexed read.
If that cannot be answered, neither is the look-up: a token that may be revoked is not taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from stratagem import limits
from stratagem.access.kinds import FACET_TOKEN
from stratagem.access.service import BRANCH, every_token, tokens_needed
from stratagem.access.tokens import Token
from stratagem.search.foundation import Foundation

__all__ = ["TokenCache"]


class TokenCache:
    """The tokens of a database, read again when they have changed. Safe for several threads."""

    def __init__(self, foundation: Foundation, monotonic: Callable[[], float]) -> None:
        self._foundation = foundation
        self._monotonic = monotonic
        self._checking = threading.Lock()
        self._checked = float("-inf")
        self._newest = -1
        self._tokens: Mapping[str, Token] = {}
        self._needed = False

    @property
    def is_due(self) -> bool:
        """Whether the log has to be asked before the next look-up."""
        return self._monotonic() - self._checked > limits.TOKEN_CHECK_SECONDS

    @property
    def in_use(self) -> bool:
        """Whether every client needs a token: since the first, until they are turned off."""
        return self._needed

    @property
    def was_in_use(self) -> bool:
        """Whether there ever was a token, though none may be needed any more."""
        return bool(self._tokens)

    def find(self, hashed: str) -> Token | None:
        """Return the token with a hash, whatever its state."""
        return self._tokens.get(hashed)

    def check(self) -> None:
        """Read the tokens anew where any of them has changed.

        Raises:
            StratagemError: The database does not answer.
        """
        with self._checking:
            if not self.is_due:
                return
            began = self._monotonic()
            with self._foundation.store.snapshot() as reader:
                view = self._foundation.views.view(reader, BRANCH)
                newest = max(reader.catalogue.with_facet(view, FACET_TOKEN, limit=1), default=0)
                if newest != self._newest:
                    found = every_token(reader, self._foundation)
                    self._tokens = {token.hash: token for token in found}
                    self._needed = tokens_needed(reader, self._foundation)
                    self._newest = newest
            self._checked = began
