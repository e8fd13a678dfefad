"""What registering a tool costs the search index."""

from __future__ import annotations

import stratagem


def test_tools_and_resources_take_no_place_in_the_search_index() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("city", "Oslo")
        before = db.runtime.foundation.store.reader().search.text_count()

        db.gateway.register(
            name="weather",
            description="Forecasts the weather",
            input_schema={"type": "object"},
            handler={"type": "webhook", "url": "https://example.org/"},
        )
        db.call("resource_create", {"name": "greeting", "type": "prompt", "content": "Hello"})

        assert before == 1
        assert db.runtime.foundation.store.reader().search.text_count() == before
