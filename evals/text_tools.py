"""How well the standard tools read texts: sentiment, entities and summaries, beside baselines.

The sets in `evals/data/catalogue` were written for this, before the tools were. The lists of names
in the tool were written by the same people, so that unknown names are rarer here than elsewhere.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from rich.table import Table

import stratagem
from evals.suites import Figure, Options, Outcome, Suite

_DATA: Final = Path(__file__).parent / "data" / "catalogue"
Call = Callable[..., Any]


def _run(options: Options) -> Outcome:
    del options
    with tempfile.TemporaryDirectory() as folder, stratagem.open(f"{folder}/e.db") as db:

        def call(tool: str, **arguments: Any) -> Any:
            return db.call("tool_execute", {"toolName": tool, "arguments": arguments})["result"]

        table = Table("set", "cases", "tool", "baseline", "what the baseline does")
        sentiment, words, cases = _sentiment(call)
        table.add_row(
            "sentiment: right",
            str(cases),
            f"{sentiment:.1f} %",
            f"{words:.1f} %",
            "counts words of the same lexicon",
        )
        entities, forms, found = _entities(call)
        table.add_row(
            "entities: F1",
            str(found),
            f"{entities:.1f} %",
            f"{forms:.1f} %",
            "e-mails, URLs, digits, capitals",
        )
        summaries, lead, texts, repeated, lead_repeated = _summaries(call)
        table.add_row(
            "summaries: key sentences",
            str(texts),
            f"{summaries:.1f} %",
            f"{lead:.1f} %",
            "takes the first sentences",
        )
        table.add_row(
            "summaries: with repetition",
            str(texts),
            f"{repeated:.1f} %",
            f"{lead_repeated:.1f} %",
            "as above",
        )
    return Outcome(
        [
            Figure("sentiment right, %", sentiment, threshold=90),
            Figure("entities F1, %", entities, threshold=90),
            Figure("key sentences in summaries, %", summaries, threshold=65),
        ],
        [table],
    )


def _sentiment(call: Call) -> tuple[float, float, int]:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    lexicon = SentimentIntensityAnalyzer().lexicon
    cases = [line.split("\t") for line in _lines("sentiment.tsv")]
    right = sum(
        call("sentiment_analysis", text=text)["sentiment"] == label for label, text in cases
    )
    counted = sum(_by_words(text, lexicon) == label for label, text in cases)
    return 100 * right / len(cases), 100 * counted / len(cases), len(cases)


def _by_words(text: str, lexicon: dict[str, float]) -> str:
    total = sum(lexicon.get(word, 0.0) for word in re.findall(r"[a-z']+", text.lower()))
    return "positive" if total > 0 else "negative" if total < 0 else "neutral"


def _entities(call: Call) -> tuple[float, float, int]:
    ours, plain = [0, 0, 0], [0, 0, 0]
    count = 0
    for line in _lines("entities.tsv"):
        text, *wanted = line.split("\t")
        gold = {tuple(each.split("=", 1)) for each in wanted}
        found = call("entity_extraction", text=text)["entities"]
        _add(ours, gold, {(each["type"], each["text"]) for each in found})
        _add(plain, {each[1] for each in gold}, set(_plain_entities(text)))
        count += 1
    return _f1(ours), _f1(plain), count


def _plain_entities(text: str) -> Iterator[str]:
    """Find what anybody would find with four patterns; what kind it is does not count."""
    yield from re.findall(r"\S+@\S+\.\w+|https?://\S+|\d[\d.,:/-]*\d|\d", text)
    yield from re.findall(r"(?<=[a-z,] )[A-Z]\w+(?: [A-Z]\w+)*", text)


def _add(counts: list[int], gold: set[Any], found: set[Any]) -> None:
    counts[0] += len(gold & found)
    counts[1] += len(found - gold)
    counts[2] += len(gold - found)


def _f1(counts: list[int]) -> float:
    right, wrong, missed = counts
    return 100 * 2 * right / (2 * right + wrong + missed)


def _summaries(call: Call) -> tuple[float, float, int, float, float]:
    """Return the share of key sentences that summaries hold: of one story, or of several."""
    texts = list(_summary_cases())
    ours = lead = wanted = 0
    repeats, lead_repeats = 0, 0
    for stories in texts:
        sentences = [
            (line.lstrip("*"), line.startswith("*"), at)
            for at, story in enumerate(stories)
            for line in story
        ]
        keys = {line for line, is_key, _at in sentences if is_key}
        count = len(stories)
        summary = call(
            "summarization", text=" ".join(line for line, _key, _at in sentences), sentences=count
        )["summary"]
        chosen = [each for each in sentences if each[0] in summary]
        first = sentences[:count]
        ours += len(keys & {each[0] for each in chosen})
        lead += len(keys & {each[0] for each in first})
        wanted += len(keys)
        repeats += len({at for _line, _key, at in chosen}) < len(chosen)
        lead_repeats += len({at for _line, _key, at in first}) < len(first)
    size = len(texts)
    return (
        100 * ours / wanted,
        100 * lead / wanted,
        size,
        100 * repeats / size,
        100 * lead_repeats / size,
    )


def _summary_cases() -> Iterator[list[list[str]]]:
    stories = [
        block.split("\n") for block in (_DATA / "stories.txt").read_text().strip().split("\n\n")
    ]
    for at, story in enumerate(stories):
        yield [story]
        yield [story, stories[(at + 7) % len(stories)]]
        if at % 3 == 0:
            yield [story, stories[(at + 11) % len(stories)], stories[(at + 19) % len(stories)]]


def _lines(name: str) -> list[str]:
    return (_DATA / name).read_text("utf-8").strip().split("\n")


SUITE: Final = Suite("catalogue", "the standard tools that read texts, beside baselines", _run)
