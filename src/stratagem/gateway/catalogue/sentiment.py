"""`sentiment_analysis`: whether a text is positive or negative, by VADER's lexicon and rules."""

from __future__ import annotations

from functools import cache
from statistics import fmean
from typing import Any, Final

from stratagem import limits
from stratagem.gateway.catalogue.sentences import split_sentences, words_of
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define

__all__ = ["TOOLS"]

# The bounds that VADER's authors use.
_POSITIVE: Final = 0.05
_SHOWN_MAX: Final = 200
# Words that stand in nearly every English text and in few others.
_ENGLISH: Final = frozenset(
    "the a an of to and in is it that was for on are with as i my this be at not have you we they "
    "but or so from our what how has had its all no can will just me he she their your".split()
)
_ENGLISH_SHARE: Final = 0.12
_WORDS_TO_TELL: Final = 6


@cache
def _analyzer() -> Any:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    return SentimentIntensityAnalyzer()


async def _analyze(run: ToolRun) -> dict[str, Any]:
    text = run.arguments["text"]
    answer: dict[str, Any] = await run.in_thread(lambda: _of_text(text))
    if not run.arguments.get("sentences", False):
        del answer["sentences"]
    return answer


def _of_text(text: str) -> dict[str, Any]:
    sentences = split_sentences(text)
    scores = [_analyzer().polarity_scores(each[: limits.SENTENCE_CHARS_MAX]) for each in sentences]
    compounds = [each["compound"] for each in scores]
    # Sentences that say nothing either way do not water down those that do.
    telling = [each for each in compounds if abs(each) >= _POSITIVE]
    score = fmean(telling) if telling else 0.0
    shares = {
        name: round(fmean(each[key] for each in scores), 4) if scores else 0.0
        for name, key in (("positive", "pos"), ("neutral", "neu"), ("negative", "neg"))
    }
    answer: dict[str, Any] = {
        "sentiment": _label(score),
        "score": round(score, 4),
        "confidence": round(0.5 + abs(score) / 2 if telling else 0.5 + shares["neutral"] / 2, 4),
        "mixed": any(each >= _POSITIVE for each in telling)
        and any(each <= -_POSITIVE for each in telling),
        "shares": shares,
        "language": "en",
        "sentences": [
            {"text": each[:300], "score": compound, "sentiment": _label(compound)}
            for each, compound in zip(sentences[:_SHOWN_MAX], compounds, strict=False)
        ],
    }
    if not _looks_english(text):
        answer["confidence"] = min(answer["confidence"], 0.5)
        answer["warning"] = (
            "The text does not look English, and only English is supported. Use a model "
            "with text_generation, or translate it first."
        )
    return answer


def _label(score: float) -> str:
    if score >= _POSITIVE:
        return "positive"
    return "negative" if score <= -_POSITIVE else "neutral"


def _looks_english(text: str) -> bool:
    words = words_of(text[:5_000])
    known = sum(word in _ENGLISH for word in words)
    return len(words) < _WORDS_TO_TELL or known / len(words) >= _ENGLISH_SHARE


TOOLS: Final = (
    StandardTool(
        define(
            "sentiment_analysis",
            "Classify the sentiment of an English text as positive, negative or neutral.",
            category="analysis",
            details=(
                "Uses VADER, a lexicon with rules for negation, emphasis and emoticons; "
                "it runs locally, without a model. It knows English only and says so in "
                "`warning` where a "
                "text looks like another language. `score` goes from -1 to 1 and is the "
                "mean of the sentences that are positive or negative; `mixed` means that "
                "they disagree. "
                "`confidence` grows with the score and is not a probability. Irony is not "
                "recognized."
            ),
            takes={
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": limits.ANALYSED_CHARS_MAX,
                    "description": "The text, in English",
                },
                "language": {
                    "type": "string",
                    "enum": ["en"],
                    "default": "en",
                    "description": "Only English is supported",
                },
                "sentences": {
                    "type": "boolean",
                    "default": False,
                    "description": "Also classify each sentence",
                },
            },
            required=("text",),
            gives={
                "sentiment": {"type": "string", "enum": ["positive", "negative", "neutral"]},
                "score": {"type": "number", "minimum": -1, "maximum": 1},
                "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                "mixed": {"type": "boolean"},
                "shares": {"type": "object", "additionalProperties": {"type": "number"}},
                "language": {"type": "string"},
                "sentences": {"type": "array", "items": {"type": "object"}},
                "warning": {"type": "string"},
            },
            gives_always=("sentiment", "score", "confidence", "language"),
            tags=("text", "sentiment", "opinion", "feedback"),
            shown=[
                {
                    "description": "A review",
                    "input": {"text": "The update is great, I love it!"},
                    "output": {
                        "sentiment": "positive",
                        "score": 0.8622,
                        "confidence": 0.9311,
                        "mixed": False,
                        "shares": {"positive": 0.632, "neutral": 0.368, "negative": 0.0},
                        "language": "en",
                    },
                }
            ],
            cache=True,
        ),
        _analyze,
        packages=("vaderSentiment",),
    ),
)
