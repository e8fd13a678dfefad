"""Arguments with references in them, and what they become.

A reference is `{"$ref": "EXPRESSION"}`, or `${{ EXPRESSION }}` in a text. Where it is all there is
to a text it keeps its type; within a longer text it is written into it. `$${{` stands for `${{`,
and `{"$literal": VALUE}` for a value that is not looked into. What a reference gives is never
looked into either: a result cannot smuggle in a reference of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from stratagem.errors import ValidationFailed
from stratagem.gateway.pipelines.expressions import Expression, Work, compiled

__all__ = ["references", "resolve"]

# One that does not end takes all that is left, so that no other is looked for in it.
_REFERENCE: Final = re.compile(
    r"(?P<escaped>\$\$\{\{)|\$\{\{(?P<inner>.*?)(?P<end>\}\}|\Z)", re.DOTALL
)
_REF: Final = "$ref"
_LITERAL: Final = "$literal"


def references(template: Any, *, field: str) -> Iterator[Expression]:
    """Yield every expression in a template, read.

    Raises:
        ValidationFailed: One cannot be read; `field` says where it stands.
    """
    if isinstance(template, str):
        for found in _REFERENCE.finditer(template):
            if found["end"]:
                yield compiled(found["inner"], field=field)
    elif isinstance(template, Mapping):
        if _LITERAL in template:
            _only(template, _LITERAL, field)
        elif _REF in template:
            yield compiled(_reference(template, field), field=field)
        else:
            for name, value in template.items():
                yield from references(value, field=f"{field}.{name}")
    elif isinstance(template, list):
        for index, value in enumerate(template):
            yield from references(value, field=f"{field}[{index}]")


def resolve(
    template: Any, scope: Mapping[str, Any], *, field: str, work: Work | None = None
) -> Any:
    """Return a template with each reference replaced by what it refers to.

    Raises:
        ValidationFailed: A text refers to something that is not there, or an expression fails.
    """
    work = work or Work(field)
    if isinstance(template, str):
        return _text(template, scope, field, work)
    if isinstance(template, list):
        return [
            resolve(value, scope, field=f"{field}[{index}]", work=work)
            for index, value in enumerate(template)
        ]
    if not isinstance(template, Mapping):
        return template
    if _LITERAL in template:
        return template[_LITERAL]
    if _REF in template:
        return compiled(_reference(template, field), field=field).search(scope, work)
    return {
        name: resolve(value, scope, field=f"{field}.{name}", work=work)
        for name, value in template.items()
    }


def _text(text: str, scope: Mapping[str, Any], field: str, work: Work) -> Any:
    whole = _REFERENCE.fullmatch(text.strip())
    # Without the count, `${{ a }} and ${{ b }}` would pass for one expression.
    if whole and whole["end"] and text.count("${{") == 1:
        return compiled(whole["inner"], field=field).search(scope, work)

    def written(found: re.Match[str]) -> str:
        if not found["end"]:
            return found[0].replace("$${{", "${{")
        expression = compiled(found["inner"], field=field)
        return _written(expression.search(scope, work), expression, field)

    return _REFERENCE.sub(written, text)


def _written(value: Any, expression: Expression, field: str) -> str:
    if value is None:
        raise ValidationFailed(
            f"`{field}` needs {expression.text!r} in its text, and there is nothing.",
            field=field,
            hint="Check the path, or give the step a condition with `when`.",
        )
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _reference(template: Mapping[str, Any], field: str) -> str:
    _only(template, _REF, field)
    text = template[_REF]
    if not isinstance(text, str):
        raise ValidationFailed(f"`{field}`: the value of $ref is an expression.", field=field)
    return text


def _only(template: Mapping[str, Any], key: str, field: str) -> None:
    if len(template) > 1:
        raise ValidationFailed(f"`{field}`: {key} stands alone in its object.", field=field)
