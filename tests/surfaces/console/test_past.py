"""A past moment: what a page shows of it, what is shown as it is now, and where the slider stands."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.surfaces.console.conftest import Console

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

# The example is made for whichever test comes first.
pytestmark = pytest.mark.timeout(600)
# A third of the month of the example had passed.
MOMENT = "@220"


@pytest.fixture
def visitor(console: Console) -> Iterator[httpx2.Client]:
    with console.browser() as client:
        yield client


def text_of(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_calls_after_the_moment_are_not_shown(visitor: httpx2.Client) -> None:
    last = visitor.get("/tools/calls.json", params={"at": MOMENT}).json()["calls"][0]["startedAt"]
    now = visitor.get("/tools/calls.json").json()["calls"][0]["startedAt"]

    days = visitor.get("/tools.json", params={"at": MOMENT}).json()["days"]

    assert last < now
    assert days[-1]["label"] == last[:10]


@pytest.mark.parametrize("path", ["/tools", "/branches", "/review", "/system"])
def test_a_page_that_has_no_past_says_that_it_shows_the_present(
    visitor: httpx2.Client, path: str
) -> None:
    shown = text_of(visitor.get(path, params={"at": MOMENT}).text)

    assert f"You look at {MOMENT}" in shown
    assert "as it is now" in shown or "as they are now" in shown
    assert "everything as it was" not in shown


def test_what_waited_and_how_many_branches_there_were_is_not_made_up(
    visitor: httpx2.Client,
) -> None:
    now = visitor.get("/index.json").json()

    past = visitor.get("/index.json", params={"at": MOMENT}).json()

    assert now["counts"]["branches"] == 3
    assert past["counts"]["branches"] is None
    assert "approval" in str(now["waiting"])
    assert "approval" not in str(past["waiting"])
    assert visitor.get("/tools.json", params={"at": MOMENT}).json()["approvals"] == []


def test_the_time_of_a_moment_in_words_is_shown(visitor: httpx2.Client) -> None:
    page = visitor.get("/", params={"at": MOMENT}).text

    assert "You see everything as it was at" in text_of(page)
    assert "the last change by then" in text_of(page)
    assert "the last change by then" not in text_of(visitor.get("/", params={"at": "1999"}).text)


@pytest.mark.parametrize("wrong", ["at=gibberish", "branch=nope"])
def test_no_link_of_an_error_leads_back_to_it(visitor: httpx2.Client, wrong: str) -> None:
    page = visitor.get(f"/memory?{wrong}")
    links = [each for each in re.findall(r'href="(/[^"]*)', page.text) if "now" not in each]

    assert page.status_code >= 400
    assert not [link for link in links if wrong in html.unescape(link)]
    assert "You see everything" not in page.text
    assert "strata_branch" not in page.text


def test_the_slider_stands_where_the_moment_is(signed_in: BrowserContext) -> None:
    page = signed_in.new_page()
    places = {}
    for words in ("@2", MOMENT, "@600", "now"):
        page.goto(f"/?at={words}")
        places[words] = int(page.locator("[data-slider]").input_value())

    assert places["@2"] < 20
    assert 200 < places[MOMENT] < 400
    assert 850 < places["@600"] < 999
    assert places["now"] == 999
    page.close()
