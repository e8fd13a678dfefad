"""Requests that are generated from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import one_of

from stratagem.surfaces.rest.openapi import document

if TYPE_CHECKING:
    from schemathesis import Case

# As method and path, for `pytest.mark.parametrize`.
DOCUMENTED_ROUTES = [
    f"{method.upper()} {path}"
    for path, methods in document()["paths"].items()
    for method in methods
]


def send_requests(
    route: str, send: Callable[[Case[Any]], None], *, examples: int, derandomize: bool = False
) -> None:
    """Send requests to a route, some as the document describes them and some otherwise."""
    from schemathesis import GenerationMode

    method, path = route.split(" ", 1)
    operation = _schema()[path][method]

    @settings(
        max_examples=examples,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        derandomize=derandomize,
    )
    @given(one_of([operation.as_strategy(generation_mode=mode) for mode in GenerationMode]))
    def send_each(case: Case[Any]) -> None:
        send(case)

    send_each()


@cache
def _schema() -> Any:
    """Read the document, once. Only the worker that runs such tests imports what reads it."""
    import schemathesis

    return schemathesis.openapi.from_dict(document())
