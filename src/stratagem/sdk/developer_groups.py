"""The groups of methods of developer mode, which every client has: `db.kv`, `db.vectors`, …."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratagem.sdk.generated.developer import (
        AsyncBranchesMethods,
        AsyncEventsMethods,
        AsyncJsonMethods,
        AsyncKvMethods,
        AsyncSpacesMethods,
        AsyncStateMethods,
        BranchesMethods,
        EventsMethods,
        JsonMethods,
        KvMethods,
        SpacesMethods,
        StateMethods,
    )

__all__ = ["AsyncDeveloperGroups", "DeveloperGroups"]


class DeveloperGroups:
    """The groups of methods of developer mode, each made when it is first used."""

    def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an operation for a program: its answer is not cut, and hints name methods."""
        raise NotImplementedError

    @cached_property
    def kv(self) -> KvMethods:
        """Values under keys, not indexed for search."""
        from stratagem.sdk.generated.developer import KvMethods

        return KvMethods(self._call_typed)

    @cached_property
    def json(self) -> JsonMethods:
        """JSON documents, and single places of them."""
        from stratagem.sdk.generated.developer import JsonMethods

        return JsonMethods(self._call_typed)

    @cached_property
    def state(self) -> StateMethods:
        """State cells, written by comparing and setting."""
        from stratagem.sdk.generated.developer import StateMethods

        return StateMethods(self._call_typed)

    @cached_property
    def events(self) -> EventsMethods:
        """Logged events by their sequences."""
        from stratagem.sdk.generated.developer import EventsMethods

        return EventsMethods(self._call_typed)

    @cached_property
    def branches(self) -> BranchesMethods:
        """Branches, a method for each thing that can be done with one."""
        from stratagem.sdk.generated.developer import BranchesMethods

        return BranchesMethods(self._call_typed)

    @cached_property
    def spaces(self) -> SpacesMethods:
        """Spaces: namespaces that are created, chosen and deleted."""
        from stratagem.sdk.generated.developer import SpacesMethods

        return SpacesMethods(self._call_typed)


class AsyncDeveloperGroups:
    """The groups of methods of developer mode, to be awaited, each made when it is first used."""

    async def _call_typed(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run an operation for a program: its answer is not cut, and hints name methods."""
        raise NotImplementedError

    @cached_property
    def kv(self) -> AsyncKvMethods:
        """Values under keys, not indexed for search."""
        from stratagem.sdk.generated.developer import AsyncKvMethods

        return AsyncKvMethods(self._call_typed)

    @cached_property
    def json(self) -> AsyncJsonMethods:
        """JSON documents, and single places of them."""
        from stratagem.sdk.generated.developer import AsyncJsonMethods

        return AsyncJsonMethods(self._call_typed)

    @cached_property
    def state(self) -> AsyncStateMethods:
        """State cells, written by comparing and setting."""
        from stratagem.sdk.generated.developer import AsyncStateMethods

        return AsyncStateMethods(self._call_typed)

    @cached_property
    def events(self) -> AsyncEventsMethods:
        """Logged events by their sequences."""
        from stratagem.sdk.generated.developer import AsyncEventsMethods

        return AsyncEventsMethods(self._call_typed)

    @cached_property
    def branches(self) -> AsyncBranchesMethods:
        """Branches, a method for each thing that can be done with one."""
        from stratagem.sdk.generated.developer import AsyncBranchesMethods

        return AsyncBranchesMethods(self._call_typed)

    @cached_property
    def spaces(self) -> AsyncSpacesMethods:
        """Spaces: namespaces that are created, chosen and deleted."""
        from stratagem.sdk.generated.developer import AsyncSpacesMethods

        return AsyncSpacesMethods(self._call_typed)
