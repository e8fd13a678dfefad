"""`memory["city"]`, `in` and `del`, in this process and on a server."""

from __future__ import annotations

import pytest

from stratagem import Stratagem
from stratagem.sdk.remote import Client


@pytest.mark.parametrize("where", ["embedded", "remote"])
def test_entries_are_read_and_written_by_key(where: str, request: pytest.FixtureRequest) -> None:
    db: Stratagem | Client = request.getfixturevalue(where)

    db.memory["city"] = {"name": "Oslo"}
    db.memory["nothing"] = None

    assert db.memory["city"] == {"name": "Oslo"}
    assert db.memory["nothing"] is None
    assert "city" in db.memory
    assert "town" not in db.memory
    assert 3 not in db.memory
    del db.memory["city"]
    assert "city" not in db.memory
    with pytest.raises(KeyError):
        _ = db.memory["city"]
    with pytest.raises(KeyError):
        del db.memory["city"]


def test_a_loop_goes_over_the_keys_of_the_namespace(embedded: Stratagem) -> None:
    for key in ("b", "a", "c"):
        embedded.memory[key] = 1
    embedded.memory.store("elsewhere", 1, namespace="other")

    seen = []
    for key in embedded.memory:
        seen.append(key)
        embedded.memory[f"{key}{key}"] = 2

    assert seen == ["a", "b", "c"]
    assert len(list(embedded.memory)) == 6
