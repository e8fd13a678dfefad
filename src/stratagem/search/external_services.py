"""Services outside of the database that may answer in place of the built-in read models.

They hold the present state of the branch `default`. Each hit is looked up in the log before it is
used, so that a service decides which records are found, but never their content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_modules import np
from stratagem.deferred_tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stratagem.search.vectors import Nearest
    from stratagem.storage.outbox import OutboxReader

__all__ = [
    "ExternalServices",
    "GraphService",
    "Neighbour",
    "PathNode",
    "ReadModelService",
    "VectorService",
]


class Neighbour(NamedTuple):
    """A record next to another, and the link between them."""

    key: str
    label: str
    outgoing: bool
    weight: float


class PathNode(NamedTuple):
    """A record on a path, and the link that leads on from it."""

    key: str
    label: str | None = None
    outgoing: bool | None = None


class ReadModelService(Protocol):
    """A service that may be down, or behind."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def trouble(self) -> str | None:
        """Return why the service cannot be used, or None; asked for at most every few seconds."""
        ...

    def ready(self, outbox: OutboxReader) -> bool:
        """Return whether it has everything that a reader sees of `default`."""
        ...


class GraphService(ReadModelService, Protocol):
    """Answers what is linked to what.

    Raises:
        ServiceUnavailable: It does not answer.
        GraphServiceFailed: It answers with an error.
    """

    def neighbours(
        self, key: str, *, outgoing: bool | None, label: str | None, limit: int
    ) -> list[Neighbour]:
        """Return the records next to one, those with the strongest links first."""
        ...

    def sources(self, keys: Sequence[str], label: str, *, limit: int) -> list[str]:
        """Return the records that links of one label lead from to some others, in their order."""
        ...

    def path(self, start: str, end: str) -> list[PathNode] | None:
        """Return a shortest path, along links or against them; None where there is none."""
        ...


class VectorService(ReadModelService, Protocol):
    """Answers what is near in meaning.

    Raises:
        ServiceUnavailable: It does not answer.
        VectorServiceFailed: It answers with an error.
    """

    def nearest(self, vector: NDArray[np.float32], *, facets: Sequence[str], limit: int) -> Nearest:
        """Return the versions with every one of some facets whose vectors are nearest."""
        ...


def _ignore_write() -> None:
    """Do nothing: no service was chosen."""


@dataclass(frozen=True, slots=True)
class ExternalServices:
    """The services that were chosen; by default there are none."""

    graph: GraphService | None = None
    vectors: VectorService | None = None
    # Called after a write that a service may have to be told of.
    written: Callable[[], None] = _ignore_write
