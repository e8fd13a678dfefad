"""Learning: from calls that worked, counted in the log, without anybody's values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.behaviour.gateway.workshop import Workshop, workshop
from tests.manifest import proves

# About so many confirmations without a contradiction make a meaning certain.
CERTAIN = 10


@proves("lesson:taught")
def test_a_call_made_again_teaches_what_a_name_meant(shop: Workshop) -> None:
    shop.teach("needle", 1)

    assert shop.lessons() == {("$", "query"): (1, 0)}
    (told,) = shop.told("pattern:learned")
    assert told["applicableTools"] == ["search"]
    assert told["name"] == "search: a name means query"


@proves("lesson:certain")
def test_a_name_is_applied_once_it_is_certain(shop: Workshop) -> None:
    shop.teach("needle", CERTAIN)

    answer = shop.run("search", {"needle": "never seen"})

    assert answer["result"]["query"] == "never seen"
    assert answer["metadata"]["correction"]["appliedPattern"] == "key_known_alias"
    evolved = shop.told("pattern:evolved")
    assert len(evolved) == CERTAIN - 1
    assert evolved[-1]["changes"]["successes"] == [CERTAIN - 1, CERTAIN]


@proves("lesson:callers")
def test_what_one_caller_means_is_not_certain_for_another(shop: Workshop) -> None:
    shop.teach("needle", CERTAIN)

    refused = shop.fails("search", {"needle": "tea"}, "bob")
    assert refused.details["corrections"][0]["correctedParameters"] == {"query": "tea"}
    shop.run("search", {"query": "tea"}, "bob")

    assert shop.run("search", {"needle": "milk"}, "cem")["result"]["query"] == "milk"


@proves("lesson:contradicted")
def test_a_name_that_means_two_things_never_becomes_certain(shop: Workshop) -> None:
    for number in range(CERTAIN + 2):
        for name in ("recipient", "amount"):
            good = {"recipient": f"somebody {number}", "amount": 100 + number}
            bad = {("thing" if each == name else each): value for each, value in good.items()}
            shop.fails("send", bad)
            shop.run("send", good)

    for name in ("recipient", "amount"):
        good = {"recipient": "x", "amount": 1}
        bad = {("thing" if each == name else each): value for each, value in good.items()}
        assert shop.fails("send", bad).details["withheld"]


@proves("lesson:taught")
def test_a_word_for_a_listed_value_is_learned(shop: Workshop) -> None:
    for number in range(CERTAIN):
        shop.fails("switch", {"lamp": f"lamp {number}", "state": "lit"})
        shop.run("switch", {"lamp": f"lamp {number}", "state": "on"})

    answer = shop.run("switch", {"lamp": "hall", "state": "Lit"})

    assert answer["result"]["state"] == "on"
    assert answer["metadata"]["correction"]["appliedPattern"] == "enum_known_alias"


@proves("lesson:taught", "offer:confirm")
def test_a_confirmed_offer_teaches(shop: Workshop) -> None:
    made = shop.fails("search", {"needle": "tea"}).details["corrections"][0]["correctionId"]

    shop.run("search", {"needle": "tea"}, correctionId=made, confirm=True)

    assert shop.lessons() == {("$", "query"): (1, 0)}


@proves("lesson:taught")
def test_a_correction_that_nobody_confirmed_teaches_nothing(shop: Workshop) -> None:
    shop.teach("needle", CERTAIN)
    for number in range(5):
        shop.run("search", {"needle": f"more {number}"})

    assert shop.lessons() == {("$", "query"): (CERTAIN, 0)}


@proves("lesson:contradicted")
def test_a_learned_name_that_fails_is_certain_no_more(shop: Workshop) -> None:
    shop.teach("needle", CERTAIN)

    shop.fails("search", {"needle": "unlucky"})

    assert shop.lessons() == {("$", "query"): (CERTAIN, 1)}
    assert shop.fails("search", {"needle": "tea"}).details["withheld"]
    assert shop.told("pattern:evolved")[-1]["changes"]["failures"] == [0, 1]


def confirmed_failure(shop: Workshop, given: dict[str, Any], who: str) -> None:
    """Have a correction fail, applied or confirmed; the tool itself stays in good standing."""
    error = shop.fails("search", given, who)
    if "corrections" in error.details:
        made = error.details["corrections"][0]["correctionId"]
        shop.fails("search", given, who, correctionId=made, confirm=True)
    shop.run("search", {"query": "all is well"}, "somebody else")
    shop.settle()


@proves("lesson:deprecated")
def test_a_pattern_that_stops_working_is_deprecated_and_comes_back(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enableCircuitBreaker": False})
    for number in range(8):
        shop.run("search", {"query": f"tea {number}", "limit": "3"})
    for number in range(8):
        confirmed_failure(shop, {"query": f"unlucky {number}", "limit": "3"}, f"c{number}")

    refused = shop.fails("search", {"query": "tea", "limit": "4"}, "dan")
    assert "stopped working" in refused.details["withheld"]
    (told,) = shop.told("pattern:deprecated")
    assert told["patternId"] == "search:string_to_number_conversion"
    listed = shop.ask("auto_correction_patterns")["patterns"]
    assert listed[0]["status"] == "deprecated"
    assert shop.ask("auto_correction_insights")["trends"]["patternsDeprecated"] == 1

    for number in range(8):
        given = {"query": f"milk {number}", "limit": "3"}
        made = shop.ask("error_diagnose", toolName="search", parameters=given)
        offered = made["autoCorrection"]["corrections"][0]["correctionId"]
        shop.run("search", given, f"e{number}", correctionId=offered, confirm=True)

    shop.settle()
    assert shop.ask("auto_correction_patterns")["patterns"][0]["status"] == "active"


@proves("lesson:deprecated")
def test_a_failed_correction_lowers_the_confidence_of_the_next(shop: Workshop) -> None:
    given = {"query": "tea", "limit": "3"}
    confidences = [shop.run("search", given)["metadata"]["correction"]["confidence"]]
    shop.fails("search", {"query": "unlucky", "limit": "3"})
    shop.settle()
    confidences.append(shop.run("search", given)["metadata"]["correction"]["confidence"])
    for number in range(3):
        shop.fails("search", {"query": f"unlucky {number}", "limit": "3"}, f"c{number}")
        shop.settle()

    refused = shop.fails("search", given, "bob")

    confidences.append(refused.details["corrections"][0]["confidence"])
    assert confidences == sorted(confidences, reverse=True)
    assert len(set(confidences)) == 3


@proves("lesson:verdicts")
def test_what_never_reached_the_tool_is_no_verdict(shop: Workshop) -> None:
    shop.database.gateway.update("search", configuration={"rateLimit": 1})
    shop.run("search", {"query": "x"})

    shop.fails("search", {"query": "tea", "limit": "3"})

    assert shop.ask("auto_correction_status")["metrics"]["totalCorrections"] == 0


@proves("policy:settings")
def test_nothing_is_learned_where_learning_is_off(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enableLearning": False})

    shop.teach("needle", 2)

    assert shop.lessons() == {}
    assert shop.told("pattern:learned") == []


@proves("lesson:log")
def test_lessons_are_a_branchs_own_until_they_are_merged(shop: Workshop) -> None:
    shop.ask("strata_branch", action="fork", name="trial")
    for number in range(2):
        shop.fails("search", {"needle": f"a value {number}"}, branch="trial")
        shop.run("search", {"query": f"a value {number}"}, branch="trial")
    shop.teach("needle", 3)

    assert shop.lessons() == {("$", "query"): (3, 0)}
    assert shop.lessons("trial") == {("$", "query"): (2, 0)}

    shop.ask("strata_branch", action="merge", source="trial")

    assert shop.lessons() == {("$", "query"): (5, 0)}


@proves("lesson:log")
def test_what_was_learned_outlives_the_process_and_a_rebuild(tmp_path: Path) -> None:
    with workshop(tmp_path / "kept.db") as first:
        first.teach("needle", CERTAIN)
        first.rebuild()
        before = first.lessons()
    with workshop(tmp_path / "kept.db") as second:
        assert second.lessons() == before == {("$", "query"): (CERTAIN, 0)}
        assert second.run("search", {"needle": "tea"})["result"]["query"] == "tea"


@proves("policy:settings")
def test_experimental_features_offer_what_other_tools_taught(shop: Workshop) -> None:
    for number in range(5):
        good = {"recipient": f"somebody {number}", "amount": 100 + number}
        shop.fails("send", {"thing": good["recipient"], "amount": good["amount"]})
        shop.run("send", good)

    def post(recipient: str = "nobody", subject: str = "", copies: int = 1) -> dict[str, Any]:
        return {"recipient": recipient, "subject": subject, "copies": copies}

    shop.database.gateway.add(post)
    before = shop.fails("post", {"thing": "bob"})
    shop.ask("auto_correction_configure", settings={"experimentalFeatures": True})
    after = shop.fails("post", {"thing": "bob"}, "new")

    meant = {"recipient": "bob"}
    offered = [each["correctedParameters"] for each in after.details["corrections"]]
    assert meant in offered
    assert after.details["withheld"]
    first = [each["correctedParameters"] for each in before.details.get("corrections", ())]
    assert meant not in first[:1]


@proves("lesson:profile")
def test_the_usual_listed_value_is_offered_for_a_missing_one(shop: Workshop) -> None:
    for number in range(6):
        shop.run("switch", {"lamp": f"lamp {number}", "state": "on"})
    shop.settle()

    (offered,) = shop.fails("switch", {"lamp": "hall"}).details["corrections"]

    assert offered["correctedParameters"] == {"lamp": "hall", "state": "on"}
    assert offered["appliedPattern"] == "usual_value_for_missing"
    assert offered["riskLevel"] == "high"


@proves("correction:privacy")
def test_a_callers_own_value_is_never_proposed(shop: Workshop) -> None:
    for _number in range(8):
        shop.run("send", {"recipient": "always the same", "amount": 5})
    shop.settle()

    error = shop.fails("send", {"amount": 7}, "bob")

    assert "always the same" not in str(error.details)


@proves("lesson:profile")
def test_a_profile_tells_names_types_and_forms_and_no_values(shop: Workshop) -> None:
    for number in range(4):
        shop.run("switch", {"lamp": f"https://lamps.example/{number}", "state": "on"})

    profile = shop.ask("auto_correction_patterns", action="profile", toolName="switch")["profile"]

    assert profile["calls"] == 4
    lamp, state = sorted(profile["parameters"], key=lambda each: str(each["path"]))
    assert lamp["forms"] == {"address": 4}
    assert state["usual"] == "on"
    assert "lamps.example" not in str(profile)
