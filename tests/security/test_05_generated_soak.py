"""5. As test_05_generated, with far more requests."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest

from tests.security.house import House
from tests.security.test_05_generated import limited, send
from tests.surfaces.generated_requests import DOCUMENTED_ROUTES, send_requests

__all__ = ["limited"]


@pytest.mark.slow
@pytest.mark.parametrize("route", DOCUMENTED_ROUTES)
def test_many_requests_do_not_pass_their_scope(
    route: str, limited: tuple[House, Counter[str]]
) -> None:
    send_requests(route, partial(send, limited), examples=100)
