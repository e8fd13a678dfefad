"""What agents do appears by itself; keys and a phone work; whoever edits is not disturbed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.manifest import proves
from tests.surfaces.console.conftest import Console, Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# The example is made, and a browser started, for whichever test comes first.
pytestmark = pytest.mark.timeout(600)


def store(console: Console, key: str, value: str) -> None:
    answer = httpx2.post(
        f"{console.url}/api/memory/strata_store",
        json={"key": key, "value": value, "namespace": "harbor"},
        trust_env=False,
        timeout=60,
    )
    assert answer.status_code == 200


@proves("console:live")
def test_what_an_agent_stores_appears_within_a_second(visitor: Visitor, console: Console) -> None:
    page = visitor.page
    page.goto("/memory?ns=harbor")
    page.locator("[data-live-mark][data-on]").wait_for()
    store(console, "seen/warm", "the embedder is read")
    visitor.sees("seen/warm")

    begun = time.monotonic()
    store(console, "seen/now", "a container moved")
    visitor.sees("seen/now")

    # A second is the promise; the rest is for a machine that does other things too.
    assert time.monotonic() - begun < 30


@proves("console:live")
def test_whoever_edits_keeps_what_was_typed(visitor: Visitor, console: Console) -> None:
    page = visitor.page
    page.goto("/memory/entry?ns=harbor&key=project/team")
    page.locator("[data-live-mark][data-on]").wait_for()
    page.get_by_text("Edit", exact=True).click()
    page.get_by_role("textbox", name="Value").fill('{"people": []}')

    store(console, "seen/meanwhile", "x")
    page.get_by_text("new, not shown while you edit").wait_for()

    assert page.get_by_role("textbox", name="Value").input_value() == '{"people": []}'


@proves("console:keys")
def test_keys_lead_everywhere(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/memory")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/memory/entry**")
    page.keyboard.press("?")

    assert page.get_by_role("dialog").get_by_text("search everything").is_visible()


@proves("console:phone")
def test_a_phone_shows_what_a_value_is_and_which_page_it_is_on(
    console: Console, chromium: Browser
) -> None:
    context = chromium.new_context(base_url=console.url, viewport={"width": 390, "height": 844})
    page = context.new_page()

    page.goto("/debugging")
    labels = (
        page.locator("tbody tr")
        .first.locator("td")
        .evaluate_all("cells => cells.map((cell) => getComputedStyle(cell, '::before').content)")
    )
    page.goto("/tools")
    shown = page.locator(".side [aria-current]").bounding_box()

    context.close()
    assert '"Attempts: "' in labels or '"Attempts" ": "' in labels
    assert shown is not None
    assert 0 <= shown["x"] <= 390 - shown["width"]


@proves("console:phone")
def test_a_phone_shows_a_change_below_its_field_with_no_word_broken(
    console: Console, chromium: Browser
) -> None:
    context = chromium.new_context(base_url=console.url, viewport={"width": 390, "height": 844})
    page = context.new_page()

    page.goto("/branches/compare?ours=default&theirs=pricing-by-container")
    change = page.get_by_text("container", exact=True).first
    lines = change.evaluate("change => change.getClientRects().length")
    label = change.evaluate("change => getComputedStyle(change.closest('td'), '::before').content")
    box = change.bounding_box()

    context.close()
    assert lines == 1
    assert "Change" in label
    assert box is not None
    assert box["x"] < 195


@proves("console:phone")
def test_every_page_fits_a_phone(console: Console, chromium: Browser) -> None:
    context = chromium.new_context(base_url=console.url, viewport={"width": 390, "height": 844})
    page = context.new_page()

    wide = []
    for path in (
        "/",
        "/memory?ns=harbor",
        "/memory/entry?ns=harbor&key=roadmap",
        "/branches",
        "/debugging",
        "/knowledge",
        "/tools",
        "/tools/calls",
        "/system",
        "/search?q=customs",
    ):
        page.goto(path)
        if page.evaluate("document.documentElement.scrollWidth") > 391:
            wide.append(path)

    context.close()
    assert wide == []
