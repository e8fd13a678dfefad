"""What models cost: by the `pricing` of their provider's settings, in its currency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stratagem.errors import ValidationFailed
from stratagem.gateway.catalogue.standard_tool import Settings

__all__ = ["check_prices", "cost_max", "cost_of", "tokens_max"]

_TOKENS_DEFAULT: Final = 1_024
# What the tools and the provider put around a prompt.
_TOKENS_AROUND: Final = 200


def check_prices(settings: Settings, model: str) -> None:
    """Check that it is known what a model costs, where prices are set at all.

    Raises:
        ValidationFailed: They are those of other models, so that no budget could count it.
    """
    if settings.get("pricing") and _prices_of(settings, model) is None:
        known = [settings["model"], *(settings["pricing"].get("models") or ())]
        raise ValidationFailed(
            f"The price of {model} is not known.",
            field="model",
            allowed=known,
            hint=f"Choose one of: {', '.join(known)}; or have its prices set in pricing.models.",
        )


def cost_of(
    settings: Settings,
    model: str,
    *,
    input_tokens: int = 0,
    output_tokens: int = 0,
    images: int = 0,
) -> float | None:
    """Return what a request cost, or None where no prices were set."""
    prices = _prices_of(settings, model)
    if not prices:
        return None
    cost = (
        input_tokens * prices.get("inputPerMillion", 0.0) / 1e6
        + output_tokens * prices.get("outputPerMillion", 0.0) / 1e6
        + images * prices.get("perImage", 0.0)
    )
    return round(float(cost), 8)


def cost_max(kind: str, settings: Settings, arguments: Mapping[str, Any]) -> float:
    """Return the most that a call can cost: all tokens that it may have, or each image."""
    if kind == "image":
        images = _number(arguments.get("count"), 1)
        return cost_of(settings, settings["imageModel"], images=images) or 0.0
    texts = "".join(text for text in arguments.values() if isinstance(text, str))
    cost = cost_of(
        settings,
        str(arguments.get("model") or settings["model"]),
        # No token is shorter than a byte.
        input_tokens=len(texts.encode(errors="surrogatepass")) + _TOKENS_AROUND,
        output_tokens=_number(arguments.get("maxTokens"), tokens_max(settings)),
    )
    return cost or 0.0


def tokens_max(settings: Settings) -> int:
    """Return how many tokens an answer may have where a call does not say."""
    return int(settings.get("maxTokens") or _TOKENS_DEFAULT)


def _prices_of(settings: Settings, model: str) -> Mapping[str, float] | None:
    """Return the prices of a model, or None where none were set."""
    pricing = settings.get("pricing") or {}
    of_others: Mapping[str, Mapping[str, float]] = pricing.get("models") or {}
    if model in of_others:
        return of_others[model]
    return pricing or None if model in {settings["model"], settings.get("imageModel")} else None


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default
