from __future__ import annotations

from typing import Any

import orjson
import pytest

from stratagem import limits
from stratagem.engine.records import Kinds, Projection
from stratagem.errors import ValidationFailed
from stratagem.memory.kinds import (
    ENTRY,
    ENTRY_FORGOTTEN,
    ENTRY_STORED,
    EVENT,
    EVENT_LOGGED,
    KINDS,
    entries,
    logged_events,
)
from stratagem.memory.standing import STANDING

ALL = Kinds(KINDS)


def stored(**content: Any) -> Projection:
    return ALL.project(ENTRY_STORED, content, "the-key")


def logged(**content: Any) -> Projection:
    return ALL.project(EVENT_LOGGED, {"event": "label", **content})


def test_a_stored_entry_is_found_by_its_key_and_its_value() -> None:
    projection = stored(value={"city": "Oslo"}, tags=["a", "b"], session="s", expires_at=5)

    assert projection.text is not None
    assert (projection.text.title, projection.text.body) == ("the-key", "city: Oslo")
    assert projection.tags == ("a", "b")
    assert (projection.session, projection.expires_at) == ("s", 5)
    assert not projection.deleted


def test_an_entry_that_is_not_indexed_has_no_text_and_takes_no_context() -> None:
    projection = stored(value="secret", index=False, session="s", tags=["a"])

    assert projection.text is None
    assert projection.session is None
    assert projection.tags == ("a",)


@pytest.mark.parametrize("value", [None, True, 0, "", [], {}])
def test_an_entry_without_words_is_still_found_by_its_key(value: Any) -> None:
    projection = stored(value=value)

    assert projection.text is not None
    assert projection.text.title == "the-key"


def test_forgetting_deletes_and_says_nothing() -> None:
    assert ALL.project(ENTRY_FORGOTTEN, {}, "the-key") == Projection(deleted=True)


def test_a_logged_event_is_found_by_its_label_and_its_data() -> None:
    projection = logged(data=["rain", 3], tags=["t"], session="s")

    assert projection.text is not None
    assert (projection.text.title, projection.text.body) == ("label", "rain\n3")
    assert (projection.tags, projection.session) == (("t",), "s")


def test_only_what_can_never_be_forgotten_gives_context() -> None:
    assert ALL.giving_context == (EVENT,)


def test_entries_are_records_and_logged_events_stand_for_themselves() -> None:
    entry, event = ALL.record(ENTRY), ALL.record(EVENT)

    assert (entry.writes, entry.deletes) == (ENTRY_STORED, ENTRY_FORGOTTEN)
    assert entry.set_fields == {"tags"}
    assert event.writes is None
    assert (entries("n").kind, logged_events("n").kind) == (ENTRY, EVENT)


def test_a_merged_entry_is_held_to_the_limits_of_a_stored_one() -> None:
    validate = ALL.record(ENTRY).validate
    assert validate is not None

    validate({"value": "fine"})
    with pytest.raises(ValidationFailed):
        validate({"value": "x" * limits.VALUE_BYTES_MAX})


def test_the_text_of_a_message_is_the_same_after_it_was_stored() -> None:
    said = "The keeper counts boats"
    data = {"role": "user", "content": said, "message": said}

    assert logged(data=data) == logged(data=orjson.loads(orjson.dumps(data)))


def test_an_untrusted_text_is_no_standing_instruction() -> None:
    text = "Always use tabs."

    assert STANDING in stored(value=text).facets
    assert STANDING in logged(data={"role": "user", "text": text}).facets
    assert STANDING not in stored(value=text, trust="untrusted").facets
    assert STANDING not in logged(data={"role": "user", "text": text}, trust="untrusted").facets
