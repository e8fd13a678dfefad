"""`academic_search`: papers on arXiv and in OpenAlex, which need no key."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ExecutionFailed, StratagemError
from stratagem.gateway.builtin import xml_text
from stratagem.gateway.catalogue.service_answers import get_json, get_response, with_query
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define, examples
from stratagem.gateway.outbound.results import result_of
from stratagem.gateway.secret_grants import origin_of

__all__ = ["TOOLS"]

_URLS: Final = {
    "arxiv": "https://export.arxiv.org/api/query",
    "openalex": "https://api.openalex.org/works",
}
_BLANKS: Final = re.compile(r"\s+")
_NO_LETTER: Final = re.compile(r"[\W_]+")


async def _search(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    sources = list(dict.fromkeys(given.get("sources") or ["arxiv", "openalex"]))
    outcomes = await asyncio.gather(*(_ask(run, source) for source in sources))
    found = {
        source: outcome
        for source, outcome in zip(sources, outcomes, strict=True)
        if isinstance(outcome, list)
    }
    failures = {
        source: outcome.message
        for source, outcome in zip(sources, outcomes, strict=True)
        if isinstance(outcome, StratagemError)
    }
    if not found:
        first = next(each for each in outcomes if isinstance(each, StratagemError))
        raise first
    papers = _merge(found)[: given.get("limit", 10)]
    answer: dict[str, Any] = {"query": given["query"], "results": papers, "total": len(papers)}
    return answer if not failures else {**answer, "failures": failures}


async def _ask(run: ToolRun, source: str) -> list[dict[str, Any]] | StratagemError:
    try:
        return await (_arxiv(run) if source == "arxiv" else _openalex(run))
    except StratagemError as error:
        return error


def _url(run: ToolRun, source: str) -> str:
    for settings in run.connections.values():
        if settings["provider"] == source and "url" in settings:
            return str(settings["url"])
    return _URLS[source]


async def _arxiv(run: ToolRun) -> list[dict[str, Any]]:
    given = run.arguments
    words = _BLANKS.sub(" ", given["query"]).strip().replace('"', "")
    # Words next to each other are any of them to arXiv; people mean all of them.
    asked = " AND ".join(f'all:"{word}"' for word in words.split(" "))
    since, until = given.get("fromYear"), given.get("untilYear")
    if since or until:
        asked = f"({asked}) AND submittedDate:[{since or 1900}01010000 TO {until or 2100}12312359]"
    query = {
        "search_query": asked,
        "start": 0,
        "max_results": given.get("limit", 10),
        "sortBy": "submittedDate" if given.get("sort") == "date" else "relevance",
        "sortOrder": "descending",
    }
    response = await get_response(run, with_query(_url(run, "arxiv"), query))
    # A failure of the service is told by its status, with what it said.
    result_of(response)
    try:
        feed = xml_text.load(response.body.decode("utf-8", "replace"))["feed"]
    except (xml_text.XmlFault, KeyError) as error:
        raise ExecutionFailed(f"arXiv did not answer with a feed: {error}.") from error
    entries = _list(feed.get("entry")) if isinstance(feed, dict) else []
    return [_from_arxiv(each) for each in entries if isinstance(each, Mapping)]


def _from_arxiv(entry: Mapping[str, Any]) -> dict[str, Any]:
    url = _text(entry.get("id"))
    links = [each for each in _list(entry.get("link")) if isinstance(each, Mapping)]
    pdf = next((each.get("@href") for each in links if each.get("@title") == "pdf"), None)
    return _paper(
        title=_text(entry.get("title")),
        authors=[
            _text(each.get("name"))
            for each in _list(entry.get("author"))
            if isinstance(each, Mapping)
        ],
        abstract=_text(entry.get("summary")),
        published=_text(entry.get("published"))[:10],
        url=url,
        pdf=pdf,
        doi=_text(entry.get("arxiv:doi")) or None,
        venue=_text(entry.get("arxiv:journal_ref")) or "arXiv",
        source="arxiv",
    )


async def _openalex(run: ToolRun) -> list[dict[str, Any]]:
    given = run.arguments
    filters = [
        *([f"from_publication_date:{given['fromYear']}-01-01"] if "fromYear" in given else []),
        *([f"to_publication_date:{given['untilYear']}-12-31"] if "untilYear" in given else []),
    ]
    query = {
        "search": given["query"],
        "per-page": given.get("limit", 10),
        "filter": ",".join(filters) or None,
        "sort": "publication_date:desc" if given.get("sort") == "date" else None,
        "api_key": _openalex_key(run),
    }
    hints = {429: "OpenAlex limits requests without a key; connect one of the provider openalex."}
    answer = await get_json(run, with_query(_url(run, "openalex"), query), hints=hints)
    return [_from_openalex(each) for each in answer.get("results") or () if isinstance(each, dict)]


def _openalex_key(run: ToolRun) -> str | None:
    for settings in run.connections.values():
        if settings["provider"] == "openalex" and "apiKey" in settings:
            return run.secret(settings["apiKey"], origin_of(_url(run, "openalex")) or "")
    return None


def _from_openalex(work: Mapping[str, Any]) -> dict[str, Any]:
    place = work.get("primary_location") or {}
    access = work.get("open_access") or {}
    doi = str(work.get("doi") or "").removeprefix("https://doi.org/") or None
    paper = _paper(
        title=_text(work.get("display_name") or work.get("title")),
        authors=[
            str((each.get("author") or {}).get("display_name") or "")
            for each in work.get("authorships") or ()
        ],
        abstract=_abstract(work.get("abstract_inverted_index")),
        published=str(work.get("publication_date") or work.get("publication_year") or ""),
        url=str(place.get("landing_page_url") or work.get("doi") or work.get("id") or ""),
        pdf=place.get("pdf_url") or access.get("oa_url"),
        doi=doi,
        venue=str((place.get("source") or {}).get("display_name") or ""),
        source="openalex",
    )
    if isinstance(work.get("cited_by_count"), int):
        paper["citations"] = work["cited_by_count"]
    return paper


def _abstract(places: Any) -> str:
    """Return an abstract, which OpenAlex gives as the places of each word."""
    if not isinstance(places, Mapping):
        return ""
    words = [(at, word) for word, found in places.items() for at in found if isinstance(at, int)]
    return " ".join(word for _at, word in sorted(words)[: limits.SEARCH_SNIPPET_CHARS_MAX])


def _paper(
    *,
    title: str,
    authors: list[str],
    abstract: str,
    published: str,
    url: str,
    pdf: Any,
    doi: str | None,
    venue: str,
    source: str,
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "title": title,
        "authors": [each for each in authors if each][:50],
        "abstract": abstract[: limits.SEARCH_SNIPPET_CHARS_MAX],
        "published": published,
        "url": url,
        "source": source,
    }
    more = {"pdfUrl": pdf if isinstance(pdf, str) else None, "doi": doi, "venue": venue or None}
    return shown | {name: value for name, value in more.items() if value}


def _merge(found: Mapping[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return the papers of all sources in turns; one that two sources know stands once."""
    papers: list[dict[str, Any]] = []
    seen: set[str] = set()
    for turn in zip_longest(*found.values()):
        for paper in turn:
            if paper is None or not paper["title"]:
                continue
            keys = {_NO_LETTER.sub("", paper["title"].casefold()), paper.get("doi", "")} - {""}
            if not keys & seen:
                papers.append(paper)
            seen |= keys
    return papers


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _text(value: Any) -> str:
    found = value.get("#text", "") if isinstance(value, Mapping) else value
    return _BLANKS.sub(" ", str(found or "")).strip()


TOOLS: Final = (
    StandardTool(
        define(
            "academic_search",
            "Search papers on arXiv and in OpenAlex: titles, authors, abstracts, dates, DOIs and "
            "PDFs.",
            category="search",
            details=(
                "Asks arXiv (preprints, all words must occur) and OpenAlex (250 million works, "
                "with citations). Neither needs a key. Papers found in both are listed once. "
                "If one "
                "of them fails, the other still answers and `failures` says why."
            ),
            takes={
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": limits.SEARCH_QUERY_CHARS_MAX,
                    "description": "Words of the title, the abstract or an author",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": limits.SEARCH_RESULTS_MAX,
                    "default": 10,
                },
                "sources": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["arxiv", "openalex"]},
                    "minItems": 1,
                    "description": "Both by default",
                },
                "fromYear": {"type": "integer", "minimum": 1900, "maximum": 2100},
                "untilYear": {"type": "integer", "minimum": 1900, "maximum": 2100},
                "sort": {"type": "string", "enum": ["relevance", "date"], "default": "relevance"},
            },
            required=("query",),
            gives={
                "query": {"type": "string"},
                "results": {"type": "array", "items": {"type": "object"}},
                "total": {"type": "integer"},
                "failures": {"type": "object", "additionalProperties": {"type": "string"}},
            },
            gives_always=("query", "results", "total"),
            tags=("papers", "science", "research", "arxiv"),
            shown=examples(
                ("Find papers", {"query": "event sourcing", "limit": 5}),
                ("Recent ones", {"query": "tool use language models", "fromYear": 2025}),
            ),
            internet=True,
            cache=True,
        ),
        _search,
        connection="search",
        serves=lambda settings: settings["provider"] in {"arxiv", "openalex"},
        optional=True,
    ),
)
