"""Catalogues of tools, and requests for them: what `evals tools` is measured by.

Requests are parted in two halves by the tool that is right, so that none in one half asks for what
another one in the other half asks for. The numbers of `weights.py` were chosen on the tuning half.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from zlib import crc32

import orjson

from evals.suites import need

__all__ = ["Catalogue", "Half", "Request", "read"]

Half = Literal["tuning", "report"]
_OTHERS: Final = ("metatool", "livemcp", "sealtools", "toolalpaca")
# Requests of a few words, small talk and housework, which are rare in the other data.
_SHORT: Final = Path(__file__).parent / "data"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")


class Request(NamedTuple):
    """A request, and the tools that are right; for `absent` and `nothing` none is."""

    text: str
    right: frozenset[str]
    kind: str
    half: Half


class Catalogue(NamedTuple):
    """The tools of one source by the names they are registered under, and its requests."""

    name: str
    tools: dict[str, dict[str, Any]]
    requests: list[Request]

    def of(self, half: Half) -> Catalogue:
        """Return the catalogue with one half of the requests."""
        return self._replace(requests=[each for each in self.requests if each.half == half])


def read(data: Path) -> list[Catalogue]:
    """Return every catalogue of the data."""
    return [_bfcl(need(data / "tools")), *_later(need(data / "tools2"))]


def _bfcl(folder: Path) -> Catalogue:
    names = {tool["id"]: tool["id"].replace("#", "--") for tool in _lines(folder, "catalogue")}
    tools = {names[tool["id"]]: tool for tool in _lines(folder, "catalogue")}
    requests = [
        Request(
            query["query"],
            frozenset(names[each] for each in query["equivalent_ids"]),
            "live" if query["split"].startswith("live") else "made",
            _half(query["tool_id"].partition("#")[0]),
        )
        for query in _lines(folder, "retrieval_dev")
    ]
    return Catalogue("bfcl", tools, requests)


def _later(folder: Path) -> Iterator[Catalogue]:
    tools, queries = list(_lines(folder, "tools")), list(_lines(folder, "queries"))
    for source in _OTHERS:
        of_source = [tool for tool in tools if tool["source"] == source]
        asked = [query for query in queries if query["source"] == source]
        yield _catalogue(source, of_source, asked)
    real = [tool for tool in tools if tool["source"] == "livemcp"]
    yield _catalogue("short", real, list(_lines(_SHORT, "short_requests")))


def _catalogue(name: str, tools: list[dict[str, Any]], queries: list[dict[str, Any]]) -> Catalogue:
    # A suffix keeps them apart from tools that the product has itself.
    names = {each["id"]: _NO_NAME.sub("_", each["id"].partition(":")[2]) + "_t" for each in tools}
    requests = [
        Request(
            query["query"],
            frozenset(names[each] for each in query["right"]),
            query["kind"],
            _half(min(query["right"], default=query["query"])),
        )
        for query in queries
    ]
    return Catalogue(name, {names[tool["id"]]: tool for tool in tools}, requests)


def _half(key: str) -> Half:
    return "report" if crc32(key.encode()) % 2 else "tuning"


def _lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    for line in need(folder / f"{name}.jsonl").read_bytes().splitlines():
        yield orjson.loads(line)
