"""What successful calls taught is used when the evidence is strong, and offered when it is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stratagem.engine.evidence import Observation, believe
from stratagem.gateway.correction import Hint, HintKind, correct

TOOL: dict[str, Any] = {
    "properties": {
        "city": {"type": "string"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


class Taught:
    """Hints from a table of kind, path and form."""

    def __init__(self, table: dict[tuple[HintKind, str, str], tuple[Any, int, int]]) -> None:
        self._table = table

    def hints(self, kind: HintKind, path: str, form: str) -> Sequence[Hint]:
        if (kind, path, form) not in self._table:
            return ()
        meaning, held, failed = self._table[kind, path, form]
        seen = [Observation(True, 1.0)] * held + [Observation(False, 1.0)] * failed
        return [Hint(meaning, believe(seen))]


def test_an_alias_that_held_often_is_applied() -> None:
    learned = Taught({(HintKind.ALIAS, "$", "town"): ("city", 20, 0)})

    outcome = correct(TOOL, {"town": "Oslo"}, learned=learned)

    assert outcome.applied == {"city": "Oslo"}
    assert outcome.candidates[0].pattern == "key_known_alias"


def test_an_alias_with_little_evidence_is_offered() -> None:
    learned = Taught({(HintKind.ALIAS, "$", "town"): ("city", 2, 0)})

    outcome = correct(TOOL, {"town": "Oslo"}, learned=learned)

    assert outcome.applied is None
    assert outcome.candidates[0].arguments == {"city": "Oslo"}


def test_an_alias_that_failed_is_not_applied() -> None:
    learned = Taught({(HintKind.ALIAS, "$", "town"): ("city", 20, 10)})

    assert correct(TOOL, {"town": "Oslo"}, learned=learned).applied is None


def test_an_alias_for_something_the_schema_lacks_is_ignored() -> None:
    learned = Taught({(HintKind.ALIAS, "$", "town"): ("place", 20, 0)})

    assert correct(TOOL, {"town": "Oslo"}, learned=learned).applied is None


def test_a_word_for_an_allowed_value_is_learned() -> None:
    learned = Taught({(HintKind.CHOICE, "$.unit", "c"): ("celsius", 20, 0)})

    outcome = correct(TOOL, {"city": "Oslo", "unit": "C"}, learned=learned)

    assert outcome.applied == {"city": "Oslo", "unit": "celsius"}


def test_a_learned_value_must_be_allowed() -> None:
    learned = Taught({(HintKind.CHOICE, "$.unit", "c"): ("kelvin", 20, 0)})

    assert correct(TOOL, {"city": "Oslo", "unit": "C"}, learned=learned).applied is None


def test_the_order_of_day_and_month_is_learned() -> None:
    learned = Taught({(HintKind.DATE_ORDER, "$.day", "day/month"): ("dayFirst", 20, 0)})

    outcome = correct(TOOL, {"city": "Oslo", "day": "03/04/2024"}, learned=learned)

    assert outcome.applied == {"city": "Oslo", "day": "2024-04-03"}


def test_how_lists_are_written_is_learned() -> None:
    split = Taught({(HintKind.LIST, "$.tags", ","): ("split", 20, 0)})
    whole = Taught({(HintKind.LIST, "$.tags", ","): ("whole", 20, 0)})
    sent = {"city": "Oslo", "tags": "War, Peace"}

    assert correct(TOOL, sent, learned=split).applied == {"city": "Oslo", "tags": ["War", "Peace"]}
    assert correct(TOOL, sent, learned=whole).applied == {"city": "Oslo", "tags": ["War, Peace"]}
