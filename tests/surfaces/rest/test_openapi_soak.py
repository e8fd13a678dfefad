"""As test_openapi, with far more requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from schemathesis import Case

from tests.surfaces.rest.test_openapi import HEALTH, SCHEMA, rest, send
from tests.surfaces.serving import Served

__all__ = ["rest"]


@pytest.mark.slow
@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=200, deadline=None, phases=[Phase.generate], suppress_health_check=HEALTH)
def test_many_requests_do_not_make_the_server_fail(
    case: Case[Any],
    rest: Served,
) -> None:
    send(rest, case)
