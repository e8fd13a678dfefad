"""Every link of every page leads somewhere."""

from __future__ import annotations

import html
import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.manifest import proves
from tests.surfaces.console.conftest import Console

# The example is made for whichever test comes first.
pytestmark = pytest.mark.timeout(600)
PAGES_MAX = 90
# Their values choose what a page shows; others only which record.
CHOICES = {"side", "form", "order", "status", "kind", "type", "colour"}


def kind_of(address: str) -> tuple[object, ...]:
    """Return what pages of one kind have in common."""
    parts = urlsplit(address)
    query = parse_qsl(parts.query)
    return parts.path, *sorted((name, value if name in CHOICES else "") for name, value in query)


@proves("console:links")
def test_no_link_of_the_console_is_dead(console: Console) -> None:
    dead, seen, waiting = [], {kind_of("/")}, ["/"]
    with console.browser() as client:
        for _ in range(PAGES_MAX):
            if not waiting:
                break
            address = waiting.pop(0)
            page = client.get(address)
            if page.status_code != 200:
                dead.append(f"{page.status_code} {address}")
            for each in map(html.unescape, re.findall(r'href="(/[^"#]*)', page.text)):
                if not each.startswith(("/static/", "/api/")) and kind_of(each) not in seen:
                    seen.add(kind_of(each))
                    waiting.append(each)

    assert dead == []
    assert len(seen) > 40
