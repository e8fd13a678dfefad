"""Searching and reading the web: providers as their documentation shows their answers."""

from __future__ import annotations

import resource
import time
from urllib.parse import parse_qs

import pytest

from stratagem import limits
from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves
from tests.surfaces.serving import Service, as_json

# As docs.searxng.org shows an answer of `GET /search?format=json`.
SEARXNG = {
    "query": "event sourcing",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://example.org/one",
            "title": "Event Sourcing",
            "content": "Every change is an event.",
            "engine": "duckduckgo",
            "parsed_url": ["https", "example.org", "/one", "", "", ""],
            "engines": ["duckduckgo"],
            "positions": [1],
            "score": 1.0,
            "category": "general",
            "publishedDate": "2026-01-05T00:00:00",
        },
        {"url": None, "title": "Broken"},
        {"url": "https://example.org/two", "title": "CQRS", "content": None},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["event sourcing pattern"],
    "unresponsive_engines": [],
}
# As api-dashboard.search.brave.com documents Web Search.
BRAVE = {
    "type": "search",
    "query": {"original": "event sourcing"},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Event Sourcing",
                "url": "https://example.org/one",
                "description": "Every change.",
                "page_age": "2026-01-05T00:00:00",
                "language": "en",
            }
        ],
    },
}
ARXIV = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
  <title type="html">ArXiv Query: search_query=all:electron</title>
  <entry>
    <id>http://arxiv.org/abs/hep-ex/0307015</id>
    <published>2003-07-07T13:46:39-04:00</published>
    <title>Multi-Electron Production at High Transverse
      Momenta</title>
    <summary>Multi-electron production is studied.</summary>
    <author><name>H1 Collaboration</name></author>
    <arxiv:doi xmlns:arxiv="http://arxiv.org/schemas/atom">10.1140/epjc/s2003-01326-x</arxiv:doi>
    <link href="http://arxiv.org/abs/hep-ex/0307015v1" rel="alternate" type="text/html"/>
    <link title="pdf" href="http://arxiv.org/pdf/hep-ex/0307015v1" rel="related" type="application/pdf"/>
  </entry>
</feed>"""
OPENALEX = {
    "meta": {"count": 2, "page": 1, "per_page": 25},
    "results": [
        {
            "id": "https://openalex.org/W1",
            "doi": "https://doi.org/10.1140/epjc/s2003-01326-x",
            "display_name": "Multi-electron production at high transverse momenta",
            "publication_date": "2003-07-01",
            "authorships": [{"author": {"display_name": "H1 Collaboration"}}],
            "cited_by_count": 12,
            "abstract_inverted_index": {"Electrons": [0], "are": [1], "studied.": [2]},
        },
        {
            "id": "https://openalex.org/W2",
            "doi": None,
            "display_name": "Another paper",
            "publication_date": "2020-02-02",
            "authorships": [{"author": {"display_name": "A. Author"}}],
            "primary_location": {"landing_page_url": "https://example.org/p", "source": None},
            "cited_by_count": 3,
            "abstract_inverted_index": {"Electrons": [0, 2], "and": [1]},
        },
    ],
}
PAGE = """<html lang="en"><head><title>A page</title><meta name="author" content="Ada Lovelace">
<meta property="article:published_time" content="2026-02-03"></head><body>
<nav><a href="/home">Home</a> <a href="/about">About us</a></nav>
<article><h1>On engines</h1>
<p>The engine weaves algebraic patterns, just as the loom weaves flowers and leaves. It has no
pretensions whatever to originate anything, and it can do whatever we know how to order it.</p>
<p>Read <a href="notes.html">the notes</a> for more of this, since they say how it computes.</p>
</article><script>alert("no")</script><footer>Copyright</footer></body></html>"""


@proves("standard:web_search")
def test_searxng_is_asked_and_its_results_have_one_shape(desk: Desk, service: Service) -> None:
    service.answers["/search"] = lambda _said: as_json(SEARXNG)
    desk.connect("web", "search", provider="searxng", url=service.url(""))

    found = desk.call("web_search", query="event sourcing", limit=5, timeRange="year")

    asked = parse_qs(service.received[-1]["query"])
    assert asked["q"] == ["event sourcing"]
    assert asked["format"] == ["json"]
    assert asked["categories"] == ["general"]
    assert asked["time_range"] == ["year"]
    assert [each["url"] for each in found["results"]] == [
        "https://example.org/one",
        "https://example.org/two",
    ]
    assert found["results"][0]["snippet"] == "Every change is an event."
    assert found["results"][0]["published"] == "2026-01-05T00:00:00"
    assert found["total"] == 2


@proves("standard:web_search")
@pytest.mark.parametrize(
    ("tool", "category"), [("news_search", "news"), ("image_search", "images")]
)
def test_news_and_images_are_categories_of_the_same_provider(
    desk: Desk, service: Service, tool: str, category: str
) -> None:
    image = {"url": "https://example.org/p", "title": "P", "img_src": "https://example.org/i.png"}
    service.answers["/search"] = lambda _said: as_json({"results": [image]})
    desk.connect("web", "search", provider="searxng", url=service.url(""))

    [found] = desk.call(tool, query="loom")["results"]

    assert parse_qs(service.received[-1]["query"])["categories"] == [category]
    assert found["url"] == "https://example.org/p"
    assert ("imageUrl" in found) is (tool == "image_search")


@proves("standard:web_search")
def test_brave_takes_its_key_from_a_granted_secret(
    desk: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_SECRET_BRAVE_KEY", "brave-key-0123456789")
    service.answers["/res/v1/web/search"] = lambda _said: as_json(BRAVE)
    desk.connect("web", "search", provider="brave", url=service.url(""), apiKey="${BRAVE_KEY}")

    refused = desk.refusal("web_search", query="event sourcing")
    desk.grant("web_search", "BRAVE_KEY", service.url(""))
    found = desk.call("web_search", query="event sourcing")

    assert refused.code == "permission_denied"
    assert "stratagem tools grant web_search BRAVE_KEY" in refused.hint
    assert service.received[-1]["headers"]["x-subscription-token"] == "brave-key-0123456789"
    assert found["results"][0]["title"] == "Event Sourcing"
    assert "brave-key" not in str(desk.shown("web_search"))


@proves("standard:web_search")
def test_a_provider_that_fails_says_what_to_do(desk: Desk, service: Service) -> None:
    service.answers["/search"] = lambda _said: (403, "text/html", b"Forbidden")
    desk.connect("web", "search", provider="searxng", url=service.url(""))

    refused = desk.refusal("web_search", query="x")

    assert refused.code == "execution_error"
    assert "search.formats" in refused.hint


@proves("standard:web_search")
def test_results_can_carry_the_text_of_their_pages(desk: Desk, service: Service) -> None:
    results = [
        {"url": service.url("/page"), "title": "Page", "content": "Short."},
        {"url": service.url("/gone"), "title": "Gone", "content": "Short."},
    ]
    service.answers["/search"] = lambda _said: as_json({"results": results})
    service.answers["/page"] = lambda _said: (200, "text/html", PAGE.encode())
    service.answers["/gone"] = lambda _said: (404, "text/html", b"")
    desk.connect("web", "search", provider="searxng", url=service.url(""))

    first, second = desk.call("web_search", query="x", includeContent=True)["results"]

    assert "weaves algebraic patterns" in first["content"]
    assert second["content"] == "Short."
    assert "404" in second["contentError"]


@proves("standard:academic_search")
def test_papers_of_two_sources_stand_once(desk: Desk, service: Service) -> None:
    service.answers["/arxiv"] = lambda _said: (200, "application/atom+xml", ARXIV.encode())
    service.answers["/works"] = lambda _said: as_json(OPENALEX)
    desk.connect("arxiv", "search", provider="arxiv", url=service.url("/arxiv"))
    desk.connect("openalex", "search", provider="openalex", url=service.url("/works"))

    found = desk.call("academic_search", query="multi electron", fromYear=2000)["results"]

    assert [each["title"] for each in found] == [
        "Multi-Electron Production at High Transverse Momenta",
        "Another paper",
    ]
    assert found[0]["pdfUrl"] == "http://arxiv.org/pdf/hep-ex/0307015v1"
    assert found[1]["abstract"] == "Electrons and Electrons"
    assert found[1]["citations"] == 3
    asked = {each["path"]: parse_qs(each["query"]) for each in service.received}
    assert 'all:"multi" AND all:"electron"' in asked["/arxiv"]["search_query"][0]
    assert asked["/works"]["filter"] == ["from_publication_date:2000-01-01"]


@proves("standard:academic_search")
def test_one_source_answers_when_the_other_fails(desk: Desk, service: Service) -> None:
    service.answers["/arxiv"] = lambda _said: (500, "text/plain", b"down")
    service.answers["/works"] = lambda _said: as_json(OPENALEX)
    desk.connect("arxiv", "search", provider="arxiv", url=service.url("/arxiv"))
    desk.connect("openalex", "search", provider="openalex", url=service.url("/works"))

    found = desk.call("academic_search", query="electron")

    assert found["total"] == 2
    assert "500" in found["failures"]["arxiv"]


@proves("standard:web_fetch")
def test_a_page_is_read_without_its_menus(desk: Desk, service: Service) -> None:
    service.answers["/a/page"] = lambda _said: (200, "text/html; charset=utf-8", PAGE.encode())

    page = desk.call("web_fetch", url=service.url("/a/page"))

    assert "weaves algebraic patterns" in page["content"]
    assert "About us" not in page["content"]
    assert "alert" not in page["content"]
    assert page["title"] in {"A page", "On engines"}
    assert page["author"] == "Ada Lovelace"
    assert page["published"] == "2026-02-03"
    assert {"url": service.url("/a/notes.html"), "text": "the notes"} in page["links"]


@proves("standard:web_fetch")
def test_a_large_page_is_read_in_a_process_of_its_own(desk: Desk, service: Service) -> None:
    # The time that this takes grows with the square of the number of headings.
    headings, filling = "<h1>a</h1>" * 1_800, "x" * limits.PAGE_INLINE_BYTES
    page = PAGE.replace("</body>", f"{headings}<!-- {filling} --></body>").encode()
    service.answers["/large"] = lambda _said: (200, "text/html; charset=utf-8", page)
    desk.call("calculator", expression="1 + 1")  # A first call imports what calls need.
    own, others = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime

    found = desk.call("web_fetch", url=service.url("/large"))

    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - others
    assert spent > 3 * (time.process_time() - own)
    assert "weaves algebraic patterns" in found["content"]
    assert {"url": service.url("/notes.html"), "text": "the notes"} in found["links"]


@proves("standard:web_fetch")
def test_a_long_page_is_read_in_parts(desk: Desk, service: Service) -> None:
    text = "".join(f"Line {number}.\n" for number in range(500))
    service.answers["/t"] = lambda _said: (200, "text/plain", text.encode())

    first = desk.call("web_fetch", url=service.url("/t"), maxChars=1000)
    second = desk.call("web_fetch", url=service.url("/t"), maxChars=1000, start=first["nextStart"])

    assert first["content"] + second["content"] == text[:2000]
    assert first["chars"] == len(text)


@proves("standard:web_fetch")
def test_a_pdf_on_the_web_is_read_as_text(desk: Desk, service: Service) -> None:
    import fpdf

    pdf = fpdf.FPDF()
    pdf.add_page()
    pdf.set_font("helvetica")
    pdf.cell(text="Hello from a PDF")
    service.answers["/p"] = lambda _said: (200, "application/pdf", bytes(pdf.output()))

    assert "Hello from a PDF" in desk.call("web_fetch", url=service.url("/p"))["content"]


@proves("standard:guarded")
def test_private_addresses_are_refused(desk: Desk) -> None:
    for url in ("http://169.254.169.254/latest/meta-data", "http://10.0.0.1/", "http://[::1]:1/"):
        refused = desk.refusal("web_fetch", url=url)

        assert refused.code == "permission_denied", url
        assert refused.details["reason"] == "not_public"


@proves("standard:web_fetch")
def test_what_cannot_be_read_is_refused_with_a_reason(desk: Desk, service: Service) -> None:
    service.answers["/i"] = lambda _said: (200, "image/png", b"\x89PNG")
    service.answers["/e"] = lambda _said: (200, "text/html", b"")
    service.answers["/big"] = lambda _said: (200, "text/plain", b"x" * (5 * 1024 * 1024))

    assert "api_caller" in desk.refusal("web_fetch", url=service.url("/i")).hint
    assert desk.refusal("web_fetch", url=service.url("/e")).code == "execution_error"
    assert desk.refusal("web_fetch", url=service.url("/big")).code == "execution_error"
