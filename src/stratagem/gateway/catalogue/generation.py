"""`text_generation`, `code_generation` and `image_generation`, by a configured model provider."""

from __future__ import annotations

import re
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ToolUnavailable
from stratagem.gateway.catalogue.model_requests import ask_model, make_images
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples
from stratagem.gateway.definitions.contract import ContentResult

__all__ = ["TOOLS"]

# Two patterns: in one, each fence that is opened and never closed would read the rest of the text.
_FENCE_OPEN: Final = re.compile(r"^```[^\n`]{0,40}+\n", re.MULTILINE)
_FENCE_CLOSE: Final = re.compile(r"^ {0,3}+```[ \t\r]{0,40}+$", re.MULTILINE)


async def _text(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    return await ask_model(
        run, prompt=given["prompt"], system=given.get("system"), stop=given.get("stop")
    )


async def _code(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    system = (
        f"You write {given['language']}. Answer with one block of code, complete and ready to run, "
        "with comments where the reason is not plain. After the block, in a few sentences, say "
        "what has to be known to use it."
    )
    prompt = given["prompt"]
    if given.get("context"):
        prompt = f"{prompt}\n\nThe code that it has to work with:\n\n{given['context']}"
    answer = await ask_model(run, prompt=prompt, system=system)
    code, notes = _split_code(answer.pop("text"))
    return {
        "code": code.strip("\n") + "\n",
        "language": given["language"],
        "notes": notes,
        **answer,
    }


def _split_code(text: str) -> tuple[str, str]:
    """Return the first block of code and what is said around it; all is code without a block."""
    opening = _FENCE_OPEN.search(text)
    closing = _FENCE_CLOSE.search(text, opening.end()) if opening else None
    if opening is None or closing is None:
        return text, ""
    around = text[: opening.start()] + text[closing.end() :]
    return text[opening.end() : closing.start()], around.strip()


async def _images(run: ToolRun) -> ContentResult:
    given = run.arguments
    _provider, settings = run.model(given.get("provider"))
    if not settings.get("imageModel"):
        raise ToolUnavailable(
            "The provider has no model for images.",
            hint="Set config.imageModel with provider_configure.",
        )
    made = await make_images(
        run, prompt=given["prompt"], count=given.get("count", 1), size=given.get("size")
    )
    content = [
        {"type": "image", "data": each["base64"], "mimeType": each["mimeType"]}
        for each in made["images"]
    ]
    shown = [
        {
            "mimeType": each["mimeType"],
            "bytes": len(each["base64"]) * 3 // 4,
            **({"revisedPrompt": each["revisedPrompt"]} if "revisedPrompt" in each else {}),
        }
        for each in made["images"]
    ]
    return ContentResult({**made, "images": shown}, content, is_structured=True)


_PROVIDER: Final = {"type": "string", "description": "Which provider, if several are configured"}
_MODEL: Final = {"type": "string", "maxLength": 200, "description": "Another model of the provider"}
_TOKENS: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 200_000,
    "description": "Most tokens of the answer",
}
_HEAT: Final = {
    "type": "number",
    "minimum": 0,
    "maximum": 2,
    "description": "0 gives the most predictable answers",
}
_PROMPT: Final = {"type": "string", "minLength": 1, "maxLength": limits.MODEL_PROMPT_CHARS_MAX}
_USED: Final[dict[str, Any]] = {
    "model": {"type": "string"},
    "provider": {"type": "string"},
    "finishReason": {"type": "string"},
    "usage": {
        "type": "object",
        "properties": {
            "inputTokens": {"type": "integer"},
            "outputTokens": {"type": "integer"},
            "cost": {"type": ["number", "null"], "description": "null where no prices are set"},
        },
    },
}
_HOW: Final = (
    "Calls a provider that was configured with provider_configure: any server that speaks OpenAI's "
    "chat completions (`baseUrl`: Ollama, vLLM, LiteLLM and others) or Anthropic. Progress is "
    "shown while it answers. `usage` has the tokens that the provider counted, and their cost "
    "where prices are set in `pricing`; budgets count the most that a call can cost. "
    "A provider that is overloaded or cannot be reached is called up to three times, "
    "unless it has already begun to answer."
)

TOOLS: Final = (
    StandardTool(
        define(
            "text_generation",
            "Have a configured language model write a text.",
            category="generation",
            details=_HOW,
            takes={
                "prompt": {**_PROMPT, "description": "What to write"},
                "system": {**_PROMPT, "description": "How to write: role, tone, form"},
                "maxTokens": _TOKENS,
                "temperature": _HEAT,
                "stop": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 100},
                    "maxItems": 4,
                },
                "model": _MODEL,
                "provider": _PROVIDER,
            },
            required=("prompt",),
            gives={"text": {"type": "string"}, **_USED},
            gives_always=("text", "model", "usage"),
            tags=("text", "llm", "write", "model"),
            shown=examples(
                ("A short text", {"prompt": "Explain event sourcing in two sentences."})
            ),
            internet=True,
            seconds=120,
            paid=True,
        ),
        _text,
        model="text",
    ),
    StandardTool(
        define(
            "code_generation",
            "Have a configured language model write code in a language.",
            category="generation",
            details=f"{_HOW} The code is returned, never run.",
            takes={
                "prompt": {**_PROMPT, "description": "What the code should do"},
                "language": {"type": "string", "minLength": 1, "maxLength": 50},
                "context": {**_PROMPT, "description": "Code that it has to work with"},
                "maxTokens": _TOKENS,
                "temperature": _HEAT,
                "model": _MODEL,
                "provider": _PROVIDER,
            },
            required=("prompt", "language"),
            gives={
                "code": {"type": "string"},
                "language": {"type": "string"},
                "notes": {"type": "string"},
                **_USED,
            },
            gives_always=("code", "language", "model", "usage"),
            tags=("code", "llm", "program", "model"),
            shown=examples(
                ("A function", {"prompt": "Reverse a linked list.", "language": "python"})
            ),
            internet=True,
            seconds=120,
            paid=True,
        ),
        _code,
        model="text",
    ),
    StandardTool(
        define(
            "image_generation",
            "Have a configured model make an image from a description.",
            category="generation",
            details=(
                "Asks OpenAI's images API, or a server that speaks it, with the provider's "
                "`imageModel`. MCP clients get the images as such; elsewhere they are in "
                "`mcp.content` of the answer, as base64. `usage.cost` comes from "
                "`pricing.perImage`."
            ),
            takes={
                "prompt": {**_PROMPT, "description": "What to show"},
                "count": {"type": "integer", "minimum": 1, "maximum": 4, "default": 1},
                "size": {
                    "type": "string",
                    "pattern": "^(auto|[1-9][0-9]{2,3}x[1-9][0-9]{2,3})$",
                    "description": "As 1024x1024",
                },
                "provider": _PROVIDER,
            },
            required=("prompt",),
            gives={"images": {"type": "array", "items": {"type": "object"}}, **_USED},
            gives_always=("images", "model", "usage"),
            tags=("image", "picture", "draw", "model"),
            shown=examples(("One image", {"prompt": "A lighthouse in fog, ink drawing"})),
            internet=True,
            seconds=180,
            paid=True,
            output_bytes=limits.OUTPUT_BYTES_MAX,
        ),
        _images,
        model="image",
    ),
)
