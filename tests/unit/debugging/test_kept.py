"""What debugging keeps, and what it makes of it: evidence, lookups, secrets, all or nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import Stratagem
from stratagem.debugging import drafts, service, signatures
from stratagem.debugging.models import IncidentAdded, RankedSolution
from stratagem.debugging.records import steps_key
from stratagem.debugging.statistics import statistics
from stratagem.engine import evidence
from stratagem.errors import LookupNotFound, ValidationFailed
from stratagem.operation import Caller
from tests import forkserver
from tests.behaviour.surfaces import Wanted
from tests.contracts.samples import Clock

LINUX = {"os": "linux", "python": "3.12"}
ERROR = "ValueError: the order has no card"
YEAR_SECONDS = 365 * 24 * 3600.0
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def add(db: Stratagem, **changes: Any) -> IncidentAdded:
    given: dict[str, Any] = {"title": "No card", "steps": "Ask for a card", "env": LINUX}
    given |= {"worked": True, "error_signature": ERROR}
    return db.debugging.add_incident(**{**given, **changes})


def ranked(db: Stratagem, **options: Any) -> RankedSolution:
    return db.debugging.ranked_solutions(ERROR, LINUX, **options).ranked_solutions[0]


def everything(db: Stratagem) -> str:
    """Return every payload that the log holds."""
    return "".join((event.payload or b"").decode() for event in db.runtime.foundation.store.log())


def merge(db: Stratagem, source: str, target: str = "default") -> dict[str, Any]:
    return db.call("strata_branch", {"action": "merge", "source": source, "branch": target})


def fork(db: Stratagem, name: str) -> None:
    db.call("strata_branch", {"action": "fork", "name": name})


def test_repeated_reports_from_one_lookup_do_not_lift_the_base_rate(db: Stratagem) -> None:
    other = add(db, error_signature="KeyError: 'cart'", worked=False)
    lookup = db.debugging.ranked_solutions("KeyError: 'cart'", LINUX).lookup_id
    solution = add(db).solution_id
    assert solution is not None
    assert other.solution_id is not None
    db.debugging.record_outcome(other.solution_id, True, LINUX, lookup_id=lookup)
    before = ranked(db)

    for _ in range(20):
        db.debugging.record_outcome(other.solution_id, True, LINUX, lookup_id=lookup)

    assert ranked(db).reliability_score == before.reliability_score


def test_no_number_of_reports_from_one_lookup_lifts_a_fix(db: Stratagem) -> None:
    solution = add(db).solution_id
    assert solution is not None
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id
    first = db.debugging.record_outcome(solution, True, LINUX, lookup_id=lookup)

    again = [
        db.debugging.record_outcome(solution, True, LINUX, lookup_id=lookup) for _ in range(20)
    ][-1]

    assert again.counted is False
    assert again.stats == first.stats


def test_a_fix_without_evidence_stands_at_the_base_rate_of_other_incidents(db: Stratagem) -> None:
    for word, worked in (("cart", True), ("price", True), ("stock", False)):
        # What authors claim of their own fixes is no part of it.
        other = add(db, error_signature=f"KeyError: '{word}'", worked=True)
        assert other.solution_id is not None
        db.debugging.record_outcome(other.solution_id, worked, LINUX)
    own = add(db, worked=False)
    assert own.solution_id is not None
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id
    for _ in range(5):
        db.debugging.record_outcome(own.solution_id, False, LINUX, lookup_id=lookup)
    db.debugging.add_solution(own.incident_id, "Pay by invoice", LINUX)

    untried = ranked(db)

    assert untried.steps == ["Pay by invoice"]
    assert untried.reliability_score == pytest.approx(evidence.base_rate(2, 1))


def test_a_report_that_changes_its_mind_counts_as_it_says_last(db: Stratagem) -> None:
    solution = add(db).solution_id
    assert solution is not None
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id

    told = [
        db.debugging.record_outcome(solution, worked, LINUX, lookup_id=lookup)
        for worked in (True, False, False, True)
    ]

    assert [each.counted for each in told] == [True, True, False, True]
    assert [(each.stats.worked, each.stats.failed) for each in told] == [
        *((2, 0), (1, 1)),
        *((1, 1), (2, 0)),
    ]


def test_a_merge_does_not_make_evidence_young_again_nor_double(db: Stratagem, clock: Clock) -> None:
    solution = add(db, worked=False).solution_id
    assert solution is not None
    fork(db, "trial")
    db.debugging.record_outcome(solution, True, LINUX, branch="trial")
    clock.advance(2 * YEAR_SECONDS)
    there = ranked(db, branch="trial")

    merged = [merge(db, "trial") for _ in range(3)]
    merge(db, "default", "trial")

    assert [each["conflicts"] for each in merged] == [[], [], []]
    for branch in ("default", "trial"):
        here = ranked(db, branch=branch)
        assert here.overall == {"worked": 1, "failed": 1}
        assert here.reliability_score == there.reliability_score
        assert here.recency_boost == there.recency_boost


def test_outcomes_of_two_branches_come_together_without_conflict(db: Stratagem) -> None:
    solution = add(db).solution_id
    assert solution is not None
    for branch in ("one", "two"):
        fork(db, branch)
        db.debugging.record_outcome(solution, branch == "one", LINUX, branch=branch)

    conflicts = [merge(db, branch)["conflicts"] for branch in ("one", "two", "one")]

    assert conflicts == [[], [], []]
    assert ranked(db).overall == {"worked": 2, "failed": 1}


def test_the_guard_against_duplicates_looks_at_its_own_branch_only(db: Stratagem) -> None:
    fork(db, "trial")
    first = add(db, branch="trial")

    elsewhere, again = add(db), add(db, branch="trial")

    assert (first.duplicate, elsewhere.duplicate, again.duplicate) == (False, False, True)
    assert again.incident_id == first.incident_id


def test_a_lookup_is_of_the_branch_that_made_it(db: Stratagem) -> None:
    solution = add(db).solution_id
    assert solution is not None
    fork(db, "trial")
    lookup = db.debugging.ranked_solutions(ERROR, LINUX, branch="trial").lookup_id
    head = db.call("strata_status")["head"]

    with pytest.raises(LookupNotFound):
        add(db, error_signature=None, lookup_id=lookup)
    with pytest.raises(LookupNotFound):
        db.debugging.record_outcome(solution, True, LINUX, lookup_id=lookup)

    assert db.call("strata_status")["head"] == head
    assert db.debugging.record_outcome(solution, True, LINUX, lookup_id=lookup, branch="trial").ok


def test_adding_an_incident_is_all_or_nothing(
    db: Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = db.call("strata_status")["head"]
    whole = drafts.add_all

    def fails_at_the_end(*args: Any, **options: Any) -> Any:
        whole(*args, **options)
        raise RuntimeError("the machine stopped here")

    with monkeypatch.context() as patch:
        patch.setattr(service, "add_all", fails_at_the_end)
        with pytest.raises(RuntimeError):
            add(db, request_id="one")

    assert db.call("strata_status")["head"] == head
    assert db.debugging.ranked_solutions(ERROR, LINUX).incidents == []
    assert add(db, request_id="one").duplicate is False


def test_of_two_processes_with_one_signature_exactly_one_writes(tmp_path: Path) -> None:
    script = (
        "import sys, json, stratagem\n"
        "db = stratagem.open(sys.argv[1], embedder='none', durability='fast')\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "told = [db.debugging.add_incident('t', 'fix', {'os': 'linux'}, True,\n"
        "        error_signature=f'ValueError: {word} is wrong') for word in sys.argv[2:]]\n"
        "print(json.dumps([[each.incident_id, each.duplicate] for each in told]))\n"
    )
    words = ["cart", "card", "price", "order", "stock", "coupon", "address", "parcel"]
    command = [sys.executable, "-c", script, str(tmp_path / "shared.db"), *words]
    running = [
        forkserver.Process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]

    for one, other in zip(*answers, strict=True):
        assert one[0] == other[0]
        assert sorted((one[1], other[1])) == [False, True]


def test_two_copies_of_a_file_make_ids_of_their_own(tmp_path: Path, clock: Clock) -> None:
    paths = tmp_path / "one.db", tmp_path / "two.db"
    with Stratagem(Wanted(paths[0], clock).start(), Caller()) as db:
        add(db)
    shutil.copyfile(*paths)
    ids = []

    for path in paths:
        clock.advance(1)
        with Stratagem(Wanted(path, clock).start(), Caller()) as db:
            ids.append(add(db, error_signature="KeyError: 'cart'").incident_id)

    assert ids[0] != ids[1]


def test_no_field_keeps_a_secret(db: Stratagem, tmp_path: Path) -> None:
    env: dict[str, Any] = {"os": f"linux {TOKEN}", TOKEN: "x", "python": "3.12"}
    env |= {"vars": {"DB_PASSWORD": "hunter22", "PIN_SECRET": 471147, "HOME": "/home/ann/x"}}
    added = db.debugging.add_incident(
        f"push with {TOKEN}",
        [
            "-----BEGIN RSA PRIVATE KEY-----",
            "MIIEpAIBAAKCAQEA7bq9x2",
            "-----END RSA PRIVATE KEY-----",
        ],
        env,
        True,
        error_signature=f"HTTPError: 401 for https://ann:hunter22@shop.io with {TOKEN}",
        summary="mail ann@shop.io, see C:\\Users\\ann\\x",
        tags=[TOKEN, "deploy"],
        notes=f"Authorization: Bearer {TOKEN}",
    )
    db.debugging.add_solution(added.incident_id, f"export API_KEY={TOKEN}", env)
    assert added.solution_id is not None
    db.debugging.record_outcome(added.solution_id, True, env, notes="password is hunter22")
    # A token right where what is kept of a query ends.
    query = "x" * 1_990 + f" {TOKEN} failed"
    answer = db.debugging.ranked_solutions(query, env)

    kept = everything(db) + answer.env_bucket
    files = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())

    assert TOKEN.encode() not in files
    assert b"hunter22" not in files
    for secret in (
        TOKEN,
        TOKEN[:12],
        TOKEN.lower(),
        "hunter22",
        "471147",
        "MIIEpAI",
        "ann@shop.io",
    ):
        assert secret not in kept, secret
    assert "/home/ann" not in kept
    assert "Users\\\\ann" not in kept
    assert "deploy" in kept


def test_what_is_given_is_checked_before_anything_is_written(db: Stratagem) -> None:
    head = db.call("strata_status")["head"]
    debugging = db.debugging
    nothing: Any = {}
    attempts: dict[str, Callable[[], object]] = {
        "solution_id": lambda: debugging.record_outcome(nothing, True, LINUX),
        "incident_id": lambda: debugging.add_solution(nothing, "x", LINUX),
        "distinct": lambda: add(db, distinct=5),
        "worked": lambda: add(db, worked="perhaps"),
        "env": lambda: add(db, env={"log": "x" * 70_000}),
        "env_bucket": lambda: add(db, env_bucket="Linux"),
    }
    for field, attempt in attempts.items():
        with pytest.raises(ValidationFailed) as refused:
            attempt()
        assert refused.value.details["field"] == field

    assert db.call("strata_status")["head"] == head


def test_rebuilt_statistics_equal_those_that_grew(db: Stratagem, clock: Clock) -> None:
    solution = add(db).solution_id
    assert solution is not None
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id
    for worked in (True, False, True):
        clock.advance(1_000)
        db.debugging.record_outcome(solution, worked, LINUX, lookup_id=lookup)
        db.debugging.record_outcome(solution, worked, {"os": "macos"})
    before = ranked(db, as_of="@9"), ranked(db)

    db.runtime.foundation.store.rebuild(lambda _done, _total, _what: None)

    assert (ranked(db, as_of="@9"), ranked(db)) == before
    assert before[0].overall != before[1].overall


def test_incidents_of_older_rules_are_found_by_those_of_today(
    db: Stratagem, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(signatures, "fingerprint", lambda _text: "0:as it once was")
        patch.setattr(signatures, "_read_headlines", lambda _text: [])
        patch.setattr(signatures, "VERSION", signatures.VERSION - 1)
        added = add(db)
    unfound = db.debugging.ranked_solutions(ERROR, LINUX).incidents

    db.runtime.foundation.store.rebuild(lambda _done, _total, _what: None)

    assert not any(match.exact for match in unfound)
    found = db.debugging.ranked_solutions(ERROR, LINUX).incidents[0]
    assert (found.incident_id, found.exact) == (added.incident_id, True)


def test_a_different_cause_in_similar_words_is_added(db: Stratagem) -> None:
    first = add(db, error_signature="ModuleNotFoundError: No module named 'torch'")

    second = add(db, error_signature="ModuleNotFoundError: No module named 'torchvision'")

    assert second.duplicate is False
    assert second.incident_id != first.incident_id
    # `torch` is a part of `torchvision`, and another module all the same.
    assert second.similar_incident is None


def stats(db: Stratagem) -> Any:
    foundation = db.runtime.foundation
    with foundation.store.snapshot() as reader:
        return statistics(reader, foundation.views.view(reader, "default"))


def test_statistics_count_each_lookup_once_and_by_the_time_of_the_attempt(
    db: Stratagem, clock: Clock
) -> None:
    added = add(db)
    assert added.solution_id is not None
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id
    for _ in range(3):
        clock.advance(60)
        db.debugging.record_outcome(added.solution_id, False, LINUX, lookup_id=lookup)
    once = stats(db)
    clock.advance(60)
    db.debugging.record_outcome(added.solution_id, False, LINUX)

    twice = stats(db)

    assert (once.outcomes, once.lookups, once.answered, once.hit_rate) == (2, 1, 1, 0.0)
    assert once.stopped_working == []
    assert [each["failures_since"] for each in twice.stopped_working] == [2]


def test_a_report_on_a_variant_of_the_first_recommendation_answers_the_lookup(
    db: Stratagem,
) -> None:
    added = add(db)
    variant = db.debugging.add_solution(added.incident_id, "ask for a  CARD", {"os": "macos"})
    lookup = db.debugging.ranked_solutions(ERROR, LINUX).lookup_id

    db.debugging.record_outcome(variant.solution_id, True, LINUX, lookup_id=lookup)

    assert (stats(db).answered, stats(db).hit_rate) == (1, 1.0)


def test_the_setting_decides_from_which_relevance_on_a_fix_is_recommended() -> None:
    asked = "import of yaml fails, python says there is no module called yaml"
    known: dict[float, str] = {}
    for least in (0.0, 0.4, 0.99):
        with stratagem.open(":memory:", relevance_min=least) as db:
            add(db, error_signature="ModuleNotFoundError: No module named 'yaml'")
            known[least] = db.debugging.ranked_solutions(asked, LINUX).next_action.type
            exact = db.debugging.ranked_solutions("No module named 'yaml'", LINUX)

        assert exact.incidents[0].relevance == 0.97

    assert known == {
        0.0: "TRY_SOLUTION_AND_RECORD_OUTCOME",
        0.4: "TRY_SOLUTION_AND_RECORD_OUTCOME",
        0.99: "NO_MATCH_DEBUG_THEN_ADD_INCIDENT",
    }


@pytest.mark.parametrize("least", [40, -0.1, float("nan"), "much", True, None])
def test_a_relevance_that_is_no_probability_is_refused(least: Any) -> None:
    with pytest.raises(ValidationFailed) as refused:
        stratagem.open(":memory:", relevance_min=least)

    assert refused.value.details["field"] == "relevance_min"


@pytest.mark.parametrize(
    "steps",
    [
        "* pip install numpy",
        "a) pip install numpy",
        "Step 1: You should run `pip install numpy`;",
        "```bash\npip install numpy\n```",
    ],
)
def test_steps_in_other_clothing_are_one_fix(steps: str) -> None:
    assert steps_key([steps]) == steps_key(["pip install numpy"])
    assert steps_key([f"{steps} --pre"]) != steps_key(["pip install numpy"])


def test_a_relevance_means_the_same_whatever_else_is_known(db: Stratagem) -> None:
    asked = "import of yaml fails, python says there is no module called yaml"
    first = add(db, error_signature="ModuleNotFoundError: No module named 'yaml'")

    alone = db.debugging.ranked_solutions(asked, LINUX).incidents[0]
    for number in range(100):
        word = chr(ord("a") + number % 26) * 3 + chr(ord("a") + number // 26)
        add(db, title=f"About {word}", error_signature=f"KeyError: 'cart {word}' of the module")
    among = db.debugging.ranked_solutions(asked, LINUX).incidents[0]

    assert alone.incident_id == among.incident_id == first.incident_id
    assert among.relevance == pytest.approx(alone.relevance, abs=0.05)


def test_headlines_are_masked_as_the_error_is(db: Stratagem) -> None:
    add(db, error_signature=f"ValueError: the token '{TOKEN}' of the cart is refused")

    assert TOKEN not in everything(db)
