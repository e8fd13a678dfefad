"""Misses and empty lists in words."""

from __future__ import annotations

import stratagem
from stratagem.memory.sources import event_draft
from stratagem.operation import Caller
from stratagem.operations import find
from stratagem.storage.views import find_branch
from stratagem.surfaces.cli.output import shell_words


def said(db: stratagem.Stratagem, operation: str, **arguments: object) -> str:
    return find(operation).describe(db.call(operation, arguments))


def test_a_miss_does_not_contradict_itself() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("plan", 1, namespace="work")

        text = said(db, "strata_history", key="plan")

    assert text == (
        "Nothing was ever stored under 'plan' in the namespace 'default'. There is such a key in "
        "the namespace 'work': strata_history with key 'plan' and namespace 'work'."
    )
    assert shell_words(text).endswith("`stratagem history plan --namespace work`.")


def test_a_history_says_what_its_numbers_are() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("plan", "first")
        db.memory.forget("plan")

        text = said(db, "strata_history", key="plan")

    newest, first, _ = text.splitlines()
    assert newest.startswith("version 3 ")
    assert newest.endswith(" (forgotten)")
    assert first.startswith("version 2 ")


def test_a_key_that_was_stored_only_later_says_since_when() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        stored = db.memory.store("plan", "first")
        missed = find("strata_recall").describe(
            db.call("strata_recall", {"key": "plan", "as_of": "@1"})
        )

    assert f"It was stored only later, first at {stored.timestamp}; as_of '@2' shows it." in missed


def test_the_text_says_where_something_is_and_until_when() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.fork("trial")
        db.memory.switch("trial")
        stored = said(db, "strata_store", key="a", value=1, namespace="work", ttl="1h")
        expires = db.memory.recall("a", namespace="work").expires  # type: ignore[union-attr]
        listed = said(db, "strata_recall", namespace="work")
        status = said(db, "strata_status")
        deleted = said(db, "strata_branch", action="delete", name="trial")

    assert stored.endswith(f", branch 'trial', namespace 'work', expires {expires}.")
    assert f"namespace 'work', expires {expires}" in listed
    assert status == (
        "Branch 'trial' of 2: 1 key and 0 events in 1 namespace (work). "
        "Your namespace is 'default', which is empty."
    )
    assert "You are on the branch 'default' now." in deleted


def test_whoever_has_no_branch_is_told_how_to_choose_one() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.fork("trial")
        db.memory.switch("trial")
        stratagem.Stratagem(db.runtime, Caller(authority="operator")).memory.delete("trial")

        note, tool_note = db.memory.status().note, db.call("strata_status")["note"]

    assert note is not None
    assert "memory.switch()" in note
    assert "memory.restore('trial')" in note
    assert "`--branch NAME`" in shell_words(tool_note)


def test_a_question_in_place_of_a_key_is_sent_to_the_search() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.store("home/city", "Oslo")

        asked = said(db, "strata_recall", key="where is my home")
        near = said(db, "strata_recall", key="home/cit")
        forgotten = said(db, "strata_forget", key="where is my home")

    assert asked.endswith("strata_search with query 'where is my home' finds by words and meaning.")
    assert "`stratagem search 'where is my home'`" in shell_words(asked)
    assert "strata_search" not in near
    assert "strata_search" not in forgotten


def test_a_number_in_place_of_a_key_says_what_it_names() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        version = db.memory.store("home/city", "Oslo").version
        event = db.memory.log("note", "It rains.").sequence

        of_version = said(db, "strata_recall", key=f"@{version}")
        kept = said(db, "strata_forget", key=f"@{event}")
        read = said(db, "strata_history", key=f"@{event}")

    assert of_version == (
        f"'@{version}' is no key but a version of the entry 'home/city': "
        f"strata_recall with key 'home/city' and as_of '@{version}' shows it."
    )
    assert f"`stratagem recall home/city --as-of @{version}`" in shell_words(of_version)
    assert kept.startswith(f"'@{event}' is a logged event (note), and events are not forgotten")
    assert f"`stratagem purge --sequence {event}` erases it for good." in shell_words(kept)
    assert f"strata_recall with key '@{event}' reads it" in read


def test_a_session_that_is_not_there_is_told_with_those_that_are() -> None:
    with stratagem.open(":memory:", embedder="none") as db:
        db.memory.log("message", "to Rome", session="trip")

        text = said(db, "strata_history", session="tirp")

    assert text == "There are no such events. Sessions: trip."


def test_the_text_says_when_something_imported_was_said() -> None:
    record = {
        "event": "message",
        "data": {"role": "user", "text": "A tent"},
        "session": "s",
        "timestamp": "2025-10-09T14:00:00+02:00",
        "sequence": 7,
    }
    with stratagem.open(":memory:", embedder="none") as db:
        db.runtime.foundation.write(
            Caller("a"),
            lambda transaction: transaction.append(
                find_branch(transaction.branches, "default"), [event_draft(record, "default")]
            ),
        )
        (event,) = db.memory.events(session="s")
        texts = [
            said(db, "strata_search", query="tent"),
            said(db, "strata_recall", key=f"@{event.sequence}"),
            said(db, "strata_events", session="s"),
        ]

    assert event.occurred == "2025-10-09T12:00:00.000000Z"
    assert all(", occurred 2025-10-09T12:00Z" in text for text in texts)
