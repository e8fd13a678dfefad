"""The programs in `examples/` run."""

from __future__ import annotations

import importlib.util
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pypdf
import pytest

import stratagem
from tests.surfaces.serving import Service, as_json

EXAMPLES = Path(__file__).parent.parent / "examples"
PAGES = {
    "/one": "Event sourcing stores every change as an event. The state is computed from the events.",
    "/two": "Event sourcing stores every change as an event. The state is computed from the events.",
    "/three": "Snapshots make event sourcing faster. A snapshot is the state after many events. "
    "Greg Young described event sourcing in 2007.",
}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look their module up.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def service() -> Iterator[Service]:
    with Service() as running:
        results = [
            {"url": running.url(path), "title": f"Page {path[1:]}", "content": text[:40]}
            for path, text in PAGES.items()
        ]
        running.answers["/search"] = lambda _said: as_json({"results": results})
        for path, text in PAGES.items():
            page = f"<html><body><article><h1>T</h1><p>{text}</p></article></body></html>"
            body = page.encode()
            running.answers[path] = lambda _said, body=body: (200, "text/html", body)  # type: ignore[misc]
        yield running


def test_the_web_research_agent_summarizes_what_it_finds(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["event sourcing", "--searxng", service.url(""), "--db", str(tmp_path / "r.db")]

    load("web_research_agent").main(given)

    said = capsys.readouterr().out
    assert "Page one" in said
    assert "stores every change as an event" in said
    assert "person: Greg Young" in said


def test_the_code_analysis_pipeline_writes_a_pdf(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        code = b"import os\n\n\ndef run(command):\n    return os.system(command)\n"
        entry = tarfile.TarInfo("repo-main/tool.py")
        entry.size = len(code)
        archive.addfile(entry, io.BytesIO(code))
    service.answers["/repo.tar.gz"] = lambda _said: (200, "application/gzip", packed.getvalue())
    to = tmp_path / "report.pdf"

    load("code_analysis_pipeline").main(
        [service.url("/repo.tar.gz"), "--to", str(to), "--db", str(tmp_path / "c.db")]
    )

    assert "Analysis complete" in capsys.readouterr().out
    text = "\n".join(page.extract_text() for page in pypdf.PdfReader(to).pages)
    assert "Complexity" in text
    assert "tool.py:5" in text
    assert "B605" in text


def test_the_learning_agent_remembers_with_its_sources(service: Service, tmp_path: Path) -> None:
    agent = load("learning_agent")
    with stratagem.open(str(tmp_path / "l.db"), allow_hosts=[service.host]) as db:
        settings = {"provider": "searxng", "url": service.url("")}
        db.call("connection_set", {"name": "web", "kind": "search", "settings": settings})

        first = agent.answer(db, "What is event sourcing?")
        second = agent.answer(db, "What is event sourcing?")

    assert first.from_web
    assert "event" in first.text
    assert {each.source for each in first.evidence} == {service.url("/one"), service.url("/three")}
    # The second page says what the first said: it confirms it.
    confirmed = {each.source: each.confirmed for each in first.evidence}
    assert confirmed[service.url("/one")] == 1
    assert not second.from_web
    assert service.count("/search") == 1
