"""The formats of model providers: tools given, calls taken, results returned."""

from __future__ import annotations

from typing import Final

from stratagem.gateway.providers.anthropic import Anthropic
from stratagem.gateway.providers.contract import CustomProvider, Format, Outcome, ProviderCall
from stratagem.gateway.providers.gemini import Gemini
from stratagem.gateway.providers.naming import original_name, provider_name
from stratagem.gateway.providers.openai import XAI, OpenAIChat, OpenAIResponses
from stratagem.gateway.providers.settings import enabled_tools

__all__ = [
    "PROVIDERS",
    "CustomProvider",
    "Format",
    "Outcome",
    "ProviderCall",
    "enabled_tools",
    "original_name",
    "provider_name",
]

_FORMATS: Final[tuple[Format, ...]] = (
    Anthropic(),
    OpenAIChat(),
    OpenAIResponses(),
    XAI(),
    Gemini(),
)
PROVIDERS: Final[dict[str, Format]] = {format_.name: format_ for format_ in _FORMATS}
