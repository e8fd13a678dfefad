"""Every view, light and dark, has no serious finding of axe-core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.manifest import proves

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

# The example is made, and a browser started, for whichever test comes first.
pytestmark = pytest.mark.timeout(600)
VIEWS = (
    "/", "/search?q=slow+customs", "/memory?ns=harbor", "/memory/entry?ns=harbor&key=api/rate-limit",
    "/sessions/transcript?ns=harbor&id=kickoff", "/branches/compare?theirs=pricing-by-container",
    "/branches/merge?source=pricing-by-container&target=default", "/debugging", "/knowledge", "/knowledge/concept?id=ETA",
    "/tools", "/tools/tool?name=calculator", "/system",
)  # fmt: skip


# Only what is wrong is described, which takes a quarter less time.
FINDINGS = {"resultTypes": ["violations"]}
# What differs between light and dark.
COLOURS = {**FINDINGS, "runOnly": ["color-contrast", "link-in-text-block"]}


@proves("console:accessible")
def test_no_view_has_a_serious_finding(signed_in: BrowserContext) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = signed_in.new_page()
    axe = Axe()

    found = []
    for path in VIEWS:
        page.emulate_media(color_scheme="light")
        page.goto(path)
        light = axe.run(page, options=FINDINGS).response
        page.emulate_media(color_scheme="dark")
        # It is in the page by now. What fades from one colour to the other has neither meanwhile.
        page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished))")
        dark = page.evaluate("options => axe.run(document, options)", COLOURS)
        found += [
            f"{path} in {scheme}: {each['id']} ({each['impact']}): {node['html'][:200]}"
            for scheme, answer in (("light", light), ("dark", dark))
            for each in answer["violations"]
            if each["impact"] in {"serious", "critical"}
            for node in each["nodes"][:2]
        ]

    page.close()
    assert found == []
