"""5. As test_05_generated, with far more requests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import Phase, settings
from schemathesis import Case

from tests.security.house import House
from tests.security.test_05_generated import HEALTH, SCHEMA, limited, send

__all__ = ["limited"]


@pytest.mark.slow
@SCHEMA.parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=100, deadline=None, phases=[Phase.generate], suppress_health_check=HEALTH)
def test_many_requests_do_not_pass_their_scope(
    case: Case[Any],
    limited: tuple[House, Counter[str]],
) -> None:
    send(limited, case)
