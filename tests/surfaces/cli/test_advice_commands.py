"""`stratagem tools` and `stratagem corrections`: corrections and advice, for people."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stratagem.operations import TABLE
from stratagem.surfaces.cli.operation_commands import alias_of
from tests.surfaces.cli.console import Cli

OFFERED = '{"formula": "6 * 7"}'


@pytest.fixture
def sums(cli: Cli) -> Cli:
    """Give the command line with a tool whose arguments can be wrong in several ways."""
    definition = {
        "name": "sums",
        "description": "Add up prices of an order.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prices": {"type": "array", "items": {"type": "number"}},
                "currency": {"enum": ["EUR", "USD"]},
                "digits": {"type": "integer", "maximum": 4},
            },
            "required": ["prices", "currency"],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": {"total": {"type": "number"}}},
        "handler": {
            "type": "code",
            "language": "python",
            "code": "result = {'total': sum(inputs['prices'])}",
        },
    }
    Path("sums.json").write_text(json.dumps(definition), "utf-8")
    cli("tools", "add", "--file", "sums.json")
    return cli


def test_a_corrected_call_says_each_thing_that_was_changed(sums: Cli) -> None:
    result = sums.run("tools", "call", "sums", '{"price": ["1", "2"], "currency": "eur"}')

    assert '"total": 3' in result.stdout
    lines = result.stderr.splitlines()
    assert lines[0] == "Corrected:"
    assert {line.split()[0].rstrip(":") for line in lines[1:-1]} >= {"$.price", "$.currency"}


def test_a_refused_call_says_all_that_is_wrong_and_what_it_may_mean(sums: Cli) -> None:
    said = sums.refused("tools", "call", "sums", '{"digits": 9, "prices": [1]}', code=2)

    assert "(and 1 more)" in said
    assert '$: "currency" is a required property' in said
    assert "$.digits: 9 is greater than the maximum of 4" in said
    assert "stratagem tool-help --tool-name sums" in said


def test_an_offer_is_confirmed_in_another_process(cli: Cli) -> None:
    said = cli.refused("tools", "call", "calculator", OFFERED, code=2)
    offer = next(line for line in said.splitlines() if line.startswith("corr_"))
    called = cli("tools", "call", "calculator", OFFERED, "--confirm", offer.split()[0])

    assert '{"expression": "6 * 7"}' in offer
    assert "--confirm CORRECTION" in said
    assert '"result": 42' in called


def test_arguments_that_are_no_json_are_read_as_a_model_would_write_them(cli: Cli) -> None:
    called = cli.run("tools", "call", "calculator", "{expression: '6 * 7'}")

    assert '"result": 42' in called.stdout
    assert "Corrected" in called.stderr


def test_as_is_corrects_nothing(cli: Cli) -> None:
    said = cli.refused("tools", "call", "calculator", '{"Expression": "1"}', "--as-is", code=2)

    assert "corr_" not in said


def test_a_diagnosis_calls_nothing(cli: Cli) -> None:
    said = cli("tools", "diagnose", "calculator", OFFERED)

    assert "missingRequired" in said or "unknownProperties" in said
    assert "corr_" in said
    assert "A call would be refused" in said
    assert cli.json("tools", "history")["executions"] == []
    diagnosed = cli.json("tools", "diagnose", "calculator", "{'expression': '1", "--error", "x")
    assert diagnosed["diagnosis"]["basis"] == "schema"


def test_a_diagnosis_of_nothing_is_refused_and_one_of_a_good_call_says_so(cli: Cli) -> None:
    assert "--error" in cli.refused("tools", "diagnose", "calculator", code=2)
    assert "The arguments fit" in cli("tools", "diagnose", "calculator", '{"expression": "1"}')


def test_hints_name_commands_and_not_tools(cli: Cli) -> None:
    missing = cli.refused("tools", "compare", "calculator", "nowhere", code=3)
    refused = cli.refused("tools", "call", "calculator", "{}", code=2)
    diagnosed = cli("tools", "diagnose", "calculator", "{}")

    assert "`stratagem tools discover`" in missing
    assert "stratagem tool-help --tool-name calculator" in refused
    assert "stratagem tool-help lists them" in diagnosed
    assert "tool_help" not in missing + refused + diagnosed


def test_what_is_piped_has_no_spaces_at_the_ends_of_lines(cli: Cli) -> None:
    lines = cli("tools", "recommend", "evaluate an expression").splitlines()

    assert [line for line in lines if line != line.rstrip()] == []


def test_a_field_that_a_test_case_does_not_have_is_named(cli: Cli) -> None:
    said = cli.refused("corrections", "test", "--cases", '[{"tool": "calculator", "a": 1}]', code=2)

    assert "`testCases[0]` of auto_correction_test has no field `a`." in said
    wrong = cli.refused("corrections", "restore", "[]", code=2)
    assert "`backup` is an object" in wrong


def test_tools_are_recommended_compared_validated_and_found(sums: Cli) -> None:
    recommended = sums("tools", "recommend", "add", "up", "prices", "--limit", "2")
    compared = sums("tools", "compare", "sums", "calculator", "--intent", "add up prices")
    validated = sums("tools", "validate", "sums", "nowhere", "--configuration")
    found = sums("tools", "discover", "su*", "--source", "external")

    assert recommended.splitlines()[0].split()[2] == "sums"
    assert "Why: " in recommended
    assert "Add up prices of an order." in recommended
    assert "currency*, digits, prices*" in compared
    assert "calculator against sums: lacks prices, currency, digits; adds expression" in compared
    assert "Best by relevance: sums" in compared
    rows = {line.split()[0]: line.split()[1] for line in validated.splitlines()[1:]}
    assert rows == {"sums": "yes", "nowhere": "no"}
    assert [line.split()[0] for line in found.splitlines()[1:-1]] == ["sums"]
    assert found.splitlines()[-1].startswith("1 of ")


def test_a_plan_says_where_each_argument_comes_from(sums: Cli) -> None:
    def plan(inputs: str) -> str:
        return sums("tools", "plan", "x", "--tool", "sums", "--inputs", inputs)

    lacking = plan('{"currency": "EUR"}')
    ready = plan('{"currency": "EUR", "prices": []}')
    wrong = plan('{"currency": "GBP", "prices": []}')
    nothing = sums("tools", "plan", "add up prices, then qqqq zzzz")

    rows = [line.split() for line in lacking.splitlines()[:3]]
    assert rows[0] == ["STEP", "TOOL", "ARGUMENT", "FROM"]
    assert rows[1] == ["1", "sums", "prices", "to", "be", "given"]
    assert rows[2] == ["currency", "given"]
    assert "You have to give: prices (--inputs JSON)." in lacking
    assert "It can be run" in ready
    assert "currency cannot be used: " in wrong
    assert "It can be run" not in wrong
    assert "No tool does this: qqqq zzzz" in nothing


def test_a_plan_is_run_where_nothing_is_missing(sums: Cli) -> None:
    plan = ("tools", "plan", "x", "--tool", "sums", "--run", "--inputs")

    refused = sums.refused(*plan, '{"currency": "EUR"}', code=2)
    done = sums(*plan, '{"currency": "EUR", "prices": [1, 2]}')

    definition = json.loads(Path("sums.json").read_text("utf-8"))
    definition |= {"name": "breaks", "handler": definition["handler"] | {"code": "1 / 0"}}
    Path("breaks.json").write_text(json.dumps(definition), "utf-8")
    sums("tools", "add", "--file", "breaks.json")
    failed = sums.run(*plan, '{"currency": "EUR", "prices": []}', "--tool", "breaks")

    assert failed.exit_code == 8
    assert "It failed: " in failed.stdout
    assert "cannot be run" in refused
    assert done.splitlines()[1].split()[:3] == ["1", "sums", "finished"]
    assert '"total": 3' in done


def test_what_helps_after_an_error(sums: Cli) -> None:
    said = sums("tools", "recover", "sums", '{"prices": "1", "currency": "EUR"}', "--error", "boom")

    assert said.splitlines()[0] == "sums: typeMismatch"
    assert 'Call it with  {"prices": [1], "currency": "EUR"}' in said


def test_the_policy_is_shown_changed_and_put_back(sums: Cli) -> None:
    shown = sums("corrections", "status")
    preview = sums("corrections", "configure", "maxRetries=2", "--preview")
    changed = sums("corrections", "configure", "maxRetries=2", "debugMode=true", "--tool", "sums")
    own = sums.json("corrections", "status")["toolSettings"]
    back = sums("corrections", "configure", "--reset", "--tool", "sums")

    assert "Corrections are on and healthy." in shown
    assert "typeConversion" in shown
    assert "maxRetries: 3" in shown
    assert "nothing was" in preview
    assert "Lowered max retries from 3 to 2" in changed
    assert own == {"sums": {"maxRetries": 2, "debugMode": True}}
    assert "max retries" in back
    for wrong, said in [
        ((), "Nothing to change"),
        (("maxRetries",), "NAME=VALUE"),
        (("confidenceThreshold=7",), "from 0 to 1"),
        (("nonsense=1",), "no setting `nonsense`"),
    ]:
        assert said in sums.refused("corrections", "configure", *wrong, code=2)


def test_corrections_are_tried_out(sums: Cli) -> None:
    suite = sums("corrections", "test", "type_conversion", "--performance")
    tool = sums("corrections", "test", "--tool", "sums", "--type", "missingParameter")
    cases = '[{"toolName": "sums", "parameters": {}, "expectedSuccess": true, "name": "none"}]'
    failed = sums("corrections", "test", "--cases", cases)

    assert "4 of 4 tests passed." in suite
    assert "p50: " in suite
    assert "0 of 1 test passed." in tool
    assert "typeMismatch" in sums.refused(
        "corrections", "test", "--tool", "sums", "--type", "x", code=2
    )
    assert "0 of 1 test passed." in failed
    assert "none: There is no correction" in failed
    assert "type_conversion" in sums.refused("corrections", "test", "nonsense", code=2)
    assert "validation_errors" in sums.refused("corrections", "test", code=2)


def test_what_was_learned_is_listed_profiled_and_carried_over(sums: Cli) -> None:
    assert "nothing was learned" in sums("corrections", "patterns")
    sums("tools", "call", "sums", '{"prices": ["1"], "currency": "EUR"}')
    sums.refused("tools", "call", "sums", '{"amounts": [1], "currency": "EUR"}', code=2)
    offer = sums.json("tools", "diagnose", "sums", '{"amounts": [1], "currency": "EUR"}')
    correction = offer["autoCorrection"]["corrections"][0]["correctionId"]
    wrong = '{"amounts": [1], "currency": "EUR"}'
    sums("tools", "call", "sums", wrong, "--confirm", correction)

    patterns = sums("corrections", "patterns")
    profile = sums("corrections", "profile", "sums")
    insights = sums("corrections", "insights", "--failures")
    backup = sums("corrections", "backup")
    restored = sums("corrections", "restore", "-", given=backup)

    assert {line.split()[0] for line in patterns.splitlines()} >= {"PATTERN", "String"}
    assert "offered only" in patterns
    assert "sums: 2 calls that worked." in profile
    assert "2 (100%)" in profile
    assert "2 of 2 corrections worked, 1 call refused, 1 new lesson" in insights
    assert json.loads(backup)["lessons"][0]["meaning"] == "prices"
    assert restored == "Restored 0; 1 existed already.\n"


def test_breakers_are_those_of_the_process(cli: Cli) -> None:
    assert "in this process" in cli("corrections", "circuits")
    assert "was not open" in cli("corrections", "circuits", "--reset", "calculator")


ADVICE = [
    row.name
    for row in TABLE.values()
    for hint in row.commands[:1]
    if hint.renderer.startswith(("advice_tables.", "correction_tables."))
]


@pytest.mark.parametrize("operation", ADVICE)
def test_a_table_is_shown_whichever_command_asked(cli: Cli, operation: str) -> None:
    given = {
        "error_diagnose": ["--error", "timed out"],
        "auto_correction_configure": ["--preset", "staging"],
        "auto_correction_test": ["--test-suite", "type_conversion"],
        "tools_recommend": ["--intent", "add numbers"],
        "tools_recommend_on_error": ["--failed-tool", "calculator", "--error-message", "x"],
        "tools_validate": ["--tool-names", "calculator"],
        "tools_discover": ["--name-pattern", "calc"],
        "tools_compare": ["--tool-names", "calculator", "--tool-names", "date_time"],
        "workflow_plan": ["--goal", "add numbers"],
    }.get(operation, [])
    command = alias_of(operation)

    shown = cli(command, *given)

    assert shown.strip()
    # Nothing of Python and nothing of JSON is meant for people.
    assert not shown.startswith("{")
    assert "None" not in shown
    assert "{'" not in shown
    assert isinstance(cli.json(command, *given), dict)


def test_what_a_caller_wrote_cannot_move_the_cursor(cli: Cli) -> None:
    evil = '{"\\u001b[2Jexpression": "1"}'

    said = cli.refused("tools", "call", "calculator", evil, code=2)
    diagnosed = cli("tools", "diagnose", "calculator", evil, "--error", "\x1b[31mred")

    assert "\x1b" not in said + diagnosed
