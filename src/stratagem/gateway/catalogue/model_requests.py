"""Requests to models: by OpenAI's chat completions, which most servers speak, or Anthropic's API.

Answers are read as they are written, so that a call shows progress and is stopped at once when it
is cancelled. Tokens are those that the provider counted; what they cost comes from the `pricing` of
the provider's settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx2
import orjson

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ExecutionFailed, StratagemError
from stratagem.gateway.catalogue.model_prices import check_prices, cost_of, tokens_max
from stratagem.gateway.catalogue.standard_tool import Settings, ToolRun
from stratagem.gateway.outbound.responses import Response
from stratagem.gateway.outbound.results import result_of
from stratagem.gateway.secret_grants import origin_of

__all__ = ["ask_model", "base_url", "make_images"]

_BASES: Final = {
    "openai": "https://api.openai.com/v1",
    "xai": "https://api.x.ai/v1",
    "anthropic": "https://api.anthropic.com/v1",
}
_ANTHROPIC_VERSION: Final = "2023-06-01"
# The model wrote nothing, and nothing is paid for: to ask again can do no harm.
_NOTHING_WRITTEN: Final = frozenset({408, 409, 429, 500, 502, 503, 504, 529})
# Anthropic's last event; OpenAI's is read as the same.
_END: Final[dict[str, Any]] = {"type": "message_stop"}
_HINTS: Final = {
    401: "The key is not accepted. Check the secret that apiKey names.",
    403: "The key may not use this model.",
    404: "The provider does not have this model or address. Check model and baseUrl.",
    429: "The provider's limit is reached. Wait, or ask for less.",
}


@dataclass(slots=True)
class _Answer:
    """What a model has answered so far; `is_whole` once it has come to an end."""

    is_whole: bool = False
    text: str = ""
    model: str = ""
    stop: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0


def base_url(provider: str, settings: Settings) -> str:
    """Return where a provider is called."""
    return str(settings.get("baseUrl") or _BASES[provider]).rstrip("/")


async def ask_model(
    run: ToolRun, *, prompt: str, system: str | None = None, stop: list[str] | None = None
) -> dict[str, Any]:
    """Have a model answer; return its text, its name, why it ended, and what it used.

    Raises:
        PermissionDenied: The key was not granted to this tool for this host.
        ExecutionFailed: The provider failed, or refused.
    """
    provider, settings = run.model(run.arguments.get("provider"))
    given = run.arguments
    wished = {
        "model": given.get("model") or settings["model"],
        "max_tokens": given.get("maxTokens") or tokens_max(settings),
        "temperature": given.get("temperature", settings.get("temperature")),
    }
    speak = _anthropic if provider == "anthropic" else _openai
    answer = _Answer(model=wished["model"])
    check_prices(settings, answer.model)
    async for piece in speak(run, provider, settings, wished, prompt, system, stop):
        answer = piece
        _report(run, answer, wished["max_tokens"])
    if not (answer.is_whole or answer.stop):
        raise ExecutionFailed(
            "The answer broke off before its end.", safe=not answer.text, reason="broken_answer"
        )
    return {
        "text": answer.text,
        "model": answer.model,
        "provider": provider,
        "finishReason": answer.stop or "unknown",
        "usage": _usage(answer, settings, wished["model"]),
    }


async def make_images(run: ToolRun, *, prompt: str, count: int, size: str | None) -> dict[str, Any]:
    """Have a model make images; return them as base64 with their media types.

    Raises:
        ExecutionFailed: The provider failed, or makes no images.
    """
    provider, settings = run.model(run.arguments.get("provider"))
    base = base_url(provider, settings)
    body = {"model": settings["imageModel"], "prompt": prompt, "n": count, "size": size}
    response = await run.parts.outbound().request(
        "POST",
        f"{base}/images/generations",
        headers=_headers(run, provider, settings, base),
        body=orjson.dumps({name: value for name, value in body.items() if value is not None}),
        seconds=run.seconds,
        bytes_max=limits.OUTBOUND_BYTES_MAX,
    )
    made = _check_answer(response)
    images = [await _image(run, each) for each in made.get("data") or ()]
    if not images:
        raise ExecutionFailed("The provider returned no image.", answered=True)
    used = made.get("usage") or {}
    usage = {
        "inputTokens": int(used.get("input_tokens") or 0),
        "outputTokens": int(used.get("output_tokens") or 0),
        "cost": cost_of(settings, settings["imageModel"], images=len(images)),
    }
    return {"images": images, "model": settings["imageModel"], "provider": provider, "usage": usage}


async def _image(run: ToolRun, each: Mapping[str, Any]) -> dict[str, Any]:
    import base64

    data = each.get("b64_json")
    kind = "image/png"
    if not data and each.get("url"):
        found = await run.parts.outbound().request(
            "GET", each["url"], seconds=run.seconds, bytes_max=limits.OUTBOUND_BYTES_MAX
        )
        result_of(found)
        data = base64.b64encode(found.body).decode()
        kind = found.content_type or kind
    if not data:
        raise ExecutionFailed("The provider returned an image without data.", answered=True)
    if data.startswith("/9j/"):
        kind = "image/jpeg"
    elif data.startswith("UklGR"):
        kind = "image/webp"
    image = {"base64": data, "mimeType": kind}
    if each.get("revised_prompt"):
        image["revisedPrompt"] = str(each["revised_prompt"])
    return image


def _headers(run: ToolRun, provider: str, settings: Settings, base: str) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    if provider == "anthropic":
        headers["anthropic-version"] = _ANTHROPIC_VERSION
    if "apiKey" in settings:
        key = run.secret(settings["apiKey"], origin_of(base) or base)
        named = (
            ("x-api-key", key) if provider == "anthropic" else ("authorization", f"Bearer {key}")
        )
        headers[named[0]] = named[1]
    return headers


async def _openai(  # noqa: PLR0917 -- as its like below; called in one place
    run: ToolRun,
    provider: str,
    settings: Settings,
    wished: Mapping[str, Any],
    prompt: str,
    system: str | None,
    stop: list[str] | None,
) -> AsyncIterator[_Answer]:
    base = base_url(provider, settings)
    messages = [{"role": "system", "content": system}] if system else []
    # OpenAI's own models take the newer name only, other servers often the older one only.
    limit = "max_completion_tokens" if base == _BASES["openai"] else "max_tokens"
    body = {
        "model": wished["model"],
        "messages": [*messages, {"role": "user", "content": prompt}],
        limit: wished["max_tokens"],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    body |= {"temperature": wished["temperature"]} if wished["temperature"] is not None else {}
    body |= {"stop": stop} if stop else {}
    answer = _Answer(model=str(wished["model"]))
    async for event in _events(run, f"{base}/chat/completions", provider, settings, body):
        if error := event.get("error"):
            raise _provider_error(error, answer)
        answer.is_whole = event == _END
        answer.model = str(event.get("model") or answer.model)
        for choice in event.get("choices") or ():
            piece = choice.get("delta") or choice.get("message") or {}
            answer.text += piece.get("content") or ""
            answer.stop = choice.get("finish_reason") or answer.stop
        if used := event.get("usage"):
            answer.input_tokens = int(used.get("prompt_tokens") or 0)
            answer.output_tokens = int(used.get("completion_tokens") or 0)
        yield answer


async def _anthropic(  # noqa: PLR0917 -- as its like above; called in one place
    run: ToolRun,
    provider: str,
    settings: Settings,
    wished: Mapping[str, Any],
    prompt: str,
    system: str | None,
    stop: list[str] | None,
) -> AsyncIterator[_Answer]:
    base = base_url(provider, settings)
    base = base if base.endswith("/v1") else f"{base}/v1"
    body: dict[str, Any] = {
        "model": wished["model"],
        "max_tokens": wished["max_tokens"],
        "messages": [{"role": "user", "content": prompt}],
        "stream": True,
    }
    body |= {"system": system} if system else {}
    body |= {"temperature": wished["temperature"]} if wished["temperature"] is not None else {}
    body |= {"stop_sequences": stop} if stop else {}
    answer = _Answer(model=str(wished["model"]))
    async for event in _events(run, f"{base}/messages", provider, settings, body):
        kind = event.get("type")
        if kind == "error":
            raise _provider_error(event.get("error"), answer)
        answer.is_whole = event == _END
        if kind == "message_start":
            message = event.get("message") or {}
            answer.model = str(message.get("model") or answer.model)
            answer.input_tokens = int((message.get("usage") or {}).get("input_tokens") or 0)
        if kind == "content_block_delta":
            answer.text += (event.get("delta") or {}).get("text") or ""
        if kind == "message_delta":
            answer.stop = (event.get("delta") or {}).get("stop_reason") or answer.stop
            answer.output_tokens = int((event.get("usage") or {}).get("output_tokens") or 0)
        yield answer


async def _events(
    run: ToolRun, url: str, provider: str, settings: Settings, body: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of an answer; of one that is no stream, the whole."""
    headers = _headers(run, provider, settings, base_url(provider, settings))
    outbound = run.parts.outbound()
    async with outbound.stream(
        "POST", url, headers=headers, body=orjson.dumps(body), seconds=run.seconds
    ) as response:
        if "text/event-stream" not in response.headers.get("content-type", ""):
            for event in _events_of(_check_answer(await _complete(response, url))):
                yield event
            return
        if response.status_code != 200:  # noqa: PLR2004 -- the status of success
            _check_answer(await _complete(response, url))
        async for line in response.aiter_lines():
            data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
            if data:
                yield _END if data == "[DONE]" else _event(data)


def _event(data: str) -> dict[str, Any]:
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise ExecutionFailed("The provider sent an event that is not JSON.") from None
    return event if isinstance(event, dict) else {}


async def _complete(response: httpx2.Response, url: str) -> Response:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status_code, headers, await response.aread(), url)


def _check_answer(response: Response) -> dict[str, Any]:
    try:
        found = result_of(response)
    except ExecutionFailed as error:
        error.hint = _HINTS.get(response.status, error.hint)
        error.safe = response.status in _NOTHING_WRITTEN
        raise
    if not isinstance(found, dict) or "content_type" in found:
        raise ExecutionFailed("The provider did not answer with JSON.", status=response.status)
    return found


def _events_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a whole answer as the events that would have made it."""
    if not isinstance(message.get("content"), list):
        return [message, _END]
    text = "".join(each.get("text", "") for each in message["content"])
    ending = {"stop_reason": message.get("stop_reason")}
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_delta", "delta": {"text": text}},
        {"type": "message_delta", "delta": ending, "usage": message.get("usage")},
        _END,
    ]


def _provider_error(error: Any, answer: _Answer) -> StratagemError:
    words = error.get("message") if isinstance(error, Mapping) else error
    return ExecutionFailed(f"The provider failed: {str(words)[:500]}.", safe=not answer.text)


def _report(run: ToolRun, answer: _Answer, tokens_max: int) -> None:
    # About four characters a token; the provider counts them itself at the end.
    done = min(len(answer.text) / 4 / tokens_max, 0.99)
    run.call.progress(done, answer.text[-200:] or None)


def _usage(answer: _Answer, settings: Settings, model: str) -> dict[str, Any]:
    used = {"inputTokens": answer.input_tokens, "outputTokens": answer.output_tokens}
    cost = cost_of(
        settings, model, input_tokens=answer.input_tokens, output_tokens=answer.output_tokens
    )
    return {**used, "cost": cost}
