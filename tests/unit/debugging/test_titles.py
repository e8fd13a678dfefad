"""Incidents without an error of their own: they are judged by their titles."""

from __future__ import annotations

import pytest

import stratagem

_LINUX = {"os": "linux"}
_OTHERS = (
    "Redis loses keys overnight",
    "The image upload is slow on mobile",
    "A consumer lags behind after the nodes were changed",
    "The disk fills up with logs",
)


def relevance_of(title: str, *, asked: str) -> float:
    """Return how likely an incident with a title is said to be the problem."""
    with stratagem.open(":memory:") as db:
        for other in _OTHERS:
            db.debugging.add_incident(other, ["wait"], _LINUX, True)
        added = db.debugging.add_incident(title, ["mend it"], _LINUX, True)
        found = db.debugging.ranked_solutions(asked, _LINUX).incidents
    return next((each.relevance for each in found if each.incident_id == added.incident_id), 0.0)


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED 127.0.0.1:6379"),
        (
            "connect ECONNREFUSED 127.0.0.1:5432",
            "Error: connect ECONNREFUSED 127.0.0.1:6379\n    at afterConnect (node:net:1187:16)",
        ),
        ("Cannot find module 'express'", "Error: Cannot find module 'lodash'"),
        (
            "npm ERR! 404 Not Found - GET https://registry.npmjs.org/chalk",
            "npm ERR! 404 Not Found - GET https://registry.npmjs.org/leftpad",
        ),
        ("Request failed with status code 404", "AxiosError: Request failed with status code 500"),
        (
            "address already in use :::5432",
            "Error: listen EADDRINUSE: address already in use :::8080",
        ),
        ("KeyError: 'user_id'", "KeyError: 'order_id'"),
        ('relation "users" does not exist', 'ERROR: relation "orders" does not exist'),
    ],
)
def test_a_title_that_is_an_error_is_told_from_others_as_messages_are(
    title: str, asked: str
) -> None:
    assert relevance_of(title, asked=asked) < 0.4


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        (
            "connect ECONNREFUSED 127.0.0.1:5432",
            "Error: connect ECONNREFUSED 10.0.0.3:5432\n    at afterConnect (node:net:1187:16)",
        ),
        ("No module named 'numpy'", "ModuleNotFoundError: No module named 'numpy'"),
        ("Request failed with status code 403", "AxiosError: Request failed with status code 403"),
    ],
)
def test_a_title_that_is_the_error_is_known_as_one(title: str, asked: str) -> None:
    assert relevance_of(title, asked=asked) > 0.9


def test_of_a_task_the_numbers_are_what_it_is_about() -> None:
    assert relevance_of("Upgrade kafka to 2.8.1", asked="Upgrade kafka to 3.4.0") < 0.9


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("Build fails on CI", "docker build fails on CI with permission denied"),
        ("Build fails on CI", "gradle build fails"),
        ("Tests fail on CI", "E2E tests fail on CI because chrome is missing"),
        ("Tests fail on CI", "tests on CI run out of memory"),
        ("Deploy to production fails", "the production database is slow after deploy"),
        ("npm install fails", "npm install hangs"),
        ("App crashes on startup", "app startup is slow"),
    ],
)
def test_a_title_that_says_little_is_not_the_problem_of_whoever_says_more(
    title: str, asked: str
) -> None:
    assert relevance_of(title, asked=asked) < 0.4


@pytest.mark.parametrize(
    ("title", "asked"),
    [
        ("Build fails on CI", "the build fails on our CI"),
        ("Deploy to production fails", "production deploy fails"),
        ("npm install fails", "why does npm install fail?"),
    ],
)
def test_a_title_that_says_little_is_found_by_what_it_says(title: str, asked: str) -> None:
    assert relevance_of(title, asked=asked) >= 0.4
