"""Ways of writing are learned: whether a text is a list, and which of two numbers is the day."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from tests.behaviour.gateway.workshop import Workshop
from tests.manifest import proves

# About so many confirmations without a contradiction make a meaning certain.
CERTAIN = 10


def book(guests: list[str], day: dt.date, room: str = "any") -> dict[str, Any]:
    """Book a room for guests."""
    return {"guests": guests, "day": str(day), "room": room}


@pytest.fixture
def hotel(shop: Workshop) -> Workshop:
    shop.database.gateway.add(book)
    return shop


def applied(shop: Workshop, given: dict[str, Any], who: str = "ann") -> dict[str, Any]:
    answer = shop.run("book", given, who)
    return dict(answer["result"], pattern=answer["metadata"]["correction"]["appliedPattern"])


@proves("lesson:ways")
def test_lists_that_callers_write_out_are_learned(hotel: Workshop) -> None:
    for number in range(CERTAIN):
        first, second = f"Doe {number}", f"Roe {number}"
        hotel.fails("book", {"guests": f"{first}, {second}", "day": "2024-03-05"})
        hotel.run("book", {"guests": [first, second], "day": "2024-03-05"})

    found = applied(hotel, {"guests": "Poe, Moe", "day": "2024-03-05"})

    assert (found["guests"], found["pattern"]) == (["Poe", "Moe"], "list_known_split")
    assert hotel.lessons() == {("$.guests", "split"): (CERTAIN, 0)}
    # Another separator, another caller and a clause were never heard of.
    hotel.fails("book", {"guests": "Poe; Moe", "day": "2024-03-05"})
    hotel.fails("book", {"guests": "Poe, Moe", "day": "2024-03-05"}, "bob")
    hotel.fails("book", {"guests": "Poe, and then the rest of us", "day": "2024-03-05"})


@proves("lesson:ways")
def test_elements_with_a_comma_in_them_are_learned(hotel: Workshop) -> None:
    for number in range(CERTAIN):
        hotel.fails("book", {"guests": f"Doe, Jane {number}", "day": "2024-03-05"})
        hotel.run("book", {"guests": [f"Doe, Jane {number}"], "day": "2024-03-05"})

    found = applied(hotel, {"guests": "Roe, Max", "day": "2024-03-05"})

    assert (found["guests"], found["pattern"]) == (["Roe, Max"], "list_known_whole")


@proves("lesson:ways")
def test_the_order_of_day_and_month_is_learned_from_confirmed_offers(hotel: Workshop) -> None:
    for number in range(1, 1 + CERTAIN):
        given = {"guests": ["Doe"], "day": f"{number}/11/2024"}
        refused = hotel.fails("book", given)
        made = {
            each["correctedParameters"]["day"]: each["correctionId"]
            for each in refused.details["corrections"]
        }
        wanted = made[f"2024-11-{number:02d}"]
        hotel.run("book", given, correctionId=wanted, confirm=True)

    found = applied(hotel, {"guests": ["Doe"], "day": "03/04/2024"})

    assert (found["day"], found["pattern"]) == ("2024-04-03", "date_order_known")
    listed = hotel.ask("auto_correction_patterns")["patterns"]
    learned = [each for each in listed if each["learned"]]
    assert [each["meaning"] for each in learned] == ["dayFirst"]
    assert all("11/2024" not in str(each) for each in learned)


@proves("lesson:contradicted")
def test_two_orders_of_one_caller_make_neither_certain(hotel: Workshop) -> None:
    for number in range(1, 1 + CERTAIN):
        for meant in (f"2024-12-{number:02d}", f"2024-{number:02d}-12"):
            hotel.fails("book", {"guests": ["Doe"], "day": f"{number}/12/2024"})
            hotel.run("book", {"guests": ["Doe"], "day": meant})

    refused = hotel.fails("book", {"guests": ["Doe"], "day": "03/04/2024"})

    assert refused.details["withheld"]
