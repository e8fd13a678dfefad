"""Every view, light and dark, has no serious finding of axe-core."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext

from tests.manifest import proves

# The example is made, and a browser started, for whichever test comes first.
pytestmark = pytest.mark.timeout(600)
VIEWS = (
    "/", "/search?q=slow+customs", "/memory?ns=harbor", "/memory/entry?ns=harbor&key=api/rate-limit",
    "/sessions/transcript?ns=harbor&id=kickoff", "/branches/compare?theirs=pricing-by-container",
    "/branches/merge?source=pricing-by-container&target=default", "/debugging", "/knowledge", "/knowledge/concept?id=ETA",
    "/tools", "/tools/tool?name=calculator", "/system",
)  # fmt: skip


# What differs between light and dark.
COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}


@proves("console:accessible")
@pytest.mark.parametrize(("scheme", "options"), [("light", None), ("dark", COLOURS)])
def test_no_view_has_a_serious_finding(
    signed_in: BrowserContext, scheme: Literal["light", "dark"], options: dict[str, Any] | None
) -> None:
    page = signed_in.new_page()
    page.emulate_media(color_scheme=scheme)
    axe = Axe()

    found = []
    for path in VIEWS:
        page.goto(path)
        found += [
            f"{path}: {each['id']} ({each['impact']}): {node['html'][:200]}"
            for each in axe.run(page, options=options).response["violations"]
            if each["impact"] in {"serious", "critical"}
            for node in each["nodes"][:2]
        ]

    page.close()
    assert found == []
