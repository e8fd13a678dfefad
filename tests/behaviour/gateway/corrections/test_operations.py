"""The documented tools, field by field, with every figure counted from what happened."""

from __future__ import annotations

from typing import Any

import pytest

from stratagem.errors import InvalidInput, MissingRequired, ValidationFailed
from tests.behaviour.gateway.workshop import Workshop
from tests.manifest import proves


@pytest.fixture
def busy(shop: Workshop) -> Workshop:
    """Five corrections that held, one that fell, and three refused calls."""
    for number in range(5):
        agent = {"agentId": f"agent-{number % 2}"}
        shop.run("search", {"query": f"tea {number}", "limit": "3"}, context=agent)
    shop.fails("search", {"query": "unlucky", "limit": "3"}, "bob", context={"agentId": "agent-1"})
    for number in range(3):
        shop.fails("search", {"needle": f"tea tree {number}"}, context={"agentId": "agent-2"})
        shop.run("search", {"query": f"tea tree {number}"}, context={"agentId": "agent-2"})
    return shop


@proves("diagnose:answer")
def test_the_documents_diagnosis(shop: Workshop) -> None:
    def write_file(path: str, content: str) -> dict[str, Any]:
        return {"path": path, "content": content}

    def append_file(path: str, content: str) -> dict[str, Any]:
        return {"path": path, "content": content}

    shop.database.gateway.add(write_file, category="filesystem")

    shop.database.gateway.add(append_file, category="filesystem")
    # It takes anything, and knows nothing of a content.
    shop.database.gateway.register(
        name="make_folder",
        description="Make a folder.",
        input_schema={"type": "object", "properties": {"path": {"type": "string"}}},
        handler={"type": "webhook", "url": "https://example.com/folders"},
        category="filesystem",
    )

    answer = shop.ask(
        "error_diagnose",
        error="Expected string but received number for parameter: content",
        toolName="write_file",
        parameters={"path": "/output/report.txt", "content": 12345},
        enableAutoCorrection=True,
        includeAlternatives=True,
        maxCorrections=3,
    )

    diagnosis = answer["diagnosis"]
    assert diagnosis["errorType"] == "typeMismatch"
    assert diagnosis["errorCategory"] == "parameterValidation"
    assert diagnosis["severity"] == "medium"
    assert diagnosis["affectedParameters"] == ["content"]
    assert diagnosis["fixable"] is True
    right = {"path": "/output/report.txt", "content": "12345"}
    correction = answer["autoCorrection"]["corrections"][0]
    assert answer["autoCorrection"]["available"] is True
    assert correction["type"] == "typeConversion"
    assert correction["correctedParameters"] == right
    assert correction["riskLevel"] == "low"
    assert correction["appliedPattern"] == "number_to_string_conversion"
    assert answer["autoCorrection"]["appliedCorrection"]["correctedParameters"] == right
    assert answer["alternatives"] == [
        {
            "toolName": "append_file",
            "reasoning": "It is a filesystem tool too, and takes the call corrected.",
            "parameters": right,
        }
    ]
    assert answer["preventionTips"]
    assert answer["learningInsights"]["similarErrors"] == 0
    assert answer["learningInsights"]["successfulPattern"] is False
    assert answer["processingTime"] > 0
    assert answer["timestamp"]


@proves("diagnose:answer")
def test_a_diagnosis_counts_what_happened_before(busy: Workshop) -> None:
    answer = busy.ask(
        "error_diagnose", error="", toolName="search", parameters={"query": "x", "limit": "9"}
    )

    assert answer["learningInsights"]["similarErrors"] == 6
    assert answer["learningInsights"]["successfulPattern"] is True


@proves("diagnose:answer")
@pytest.mark.parametrize(
    ("error", "kind", "category"),
    [
        ("Request timed out after 30s", "timeout", "execution"),
        ("429 Too Many Requests", "rateLimited", "limits"),
        ("'city' is a required property", "missingRequired", "parameterValidation"),
        ("'celcius' is not one of ['celsius', 'kelvin']", "enumViolation", "parameterValidation"),
        ("EACCES: permission denied", "permissionDenied", "authorisation"),
        ("ECONNREFUSED connect refused", "connection", "execution"),
        ("something odd", "unknown", "execution"),
    ],
)
def test_without_parameters_the_words_are_read_and_nothing_is_certain(
    shop: Workshop, error: str, kind: str, category: str
) -> None:
    diagnosis = shop.ask("error_diagnose", error=error)["diagnosis"]

    assert (diagnosis["errorType"], diagnosis["errorCategory"]) == (kind, category)
    assert diagnosis["confidence"] is None
    assert diagnosis["fixable"] is False


@proves("diagnose:answer")
def test_a_diagnosis_of_a_tool_that_is_not_there(shop: Workshop) -> None:
    diagnosis = shop.ask("error_diagnose", error="oh", toolName="serch")["diagnosis"]

    assert diagnosis["errorType"] == "toolNotFound"


@proves("correction:status")
def test_the_status_counts_what_happened(busy: Workshop) -> None:
    answer = busy.ask("auto_correction_status", timeRange="24h")

    system, metrics = answer["systemStatus"], answer["metrics"]
    assert system["enabled"] is True
    assert system["healthy"] is True
    assert system["uptime"] >= 0
    assert system["lastRestart"]
    assert metrics["totalCorrections"] == 6
    assert metrics["successfulCorrections"] == 5
    assert metrics["successRate"] == pytest.approx(5 / 6, abs=0.001)
    assert metrics["averageCorrectionTime"] > 0
    assert metrics["correctionsToday"] == 6
    assert metrics["patternMatches"] == 0
    assert metrics["newPatternsLearned"] == 1
    assert answer["strategyPerformance"]["typeConversion"]["attempts"] == 6
    assert answer["strategyPerformance"]["typeConversion"]["successes"] == 5
    assert answer["activeCorrections"] == []
    assert set(answer["healthChecks"]) >= {
        "patternService",
        "validationService",
        "correctionEngine",
        "learningPipeline",
    }


@proves("correction:status")
def test_the_status_has_only_what_was_asked_for(shop: Workshop) -> None:
    answer = shop.ask(
        "auto_correction_status", includeMetrics=False, includeActiveCorrections=False
    )

    assert "metrics" not in answer
    assert "activeCorrections" not in answer


@proves("correction:status")
def test_a_corrected_call_that_is_under_way_is_shown(shop: Workshop) -> None:
    seen: list[Any] = []

    def slow(number: int) -> int:
        seen.extend(shop.database.call("auto_correction_status")["activeCorrections"])
        return number

    shop.database.gateway.add(slow)

    shop.run("slow", {"number": "3"}, context={"agentId": "agent-9"})

    assert seen[0]["toolName"] == "slow"
    assert seen[0]["agentId"] == "agent-9"
    assert seen[0]["attempt"] == 1
    assert seen[0]["status"] == "processing"
    assert shop.ask("auto_correction_status")["activeCorrections"] == []


@proves("correction:insights")
def test_the_insights_count_what_happened(busy: Workshop) -> None:
    answer = busy.ask(
        "auto_correction_insights", timeRange="7d", includeFailures=True, minPatternUsage=5
    )

    assert answer["timeRange"]["duration"] == "7 days"
    overall = answer["overallMetrics"]
    assert overall["totalCorrections"] == 6
    assert overall["successfulCorrections"] == overall["errorsPrevented"] == 5
    assert overall["failedCorrections"] == 1
    assert overall["totalTimeSaved"] is None
    (pattern,) = answer["topPatterns"]
    assert pattern["id"] == "string_to_number_conversion"
    assert pattern["name"] == "String To Number Conversion"
    assert pattern["usageCount"] == 6
    assert pattern["toolsApplied"] == ["search"]
    agents = {each["agentId"]: each for each in answer["agentBreakdown"]}
    assert agents["agent-1"]["correctionsUsed"] == 3
    assert agents["agent-2"]["topErrorTypes"] == ["missingRequired", "unknownProperties"]
    assert agents["agent-2"]["improvementSuggestions"]
    (tool,) = answer["toolBreakdown"]
    assert tool["correctionsApplied"] == 6
    assert tool["mostEffectiveStrategies"] == ["typeConversion"]
    assert sum(each["count"] for each in answer["trends"]["dailyCorrections"]) == 6
    assert answer["trends"]["newPatternsLearned"] == 1
    failures = {each["errorType"]: each for each in answer["failurePatterns"]}
    assert failures["typeMismatch"]["failedCorrections"] == 1
    assert failures["unknownProperties"]["affectedTools"] == ["search"]
    assert failures["unknownProperties"]["recommendations"]
    assert answer["recommendations"]


@proves("correction:insights")
def test_a_branch_and_the_past_have_their_own_figures(busy: Workshop) -> None:
    before = busy.head()
    busy.ask("strata_branch", action="fork", name="trial")
    busy.run("search", {"query": "tea", "limit": "8"}, branch="trial")

    def total(**view: Any) -> int:
        answer = busy.ask("auto_correction_insights", **view)
        count: int = answer["overallMetrics"]["totalCorrections"]
        return count

    assert total() == 6
    assert total(branch="trial") == 7
    assert total(branch="trial", asOf=f"@{before}") == 6


@proves("correction:insights")
def test_a_time_that_is_none_is_refused(shop: Workshop) -> None:
    with pytest.raises(ValidationFailed):
        shop.ask("auto_correction_insights", timeRange="soon")


@proves("correction:test")
def test_the_documents_test_cases(shop: Workshop) -> None:
    answer = shop.ask(
        "auto_correction_test",
        testCases=[
            {
                "name": "type_mismatch_test",
                "toolName": "send",
                "parameters": {"recipient": "bob", "amount": "12"},
                "expectedError": "typeMismatch",
                "expectedCorrection": {"amount": 12},
            },
            {
                "name": "missing_parameter_test",
                "toolName": "send",
                "parameters": {},
                "expectedError": "missingRequired",
                "expectedCorrection": {"recipient": "default"},
            },
        ],
        runDiagnostics=True,
    )

    first, second = answer["testResults"]
    assert first["testName"] == "type_mismatch_test"
    assert first["passed"] is True
    assert first["correctionMatched"] is True
    assert first["details"]["originalParameters"] == {"recipient": "bob", "amount": "12"}
    assert first["details"]["correctedParameters"] == {"recipient": "bob", "amount": 12}
    assert first["details"]["correctionType"] == "typeConversion"
    assert second["passed"] is False
    assert second["errorDetected"] is True
    assert second["correctionApplied"] is False
    assert second["reason"]
    assert second["suggestions"]
    overall = answer["overallResults"]
    assert (overall["totalTests"], overall["passed"], overall["failed"]) == (2, 1, 1)
    assert overall["successRate"] == 0.5
    assert answer["diagnostics"]["systemLoad"] in {"normal", "high"}
    assert answer["diagnostics"]["correctionEngineLatency"] > 0


@proves("correction:test")
def test_scenarios_are_made_from_a_tools_schema(shop: Workshop) -> None:
    answer = shop.ask(
        "auto_correction_test",
        testCases=[
            {"type": "typeMismatch", "tool": "send", "expectedSuccess": True},
            {"type": "missingParameter", "tool": "send", "expectedSuccess": False},
            {"type": "unknownProperty", "tool": "send", "expectedSuccess": True},
            {"type": "malformedJson", "tool": "send", "expectedSuccess": True},
        ],
    )

    assert answer["overallResults"]["passed"] == 4


@proves("correction:test")
@pytest.mark.parametrize(
    "name",
    [
        "validation_errors",
        "type_conversion",
        "unknown_properties",
        "missing_parameters",
        "wrappers_and_lists",
        "listed_values_and_limits",
    ],
)
def test_every_suite_passes_under_the_default_policy(shop: Workshop, name: str) -> None:
    answer = shop.ask("auto_correction_test", testSuite=name, includePerformance=True)

    failed = [each for each in answer["testResults"] if not each["passed"]]
    assert failed == []
    assert answer["performance"]["p50"] > 0


@proves("correction:test")
def test_a_suite_sees_the_policy(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enabled": False})

    answer = shop.ask("auto_correction_test", testSuite="type_conversion")

    assert answer["overallResults"]["passed"] == 1


@proves("correction:test")
def test_a_test_runs_and_records_nothing(shop: Workshop) -> None:
    shop.ask("auto_correction_test", testSuite="validation_errors")

    assert shop.ask("auto_correction_status")["metrics"]["totalCorrections"] == 0
    assert shop.heard == []


@proves("correction:test")
def test_a_test_of_nothing_is_refused(shop: Workshop) -> None:
    with pytest.raises(MissingRequired):
        shop.ask("auto_correction_test")
    with pytest.raises(ValidationFailed):
        shop.ask("auto_correction_test", testSuite="everything")


@proves("lesson:backup")
def test_patterns_are_listed_backed_up_and_restored(shop: Workshop) -> None:
    shop.teach("needle", 3)
    shop.ask("strata_branch", action="create", name="empty")

    listed = shop.ask("auto_correction_patterns")["patterns"]
    backup = shop.ask("auto_correction_patterns", action="backup")["backup"]
    first = shop.ask("auto_correction_patterns", action="restore", backup=backup, branch="empty")
    again = shop.ask("auto_correction_patterns", action="restore", backup=backup, branch="empty")

    assert listed[0]["usageCount"] == 3
    assert listed[0]["meaning"] == "query"
    assert first == {"restored": 1, "unchanged": 0}
    assert again == {"restored": 0, "unchanged": 1}
    assert shop.ask("auto_correction_patterns", branch="empty")["patterns"] == listed
    assert "the value" not in str(backup)
    assert "needle" not in str(backup)


@proves("lesson:backup")
@pytest.mark.parametrize(
    "backup",
    [
        {},
        {"format": "stratagem-correction-patterns", "lessons": [{"tool": "x"}]},
        {"format": "stratagem-correction-patterns", "lessons": "all"},
        {
            "format": "stratagem-correction-patterns",
            "lessons": [
                {"tool": "x\x1f", "kind": "alias", "path": "$", "form": "f", "meaning": "m",
                 "teacher": "t", "held": 1, "fell": 0}
            ],
        },
    ],
)  # fmt: skip
def test_what_is_no_backup_is_refused(shop: Workshop, backup: Any) -> None:
    with pytest.raises(InvalidInput):
        shop.ask("auto_correction_patterns", action="restore", backup=backup)


@proves("correction:test")
def test_what_is_foretold_is_what_becomes_of_the_call(shop: Workshop) -> None:
    shop.ask("auto_correction_configure", settings={"enableCircuitBreaker": False})
    given = {"query": "tea", "limit": "3"}
    for number in range(8):
        shop.fails("search", {"query": f"unlucky {number}", "limit": "3"}, f"c{number}")
        shop.settle()

    tested = shop.ask(
        "auto_correction_test", testCases=[{"toolName": "search", "parameters": given}]
    )
    found = shop.ask("error_diagnose", toolName="search", parameters=given)
    refused = shop.fails("search", given)

    (result,) = tested["testResults"]
    assert result["correctionApplied"] is False
    assert result["reason"] == refused.details["withheld"]
    assert found["autoCorrection"]["appliedCorrection"] is None
    assert found["autoCorrection"]["withheld"] == refused.details["withheld"]
    actions = " ".join(found["learningInsights"]["recommendedActions"])
    assert "correctionId" in actions


@proves("correction:test")
def test_a_test_knows_what_its_caller_taught(shop: Workshop) -> None:
    shop.teach("needle", 10)
    case = {"toolName": "search", "parameters": {"needle": "tea"}}

    own = shop.ask("auto_correction_test", testCases=[case])
    others = shop.ask("auto_correction_test", "bob", testCases=[case])

    assert own["testResults"][0]["correctionApplied"] is True
    assert others["testResults"][0]["correctionApplied"] is False


@proves("diagnose:answer")
def test_a_diagnosis_has_the_alternatives_that_were_asked_for(shop: Workshop) -> None:
    found = shop.ask("error_diagnose", error="it failed", includeAlternatives=True)

    assert found["alternatives"] == []


@proves("diagnose:answer")
def test_a_diagnosis_that_shows_no_correction_still_says_there_is_one(shop: Workshop) -> None:
    given = {"recipient": "bob", "amount": "12"}

    found = shop.ask("error_diagnose", toolName="send", parameters=given, maxCorrections=0)

    assert found["autoCorrection"]["available"] is True
    assert found["autoCorrection"]["corrections"] == []
