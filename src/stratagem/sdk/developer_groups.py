"""The groups of methods of developer mode, which every client has, such as `db.kv`."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stratagem.sdk.generated.developer import (
        AsyncBranchesMethods,
        AsyncBundleMethods,
        AsyncDatabaseMethods,
        AsyncEmbedMethods,
        AsyncEventsMethods,
        AsyncJsonMethods,
        AsyncKvMethods,
        AsyncModelsMethods,
        AsyncRetentionMethods,
        AsyncSpacesMethods,
        AsyncStateMethods,
        AsyncVectorsMethods,
        BranchesMethods,
        BundleMethods,
        DatabaseMethods,
        EmbedMethods,
        EventsMethods,
        JsonMethods,
        KvMethods,
        ModelsMethods,
        RetentionMethods,
        SpacesMethods,
        StateMethods,
        VectorsMethods,
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
    def vectors(self) -> VectorsMethods:
        """Vectors of your own, in collections."""
        from stratagem.sdk.generated.developer import VectorsMethods

        return VectorsMethods(self._call_typed)

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

    @cached_property
    def bundle(self) -> BundleMethods:
        """Branches as files of the folder for bundles."""
        from stratagem.sdk.generated.developer import BundleMethods

        return BundleMethods(self._call_typed)

    @cached_property
    def retention(self) -> RetentionMethods:
        """Erasing superseded versions."""
        from stratagem.sdk.generated.developer import RetentionMethods

        return RetentionMethods(self._call_typed)

    @cached_property
    def database(self) -> DatabaseMethods:
        """The database itself: its size, flushing and compacting it."""
        from stratagem.sdk.generated.developer import DatabaseMethods

        return DatabaseMethods(self._call_typed)

    @cached_property
    def embed(self) -> EmbedMethods:
        """Vectors of texts, by the embedder in use."""
        from stratagem.sdk.generated.developer import EmbedMethods

        return EmbedMethods(self._call_typed)

    @cached_property
    def models(self) -> ModelsMethods:
        """The models in use, and generating text with one."""
        from stratagem.sdk.generated.developer import ModelsMethods

        return ModelsMethods(self._call_typed)


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
    def vectors(self) -> AsyncVectorsMethods:
        """Vectors of your own, in collections."""
        from stratagem.sdk.generated.developer import AsyncVectorsMethods

        return AsyncVectorsMethods(self._call_typed)

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

    @cached_property
    def bundle(self) -> AsyncBundleMethods:
        """Branches as files of the folder for bundles."""
        from stratagem.sdk.generated.developer import AsyncBundleMethods

        return AsyncBundleMethods(self._call_typed)

    @cached_property
    def retention(self) -> AsyncRetentionMethods:
        """Erasing superseded versions."""
        from stratagem.sdk.generated.developer import AsyncRetentionMethods

        return AsyncRetentionMethods(self._call_typed)

    @cached_property
    def database(self) -> AsyncDatabaseMethods:
        """The database itself: its size, flushing and compacting it."""
        from stratagem.sdk.generated.developer import AsyncDatabaseMethods

        return AsyncDatabaseMethods(self._call_typed)

    @cached_property
    def embed(self) -> AsyncEmbedMethods:
        """Vectors of texts, by the embedder in use."""
        from stratagem.sdk.generated.developer import AsyncEmbedMethods

        return AsyncEmbedMethods(self._call_typed)

    @cached_property
    def models(self) -> AsyncModelsMethods:
        """The models in use, and generating text with one."""
        from stratagem.sdk.generated.developer import AsyncModelsMethods

        return AsyncModelsMethods(self._call_typed)
