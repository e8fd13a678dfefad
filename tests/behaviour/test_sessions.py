"""The earlier messages of a session give the later ones context, and nothing leaks through it."""

from __future__ import annotations

from tests.behaviour.conftest import Call
from tests.manifest import proves


def say(call: Call, *texts: str, session: str = "s", **options: object) -> None:
    for text in texts:
        call.log(event=text.split()[0], data=text, session=session, **options)


@proves("session:context")
def test_a_message_is_found_by_what_was_said_before_it(call: Call) -> None:
    say(call, "ask where is the lighthouse", "answer on the northern cape")

    assert call.keys("lighthouse cape")[0] == "answer"
    assert set(call.keys("lighthouse")) == {"ask", "answer"}


@proves("session:context")
def test_a_message_that_says_it_outranks_one_that_follows(call: Call) -> None:
    say(call, "ask where is the lighthouse", "answer on the northern cape")

    assert call.keys("lighthouse") == ["ask", "answer"]


@proves("session:context")
def test_only_the_messages_just_before_give_context(call: Call) -> None:
    say(call, "one lighthouse", "two", "three", "four")

    assert set(call.keys("lighthouse")) == {"one", "two", "three"}


@proves("session:context")
def test_a_long_message_gives_no_context(call: Call) -> None:
    words = " ".join(f"word{number}" for number in range(80))
    say(call, f"one lighthouse {words}", "two plain")

    assert call.keys("lighthouse") == ["one"]


@proves("session:preceding")
def test_nothing_said_later_gives_context(call: Call) -> None:
    say(call, "one plain", "two lighthouse")

    assert call.keys("lighthouse") == ["two"]


@proves("session:apart")
def test_other_sessions_namespaces_and_messages_without_one_give_no_context(call: Call) -> None:
    say(call, "one lighthouse", session="a")
    say(call, "two plain", session="b")
    say(call, "three plain", session="a", namespace="other")
    call.log(event="four", data="plain")

    assert call.keys("lighthouse") == ["one"]


@proves("session:branch")
def test_a_branch_gives_no_context_to_another(call: Call) -> None:
    say(call, "one plain")
    call.branch(action="fork", name="trial")
    say(call, "two lighthouse", branch="trial")
    say(call, "three plain")
    say(call, "four plain", branch="trial")

    assert call.keys("lighthouse") == []
    assert set(call.keys("lighthouse", branch="trial")) == {"two", "four"}


@proves("session:branch")
def test_a_fork_takes_context_from_before_the_fork(call: Call) -> None:
    say(call, "one lighthouse")
    call.branch(action="fork", name="trial")

    say(call, "two plain", branch="trial")

    assert set(call.keys("lighthouse", branch="trial")) == {"one", "two"}


@proves("session:branch")
def test_a_merge_carries_messages_over_with_the_context_they_have_there(call: Call) -> None:
    call.branch(action="fork", name="trial")
    say(call, "one lighthouse", branch="trial")
    say(call, "two plain", branch="trial")
    say(call, "other lighthouse", session="s", namespace="other", branch="trial")

    call.branch(action="merge", source="trial")

    assert set(call.keys("lighthouse", namespace="default")) == {"one", "two"}
    assert call.keys("lighthouse", namespace="other") == ["other"]


@proves("session:entries")
def test_an_entry_takes_context_from_its_session_and_gives_none(call: Call) -> None:
    say(call, "one lighthouse")
    call.store(key="note", value="plain harbour", session="s")
    say(call, "two plain")

    assert set(call.keys("lighthouse")) == {"one", "note", "two"}
    assert call.keys("harbour") == ["note"]


@proves("session:forgotten")
def test_a_forgotten_entry_is_not_found_through_its_neighbours(call: Call) -> None:
    call.store(key="note", value="lighthouse", session="s")
    say(call, "after plain")

    call.forget(key="note")

    assert call.keys("lighthouse") == []


@proves("session:hit")
def test_a_hit_shows_the_words_of_the_message_and_not_of_its_context(call: Call) -> None:
    say(call, "ask where is the lighthouse", "answer on the northern cape")

    hit = next(
        hit for hit in call.search(query="lighthouse")["results"] if hit["event"] == "answer"
    )

    assert "lighthouse" not in hit["snippet"]
    assert hit["session"] == "s"
