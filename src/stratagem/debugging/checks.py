"""What debugging takes from its callers, checked before anything is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stratagem import limits
from stratagem.debugging.detection import detect
from stratagem.debugging.environments import Environment, canonical, from_bucket
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import values
from stratagem.errors import ValidationFailed
from stratagem.redaction import Level, mask, mask_json

__all__ = [
    "Place",
    "boolean",
    "environment",
    "line",
    "optional",
    "place",
    "query",
    "steps",
    "tags",
]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was tried: the environment, and the form in which events store it."""

    environment: Environment
    content: Mapping[str, Any]
    note: str | None = None


def environment(env: object, *, local: bool, redaction: Level) -> Environment:
    """Return the environment that a caller gives or runs in, with secrets masked."""
    return canonical(_resolve_env(env, local=local, redaction=redaction))


def place(env: object, env_bucket: object, *, local: bool, redaction: Level) -> Place:
    """Return where something was tried; a bucket in canonical form overrides the environment."""
    given = _resolve_env(env, local=local, redaction=redaction)
    computed = canonical(given)
    if env_bucket is None or env_bucket == computed.bucket:
        return Place(computed, {"env": given, "env_bucket": computed.bucket})
    kept = isinstance(env_bucket, str) and mask(env_bucket, redaction) == env_bucket
    named = from_bucket(env_bucket) if isinstance(env_bucket, str) and kept else None
    if named is None:
        raise ValidationFailed(
            f"`env_bucket` {env_bucket!r} is not in canonical form.",
            field="env_bucket",
            hint=f"Leave it out: this environment's is {computed.bucket!r}.",
        )
    note = f"env_bucket {named.bucket!r} was used; the environment's own is {computed.bucket!r}."
    return Place(named, {"env": given, "env_bucket": named.bucket}, note)


def query(text: str) -> None:
    """Refuse what cannot be searched for."""
    if not text.strip():
        raise ValidationFailed(
            "`query_text` must be text that is not empty.",
            field="query_text",
            hint="Send the error message, the stack trace or the log.",
        )
    if len(text) > limits.LOG_CHARS_MAX:
        raise ValidationFailed(
            f"`query_text` is {len(text):,} characters long; "
            f"the limit is {limits.LOG_CHARS_MAX:,}.",
            field="query_text",
            limit=limits.LOG_CHARS_MAX,
            hint="Send its end: that is where the error is.",
        )
    values.encode(text, field="query_text", bytes_max=4 * limits.LOG_CHARS_MAX)


def boolean(value: object, *, field: str) -> None:
    """Refuse anything but true and false."""
    if not isinstance(value, bool):
        raise ValidationFailed(f"`{field}` must be true or false.", field=field)


def line(text: object, field: str, chars_max: int) -> str:
    """Return a line of text."""
    if isinstance(text, str):
        text = " ".join(text.split())
    return values.check_text(text, field=field, chars_max=chars_max)


def optional(text: object, field: str, chars_max: int) -> str | None:
    """Return a text of several lines, or None."""
    if text is None:
        return None
    return prose(text, field, chars_max)


def prose(text: object, field: str, chars_max: int) -> str:
    """Return a text of several lines."""
    if not isinstance(text, str):
        raise ValidationFailed(f"`{field}` must be text.", field=field)
    if len(text) > chars_max:
        raise ValidationFailed(
            f"`{field}` is {len(text):,} characters long; the limit is {chars_max:,}.",
            field=field,
            limit=chars_max,
            hint=f"Shorten `{field}`.",
        )
    values.encode(text, field=field)
    return text


def steps(given: object) -> list[str]:
    """Return the steps of a fix: a text, or a list of texts."""
    listed = [given] if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or isinstance(listed, bytes):
        raise ValidationFailed("`steps` must be a text or a list of texts.", field="steps")
    checked = [prose(step, "steps", limits.STEP_CHARS_MAX) for step in listed]
    checked = [step for step in checked if step.strip()]
    if not checked:
        raise ValidationFailed(
            "`steps` is empty.", field="steps", hint="Say what to do to fix the problem."
        )
    if len(checked) > limits.STEPS_MAX:
        raise ValidationFailed(
            f"A fix has at most {limits.STEPS_MAX} steps; there are {len(checked)}.",
            field="steps",
            limit=limits.STEPS_MAX,
        )
    return checked


def tags(given: object) -> list[str]:
    """Return tags in order, each once."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ValidationFailed("`tags` must be a list of strings.", field="tags")
    return sorted(
        {values.check_text(tag, field="tags", chars_max=limits.TAG_CHARS_MAX) for tag in given}
    )


def _resolve_env(env: object, *, local: bool, redaction: Level) -> Mapping[str, Any]:
    if env == "auto":
        if not local:
            raise ValidationFailed(
                'env "auto" works only where the caller and the database are on one machine.',
                field="env",
                hint="Send an object, such as the one that `stratagem env` prints.",
            )
        return dict(mask_json(detect(), redaction))
    if not isinstance(env, Mapping):
        raise ValidationFailed(
            '`env` must be an object or "auto".',
            field="env",
            hint='For example {"os": "linux", "python": "3.12"}.',
        )
    values.encode(dict(env), field="env", bytes_max=limits.ENV_BYTES_MAX)
    return dict(mask_json(dict(env), redaction))
