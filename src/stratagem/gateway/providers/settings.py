"""The settings of a provider. Secrets are given by name, never by value."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, ValidationError

from stratagem import limits
from stratagem.gateway.definitions.argument_models import Given, refusal
from stratagem.gateway.providers.payloads import payload_error

__all__ = [
    "AnthropicSettings",
    "OpenAISettings",
    "ProviderPricing",
    "ProviderSettings",
    "enabled_tools",
    "read_settings",
]

_BASE: Final = re.compile(r"https?://[^\s/?#@]{1,255}(?:/[^\s?#]{0,500})?")
_REFERENCE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


def _check_reference(value: str) -> str:
    if not _REFERENCE.fullmatch(value):
        raise ValueError("names a secret as ${NAME}; the key itself is never stored")
    return value


def _check_base(value: str) -> str:
    if not _BASE.fullmatch(value):
        raise ValueError("is an address such as https://api.example.com/v1")
    return value.rstrip("/")


class ModelPricing(Given):
    """What a model costs, in any currency: tokens by the million, images each."""

    input_per_million: float = Field(0.0, ge=0)
    output_per_million: float = Field(0.0, ge=0)
    per_image: float = Field(0.0, ge=0)


class ProviderPricing(ModelPricing):
    """What the provider's model and image model cost; `models`: what others of it cost."""

    models: dict[str, ModelPricing] | None = Field(None, max_length=100)


class ProviderSettings(Given):
    """The settings that every provider has.

    `base_url`: where the tools that generate call it; its own address unless it is given.
    """

    base_url: Annotated[str, AfterValidator(_check_base)] | None = None
    image_model: str | None = Field(None, min_length=1, max_length=200)
    pricing: ProviderPricing | None = None

    api_key: Annotated[str, AfterValidator(_check_reference)] | None = None
    model: str | None = Field(None, min_length=1, max_length=200)
    enabled_tools: list[str] | None = Field(None, max_length=limits.PROVIDER_TOOLS_ANTHROPIC_MAX)
    max_tokens: int | None = Field(None, ge=1, le=10_000_000)
    temperature: float | None = Field(None, ge=0, le=2)


class AnthropicSettings(ProviderSettings):
    """Its temperature ends at 1."""

    temperature: float | None = Field(None, ge=0, le=1)


class OpenAISettings(ProviderSettings):
    """`functions`: whether the model chooses if it calls one, calls none, or has to call one."""

    functions: Literal["auto", "none", "required"] | None = None


def read_settings(model: type[ProviderSettings], config: Any) -> dict[str, Any]:
    """Return settings in the document's own names.

    Raises:
        ValidationFailed: One of them cannot be taken; `field` begins with "config".
    """
    if not isinstance(config, Mapping):
        raise payload_error("config", "is an object")
    try:
        settings = model.model_validate(dict(config))
    except ValidationError as error:
        refused = refusal(error, [field.alias or "" for field in model.model_fields.values()])
        refused.details["field"] = f"config.{refused.details['field']}"
        # The cause would carry what was given, and that may be the key itself.
        raise refused from None
    return settings.model_dump(by_alias=True, exclude_none=True)


def enabled_tools(
    settings: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the tools that settings enable, in the order they name them; all if they name none."""
    names = settings.get("enabledTools")
    if settings.get("functions") == "none":
        return []
    if names is None:
        return list(tools)
    by_name = {tool["name"]: tool for tool in tools}
    return [by_name[name] for name in dict.fromkeys(names) if name in by_name]
