"""What recommendation learns from recorded executions; `python -m benchmarks.learning` prints it.

A catalogue was gathered from eight providers: each offers every job under the same description,
and for each job only one of them works here. Nothing that a tool says of itself tells which.
Whoever asks which tool to use calls what is recommended, one after another, until one works: that
is all there is to learn from.

Half of the jobs are never asked for meanwhile. The requests that are measured were not made before:
other words, other values, other callers. Requests for the jobs that nobody asked for must not get
worse by what was learned about the others.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any, Final, NamedTuple

from rich.table import Table

import stratagem
from stratagem import Stratagem
from stratagem.errors import StratagemError
from stratagem.operation import Caller

__all__ = ["Chosen", "chosen", "told"]

_SEED: Final = 6
_MEASURED: Final = 20
_PROVIDERS: Final = ("acme", "brook", "cobalt", "dune", "elm", "fjord", "gale", "heron")
_VALUES: Final = (
    "Oslo",
    "Rome",
    "Lima",
    "Cairo",
    "Perth",
    "Quito",
    "Delhi",
    "Tunis",
    "Sofia",
    "Minsk",
)


class Job(NamedTuple):
    """Something to be done: what tools for it say, and what callers say; the last ones unseen."""

    name: str
    description: str
    parameter: str
    requests: tuple[str, ...]


_ASKED: Final = (
    Job("weather", "Current weather and temperature of a city.", "city", (
        "what is the weather in {}", "how warm is it in {} now", "weather in {} please")),
    Job("flights", "Search flights between airports.", "destination", (
        "find a flight to {}", "search flights going to {}", "which flights to {} are there")),
    Job("hotel", "Find hotel rooms in a town.", "town", (
        "find a hotel in {}", "hotel rooms in {} for two", "I need a room in a hotel in {}")),
    Job("translate", "Translate a text into another language.", "text", (
        "translate {} into French", "translate the text {}", "translate this text for me: {}")),
    Job("invoice", "Create an invoice for a customer.", "customer", (
        "create an invoice for {}", "make {} an invoice", "customer {} needs an invoice")),
    Job("route", "Directions for driving to a place.", "place", (
        "directions to {}", "driving directions for {}", "give me directions for driving to {}")),
    Job("news", "Newest news articles about a topic.", "topic", (
        "newest news about {}", "news articles on {}", "any news articles about {} today")),
    Job("stock", "Price of a company's stock.", "company", (
        "stock price of {}", "what does the stock of {} cost", "price of the {} stock right now")),
    Job("recipe", "Find recipes for cooking a dish.", "dish", (
        "recipe for {}", "find recipes to cook {}", "recipes for cooking {} at home")),
    Job("parcel", "Track a parcel by its number.", "number", (
        "track parcel {}", "where is my parcel {}", "track the parcel with number {}")),
)  # fmt: skip
_NOT_ASKED: Final = (
    Job("forecast", "Rain forecast for the coming days of a city.", "city", (
        "rain forecast for {}", "will there be rain in {} in the coming days")),
    Job("trains", "Search trains between stations.", "destination", (
        "find a train to {}", "search trains going to {}")),
    Job("apartment", "Find apartments for rent in a town.", "town", (
        "apartments for rent in {}", "find an apartment to rent in {}")),
    Job("summarize", "Summarize a long text in a few sentences.", "text", (
        "summarize {} in a few sentences", "summarize the long text {}")),
    Job("refund", "Refund a payment of a customer.", "customer", (
        "refund the payment of {}", "customer {} gets a refund")),
    Job("parking", "Find parking near a place.", "place", (
        "parking near {}", "find parking close to {}")),
    Job("podcast", "Search podcast episodes about a topic.", "topic", (
        "podcast episodes about {}", "search podcasts on {}")),
    Job("currency", "Exchange rate of a currency.", "currency", (
        "exchange rate of the {} currency", "what is the exchange rate of {}")),
    Job("wine", "Recommend wine for a dish.", "dish", (
        "which wine goes with {}", "recommend a wine for {}")),
    Job("customs", "Customs duty for a parcel.", "number", (
        "customs duty for parcel {}", "how much customs duty for {}")),
)  # fmt: skip


class Chosen(NamedTuple):
    """Of some requests: how often the tool that works is the first, or among five."""

    requests: int
    first: float
    five: float
    # How many calls it takes, on average, until one works.
    calls: float


def chosen(executions: int) -> tuple[dict[str, Chosen], dict[str, Chosen]]:
    """Return what is recommended before and after so many recorded executions."""
    rng = random.Random(_SEED)
    working = {job.name: rng.choice(_PROVIDERS) for job in (*_ASKED, *_NOT_ASKED)}
    with stratagem.open(":memory:", durability="fast") as database:
        for job in (*_ASKED, *_NOT_ASKED):
            for provider in _PROVIDERS:
                _register(database, job, provider, works=working[job.name] == provider)
        before = _measured(database, working)
        _live(database, executions, rng)
        return before, _measured(database, working)


def told(executions: int) -> tuple[Table, bool]:
    """Return the figures as a table, and whether they are as they should be."""
    before, after = chosen(executions)
    table = Table(title=f"Tools for requests not seen, before and after {executions:,} executions")
    for column in ("jobs", "requests", "when", "recall@1", "recall@5", "calls until one works"):
        table.add_column(column, justify="left" if column in {"jobs", "when"} else "right")
    for kind, first in before.items():
        for when, each in (("before", first), ("after", after[kind])):
            shown = (f"{each.first:.3f}", f"{each.five:.3f}", f"{each.calls:.1f}")
            table.add_row(kind, str(each.requests), when, *shown)
    learned, others = after["called"], after["never called"]
    helped = learned.first > before["called"].first and learned.five >= before["called"].five
    unharmed = others.first >= before["never called"].first
    return table, helped and unharmed and others.five >= before["never called"].five


def _register(database: Stratagem, job: Job, provider: str, *, works: bool) -> None:
    expression = "1 + 1" if works else "1 / 0"
    steps = [{"id": "sum", "tool": "calculator", "arguments": {"expression": expression}}]
    schema = {
        "type": "object",
        "properties": {job.parameter: {"type": "string"}},
        "required": [job.parameter],
    }
    definition = {
        "name": f"{provider}_{job.name}",
        "description": job.description,
        "inputSchema": schema,
        "handler": {"type": "pipeline", "definition": {"name": job.name, "steps": steps}},
        "configuration": {"rateLimit": 1_000_000, "cache": False},
    }
    database.call("tool_register", definition)


def _live(database: Stratagem, executions: int, rng: random.Random) -> None:
    """Have callers ask and call until so many executions are recorded."""
    done = 0
    while done < executions:
        job = rng.choice(_ASKED)
        value = f"{rng.choice(_VALUES)} {rng.randrange(1000)}"
        caller = Caller(actor=f"caller-{rng.randrange(40)}")
        request = rng.choice(job.requests[:-1]).format(value)
        for tool in _recommended(database, request, caller):
            if not tool.endswith(f"_{job.name}") or done == executions:
                continue
            done += 1
            call = {"toolName": tool, "arguments": {job.parameter: value}}
            try:
                database.runtime.call("tool_execute", call, caller)
            except StratagemError:
                continue
            break
    database.runtime.gateway.recorder.settle()


def _measured(database: Stratagem, working: Mapping[str, str]) -> dict[str, Chosen]:
    # Whoever only looks leaves no request behind.
    caller = Caller(actor="somebody new", read_only=True)
    found = {}
    for kind, jobs in (("called", _ASKED), ("never called", _NOT_ASKED)):
        ranks = [
            _rank(_recommended(database, request, caller), f"{working[job.name]}_{job.name}")
            for job in jobs
            for request in _unseen(job)
        ]
        found[kind] = Chosen(
            len(ranks),
            fmean(rank == 1 for rank in ranks),
            fmean(rank <= 5 for rank in ranks),
            fmean(ranks),
        )
    return found


def _unseen(job: Job) -> Iterator[str]:
    rng = random.Random(job.name)
    for _each in range(_MEASURED // 2):
        yield job.requests[-1].format(f"{rng.choice(_VALUES)} {rng.randrange(1000, 2000)}")


def _recommended(database: Stratagem, request: str, caller: Caller) -> list[str]:
    arguments: dict[str, Any] = {
        "intent": request,
        "maxRecommendations": 16,
        "includeValidationInsights": False,
        "includeParameterExamples": False,
        "includePatternRecommendations": False,
    }
    answer = database.runtime.call("tools_recommend", arguments, caller)
    return [each["name"] for each in answer["recommendedTools"]]


def _rank(names: list[str], right: str) -> int:
    return names.index(right) + 1 if right in names else len(names) + 1
