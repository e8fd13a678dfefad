"""Generating text, by a model behind an OpenAI-compatible endpoint that somebody has configured.

Nothing is downloaded and no model runs here: a prompt goes out through the guard that every request
of the gateway goes through, to the address that a person has named, and to no other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import orjson

from stratagem import limits
from stratagem.developer.models import (
    Generated,
    ModelConfiguration,
    ModelInfo,
    ModelList,
    ModelPull,
    ModelUnloaded,
)
from stratagem.engine import values
from stratagem.errors import (
    GenerationUnavailable,
    ServiceUnavailable,
    StratagemError,
    ValidationFailed,
)
from stratagem.operation import Caller
from stratagem.parameters import Param
from stratagem.search.embedding import EMBEDDERS, choose
from stratagem.search.foundation import BoundSystem
from stratagem.storage.contract import Transaction

if TYPE_CHECKING:
    from stratagem.gateway.parts import GatewayParts

__all__ = ["Generation", "Models"]

_SETTING: Final = "generation_model"
# The key itself is never stored: only the name of the variable that holds it.
_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
# Everybody who reads is shown it, so it holds no password.
_ENDPOINT: Final = re.compile(r"https?://[^\s@]{1,500}")
_CONFIGURE: Final = (
    "A person has to configure one: strata_configure_model with an endpoint, such "
    "as http://localhost:11434/v1, and a model; a private host has to be allowed "
    "with --allow-host."
)
_NOTHING_PULLED: Final = (
    "Nothing is downloaded: Stratagem fetches no weights. Embedders come with the package (static) "
    "or with an extra (minilm); name one with --embedder. A model that generates "
    "text runs elsewhere, for example in Ollama, llama.cpp or vLLM: pull it there, "
    "and name it with strata_configure_model."
)


class Models(BoundSystem):
    """The models that are known, for one caller."""

    def configure(
        self,
        endpoint: Annotated[
            str, Param("OpenAI-compatible base address, such as http://localhost:11434/v1")
        ],
        model: Annotated[str, Param("The model's name there", min_length=1, max_length=200)],
        api_key: Annotated[
            str | None, Param("${NAME}: the variable of the server's environment that has the key")
        ] = None,
        timeout_ms: Annotated[
            int | None, Param("How long to wait for an answer", ge=1, le=600_000)
        ] = None,
    ) -> ModelConfiguration:
        """Say which model text is generated with, for everybody who uses this database."""
        if not _ENDPOINT.fullmatch(endpoint):
            raise ValidationFailed(
                "`endpoint` must be an http:// or https:// address without a user or password.",
                field="endpoint",
                hint="Such as https://api.openai.com/v1 or http://localhost:11434/v1.",
            )
        if api_key is not None and not _REFERENCE.fullmatch(api_key):
            raise ValidationFailed(
                "`api_key` names a variable as ${NAME}; the key itself is never stored.",
                field="api_key",
                hint="Set it in the environment of the server, and write ${OPENAI_API_KEY}.",
            )
        config: dict[str, Any] = {
            "endpoint": endpoint.rstrip("/"),
            "model": model,
            "api_key": api_key,
            "timeout_ms": timeout_ms,
        }
        values.encode(config, field="endpoint")

        def work(transaction: Transaction) -> None:
            transaction.settings.set(_SETTING, orjson.dumps(config).decode())

        self._caller.refuse_in_transaction("Configuring a model")
        self._foundation.write(self._caller, work)
        return ModelConfiguration(**config)

    def list(self) -> ModelList:
        """Return the embedders, and the model that text is generated with."""
        found = [self._embedder(name) for name in EMBEDDERS if name != "none"]
        config = configured_model(self._foundation.store.reader())
        if config is not None:
            found.append(
                ModelInfo(
                    config.model,
                    "generate",
                    available=True,
                    local=False,
                    in_use=True,
                    note=f"at {config.endpoint}",
                )
            )
        return ModelList(found)

    def local(self) -> ModelList:
        """Return the models that run in this process and are installed."""
        return ModelList([each for each in self.list() if each.local and each.available])

    def pull(
        self, name: Annotated[str, Param("The model", quiet=True, max_length=200)]
    ) -> ModelPull:
        """Say that nothing is downloaded, and how a model is named that is there."""
        there = any(each.name == name and each.available for each in self.list())
        return ModelPull(name, pulled=False, available=there, note=_NOTHING_PULLED)

    def _embedder(self, name: str) -> ModelInfo:
        in_use = self._foundation.index.embedder
        try:
            made = choose(name)
        except ServiceUnavailable as error:
            return ModelInfo(
                name, "embed", available=False, local=True, in_use=False, note=error.hint
            )
        assert made is not None, "only none is none"
        return ModelInfo(
            name,
            "embed",
            available=True,
            local=True,
            in_use=in_use is not None and in_use.name == made.name,
            dimension=made.dimensions,
        )


class Generation:
    """Generating text, for one caller."""

    def __init__(self, parts: GatewayParts, caller: Caller) -> None:
        self._parts = parts
        self._caller = caller

    def generate(
        self,
        prompt: Annotated[str, Param("The prompt for the model", quiet=True, min_length=1)],
        *,
        system: Annotated[str | None, Param("Instructions to the model", quiet=True)] = None,
        model: Annotated[
            str | None, Param("Another model of the same endpoint", max_length=200)
        ] = None,
        max_tokens: Annotated[
            int,
            Param("Most tokens of the answer", quiet=True, ge=1, le=limits.GENERATED_TOKENS_MAX),
        ] = limits.GENERATED_TOKENS_DEFAULT,
        temperature: Annotated[
            float | None, Param("0: always the same; 2: anything", quiet=True, ge=0, le=2)
        ] = None,
        stop: Annotated[
            list[str] | None, Param("Texts that end the answer", quiet=True, max_length=4)
        ] = None,
    ) -> Generated:
        """Have the configured model write a text.

        Raises:
            GenerationUnavailable: No model is configured, or it cannot be reached.
        """
        self._caller.require_known("Generating text")
        config = configured_model(self._parts.foundation.store.reader())
        if config is None:
            raise GenerationUnavailable(
                "No model that generates text is configured.", hint=_CONFIGURE
            )
        if len(prompt) > limits.PROMPT_CHARS_MAX:
            raise ValidationFailed(
                f"`prompt` is {len(prompt):,} characters long; the limit is "
                f"{limits.PROMPT_CHARS_MAX:,}.",
                field="prompt",
                limit=limits.PROMPT_CHARS_MAX,
            )
        asked = [{"role": "system", "content": system}] if system else []
        body = {
            "model": model or config.model,
            "messages": [*asked, {"role": "user", "content": prompt}],
            "max_tokens": max_tokens,
            "temperature": temperature,
            "stop": stop,
        }
        given = {name: value for name, value in body.items() if value is not None}
        return _read_answer(self._send(config, given), config)

    def unload(self) -> ModelUnloaded:
        """Say that nothing has to be unloaded."""
        return ModelUnloaded(
            unloaded=False, note="Models that generate text run elsewhere: nothing is loaded here."
        )

    def _send(self, config: ModelConfiguration, body: Mapping[str, Any]) -> Any:
        headers = {"content-type": "application/json", **_authorization(config)}
        seconds = (config.timeout_ms or limits.GENERATION_SECONDS * 1000) / 1000
        outbound = self._parts.outbound()
        url = f"{config.endpoint}/chat/completions"
        try:
            response = self._parts.home.run(
                lambda: outbound.request(
                    "POST", url, headers=headers, body=orjson.dumps(body), seconds=seconds
                )
            )
        except StratagemError as error:
            raise GenerationUnavailable(
                f"The model at {config.endpoint} cannot be asked: {error.message}",
                hint=error.hint or _CONFIGURE,
                endpoint=config.endpoint,
            ) from error
        try:
            answer = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            answer = None
        if response.status >= 400 or not isinstance(answer, Mapping):  # noqa: PLR2004 -- of HTTP
            raise GenerationUnavailable(
                f"The model at {config.endpoint} answered {response.status}.",
                endpoint=config.endpoint,
                status=response.status,
                hint="Check the model's name, and that the environment variable of its key is set.",
            )
        return answer


def configured_model(reader: Any) -> ModelConfiguration | None:
    """Return the model that text is generated with, if one is configured."""
    stored = reader.settings.text(_SETTING)
    return None if stored is None else ModelConfiguration(**orjson.loads(stored))


def _authorization(config: ModelConfiguration) -> dict[str, str]:
    if config.api_key is None:
        return {}
    match = _REFERENCE.fullmatch(config.api_key)
    key = os.environ.get(match.group(1)) if match else None
    if not key:
        raise GenerationUnavailable(
            f"The environment variable of the key, {config.api_key}, is not set.",
            hint="Set it in the environment of the server, and start it again.",
        )
    return {"authorization": f"Bearer {key}"}


def _read_answer(answer: Mapping[str, Any], config: ModelConfiguration) -> Generated:
    try:
        choice = answer["choices"][0]
        text = choice["message"]["content"] or ""
    except (KeyError, IndexError, TypeError) as error:
        raise GenerationUnavailable(
            f"The model at {config.endpoint} did not answer in the format of OpenAI's API.",
            endpoint=config.endpoint,
            hint="Give its address without /chat/completions at the end.",
        ) from error
    used = answer.get("usage") or {}
    return Generated(
        text=str(text),
        model=str(answer.get("model") or config.model),
        stop_reason=choice.get("finish_reason"),
        prompt_tokens=used.get("prompt_tokens"),
        completion_tokens=used.get("completion_tokens"),
    )
