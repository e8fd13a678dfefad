from __future__ import annotations

from typing import Any

import pytest

from tests.behaviour.conftest import Call
from tests.contracts.samples import Clock
from tests.manifest import proves

LINUX = {"os": "linux", "python": "3.12", "framework": "torch 2.1"}
MACOS = {"os": "macos", "python": "3.12", "framework": "torch 2.1"}
ERROR = """Traceback (most recent call last):
  File "/home/alice/app/main.py", line 3, in <module>
    import torchvision
ModuleNotFoundError: No module named 'torchvision'
"""
SAME_ERROR = """Traceback (most recent call last):
  File "/srv/build.91/app/main.py", line 41, in <module>
    import torchvision
ModuleNotFoundError: No module named 'torchvision'
"""
DAY = 24 * 3600 * 1_000_000


def add(call: Call, **changes: Any) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "title": "torchvision is missing",
        "error_signature": ERROR,
        "summary": "The image lacks torchvision.",
        "steps": ["pip install torchvision"],
        "env": LINUX,
        "worked": True,
    }
    return call("add_incident", **{**arguments, **changes})


def ranked(call: Call, query: str = SAME_ERROR, **options: Any) -> dict[str, Any]:
    return call("ranked_solutions", **{"query_text": query, "env": LINUX, **options})


@proves("debug:no-match")
def test_an_unknown_problem_is_to_be_debugged_and_added(call: Call) -> None:
    add(call)

    answer = ranked(call, "the coffee machine in the kitchen is broken")

    assert answer["incidents"] == answer["ranked_solutions"] == []
    assert answer["recommended_solution"] is None
    assert answer["next_action"]["type"] == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
    assert answer["next_action"]["instructions"].startswith("No relevant incidents found.")


@proves("debug:another-name")
def test_another_missing_module_is_unknown_and_the_nearest_is_named_as_such(call: Call) -> None:
    added = add(call)

    answer = ranked(call, "ModuleNotFoundError: No module named 'pandas'")

    nearest = answer["incidents"][0]
    assert answer["ranked_solutions"] == []
    assert answer["next_action"]["type"] == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
    assert nearest["incident_id"] == added["incident_id"]
    assert nearest["relevance"] < 0.1
    assert nearest["agreed"] == ["module", "named"]
    assert (nearest["asked_only"], nearest["known_only"]) == (["pandas"], ["torchvision"])
    assert "probably another problem" in answer["note"]
    assert "only asked: pandas" in answer["note"]


@proves("debug:exact")
def test_a_known_problem_of_another_server_is_named_as_such(call: Call) -> None:
    error = "redis.exceptions.ConnectionError: Error 111 connecting to {}:6379. Connection refused."
    add(call, error_signature=error.format("localhost"))

    short = ranked(call, error.format("cache-01"))
    long = ranked(call, error.format("cache.prod.example.com"))
    same = ranked(call, error.format("127.0.0.1"))

    assert (short["incidents"][0]["asked_only"], short["incidents"][0]["known_only"]) == (
        ["cache-01"],
        ["localhost"],
    )
    assert "only asked: cache-01; only known: localhost" in short["recommended_solution"]["why"]
    assert long["incidents"][0]["exact"]
    assert "asked: cache.prod.example.com" in long["recommended_solution"]["why"]
    assert "host" not in same["recommended_solution"]["why"].split(";")[0]


@proves("debug:headline")
def test_the_last_line_of_a_traceback_is_the_same_incident_and_not_added_again(call: Call) -> None:
    line = "ModuleNotFoundError: No module named 'torchvision'"
    added = add(call)

    answer = ranked(call, line)
    again = add(call, error_signature=line, title="told in a line")

    assert answer["incidents"][0]["exact"] is True
    assert answer["recommended_solution"]["relevance"] == 0.97
    assert "same error message" in answer["recommended_solution"]["why"]
    assert again["duplicate"] is True
    assert again["incident_id"] == added["incident_id"]


@proves("debug:doubt")
def test_a_failure_counts_no_more_than_the_recommendation_was_about_the_problem(
    call: Call,
) -> None:
    added = add(call)
    doubtful = ranked(call, "import torchvision fails in the image, torchvision is missing")
    relevance = doubtful["recommended_solution"]["relevance"]

    told = call(
        "record_outcome",
        solution_id=added["solution_id"],
        worked=False,
        env=LINUX,
        lookup_id=doubtful["lookup_id"],
    )

    # The author's claim counts a fifth.
    assert relevance < 0.97
    assert told["stats"]["effective_sample_size"] == pytest.approx(0.2 + relevance, abs=0.001)


@proves("debug:doubt")
@pytest.mark.parametrize(
    ("asked", "is_listed"),
    [("ModuleNotFoundError: No module named 'pandas'", True), ("the kettle is on fire", False)],
)
def test_a_failure_of_a_fix_that_was_not_recommended_counts_as_little_as_it_was_likely(
    call: Call, asked: str, is_listed: bool
) -> None:
    added = add(call)
    other = ranked(call, asked)
    listed = {each["incident_id"]: each["relevance"] for each in other["incidents"]}

    told = call(
        "record_outcome",
        solution_id=added["solution_id"],
        worked=False,
        env=LINUX,
        lookup_id=other["lookup_id"],
    )

    assert other["ranked_solutions"] == []
    assert (added["incident_id"] in listed) is is_listed
    weight = listed.get(added["incident_id"], 0.1)
    assert weight <= 0.1
    assert told["stats"]["effective_sample_size"] == pytest.approx(0.2 + weight, abs=0.001)


@proves("debug:doubt")
def test_a_failure_of_a_fix_that_was_added_for_what_was_looked_up_counts_in_full(
    call: Call,
) -> None:
    lookup = ranked(call, "the build is slow on Mondays")["lookup_id"]
    added = add(call, lookup_id=lookup)

    told = call(
        "record_outcome",
        solution_id=added["solution_id"],
        worked=False,
        env=LINUX,
        lookup_id=lookup,
    )

    assert told["stats"]["effective_sample_size"] == pytest.approx(1.2, abs=0.001)


@proves("debug:exact")
def test_the_same_error_elsewhere_is_the_same_incident(call: Call) -> None:
    added = add(call)

    answer = ranked(call)

    best = answer["recommended_solution"]
    assert best["incident_id"] == added["incident_id"]
    assert best["solution_id"] == added["solution_id"]
    assert best["relevance"] == 1.0
    assert answer["incidents"][0]["exact"] is True
    assert best["best_env_bucket_match"] == answer["env_bucket"]
    assert best["env_match_score"] == 1.0
    assert 0 < best["reliability_score"] < 1
    assert best["interval_90"][0] <= best["reliability_score"] <= best["interval_90"][1]
    assert best["overall"] == best["nearest_bucket"] == {"worked": 1, "failed": 0}
    assert "same error signature" in best["why"]
    assert answer["next_action"]["type"] == "TRY_SOLUTION_AND_RECORD_OUTCOME"


@proves("debug:similar")
def test_a_problem_told_in_other_words_is_found_with_less_relevance(call: Call) -> None:
    added = add(call)

    answer = ranked(call, "python says the module torchvision is missing in the image")

    assert answer["incidents"][0]["incident_id"] == added["incident_id"]
    assert 0 < answer["incidents"][0]["relevance"] < 1


@proves("debug:brief-title")
def test_a_title_of_two_words_is_not_every_problem_that_has_them(call: Call) -> None:
    added = add(call, title="Tests fail", error_signature=None, summary=None)

    other = ranked(call, "The tests fail since the certificate of the mirror expired")
    same = ranked(call, "tests fail")

    assert other["ranked_solutions"] == []
    assert same["recommended_solution"]["incident_id"] == added["incident_id"]


@proves("debug:code")
@pytest.mark.parametrize(
    ("error", "query"),
    [
        ("E1234: licence expired", "startup failed with E1234"),
        ("E1234: licence expired", "E1234"),
        ("ORA-00942: table or view does not exist", "error ora-00942"),
        ('ERROR: relation "invoices" does not exist (SQLSTATE 42P01)', "SQLSTATE 42P01"),
        ("Access is denied. (Exception from HRESULT: 0x80070005)", "0x80070005"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED"),
    ],
)
def test_the_incident_that_has_a_code_is_found_by_the_code(
    call: Call, error: str, query: str
) -> None:
    known = add(call, title="Known", error_signature=error, summary=None)
    add(call, title="Other", error_signature="E2000: disk full", summary=None, steps=["Prune."])

    answer = ranked(call, query)

    assert answer["next_action"]["type"] == "TRY_SOLUTION_AND_RECORD_OUTCOME"
    assert answer["incidents"][0]["incident_id"] == known["incident_id"]
    assert not answer["incidents"][0]["exact"]


@proves("debug:code")
@pytest.mark.parametrize(
    ("errors", "query"),
    [
        (["EACCES: permission denied, open '/a'", "connect EACCES /run/docker.sock"], "EACCES"),
        (["E1234: licence expired"], "E1234: the port of the server is taken"),
        (["E2000"], "E1234"),
        (["failed with E2000"], "failed with E1234"),
        (
            ["error TS2345: Argument of type 'A1' is not assignable to type 'B1'."],
            "TS2345 for C1_X",
        ),
        (["HTTP 500 from the checkout service"], "HTTP 500"),
        (["The linter found unused imports: exit code 1"], "exit code 1"),
    ],
)
def test_a_code_that_says_little_finds_no_fix(call: Call, errors: list[str], query: str) -> None:
    for error in errors:
        add(call, title=f"Known: {error}", error_signature=error, summary=None, steps=[error])

    answer = ranked(call, query)

    assert answer["next_action"]["type"] == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"


REFUSED = "ConnectionRefusedError: [Errno 111] Connect call failed ('127.0.0.1', {})"
ENGINE = 'error The engine "node" is incompatible with this module. Expected version "{}". Got "{}"'
GIT = "fatal: unable to access 'https://github.com/a/b.git/': The requested URL returned error: {}"


@proves("debug:particulars")
@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (
            "FAILED tests/test_cart.py::test_total - assert 3 == 4",
            "FAILED tests/test_auth.py::test_login - assert 401 == 200",
        ),
        (
            "FAILED tests/test_cart.py::test_total - assert False",
            "FAILED tests/test_cart.py::test_coupon - assert False",
        ),
        ("E   AssertionError: expected 200, got 500", "E   AssertionError: expected 3, got 4"),
        (GIT.format(403), GIT.format(500)),
        ("KeyError: 17", "KeyError: 42"),
        (
            (
                'Traceback (most recent call last):\n  File "/srv/a/main.py", line 42, in start\n'
                f"    await connect()\n{REFUSED.format(5432)}"
            ),
            REFUSED.format(6379),
        ),
        (ENGINE.format(">=18", "16.20.0"), ENGINE.format("<17", "20.1.0")),
    ],
)
def test_an_error_that_states_something_else_is_not_the_same(
    call: Call, known: str, asked: str
) -> None:
    add(call, title="Known", error_signature=known, summary=None)

    answer = ranked(call, asked)
    added = add(call, title="Other", error_signature=asked, summary=None)
    again = ranked(call, asked)

    assert answer["next_action"]["type"] == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
    assert not any(each["exact"] for each in answer["incidents"])
    assert added["duplicate"] is False
    assert again["recommended_solution"]["incident_id"] == added["incident_id"]
    assert again["recommended_solution"]["relevance"] == 1.0


SSL = "ssl.SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {} (_ssl.c:1006)"


@proves("debug:particulars")
@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (
            "sqlite3.OperationalError: no such table: users",
            "sqlite3.OperationalError: no such column: users",
        ),
        (
            'psycopg2.OperationalError: FATAL: role "ada" does not exist',
            'psycopg2.OperationalError: FATAL: database "ada" does not exist',
        ),
        (
            SSL.format("certificate has expired"),
            SSL.format("self-signed certificate in certificate chain"),
        ),
        (
            "error: failed to push some refs to 'origin' (non-fast-forward)",
            "error: failed to push some refs to 'origin' (pre-receive hook declined)",
        ),
        (
            "Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137",
            "Last State: Terminated\n  Reason: Error\n  Exit Code: 1",
        ),
    ],
)
def test_an_error_with_another_reason_is_not_recommended(
    call: Call, known: str, asked: str
) -> None:
    add(call, title="Known", error_signature=known, summary=None)

    answer = ranked(call, asked)

    assert answer["next_action"]["type"] == "NO_MATCH_DEBUG_THEN_ADD_INCIDENT"
    assert [each["title"] for each in answer["incidents"]] == ["Known"]


@proves("debug:particulars")
@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (
            "FAILED tests/test_cart.py::test_total - assert 3 == 4",
            "FAILED test_cart.py::test_total - assert 3 == 4",
        ),
        (
            "FAILED a/test_a.py::test_one - FileNotFoundError: [Errno 2] No such file: 'a.toml'",
            "FAILED b/test_b.py::test_two - FileNotFoundError: [Errno 2] No such file: 'a.toml'",
        ),
        (GIT.format(403), GIT.format(403).replace("github.com/a", "github.com/c")),
        (REFUSED.format(8000), REFUSED.format(8123)),
        (ENGINE.format(">=18", "16.20.0"), ENGINE.format(">=18.17", "16.13.1")),
        (
            "IndexError: index 5 is out of bounds for axis 0 with size 5",
            "IndexError: index 7 is out of bounds for axis 0 with size 7",
        ),
    ],
)
def test_an_error_that_states_the_same_is_the_same(call: Call, known: str, asked: str) -> None:
    added = add(call, title="Known", error_signature=known, summary=None)

    again = add(call, title="Again", error_signature=asked, summary=None)

    assert again["duplicate"] is True
    assert again["incident_id"] == added["incident_id"]


@proves("debug:outcome")
def test_outcomes_change_the_evidence_and_say_so(call: Call) -> None:
    added = add(call)
    solution = added["solution_id"]
    lookup = ranked(call)["lookup_id"]

    good = call("record_outcome", solution_id=solution, worked=True, env=LINUX, lookup_id=lookup)
    bad = call("record_outcome", solution_id=solution, worked=False, env=MACOS)

    assert good["ok"] is True
    assert good["next_action"]["type"] == "DONE_OR_ADD_ENV_VARIANT"
    assert good["effect"]["reliability_after"] > good["effect"]["reliability_before"]
    assert bad["next_action"]["type"] == "DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT"
    assert bad["effect"]["reliability_after"] < bad["effect"]["reliability_before"]
    assert (bad["stats"]["worked"], bad["stats"]["failed"]) == (2, 1)


@proves("debug:once-per-lookup")
def test_repeated_reports_from_one_lookup_count_once(call: Call) -> None:
    solution = add(call)["solution_id"]
    lookup = ranked(call)["lookup_id"]
    report = {"solution_id": solution, "worked": True, "env": LINUX, "lookup_id": lookup}
    first = call("record_outcome", **report)

    again = call("record_outcome", **report)
    changed = call("record_outcome", **{**report, "worked": False})

    assert first["counted"] is True
    assert again["counted"] is False
    assert again["stats"] == first["stats"]
    assert (changed["stats"]["worked"], changed["stats"]["failed"]) == (1, 1)


@proves("debug:environment")
def test_the_fix_that_worked_in_an_environment_like_the_callers_comes_first(call: Call) -> None:
    incident = add(call, steps="brew install it", env=MACOS)["incident_id"]
    other = call("add_solution", incident_id=incident, steps="apt-get install it", env=LINUX)
    for _ in range(3):
        call("record_outcome", solution_id=other["solution_id"], worked=True, env=LINUX)
        call("record_outcome", solution_id=other["solution_id"], worked=False, env=MACOS)

    here, there = ranked(call, env=LINUX), ranked(call, env=MACOS)

    assert other["next_action"]["type"] == "RECORD_OUTCOME_FOR_NEW_SOLUTION"
    assert here["recommended_solution"]["steps"] == ["apt-get install it"]
    assert there["recommended_solution"]["steps"] == ["brew install it"]


@proves("debug:order")
def test_evidence_orders_fixes_of_one_incident(call: Call) -> None:
    incident = add(call, steps="claimed by its author", worked=False)["incident_id"]
    tried = {"nine of ten": (9, 1), "one of one": (1, 0), "untried": (0, 0), "none of one": (0, 1)}
    for steps, (worked, failed) in tried.items():
        solution = call("add_solution", incident_id=incident, steps=steps, env=LINUX)
        for outcome in [True] * worked + [False] * failed:
            call(
                "record_outcome",
                solution_id=solution["solution_id"],
                worked=outcome,
                env=LINUX,
            )

    order = [each["steps"][0] for each in ranked(call, limit=20)["ranked_solutions"]]

    assert [steps for steps in order if steps in tried] == list(tried)


@proves("debug:pool")
def test_the_same_steps_are_one_fix_whatever_the_environment(call: Call) -> None:
    added = add(call)
    variant = call(
        "add_solution",
        incident_id=added["incident_id"],
        steps=["  PIP install   torchvision "],
        env=MACOS,
    )
    call("record_outcome", solution_id=variant["solution_id"], worked=True, env=MACOS)

    answers = [ranked(call, env=env)["ranked_solutions"] for env in (LINUX, MACOS)]

    assert [len(answer) for answer in answers] == [1, 1]
    assert answers[0][0]["overall"] == answers[1][0]["overall"] == {"worked": 2, "failed": 0}
    assert answers[0][0]["solution_id"] == added["solution_id"]
    assert answers[1][0]["solution_id"] == variant["solution_id"]


@proves("debug:pool")
@pytest.mark.parametrize(
    "steps",
    ["Pip install torchvision.", "`pip install torchvision`", "1. Run pip install torchvision"],
)
def test_steps_that_differ_in_their_marks_alone_are_one_fix(call: Call, steps: str) -> None:
    added = add(call)
    other = call("add_solution", incident_id=added["incident_id"], steps=steps, env=LINUX)
    call("record_outcome", solution_id=other["solution_id"], worked=True, env=LINUX)

    fixes = ranked(call)["ranked_solutions"]

    assert len(fixes) == 1
    assert fixes[0]["overall"] == {"worked": 2, "failed": 0}


@proves("debug:duplicate")
def test_a_known_signature_is_not_added_twice_unless_insisted(call: Call) -> None:
    first = add(call)
    head = call.head()

    again = add(call, error_signature=SAME_ERROR, title="cannot import torchvision")
    unchanged = call.head()
    insisted = add(call, error_signature=SAME_ERROR, distinct=True)

    assert again["duplicate"] is True
    assert again["incident_id"] == first["incident_id"]
    assert again["title"] == "torchvision is missing"
    assert again["solution_id"] is None
    assert again["next_action"]["type"] == "USE_ADD_SOLUTION_FOR_EXISTING_INCIDENT"
    assert unchanged == head
    assert insisted["duplicate"] is False
    assert insisted["incident_id"] != first["incident_id"]


@proves("debug:twin")
def test_a_near_match_is_written_and_its_likely_twin_named(call: Call) -> None:
    first = add(call, error_signature=None)

    second = add(call, error_signature=None, steps="use another image")

    assert second["duplicate"] is False
    assert second["similar_incident"]["incident_id"] == first["incident_id"]
    assert second["similar_incident"]["title"] == "torchvision is missing"


@proves("debug:branches")
def test_what_a_branch_learned_is_invisible_elsewhere_until_merged(call: Call) -> None:
    added = add(call)
    call.branch(action="fork", name="trial")
    solution = added["solution_id"]
    learned = call(
        "add_solution",
        incident_id=added["incident_id"],
        steps="pin the version",
        env=LINUX,
        branch="trial",
    )
    for branch in ("trial", "default"):
        call("record_outcome", solution_id=solution, worked=True, env=LINUX, branch=branch)
    before = ranked(call)["ranked_solutions"]

    merged = call.branch(action="merge", source="trial")

    after = ranked(call)["ranked_solutions"]
    assert len(before) == 1
    assert before[0]["overall"]["worked"] == 2
    assert merged["conflicts"] == []
    assert {each["solution_id"] for each in after} == {solution, learned["solution_id"]}
    assert next(e for e in after if e["solution_id"] == solution)["overall"]["worked"] == 3


@proves("debug:past")
def test_a_lookup_in_the_past_knows_what_was_known_then(call: Call, clock: Clock) -> None:
    added = add(call)
    head = call.head().split(":")[0]
    clock.advance(DAY)
    call("record_outcome", solution_id=added["solution_id"], worked=False, env=LINUX)

    then = ranked(call, as_of=f"@{head}")

    assert then["ranked_solutions"][0]["overall"] == {"worked": 1, "failed": 0}
    assert then["lookup_id"] is None


@proves("debug:secrets")
def test_secrets_are_masked_before_anything_is_kept(call: Call) -> None:
    token = "ghp_" + "a1B2c3D4e5F6" * 3
    add(
        call,
        title=f"push fails for {token}",
        summary=f"write to bob@example.com, password=hunter2secret, {token}",
        steps=[f"export GITHUB_TOKEN={token}"],
        notes=token,
    )

    answer = str(ranked(call, f"push fails {token}")) + str(ranked(call))

    assert token not in answer
    assert "hunter2secret" not in answer
    assert "bob@example.com" not in answer


@proves("debug:bad-input")
@pytest.mark.parametrize(
    ("name", "arguments", "error", "field"),
    [
        ("ranked_solutions", {"env": LINUX}, "missing_required", "query_text"),
        ("ranked_solutions", {"query_text": " ", "env": LINUX}, "validation_error", "query_text"),
        ("ranked_solutions", {"query_text": "x"}, "missing_required", "env"),
        ("ranked_solutions", {"query_text": "x", "env": "mars"}, "validation_error", "env"),
        ("ranked_solutions", {"query_text": "x", "env": LINUX, "limit": 0}, "validation_error", "limit"),
        ("ranked_solutions", {"query_text": "x", "env": LINUX, "limit": 21}, "validation_error", "limit"),
        ("record_outcome", {"solution_id": "sol_no", "worked": True, "env": LINUX}, "solution_not_found", "solution_id"),
        ("record_outcome", {"solution_id": "sol_no", "env": LINUX}, "missing_required", "worked"),
        ("add_solution", {"incident_id": "inc_no", "steps": "x", "env": LINUX}, "incident_not_found", "incident_id"),
        ("add_solution", {"incident_id": "inc_no", "steps": [], "env": LINUX}, "validation_error", "steps"),
        ("add_solution", {"incident_id": "inc_no", "steps": " ", "env": LINUX}, "validation_error", "steps"),
        ("add_incident", {"title": "", "steps": "x", "env": LINUX, "worked": True}, "validation_error", "title"),
        ("add_incident", {"title": "t", "steps": "x", "env": 5, "worked": True}, "validation_error", "env"),
        ("add_incident", {"title": "t", "steps": "x", "env": LINUX, "worked": True, "lookup_id": "look_no"}, "lookup_not_found", "lookup_id"),
        ("add_incident", {"title": "t", "steps": "x", "env": LINUX, "worked": True, "env_bucket": "Not Canonical"}, "validation_error", "env_bucket"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_whole_and_names_the_field(
    call: Call, name: str, arguments: dict[str, Any], error: str, field: str
) -> None:
    envelope = call.refusal(name, **arguments)

    assert envelope["error"] == error
    assert envelope["details"]["field"] == field


@proves("debug:bad-input")
def test_a_lookup_of_another_branch_is_refused(call: Call) -> None:
    solution = add(call)["solution_id"]
    call.branch(action="fork", name="trial")
    lookup = ranked(call, branch="trial")["lookup_id"]

    envelope = call.refusal(
        "record_outcome", solution_id=solution, worked=True, env=LINUX, lookup_id=lookup
    )

    assert envelope["error"] == "lookup_not_found"


@proves("debug:bucket")
def test_a_canonical_bucket_overrides_the_environment_and_the_answer_says_so(call: Call) -> None:
    incident = add(call)["incident_id"]
    bucket = ranked(call, env=MACOS)["env_bucket"]

    answer = call("add_solution", incident_id=incident, steps="x", env=LINUX, env_bucket=bucket)

    assert answer["env_bucket"] == bucket
    assert bucket in answer["note"]


@proves("debug:retry")
def test_a_repeated_request_is_written_once(call: Call) -> None:
    first = add(call, request_id="one")
    head = call.head()

    again = add(call, request_id="one")

    assert again == first
    assert call.head() == head


@proves("debug:logs")
def test_the_error_is_found_in_a_long_log(call: Call) -> None:
    added = add(call)
    noise = "\n".join(f"2026-11-15 10:00:00 INFO worker {n} is fine" for n in range(20_000))

    answer = ranked(call, f"{noise}\n{SAME_ERROR}\n{noise[:2_000]}")

    assert answer["recommended_solution"]["incident_id"] == added["incident_id"]
    assert answer["recommended_solution"]["relevance"] == 1.0


@proves("debug:environment")
def test_a_fix_that_has_only_failed_in_this_environment_is_named_as_such(call: Call) -> None:
    added = add(call, worked=False)
    failed = ranked(call)
    call("record_outcome", solution_id=added["solution_id"], worked=True, env=MACOS)
    only_here, elsewhere = ranked(call), ranked(call, env=MACOS)
    call("record_outcome", solution_id=added["solution_id"], worked=True, env=LINUX)
    worked = ranked(call)

    assert failed["next_action"]["type"] == "DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT"
    assert failed["recommended_solution"]["solution_id"] == added["solution_id"]
    assert only_here["next_action"] == failed["next_action"]
    assert elsewhere["next_action"]["type"] == "TRY_SOLUTION_AND_RECORD_OUTCOME"
    assert worked["next_action"]["type"] == "TRY_SOLUTION_AND_RECORD_OUTCOME"
    assert failed["note"].startswith(
        "In linux|py3|torch2 the recommended fix has only failed (1 attempt)."
    )
    assert only_here["note"] == failed["note"]
    assert "note" not in elsewhere
    assert "note" not in worked


@proves("debug:environment")
def test_a_fix_that_has_only_failed_here_is_named_as_such_however_much_is_said_of_the_environment(
    call: Call,
) -> None:
    added = add(call, env=MACOS)
    call("record_outcome", solution_id=added["solution_id"], worked=True, env=MACOS)
    call("record_outcome", solution_id=added["solution_id"], worked=False, env=LINUX)
    more = {
        **LINUX,
        "arch": "x86_64",
        "distro": "debian",
        "runtime": "docker",
        "virtualenv": "venv",
    }

    answer = ranked(call, env=more)
    call("record_outcome", solution_id=added["solution_id"], worked=True, env={"os": "linux"})
    worked = ranked(call, env=more)

    assert answer["recommended_solution"]["here"] == {"worked": 0, "failed": 1}
    assert answer["next_action"]["type"] == "DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT"
    assert answer["note"].startswith(
        "In linux|py3|torch2 the recommended fix has only failed (1 attempt)."
    )
    assert worked["recommended_solution"]["here"] == {"worked": 1, "failed": 1}
    assert worked["next_action"]["type"] == "TRY_SOLUTION_AND_RECORD_OUTCOME"
    assert "note" not in worked


@proves("debug:environment")
def test_a_fix_of_another_incident_is_introduced_as_such_where_those_of_the_error_have_failed(
    call: Call,
) -> None:
    error = "Cannot connect to the cache daemon at the socket. Is the cache daemon running?"
    other = f"Permission denied while trying to connect to the cache daemon. {error[31:]}"
    known = add(call, title="The daemon is down", error_signature=error, worked=False)
    near = add(call, title="No right to the socket", error_signature=other, steps=["Join a group"])
    call("record_outcome", solution_id=near["solution_id"], worked=True, env=LINUX)

    answer = ranked(call, error)

    assert answer["recommended_solution"]["incident_id"] == near["incident_id"]
    assert answer["note"] == (
        f"This error is known as {known['incident_id']} ('The daemon is down'), but nothing that "
        "was tried for it has worked here. The recommended fix is for another incident."
    )


@proves("debug:environment")
def test_a_fix_that_has_only_failed_elsewhere_is_not_the_next_step_either(call: Call) -> None:
    added = add(call, worked=False)

    answer = ranked(call, env=MACOS)

    assert answer["recommended_solution"]["solution_id"] == added["solution_id"]
    assert answer["next_action"]["type"] == "DEBUG_FURTHER_THEN_ADD_SOLUTION_OR_INCIDENT"
    assert answer["note"] == (
        "The recommended fix has only failed wherever it was tried (1 attempt). Try it only if "
        "your environment makes a difference."
    )
