"""The formats of model providers for tools, calls and results."""

from __future__ import annotations

from typing import Final

from stratagem.gateway.providers.anthropic import Anthropic
from stratagem.gateway.providers.contract import CustomProvider, Format, ProviderCall, ResultOrError
from stratagem.gateway.providers.gemini import Gemini
from stratagem.gateway.providers.openai import XAI, OpenAIChat, OpenAIResponses
from stratagem.gateway.providers.provider_names import original_name, provider_name
from stratagem.gateway.providers.settings import enabled_tools

__all__ = [
    "PROVIDERS",
    "CustomProvider",
    "Format",
    "ProviderCall",
    "ResultOrError",
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
