"""As test_openapi, with far more requests."""

from __future__ import annotations

from functools import partial

import pytest

from tests.surfaces.generated_requests import DOCUMENTED_ROUTES, send_requests
from tests.surfaces.rest.test_openapi import rest, send
from tests.surfaces.serving import Served

__all__ = ["rest"]


@pytest.mark.slow
@pytest.mark.parametrize("route", DOCUMENTED_ROUTES)
def test_many_requests_do_not_make_the_server_fail(route: str, rest: Served) -> None:
    send_requests(route, partial(send, rest), examples=200)
