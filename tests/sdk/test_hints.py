"""Hints of the SDK name its methods, here and on a server."""

from __future__ import annotations

import pytest

from stratagem import Stratagem, connect_async
from stratagem.errors import BranchNotFound
from stratagem.operation import Caller
from stratagem.sdk.remote import Client


def test_hints_name_methods(embedded: Stratagem, remote: Client) -> None:
    for db in (embedded, remote):
        with pytest.raises(BranchNotFound) as caught:
            db.memory.recall("a", branch="zzz")

        assert caught.value.hint == "List the branches with memory.branches()."


def test_hints_about_a_deleted_branch_name_methods_in_every_call(embedded: Stratagem) -> None:
    embedded.memory.fork("trial")
    embedded.memory.switch("trial")
    somebody = Stratagem(embedded.runtime, Caller())
    somebody.memory.delete("trial")
    somebody.memory.create("trial")

    for begin in (embedded.memory.list, embedded.transaction().__enter__):
        with pytest.raises(BranchNotFound) as caught:
            begin()
        assert caught.value.hint == (
            "memory.switch('trial') switches to that one; memory.restore(source='trial'), under "
            "a free name, restores yours."
        )


@pytest.mark.anyio
async def test_hints_name_methods_that_are_awaited(url: str) -> None:
    async with connect_async(url, patience=0) as db:
        with pytest.raises(BranchNotFound) as caught:
            await db.memory.recall("a", branch="zzz")

    assert caught.value.hint == "List the branches with memory.branches()."
