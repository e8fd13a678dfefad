"""Searching by words; `test_meaning` searches by meaning too."""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("search:hit")
def test_a_hit_of_an_entry_shows_all_of_it(call: Call) -> None:
    stored = call.store(key="city", value={"name": "Oslo", "by": "a fjord"}, tags=["norway"])

    answer = call.search(query="fjord")

    (hit,) = answer["results"]
    assert hit["kind"] == "entry"
    assert (hit["key"], hit["namespace"]) == ("city", "default")
    assert hit["value"] == {"name": "Oslo", "by": "a fjord"}
    assert (hit["version"], hit["timestamp"]) == (stored["version"], stored["timestamp"])
    assert hit["tags"] == ["norway"]
    assert "**fjord**" in hit["snippet"]
    assert "sequence" not in hit
    assert answer["truncated"] is False


@proves("search:nothing")
def test_a_search_that_finds_nothing_is_an_answer(call: Call) -> None:
    call.store(key="k", value="something")

    answer = call.search(query="anything")

    assert answer["results"] == []
    assert answer["truncated"] is False


@proves("search:nothing")
def test_a_namespace_without_anything_is_named_with_those_that_have_something(call: Call) -> None:
    call.store(key="plan", value="the party", namespace="team-b")
    call.log(event="note", data="the party", namespace="diary")
    call.branch(action="create", name="trial")
    call.store(key="plan", value="the party", namespace="team-c", branch="trial")

    note = call.search(query="party", namespace="teamb")["note"]

    assert note == "The namespace 'teamb' is empty. Namespaces in use: team-b, diary."


@proves("search:nothing")
def test_a_tag_that_nothing_has_is_named_with_those_in_use(call: Call) -> None:
    call.store(key="plan", value="the party", tags=["home", "fun"])
    call.log(event="note", data="the party", tags=["work"])

    assert call.search(query="party", tags=["hoem"])["note"] == (
        "Nothing here has the tag 'hoem'. Tags in use: home, fun, work."
    )
    assert call.search(query="party", tags=["home", "work"])["note"] == (
        "Without `tags` this search finds '@3' (namespace 'default'), 'plan' (namespace 'default')."
    )


@proves("search:nothing")
def test_a_memory_of_events_alone_is_not_listed_as_entries(call: Call) -> None:
    call.log(event="note", data="the party")

    answer = call.search(query="zebra")
    entries = call.search(query="party", kinds=["entry"])

    assert answer["note"] == (
        "There are logged events only: strata_history with order 'newest' lists them."
    )
    assert len(call.history(order="newest")["results"]) == 1
    assert entries["note"] == "There are no entries here, only logged events: leave `kinds` out."


@proves("search:near-words")
@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("brithday", "birthday"),
        ("when is the birtday", "birthday"),
        ("vegeterian", "vegetarian"),
        ("Postgress", "postgres"),
        ("Kuberntes", "kubernetes"),
        ("internationalisatoin", "internationalisation"),
        ("Росиия", "россия"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_one_that_is_stored(
    call: Call, query: str, meant: str
) -> None:
    call.store(key="user/birthday", value="on 3 May")
    call.store(key="diet", value="Anna is vegetarian, and Postgres is no food")
    call.log(event="note", data={"role": "user", "text": "Kubernetes, internationalisation"})
    call.store(key="trip", value="Россия")

    answer = call.search(query=query)

    assert answer["results"] == []
    assert answer["note"].startswith(f"Did you mean {meant!r}?")
    assert call.search(query=meant)["results"]


@proves("search:near-words")
def test_a_word_deep_in_a_long_page_is_suggested(call: Call) -> None:
    filler = "Parking is behind the house and the gate opens at noon. "
    call.store(key="page", value=filler * 600 + "The mascot is an axolotl. " + filler * 600)
    call.log(event="note", data={"role": "user", "text": filler * 600 + "We saw a wombat. "})

    assert call.search(query="mascott")["note"] == "Did you mean 'mascot'?"
    assert call.search(query="wombatt")["note"] == "Did you mean 'wombat'?"


@proves("search:near-words")
def test_no_word_of_another_branch_namespace_or_time_is_suggested(call: Call) -> None:
    call.store(key="pet", value="a kangaroo", namespace="other")
    call.store(key="zoo", value="a wallaby")
    call.forget(key="zoo")
    call.branch(action="create", name="trial")
    call.store(key="pet", value="a platypus", branch="trial")

    assert "kangaroo" in call.search(query="kangroo")["note"]
    assert "kangaroo" not in call.search(query="kangroo", namespace="default").get("note", "")
    assert "wallaby" not in call.search(query="walaby").get("note", "")
    assert "platypus" not in call.search(query="platypuss").get("note", "")
    assert "platypus" in call.search(query="platypuss", branch="trial")["note"]


@proves("search:absent-names")
@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("deadline of project Hermes", "No text that can be searched has 'Hermes'."),
        (
            "the deadline of Hermes or Zeus for SSL",
            "No text that can be searched has 'Hermes' or 'Zeus' or 'SSL'.",
        ),
        ("the deadline of Atlas", None),
        ("Deadline of the project", None),
        ("the deadline of TM-999", "No text that can be searched has 'TM-999'."),
        ("deadline 20714", "No text that can be searched has '20714'."),
        ("is the deadline in netTotal?", "No text that can be searched has 'netTotal'."),
        ("the deadline of PayDay", "No text that can be searched has 'PayDay'."),
        ("the deadline of TM-15", None),
        ("the deadline on a Monday in November", None),
        ("deadline for IT and the due date", None),
        ("Project Deadline And Due Date", None),
    ],
)
def test_a_name_that_no_text_has_is_said_beside_the_hits(
    call: Call, query: str, note: str | None
) -> None:
    call.store(key="atlas", value="the deadline of the project is 15 March")
    call.store(key="tickets", value="TM-15 is about the pay")

    answer = call.search(query=query)

    assert answer["results"]
    assert answer.get("note") == note


@proves("search:absent-names")
def test_a_name_is_not_said_to_be_nowhere_once_it_is_stored(call: Call) -> None:
    call.store(key="atlas", value="the deadline of the project is 15 March")
    assert "Hermes" in call.search(query="the deadline of Hermes")["note"]

    call.store(key="other", value="Hermes has none")

    assert "note" not in call.search(query="the deadline of Hermes")


@proves("search:earlier")
def test_an_earlier_version_that_matches_better_is_named(call: Call, clock: Clock) -> None:
    call.store(key="payments", value="We chose Adyen; Stripe was rejected for its fees")
    call.store(key="payments", value="We move to Mollie in January")
    call.store(key="cluster", value="Kubernetes was rejected")
    call.store(key="build", value="red since TestReserve fails", ttl=60)
    clock.advance(100)

    note = call.search(query="why was Stripe rejected")["note"]

    assert note == (
        "An earlier version of 'payments' matches more of the query: strata_history with key 'payments' and "
        "namespace 'default' shows it."
    )
    assert "'build'" in call.search(query="TestReserve")["note"]
    assert "note" not in call.search(query="why was Kubernetes rejected")


@proves("search:earlier")
def test_no_earlier_version_is_named_that_is_not_to_be_shown(call: Call) -> None:
    call.store(key="diary", value="Stripe is a zebra", namespace="private")
    call.forget(key="diary", namespace="private")
    call.branch(action="fork", name="trial")
    call.store(key="animals", value="Stripe is a zebra", branch="trial")
    call.store(key="animals", value="None", branch="trial")
    call.store(key="plan", value="Stripe is a zebra")
    call.store(key="plan", value="The plan is a zebra")

    answer = call.search(query="is Stripe a zebra")

    assert "'plan'" in answer["note"]
    assert "'plan'" not in call.search(query="is Stripe a zebra", namespace="private")["note"]
    assert "'animals'" in call.search(query="Stripe", branch="trial")["note"]
    call.forget(key="plan")
    assert "earlier" not in call.search(query="is Stripe a zebra")["note"]


@proves("search:other-branch")
def test_what_another_branch_has_is_named_with_that_branch(call: Call) -> None:
    for name in ("trial", "gone"):
        call.branch(action="fork", name=name)
        call.store(key="zoo", value="The quokka opens at nine", branch=name)
    call.branch(action="delete", name="gone")
    logged = call.log(event="note", data="wombats sleep until noon", branch="trial")["sequence"]
    moment = call.store(key="zoo", value="closed", namespace="other")["version"]

    note = call.search(query="when does the quokka open")["note"]

    assert note.endswith(
        "On the branch 'trial' 'zoo' matches more of the query: strata_recall with key 'zoo' and namespace "
        "'default' and branch 'trial' shows it."
    )
    assert f"'@{logged}'" in call.search(query="wombats")["note"]
    assert "trial" not in call.search(query="quokka", as_of=f"@{moment}")["note"]
    assert "trial" not in call.search(query="quokka", namespace="other")["note"]
    assert "note" not in call.search(query="quokka", branch="trial")


@proves("search:earlier")
@pytest.mark.parametrize(
    ("query", "says_so"),
    [
        ("what was the deploy day before?", True),
        ("when did the deploy day change", True),
        ("the original deploy day", True),
        ("the deploy day", False),
        ("when was the deploy meeting", False),
    ],
)
def test_who_asks_what_was_is_told_that_a_hit_was_changed(
    call: Call, query: str, says_so: bool
) -> None:
    call.store(key="deploy/day", value="Tuesday")
    call.store(key="deploy/day", value="Monday")
    call.store(key="deploy/meeting", value="The deploy meeting was moved")
    call.store(key="deploy/meeting", value="The deploy meeting was moved", tags=["team"])

    note = call.search(query=query).get("note")

    said = (
        "'deploy/day' was changed: strata_history with key 'deploy/day' and namespace 'default' "
        "shows what it said before."
    )
    assert note == (said if says_so else None)


@proves("search:by-time")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("what happened yesterday", "since '48h ago'"),
        ("what did we change today?", "since '24h ago'"),
        ("bugs of the last week", "since '14d ago'"),
        ("our last decision", "order 'newest'"),
        ("where did we leave off", "order 'newest'"),
        ("the last of the bugs", None),
        ("a weekly change", None),
    ],
)
def test_a_question_about_a_time_is_told_what_lists_by_time(
    call: Call, query: str, wanted: str | None
) -> None:
    call.log(event="decision", data="The bugs change where we happen to leave")

    note = call.search(query=query).get("note", "")

    if wanted is None:
        assert "By time" not in note
    else:
        assert f"By time: strata_history with {wanted} lists what was logged." in note
        since, order = re.findall(r"'(.*)'", wanted), "newest"
        given = {"since": since[0]} if "since" in wanted else {"order": order}
        assert call.history(**given)["results"]


@proves("search:by-time")
def test_who_asks_about_a_time_is_told_what_lists_entries_and_events(call: Call) -> None:
    call.log(event="decision", data="We deploy on Mondays")
    call.store(key="decision/sprint", value="Sprints last three weeks")

    note = call.search(query="which decisions were made last week")["note"]

    assert note == (
        "By time: strata_history with since '14d ago' lists what was logged, strata_recall with "
        "order 'newest' lists what is stored."
    )


@proves("search:by-time")
def test_where_nothing_was_logged_entries_are_listed_by_time(call: Call) -> None:
    stored = call.store(key="k", value="our last decision")

    note = call.search(query="last decision", namespace="default")["note"]

    assert note == (
        "By time: strata_recall with order 'newest' and namespace 'default' lists what is stored."
    )
    assert "By time" not in call.search(query="last decision", as_of=f"@{stored['version']}").get(
        "note", ""
    )


@proves("search:near-words")
@pytest.mark.parametrize("query", ["zzzzqqqq", "tip", "x" * 9_000, "qwer " * 1_900, "日本語の本だ"])
def test_what_is_near_nothing_gets_no_suggestion(call: Call, query: str) -> None:
    call.store(key="k", value="a trip to Oslo")

    assert "Did you mean" not in call.search(query=query).get("note", "")


@proves("search:near-words")
def test_words_that_only_build_a_question_are_not_taken_for_misspelt(call: Call) -> None:
    call.store(key="style", value="that sauce, served over rice, was three times better")
    call.store(key="diet", value="vegetarian")

    for query in ("what about Japan?", "did I ever see Japan?", "there, then, Japan", "wath now"):
        assert "Did you mean" not in call.search(query=query).get("note", "")
    answer = call.search(query="what does there seem vegeterian?")
    assert answer["note"].startswith("Did you mean 'vegetarian'?")


@proves("search:nothing")
def test_a_query_without_a_word_is_told_so(call: Call) -> None:
    call.store(key="city", value="Gothenburg")

    assert call.search(query="?!")["note"] == (
        "The query has no word to search for: say what to find."
    )


@proves("search:nothing")
def test_what_other_namespaces_have_is_named(call: Call) -> None:
    call.store(key="city", value="Gothenburg")
    call.store(key="deploy", value="Heroku", namespace="hobby")
    call.branch(action="create", name="trial")
    call.store(key="town", value="Gothenburg", namespace="other", branch="trial")

    note = call.search(query="Gothenburg", namespace="hobby")["note"]

    assert note == "Without `namespace` this search finds 'city' (namespace 'default')."


@proves("search:nothing")
def test_what_is_found_now_and_not_at_a_past_moment_is_named(call: Call) -> None:
    call.store(key="city", value="Gothenburg")

    note = call.search(query="Gothenburg", as_of="@1")["note"]

    assert note == "Without `as_of` this search finds 'city' (namespace 'default')."


@proves("search:nothing")
def test_where_nothing_matches_the_next_step_is_named(call: Call) -> None:
    call.store(key="city", value="Gothenburg")
    call.store(key="deploy", value="Heroku", namespace="hobby")
    version = call.recall(key="deploy", namespace="hobby")["version"]

    anywhere = call.search(query="zanzibar")["note"]
    there = call.search(query="zanzibar", namespace="hobby", as_of=f"@{version}")["note"]

    assert anywhere == (
        "Nothing that can be searched matches: try fewer or other words. "
        "strata_recall with order 'newest' lists what is stored."
    )
    assert f"order 'newest' and namespace 'hobby' and as_of '@{version}' lists" in there
    assert "words" in call.search(query="zanzibar", kinds=["concept"])["note"]


@proves("search:nothing")
def test_where_nothing_is_found_kinds_that_would_be_are_named(call: Call) -> None:
    call.store(key="lunch", value="Pancakes on Thursday")
    before = call.search(query="relief valve pressure")["note"]
    call("create_concept", name="Relief valve", explanation="It opens at a pressure of 8 bar.")
    concept = call.search(query="relief valve pressure")["note"]
    problem = "ValveError: the relief valve is stuck at this pressure"
    add_incident(call, title="The Otter stopped", error_signature=problem)

    both = call.search(query="relief valve pressure")["note"]
    other = call.search(query="zanzibar")["note"]
    elsewhere = call.search(query="relief valve pressure", namespace="hobby")["note"]

    assert "kinds" not in before
    assert concept == 'There are concepts that match: kinds=["concept"] searches them.'
    assert 'There are concepts and incidents that match: kinds=["concept", "incident"]' in both
    assert "kinds" not in other + elsewhere


@proves("search:nothing")
def test_who_asks_for_a_fix_is_told_of_incidents_beside_hits(call: Call) -> None:
    call.log(event="message", data="The relief valve is stuck again")
    add_incident(call, title="The Otter stopped", error_signature="ValveError: relief valve stuck")

    asked = call.search(query="how did we fix the stuck relief valve?")
    told = 'There are incidents that match: kinds=["incident"] searches them.'

    assert asked["results"]
    assert asked["note"] == told
    assert "note" not in call.search(query="is the relief valve stuck?")
    searched = call.search(query="fix the stuck relief valve", kinds=["event", "incident"])
    assert "incidents that match" not in searched.get("note", "")


@proves("search:nothing")
def test_a_page_past_the_last_hit_says_how_many_there_are(call: Call) -> None:
    call.store(key="city", value="Gothenburg")

    past = call.search(query="Gothenburg", cursor="10")

    assert past["note"] == "The results end before this cursor: there is 1 hit in all."


@proves("search:nothing")
def test_what_is_said_of_nothing_is_said_on_the_first_page_of_nothing_alone(call: Call) -> None:
    call.log(event="note", data="the party")

    assert "note" not in call.search(query="party")
    assert "note" not in call.search(query="zebra", cursor="10")


@proves("search:kinds")
@pytest.mark.parametrize(
    ("filters", "field"), [({"namespace": "work"}, "namespace"), ({"tags": ["a"]}, "tags")]
)
def test_what_no_concept_or_incident_has_is_refused_where_nothing_else_is_sought(
    call: Call, filters: dict[str, Any], field: str
) -> None:
    call.store(key="k", value="fjord", namespace="work", tags=["a"])

    refused = call.refusal("strata_search", query="fjord", kinds=["concept"], **filters)

    assert refused["details"]["field"] == field
    assert len(call.search(query="fjord", kinds=["entry", "concept"], **filters)["results"]) == 1


@proves("search:kinds")
def test_a_concept_is_found_in_the_namespace_that_its_hit_names(call: Call) -> None:
    call("create_concept", name="Fjord", explanation="A deep inlet of the sea")
    (hit,) = call.search(query="fjord", kinds=["concept"])["results"]

    (again,) = call.search(query="fjord", kinds=["concept"], namespace=hit["namespace"])["results"]

    assert again["key"] == hit["key"]


@proves("search:lexical")
def test_without_an_embedder_a_search_says_that_it_is_lexical(call: Call) -> None:
    call.store(key="k", value="fjord")

    assert call.search(query="fjord")["mode"] == "lexical"
    assert call.status()["auto_embed"] is False


@proves("search:score")
def test_a_score_does_not_depend_on_what_else_is_found(call: Call) -> None:
    call.store(key="part", value="the fjord is deep")
    alone = call.search(query="fjord water ferry")["results"][0]["score"]
    for number in range(20):
        call.store(key=f"other{number}", value=f"harbour {number}")
    call.store(key="whole", value="the ferry on the water of the fjord")

    found = {hit["key"]: hit["score"] for hit in call.search(query="fjord water ferry")["results"]}

    assert found["whole"] == 1.0
    assert found["part"] == pytest.approx(alone, abs=0.15)


@proves("search:instructions")
@pytest.mark.parametrize(
    "query", ["what are my standing instructions", "what do I want you to always do"]
)
def test_a_search_for_standing_instructions_says_what_lists_them(call: Call, query: str) -> None:
    said = "status lists the user's standing instructions."

    before = call.search(query=query)
    call.store(key="units", value="Please answer in metres from now on.")
    after = call.search(query=query)
    other = call.search(query="zebra")

    assert after["results"] == []
    assert said in after["note"].replace("`", "")
    assert said not in before.get("note", "").replace("`", "")
    assert said not in other.get("note", "").replace("`", "")


@proves("search:instructions")
@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("my standing instructions", True),
        ("what are my preferences", True),
        ("which rules do I have to follow", True),
        ("how should I behave in this project", True),
        ("instructions for the stand-up", False),
        ("when is the stand-up", False),
    ],
)
def test_hits_of_a_search_for_standing_instructions_do_not_hide_what_lists_them(
    call: Call, query: str, asks: bool
) -> None:
    said = "status lists the user's standing instructions."
    for number, word in enumerate(query.split()):
        call.store(key=f"word/{number}", value=f"{query}: stand-up is at 09:15, {word}")

    before = call.search(query=query)
    call.store(key="units", value="Please answer in metres from now on.")
    after = call.search(query=query)

    assert after["results"]
    assert said not in (before.get("note") or "").replace("`", "")
    assert (said in (after.get("note") or "").replace("`", "")) == asks


@proves("search:floor")
def test_what_has_next_to_nothing_of_a_query_is_not_found(call: Call) -> None:
    call.store(key="trip", value="Paris trip")
    for number in range(20):
        call.store(key=f"k{number}", value=f"note {number}")
    query = "weekly marketing budget and headcount of the Berlin office, then Rome and Paris"

    assert call.keys(query) == []
    assert call.search(query=query)["note"] == (
        "Nearest, but too weak to be a hit: 'trip'; min_score=0 shows it."
    )
    assert call.keys(query, min_score=0) == ["trip"]
    assert call.keys("Paris", min_score=1) == ["trip"]
    assert call.keys("Paris in spring", min_score=1) == []


HANDBOOK = (
    "This paragraph talks about parking and badges, at length and to nobody's delight. " * 20
    + "The wireless network of the office is called Otter-5G, its password hangs in the hall. "
    + "Lunch is served at noon, and whoever is late gets soup from yesterday instead. " * 20
)


@proves("search:passages")
def test_a_long_value_is_shown_by_the_passage_that_matches(call: Call) -> None:
    call.store(key="handbook", value=HANDBOOK)
    event = call.log(event="message", data={"text": HANDBOOK})["sequence"]

    answer = call.search(query="wireless network password")

    hits = {hit["kind"]: hit for hit in answer["results"]}
    for hit in hits.values():
        assert "Otter-5G" in hit["value"]
        assert len(hit["value"]) < 800
        assert "**wireless**" in hit["snippet"]
    assert hits["entry"]["chars"] == len(HANDBOOK)
    assert "strata_recall" in answer["note"]
    assert call.recall(key="handbook")["value"] == HANDBOOK
    assert call.recall(key=f"@{event}")["value"] == {"text": HANDBOOK}


def read_as_advised(call: Call, answer: dict[str, Any], hit: dict[str, Any]) -> dict[str, Any]:
    """Recall what a note says to recall, with what the hit and the note name and nothing else."""
    named = dict(re.findall(r"(branch|as_of) '([^']+)'", answer["note"]))
    key = hit.get("key") or f"@{hit['sequence']}"
    return call.recall(key=key, namespace=hit["namespace"], **named)


@proves("search:passages")
@pytest.mark.parametrize("view", [{}, {"as_of": "@3"}, {"branch": "trial"}, {"namespace": "team"}])
def test_what_is_said_of_a_long_value_reads_that_very_text(
    call: Call, view: dict[str, str]
) -> None:
    call.store(key="plan", value=f"first {HANDBOOK}")
    call.store(key="plan", value=f"team {HANDBOOK}", namespace="team")
    call.branch(action="fork", name="trial")
    call.store(key="plan", value=f"trial {HANDBOOK}", branch="trial")
    call.store(key="plan", value=f"second {HANDBOOK}")

    answer = call.search(query="wireless network password", **view)

    for hit in answer["results"]:
        assert read_as_advised(call, answer, hit)["version"] == hit["version"]
    named = [word for word in ("branch '", "as_of '") if word in answer["note"]]
    assert len(named) == len(view.keys() & {"branch", "as_of"})


@proves("search:passages")
@pytest.mark.parametrize(
    "value",
    [HANDBOOK, f"  {HANDBOOK}", {"role": "user", "text": HANDBOOK}, [{"a": 'ø "1"\n'}, HANDBOOK]],
)
def test_a_recall_goes_on_where_the_passage_begins(call: Call, value: Any) -> None:
    call.store(key="handbook", value=value)
    call.log(event="note", data=value)

    for hit in call.search(query="wireless network password")["results"]:
        key = hit.get("key") or f"@{hit['sequence']}"
        read = call.recall(key=key, cursor=str(hit["passage_at"]), max_chars=1_500)["value"]
        assert read.startswith(hit["value"])


@proves("search:passages")
@pytest.mark.parametrize("view", [{}, {"branch": "trial"}, {"as_of": "@2"}])
def test_a_long_concept_is_shown_by_the_passage_that_matches(
    call: Call, view: dict[str, str]
) -> None:
    made = call("create_concept", name="Raft", explanation=HANDBOOK)["concept_id"]
    call.branch(action="fork", name="trial")
    call("update_concept", concept_id=made, explanation=f"Now: {HANDBOOK}", branch="trial")

    answer = call.search(query="wireless network password", kinds=["concept"], **view)

    (hit,) = answer["results"]
    assert "Otter-5G" in hit["value"]
    assert len(hit["value"]) < 800
    assert hit["chars"] == len(
        call("get_concept", concept_id=made, **view)["concept"]["explanation"]
    )
    assert "get_concept with concept_id 'KEY'" in answer["note"]
    assert "strata_recall" not in answer["note"]
    named = dict(re.findall(r"(branch|as_of) '([^']+)'", answer["note"]))
    assert named == view
    cursor = str(hit["passage_at"])
    read = call("get_concept", concept_id=hit["key"], cursor=cursor, **named)["concept"]
    assert read["explanation"].startswith(hit["value"])


def add_incident(call: Call, **fields: Any) -> str:
    """Add an incident with a fix that worked; return its id."""
    fix = {"steps": "oil the valve", "env": {"os": "linux"}, "worked": True}
    incident_id: str = call("add_incident", **(fix | fields))["incident_id"]
    return incident_id


@proves("search:passages")
def test_a_long_incident_is_shown_by_the_passage_that_matches(call: Call) -> None:
    lines = [f"2026-01-01 INFO worker {number} is fine" for number in range(200)]
    lines.insert(150, "ValveError: the relief valve of the Otter is stuck")
    made = add_incident(call, title="The Otter stopped", error_signature="\n".join(lines))

    answer = call.search(query="ValveError: the relief valve is stuck", kinds=["incident"])

    (hit,) = answer["results"]
    assert "relief valve of the Otter" in hit["value"]
    assert len(hit["value"]) < 800 < hit["chars"]
    assert "passage_at" not in hit
    assert "show_record with record_id 'KEY' reads" in answer["note"]
    shown = call("show_record", record_id=hit["key"])
    assert shown["id"] == made
    assert hit["value"] in shown["error_signature"]


@proves("search:kinds")
def test_a_search_says_how_the_fixes_of_an_incident_are_found(call: Call) -> None:
    error = "ValveError: the relief valve is stuck"
    add_incident(call, title="Stuck", error_signature=error)
    call.store(key="valve", value="The relief valve is stuck")

    both = call.search(query=error, kinds=["entry", "incident"])
    entries = call.search(query=error)

    assert both["note"] == (
        "ranked_solutions with the error of an incident (its name, where it has none) ranks its "
        "fixes."
    )
    assert "note" not in entries


def add_pallets(call: Call) -> str:
    """Add an incident whose title, error, summary and fix have words of their own."""
    return add_incident(
        call,
        title="ETL load of shipments fails on pallet_count",
        error_signature="psycopg2.errors.NumericValueOutOfRange: value out of range for integer",
        summary="The Numbat exporter writes 64-bit counters",
        steps="ALTER TABLE shipments ALTER pallet_count TYPE bigint",
    )


@proves("search:kinds")
@pytest.mark.parametrize(
    "query", ["pallet_count", "shipments", "Numbat exporter", "bigint", "NumericValueOutOfRange"]
)
def test_an_incident_is_found_by_its_words_and_by_those_of_its_fix(call: Call, query: str) -> None:
    made = add_pallets(call)
    add_incident(call, title="The valve is stuck")

    (hit,) = call.search(query=query, kinds=["incident"])["results"]

    assert (hit["key"], hit["score"]) == (made, 1.0)
    assert query.split(maxsplit=1)[0] in hit["value"]
    assert "**" in hit["snippet"]


@proves("search:kinds")
def test_an_incident_is_found_by_its_id(call: Call) -> None:
    made = add_pallets(call)

    (hit,) = call.search(query=f" {made} ", kinds=["incident"])["results"]
    call("retire_record", record_id=made, reason="wrong")

    assert (hit["key"], hit["score"]) == (made, 1.0)
    assert call.search(query=made, kinds=["incident"])["results"] == []


@proves("search:kinds")
def test_an_incident_with_a_few_of_the_words_is_a_hit_where_any_score_will_do(call: Call) -> None:
    made = add_pallets(call)
    call.store(key="holidays", value="integer holidays in the mountains of southern spain")
    query: dict[str, Any] = {
        "query": "integer holidays in the mountains of southern spain",
        "kinds": ["incident"],
    }

    some = call.search(**query, min_score=0)["results"]

    assert [hit["key"] for hit in some] == [made]
    assert 0 < some[0]["score"] < 0.24
    assert call.search(**query)["results"] == []
    assert call.search(query="kangaroo", kinds=["incident"], min_score=0)["results"] == []


@proves("search:kinds")
def test_a_retired_fix_finds_nothing_and_a_merged_incident_its_replacement(call: Call) -> None:
    made = add_pallets(call)
    kept = add_incident(call, title="The valve is stuck")
    fix = call("show_record", record_id=made)["solutions"][0]["solution_id"]

    call("merge_records", record_id=made, into=kept)
    merged = call.search(query="bigint", kinds=["incident"])["results"]
    call("retire_record", record_id=fix, reason="wrong")

    assert [hit["key"] for hit in merged] == [kept]
    assert "bigint" in merged[0]["value"]
    assert call.search(query="bigint", kinds=["incident"])["results"] == []


@proves("search:kinds")
def test_fixes_with_the_same_words_push_no_incident_out_of_the_results(call: Call) -> None:
    for number in range(70):
        add_incident(call, title=f"Valve {number}", steps="open the valve", distinct=True)

    pages = [call.search(query="valve", kinds=["incident"], k=50)]
    pages.append(call.search(query="valve", kinds=["incident"], k=50, cursor=pages[0]["next"]))

    assert len({hit["key"] for page in pages for hit in page["results"]}) == 70
    assert "next" not in pages[1]


@proves("search:kinds")
def test_no_entry_is_taken_for_an_incident(call: Call) -> None:
    call.store(key="city", value="fjord")

    assert call.search(query="fjord", kinds=["incident"])["results"] == []


@proves("search:passages")
def test_a_passage_of_several_fields_has_no_place_in_the_value(call: Call) -> None:
    call.store(key="rooms", value={f"room{n}": f"The network is Otter-{n}" for n in range(99)})

    (hit,) = call.search(query="room50 Otter-50")["results"]

    assert "Otter-50" in hit["value"]
    assert "passage_at" not in hit


@proves("search:passages")
def test_a_passage_and_the_length_of_a_value_are_counted_as_a_recall_counts(call: Call) -> None:
    value = {"text": '"a"\n' * 700 + "needle = 1\n"}
    call.store(key="src", value=value)
    said = "haystack = 2. " + "Lunch is at noon. " * 100
    call.log(event="note", data={"role": "user", "text": said})

    later, first = (call.search(query=query)["results"][0] for query in ("needle", "haystack"))

    read = call.recall(key="src", cursor=str(later["passage_at"]))
    assert read["value"].startswith(json.dumps(later["value"])[1:-1])
    assert later["passage_at"] < later["chars"]
    assert f"of {later['chars']} of" in read["note"]
    assert first["passage_at"] == len('{"role":"user","text":"')


@proves("search:passages")
def test_ten_long_values_fit_into_an_answer(call: Call) -> None:
    for number in range(10):
        call.store(key=f"k{number}", value=f"{number} {HANDBOOK}")

    answer = call.search(query="wireless network password")

    assert len(answer["results"]) == 10


@proves("search:exchange")
def test_a_long_reply_without_the_words_is_shown_from_its_beginning(call: Call) -> None:
    rest = "Many sea birds gather there in spring and stay. " * 80
    answer = {"role": "assistant", "text": f"On cliffs. {rest}"}
    call.log(event="message", data={"role": "user", "text": "Where do puffins nest?"}, session="b")
    logged = call.log(event="message", data=answer, session="b")
    call.log(event="message", data={"role": "user", "text": "Do auks dive?"}, session="c")
    call.log(event="message", data={"role": "assistant", "text": "They  **do**."}, session="c")

    (long,) = call.search(query="puffins", k=1)["results"]
    (short,) = call.search(query="auks", k=1)["results"]

    assert long["reply"]["passage"].startswith("On cliffs. Many sea birds")
    assert long["reply"]["passage"].endswith("…")
    assert long["reply"]["chars"] == len(json.dumps(answer, separators=(",", ":")))
    read = call.recall(key=f"@{logged['sequence']}", cursor=str(long["reply"]["chars"] - 4))
    assert read["value"] == '. "}'
    assert "chars" not in short["reply"]


@proves("search:exchange")
def test_what_a_long_reply_has_of_the_words_is_shown(call: Call) -> None:
    rest = "Many sea birds gather there in spring and stay. " * 40
    call.log(event="message", data={"role": "user", "text": "Where do puffins nest?"}, session="b")
    answer = {"role": "assistant", "text": f"On cliffs. {rest} Most puffins like Iceland. {rest}"}
    call.log(event="message", data=answer, session="b")

    hit = call.search(query="Where do puffins nest?", k=1)["results"][0]

    assert "**puffins** like Iceland" in hit["reply"]["passage"]
    assert hit["reply"]["chars"] > 2_000


@proves("search:exchange")
def test_a_message_comes_with_its_reply(call: Call) -> None:
    asked, answered, _ = (
        call.log(event="message", data={"role": role, "text": text}, session="s")["sequence"]
        for role, text in (
            ("user", "Where do the puffins nest?"),
            ("assistant", f"{HANDBOOK} They nest on the northern cliffs."),
            ("user", "Thanks"),
        )
    )

    hits = {hit["sequence"]: hit for hit in call.search(query="northern cliffs")["results"]}
    found = {hit["sequence"]: hit for hit in call.search(query="where puffins nest")["results"]}

    assert hits[answered]["reply_to"]["sequence"] == asked
    assert "puffins" in hits[answered]["reply_to"]["passage"]
    assert found[asked]["reply"]["sequence"] == answered
    # It is a hit itself, and shown there.
    assert ("passage" in found[asked]["reply"]) is (answered not in found)


def converse(call: Call, *messages: tuple[str, str]) -> list[int]:
    """Log the messages of a session by role and text; return their sequences."""
    return [
        call.log(event="message", data={"role": role, "text": text}, session="s")["sequence"]
        for role, text in messages
    ]


@proves("search:exchange")
@pytest.mark.parametrize("role", ["assistant", "Agent", "ai", "bot", "model"])
@pytest.mark.parametrize(
    "between",
    [
        [],
        [("tool", "search -> 3 results")],
        [("user", "I mean the northern ones")],
        [("system", "Be brief"), ("function", "{}"), ("tool", "a"), ("developer", "b")],
    ],
)
def test_what_lies_between_a_question_and_its_answer_is_passed_over(
    call: Call, role: str, between: list[tuple[str, str]]
) -> None:
    asked, *_, answered = converse(
        call, ("user", "Where do puffins nest?"), *between, (role, "On the cliffs of Røst")
    )

    question = call.search(query="where puffins nest", k=1)["results"][0]
    answer = call.search(query="cliffs Røst", k=1)["results"][0]

    assert question["reply"]["sequence"] == answered
    last = answered - 1 if ("user", "I mean the northern ones") in between else asked
    assert answer["reply_to"]["sequence"] == last


@proves("search:exchange")
@pytest.mark.parametrize("steps", [2, 20])
def test_a_reply_is_the_last_that_was_said_before_the_next_question(call: Call, steps: int) -> None:
    work = [("assistant", "Let me look at where puffins nest."), ("tool", "3 pages")] * steps
    *_, answered, _, _ = converse(
        call,
        ("user", "Where do puffins nest?"),
        *work,
        ("assistant", "Found it: on the cliffs of Røst."),
        ("user", "And where do auks?"),
        ("assistant", "Farther south."),
    )

    hits = call.search(query="where do puffins nest?", k=1)["results"]

    assert [hit["reply"]["sequence"] for hit in hits] == [answered]


@proves("search:exchange")
def test_of_a_turn_without_an_end_in_sight_the_last_line_is_the_reply(call: Call) -> None:
    work = [(("assistant", f"Line {number}."), ("tool", "3 pages")) for number in range(40)]
    converse(call, ("user", "Where do puffins nest?"), *chain.from_iterable(work))

    (hit,) = call.search(query="where do puffins nest?", k=1)["results"]

    assert hit["reply"]["passage"] == "Line 23."


@proves("search:exchange")
def test_a_reply_that_did_not_fit_is_shown_by_what_it_says(call: Call) -> None:
    asked, answered = converse(
        call, ("user", "Where do puffins nest?"), ("assistant", "Puffins nest on the cliffs")
    )
    query = {"query": "where do puffins nest"}

    whole = {hit["sequence"]: hit for hit in call.search(**query)["results"]}
    cut = {hit["sequence"]: hit for hit in call.search(**query, max_chars=500)["results"]}

    assert "passage" not in whole[asked]["reply"]
    assert "passage" not in whole[answered]["reply_to"]
    assert len(cut) == 1
    relation, said = ("reply", "cliffs") if asked in cut else ("reply_to", "Where")
    assert said in next(iter(cut.values()))[relation]["passage"]


@proves("search:exchange")
def test_a_call_of_a_tool_is_no_answer(call: Call) -> None:
    converse(call, ("user", "Where do puffins nest?"))
    calls = {"role": "assistant", "content": None, "tool_calls": [{"name": "look"}]}
    call.log(event="message", data=calls, session="s")
    _, answered = converse(call, ("tool", "seen"), ("assistant", "On the cliffs"))

    hit = call.search(query="where puffins nest", k=1)["results"][0]

    assert hit["reply"]["sequence"] == answered


@proves("search:exchange")
def test_what_a_tool_returned_is_part_of_no_exchange(call: Call) -> None:
    converse(call, ("user", "Anything?"), ("tool", "seen: puffins"), ("assistant", "Yes"))

    hit = call.search(query="puffins", k=1)["results"][0]

    assert "reply" not in hit
    assert "reply_to" not in hit


@proves("search:exchange")
def test_a_reply_is_looked_for_among_the_next_messages_alone(call: Call) -> None:
    converse(
        call,
        ("user", "Where do puffins nest?"),
        *[("tool", f"step {number}") for number in range(60)],
        ("assistant", "Sorry, what was it?"),
    )

    hit = call.search(query="where puffins nest", k=1)["results"][0]

    assert "reply" not in hit


@proves("search:exchange")
def test_messages_made_of_blocks_are_exchanges_of_what_they_say(call: Call) -> None:
    asked = [{"type": "text", "text": "Where do puffins nest?"}]
    used = [{"type": "tool_use", "id": "t1", "name": "look_up", "input": {"bird": "puffin"}}]
    result = [{"type": "tool_result", "tool_use_id": "t1", "content": "3 pages"}]
    call.log(event="message", data={"role": "user", "content": asked}, session="s")
    call.log(event="message", data={"role": "assistant", "content": used}, session="s")
    call.log(event="message", data={"role": "user", "content": result}, session="s")
    call.log(event="message", data={"role": "model", "parts": [{"text": "On Røst."}]}, session="s")

    (hit,) = call.search(query="where do they nest", k=1)["results"]

    assert hit["snippet"] == "Where do puffins **nest**?"
    assert hit["reply"]["passage"] == "On Røst."
    assert call.search(query="assistant content type")["results"] == []


@proves("search:exchange")
def test_messages_without_roles_stand_for_themselves(call: Call) -> None:
    for text in ("Where do the puffins nest?", "On the northern cliffs"):
        call.log(event="message", data={"text": text}, session="s")

    hits = call.search(query="puffins cliffs")["results"]

    assert not any("reply" in hit or "reply_to" in hit for hit in hits)


@proves("search:score")
def test_scores_lie_between_zero_and_one_and_fall(call: Call) -> None:
    for number in range(20):
        call.store(key=f"k{number}", value="fjord " * (number % 4) + "water " * number)

    hits = call.search(query="fjord water", k=50)["results"]

    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] == 1.0
    assert all(0 <= score <= 1 for score in scores)


@proves("search:ties")
def test_of_equal_hits_the_newer_comes_first_every_time(call: Call) -> None:
    for number in range(12):
        call.store(key=f"k{number:02}", value="the same fjord")

    answers = [call.keys("fjord", k=5) for _ in range(3)]

    assert answers == [["k11", "k10", "k09", "k08", "k07"]] * 3


@proves("search:ties")
@pytest.mark.parametrize(
    ("older", "newer", "query"),
    [
        (("deploy-day", "Tuesdays"), ("deploy-day-2", "Thursdays"), "which day do we deploy"),
        (("a", "Tuesdays"), ("b", "Thursdays"), "which day do we deploy"),
    ],
)
def test_of_facts_that_have_the_same_words_the_newer_comes_first(
    call: Call, older: tuple[str, str], newer: tuple[str, str], query: str
) -> None:
    for key, day in (older, newer):
        call.store(key=key, value=f"We deploy on {day}")
    for number in range(20):
        call.store(key=f"filler{number}", value=f"Note {number} about lunch in the office")

    assert call.keys(query) == [newer[0], older[0]]


@proves("search:ties")
@pytest.mark.parametrize("query", ["what indentation does the user prefer", "indentation"])
def test_of_two_preferences_the_newer_comes_first(call: Call, query: str) -> None:
    changed = "Actually I changed my mind: I prefer four spaces for indentation."
    said = [
        call.log(event="message", data={"role": "user", "text": text}, session=session)["sequence"]
        for session, text in (("a", "I prefer tabs for indentation."), ("b", changed))
    ]

    hits = call.search(query=query)["results"]

    assert [hit["sequence"] for hit in hits] == said[::-1]


@proves("search:ties")
def test_a_newer_message_comes_first_only_where_both_are_preferences(call: Call) -> None:
    for text in ("The indentation of Go has tabs.", "In the meeting indentation was a topic again"):
        call.log(event="message", data={"role": "user", "text": text}, session="s")

    hits = call.search(query="indentation")["results"]

    assert hits[0]["value"]["text"].startswith("The indentation")
    assert hits[0]["score"] == hits[1]["score"]


@proves("search:ties")
def test_a_fact_with_more_of_the_words_comes_before_a_newer_one(call: Call) -> None:
    call.store(key="release", value="We deploy the web shop on Tuesdays")
    call.store(key="shipping", value="We deploy the office wiki on Thursdays")
    for number in range(20):
        call.store(key=f"filler{number}", value=f"Note {number} about lunch in the canteen")

    assert call.keys("when do we deploy the web shop")[0] == "release"


@proves("search:ranking")
def test_rarer_words_and_titles_count_for_more(call: Call) -> None:
    for number in range(20):
        call.store(key=f"filler{number}", value="water everywhere and nothing else")
    call.store(key="notes", value="the fjord has water")
    call.store(key="fjord", value="a deep one")

    assert call.keys("fjord water", k=2) == ["fjord", "notes"]


@proves("search:k")
def test_the_number_of_results_is_ten_unless_asked_otherwise(call: Call) -> None:
    call.store(items=[{"key": f"k{number}", "value": "fjord"} for number in range(60)])

    few, many = call.search(query="fjord"), call.search(query="fjord", k=50)

    assert (len(few["results"]), few["truncated"]) == (10, True)
    assert (len(many["results"]), many["truncated"]) == (50, True)
    assert len(call.search(query="fjord", k=1)["results"]) == 1


@proves("search:paging")
def test_pages_of_a_search_give_every_hit_once(call: Call) -> None:
    call.store(items=[{"key": f"k{number:02}", "value": "fjord"} for number in range(25)])

    first = call.search(query="fjord")
    second = call.search(query="fjord", cursor=first["next"])
    third = call.search(query="fjord", cursor=second["next"])

    keys = [hit["key"] for answer in (first, second, third) for hit in answer["results"]]
    assert keys == [f"k{number:02}" for number in range(24, -1, -1)]
    assert "next" not in third


@proves("search:paging")
def test_deep_pages_go_on_where_the_pages_before_ended(call: Call) -> None:
    # Instructions count for more, but the words of these match less: only a long ranking has them.
    values = ["a fjord of deep water"] * 210 + ["I prefer a fjord of very deep water"] * 40
    call.store(items=[{"key": f"k{number}", "value": value} for number, value in enumerate(values)])

    pages = {k: _follow(call, query="fjord", k=k) for k in (7, 50)}

    assert len(set(pages[50])) == len(pages[50]) == 250
    assert pages[7] == pages[50]


def _follow(call: Call, **arguments: Any) -> list[str]:
    """Return the keys of all pages."""
    answer = call.search(**arguments)
    keys = [hit["key"] for hit in answer["results"]]
    while "next" in answer:
        answer = call.search(**arguments, cursor=answer["next"])
        keys += [hit["key"] for hit in answer["results"]]
    return keys


@proves("search:past-the-end")
def test_a_cursor_past_the_last_hit_says_that_the_results_end_there(call: Call) -> None:
    call.store(items=[{"key": f"k{number}", "value": "fjord"} for number in range(3)])

    past, nothing = (call.search(query=query, cursor="20") for query in ("fjord", "desert"))
    too_deep = call.refusal("strata_search", query="fjord", cursor="10001")

    assert (past["results"], past["truncated"], past["ended_at"]) == ([], False, 3)
    assert "ended_at" not in nothing
    assert too_deep["details"] == {"field": "cursor", "limit": 10_000}
    assert "limit" not in call.refusal("strata_search", query="fjord", cursor="x")["details"]


FOUND: dict[str, tuple[Any, str]] = {
    "another case": ("The FJORD is deep", "fjord"),
    "another form": ("she was running", "run"),
    "another form of the query": ("to connect", "connections"),
    "accents left out": ("café in Zürich", "cafe zurich"),
    "accents written": ("cafe", "café"),
    "decomposed accents": ("cafe\u0301", "caf\u00e9"),
    "full width": ("ＡＢＣ１２３", "abc123"),
    "a ligature": ("ﬁne", "fine"),
    "Chinese": ("我喜欢喝绿茶", "绿茶"),
    "Chinese, one character": ("我喜欢喝绿茶", "茶"),
    "Japanese": ("東京タワーに行きました", "東京"),
    "Japanese kana": ("東京タワーに行きました", "タワー"),
    "Korean": ("서울에서 만나요", "서울"),
    "Thai": ("สวัสดีครับ", "สวัสดี"),
    "Russian": ("Привет, мир", "привет"),
    "Greek": ("Καλημέρα κόσμε", "καλημερα"),
    "Arabic": ("مرحبا بالعالم", "مرحبا"),
    "Hebrew": ("שלום עולם", "שלום"),
    "camel case": ("call getUserName() first", "user name"),
    "camel case, whole": ("call getUserName() first", "getUserName"),
    "camel case, lower": ("call getUserName() first", "getusername"),
    "snake case": ("set max_retry_count to 3", "retry"),
    "snake case, whole": ("set max_retry_count to 3", "max_retry_count"),
    "dotted": ("import os.path.join", "path"),
    "dotted, whole": ("import os.path.join", "os.path.join"),
    "a path": ("see src/stratagem/limits.py", "limits.py"),
    "a version": ("Python 3.11.7 is needed", "3.11.7"),
    "an error code": ("failed with ECONNREFUSED", "econnrefused"),
    "a Russian case": ("Я живу в Москве", "Москва"),
    "a Greek case": ("οι δρόμοι της Αθήνας", "Αθήνα"),
    "an address": ("mail ada@example.org", "ada@example.org"),
    "a number": ({"port": 8080}, "8080"),
    "a field": ({"portNumber": 1}, "port number"),
    "deep inside": ({"a": [{"b": {"c": "treasure"}}]}, "treasure"),
    "a boolean": ({"enabled": True}, "enabled true"),
    "an emoji": ("ship it 🚀", "🚀"),
    "stop words only": ("to be or not to be", "to be or not to be"),
    "C++": ("written in C++", "C++"),
}


@proves("search:languages")
def test_a_number_is_found_however_its_thousands_are_marked(call: Call) -> None:
    call.store(key="limit", value="Exports are limited to 5,000 rows.")
    call.store(key="cap", value="Uploads are capped at 12000 files")

    (limit,) = call.search(query="5000")["results"]
    (cap,) = call.search(query="12,000")["results"]

    assert limit["snippet"] == "Exports are limited to **5,000** rows."
    assert cap["snippet"] == "Uploads are capped at **12000** files"


@proves("search:languages")
@pytest.mark.parametrize(("value", "query"), FOUND.values(), ids=FOUND)
def test_a_text_is_found_by_words_in_any_language_and_spelling(
    call: Call, value: Any, query: str
) -> None:
    call.store(key="other", value="nothing of the kind")
    call.store(key="wanted", value=value)

    assert call.keys(query)[:1] == ["wanted"]


NOT_FOUND = {
    "part of a word": ("fjordland", "fjord"),
    "characters that are not together": ("绿色的茶", "绿茶"),
}


@proves("search:languages")
@pytest.mark.parametrize(("value", "query"), NOT_FOUND.values(), ids=NOT_FOUND)
def test_a_text_is_not_found_by_what_it_does_not_say(call: Call, value: str, query: str) -> None:
    call.store(key="k", value=value)

    assert call.keys(query) == []


@proves("search:key")
def test_an_entry_is_found_by_its_key(call: Call) -> None:
    call.store(key="deploy/production-token", value=1)

    assert call.keys("production") == call.keys("deploy/production-token")
    assert call.keys("production") == ["deploy/production-token"]


@proves("search:tags")
def test_several_tags_mean_all_of_them(call: Call) -> None:
    call.store(key="both", value="fjord", tags=["a", "b"])
    call.store(key="one", value="fjord", tags=["a"])
    call.log(event="event", data="fjord", tags=["b", "a", "c"])

    assert set(call.keys("fjord", tags=["a"])) == {"both", "one", "event"}
    assert set(call.keys("fjord", tags=["a", "b"])) == {"both", "event"}
    assert call.keys("fjord", tags=["a", "A"]) == []


@proves("search:filters-first")
def test_filters_apply_before_the_best_are_taken(call: Call) -> None:
    faint = "fjord " + "water " * 60
    call.store(key="tagged", value=faint, tags=["t"])
    call.store(key="spaced", value=faint, namespace="other")
    call.branch(action="fork", name="trial")
    call.store(key="branched", value=faint, branch="trial")
    call.store(items=[{"key": f"k{number}", "value": "fjord"} for number in range(60)])

    assert call.keys("fjord", k=1, tags=["t"]) == ["tagged"]
    assert call.keys("fjord", k=1, namespace="other") == ["spaced"]
    assert set(call.keys("fjord", k=50, branch="trial")) == {"tagged", "spaced", "branched"}
    assert set(call.keys("fjord", k=50, as_of="@3")) == {"tagged", "spaced"}


@proves("search:namespaces")
def test_all_namespaces_are_searched_unless_one_is_named(call: Call) -> None:
    call.store(key="a", value="fjord")
    call.store(key="b", value="fjord", namespace="other")

    assert set(call.keys("fjord")) == {"a", "b"}
    assert call.keys("fjord", namespace="other") == ["b"]
    assert call.keys("fjord", namespace="third") == []


@proves("search:views")
def test_a_search_sees_exactly_what_a_recall_there_would_see(call: Call, clock: Clock) -> None:
    moments = []
    for turn in range(4):
        clock.advance(10)
        moments.append(call.store(key=f"k{turn % 3}", value=f"fjord {turn}")["version"])
        if turn == 1:
            call.branch(action="fork", name="trial")
        if turn > 1:
            call.store(key="k0", value=f"fjord trial {turn}", branch="trial")
            moments.append(call.forget(key="k1", branch="trial").get("version", 1))
            call.store(key="brief", value="fjord brief", ttl="5s", branch="trial")

    for branch in ("default", "trial"):
        for view in ({}, *({"as_of": f"@{moment}"} for moment in moments)):
            recalled = call.recall(keys=["k0", "k1", "k2", "brief"], branch=branch, **view)
            found = call.search(query="fjord", branch=branch, k=50, **view)
            assert {(hit["key"], hit["version"]) for hit in found["results"]} == {
                (entry["key"], entry["version"]) for entry in recalled["results"]
            }, (branch, view)


@proves("search:no-leaks")
def test_nothing_forgotten_later_or_of_another_branch_is_found(call: Call) -> None:
    then = call.store(key="k", value="visible")["version"]
    call.branch(action="fork", name="trial")
    call.store(key="secret", value="treasure", branch="trial")
    call.log(event="secret", data="treasure", branch="trial")
    call.store(key="gone", value="treasure")
    call.forget(key="gone")
    call.store(key="replaced", value="treasure")
    call.store(key="replaced", value="plain")
    call.store(key="late", value="treasure late")

    assert call.keys("treasure") == ["late"]
    assert call.keys("treasure", as_of=f"@{then}") == []
    call.branch(action="delete", name="trial")
    assert call.keys("treasure") == ["late"]


@proves("search:snippet")
def test_a_snippet_shows_the_words_in_their_place(call: Call) -> None:
    call.store(key="k", value="water " * 200 + "the deep Fjord of Norway " + "water " * 200)

    snippet = call.search(query="fjord norway")["results"][0]["snippet"]

    assert "deep **Fjord** of **Norway**" in snippet
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet) <= 240


@proves("search:long-text")
def test_a_long_text_is_found_by_any_part_of_it_and_kept_whole(call: Call) -> None:
    text = "beginning " + "x " * 150_000 + "ending"
    call.store(key="k", value=text)

    assert call.keys("beginning") == ["k"]
    assert call.keys("ending") == ["k"]
    assert call.recall(key="k", max_chars=1_000_000)["value"] == text


@proves("search:long-text")
@pytest.mark.parametrize("made_of", ["text", "fields", "message"])
def test_the_end_of_a_text_of_a_million_characters_is_shown_where_it_matches(
    call: Call, made_of: str
) -> None:
    filler = "The ferry leaves the harbour at nine in the morning. " * 19_000
    fact = "The violet canoe of Amara is kept in the chapel."
    if made_of == "message":
        data = {"role": "user", "content": f"{filler}{fact} {filler[:2_000]}"}
        call.log(event="message", data=data, session="s")
    else:
        text = f"{filler}{fact} {filler[:2_000]}"
        call.store(key="k", value=text if made_of == "text" else {"first": filler, "then": text})
    call.store(key="other", value="Oslo lies on a fjord.")

    hit = call.search(query="where is the violet canoe of Amara")["results"][0]

    assert fact in hit["value"]
    assert len(hit["value"]) < 1_000
    assert hit["chars"] > 1_000_000


@proves("search:long-text")
def test_words_from_all_over_a_very_long_text_are_no_match(call: Call) -> None:
    filler = "The ferry leaves the harbour at nine in the morning. " * 10
    parts = [f"{filler}{word} {filler}" * 100 for word in ("violet", "canoe", "chapel", "Amara")]
    call.store(key="long", value="".join(parts))
    call.store(key="short", value="The violet canoe of Amara is kept in the chapel.")

    hits = call.search(query="violet canoe Amara chapel", min_score=0)["results"]

    scores = {hit["key"]: hit["score"] for hit in hits}
    assert hits[0]["key"] == "short"
    assert scores["long"] < scores["short"] / 2


@proves("search:long-query")
def test_a_question_may_be_a_whole_error_message(call: Call) -> None:
    call.store(key="k", value="ConnectionResetError in worker")
    message = "Traceback (most recent call last):\n" + "  File 'a.py', line 1\n" * 300
    message += "ConnectionResetError: [Errno 104]"

    assert call.keys(message[:10_000]) in ([], ["k"])
    assert call.keys(message[-2_000:]) == ["k"]


QUESTION = "Why did the nightly backup fail?"


def ask(call: Call, session: str, *said: tuple[str, str]) -> list[int]:
    """Log what was said in a session; return the sequences."""
    return [
        call.log(event="message", data={"role": role, "text": text}, session=session)["sequence"]
        for role, text in said
    ]


@proves("search:questions")
@pytest.mark.parametrize("asked", [QUESTION, "why did the nightly backup fail"])
@pytest.mark.parametrize("k", [1, 10])
def test_questions_that_nobody_answered_come_last(call: Call, asked: str, k: int) -> None:
    for number in range(12):
        ask(call, f"s{number}", ("user", asked))
    call.store(key="backup", value="The nightly backup lost read access to the volume")
    answered, _ = ask(call, "answered", ("user", asked), ("assistant", "The disk was full."))
    present = ask(call, "now", ("user", asked))

    hits = call.search(query=QUESTION, k=k)["results"]
    everything = call.search(query=QUESTION, k=20)["results"]

    assert hits[0].get("sequence") == answered
    assert "lowered" not in hits[0]
    assert [hit.get("lowered") for hit in everything] == [None] * (len(everything) - 13) + [
        "unanswered"
    ] * 13
    assert "backup" in [hit.get("key") for hit in everything[:-13]]
    assert everything[-13]["sequence"] == present[0]


@proves("search:questions")
def test_questions_that_nobody_answered_are_found_where_there_is_nothing_else(call: Call) -> None:
    asked = [
        sequence for number in range(3) for sequence in ask(call, f"s{number}", ("user", QUESTION))
    ]

    found = [hit["sequence"] for hit in call.search(query="nightly backup")["results"]]

    assert sorted(found) == asked


@proves("search:questions")
@pytest.mark.parametrize(
    "said",
    [
        [("user", "The nightly backup failed")],
        [("user", "Can the nightly backup, which Mara moved to Frankfurt in May, fail again?")],
        [("user", "Did the nightly backup fail on 12/05?")],
        [("assistant", "What shall I look at?"), ("user", "The nightly backup, ok?")],
        [("assistant", "Did the nightly backup fail?")],
        [("user", "Why did the nightly backup fail? Full disk")],
        [("user", "The nightly backup failed again, right?")],
        [("user", "We moved the nightly backup. Did it fail?")],
        [("user", "Can you remember that the nightly backup failed?")],
    ],
)
def test_what_tells_something_is_no_mere_question(call: Call, said: list[tuple[str, str]]) -> None:
    ask(call, "s", *said)
    for number in range(3):
        call.store(key=f"note{number}", value="A backup of the wiki")

    hits = call.search(query="nightly backup failed")["results"]

    assert not any("lowered" in hit for hit in hits)
    assert said[-1][1] == hits[0]["value"]["text"]


@proves("search:questions")
def test_of_a_message_that_was_said_again_one_takes_a_first_place(call: Call) -> None:
    text = "Look at the nightly backup and say why it failed"
    first = ask(call, "a", ("user", text))
    answered, reply = ask(call, "b", ("user", text), ("assistant", "The disk was full."))
    newest = ask(call, "c", ("user", text.upper()))
    call.store(key="backup", value="The backup of the wiki runs on Fridays")
    elsewhere = ask(call, "d", ("user", text))
    data = {"role": "user", "text": text}
    other = call.log(event="message", data=data, session="s", namespace="x")["sequence"]

    hits = call.search(query="nightly backup failed")["results"]

    shown = [hit.get("sequence") for hit in hits if "lowered" not in hit]
    assert sorted(shown[:3]) == [answered, reply, other]
    assert shown[3:] == [None]
    assert {hit["sequence"]: hit["lowered"] for hit in hits if "lowered" in hit} == dict.fromkeys(
        (*first, *newest, *elsewhere), "repeated"
    )


@proves("search:questions")
def test_of_what_a_tool_said_again_and_again_the_last_takes_a_first_place(call: Call) -> None:
    said = {"role": "tool", "text": "pytest: the nightly backup failed"}
    failures = [call.log(event="tool", data=said, session=name)["sequence"] for name in "abc"]
    call.log(event="check", data=said["text"])
    call.store(key="fix", value="The nightly backup failed for want of room: prune the disk")

    hits = call.search(query="nightly backup failed")["results"]

    assert [hit["sequence"] for hit in hits if "lowered" in hit] == failures[1::-1]
    assert {hit.get("key") for hit in hits[:3]} == {"fix", None}
    assert failures[-1] in {hit.get("sequence") for hit in hits[:3]}


@proves("search:questions")
def test_messages_that_differ_beside_their_words_are_not_the_same(call: Call) -> None:
    for words in ("", "Seen"):
        for bird in ("puffin of Røst", "puffin of Iceland"):
            data = {"role": "user", "text": words, "bird": bird}
            call.log(event="message", data=data, session="s")

    hits = call.search(query="puffin")["results"]

    assert len(hits) == 4
    assert not any("lowered" in hit for hit in hits)


@proves("search:questions")
@pytest.mark.parametrize("kinds", [None, ["entry", "event", "concept"]])
def test_pages_give_lowered_hits_once(call: Call, kinds: list[str] | None) -> None:
    for number in range(15):
        ask(call, f"s{number}", ("user", QUESTION))
        call.store(key=f"k{number}", value=f"The nightly backup of host {number} did fail")
    call("create_concept", name="Nightly backup", explanation="A copy that is made at night.")
    more = {} if kinds is None else {"kinds": kinds}

    found, cursor = [], None
    while True:
        given = more if cursor is None else {**more, "cursor": cursor}
        answer = call.search(query=QUESTION, k=4, **given)
        found += answer["results"]
        cursor = answer.get("next")
        if cursor is None:
            break

    places = [(hit["kind"], hit["version"]) for hit in found]
    assert len(places) == len(set(places)) == 30 + (kinds is not None)
    assert [hit.get("lowered") for hit in found[-15:]] == ["unanswered"] * 15


@proves("search:questions")
def test_pages_give_what_was_said_again_once(call: Call) -> None:
    said = [ask(call, f"s{each}", ("user", "Run the nightly backup"))[0] for each in range(25)]
    for number in range(15):
        call.store(key=f"k{number}", value=f"The nightly backup of host {number}")

    found, cursor = [], "0"
    while cursor:
        answer = call.search(query="nightly backup", k=7, cursor=cursor)
        found += answer["results"]
        cursor = answer.get("next", "")

    versions = [hit["version"] for hit in found]
    assert len(versions) == len(set(versions)) == 40
    assert [hit.get("lowered") for hit in found] == [None] * 16 + ["repeated"] * 24
    assert set(said) == {hit["version"] for hit in found if hit["kind"] == "event"}
