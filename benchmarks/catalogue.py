"""The standard tools: time to start with and without their libraries, and each tool's median.

`python -m benchmarks.catalogue` prints it. What other services answer comes from one on loopback,
so that the figures are our own time and not that of the web.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

import stratagem

_PACKAGES: Final = (
    *("bandit", "docx", "duckdb", "faker", "fpdf", "lizard", "lxml", "openpyxl", "pypdf"),
    *("sqlglot", "trafilatura", "tree_sitter", "vaderSentiment"),
)
_START: Final = (
    "import time; t = time.perf_counter()\n"
    "import sys, importlib.abc\n"
    "hidden = set(sys.argv[2].split(',')) - {''}\n"
    "class Hide(importlib.abc.MetaPathFinder):\n"
    "    def find_spec(self, name, path=None, target=None):\n"
    "        if name.partition('.')[0] in hidden: raise ModuleNotFoundError(name)\n"
    "sys.meta_path.insert(0, Hide())\n"
    "import stratagem\n"
    "db = stratagem.open(sys.argv[1], embedder='none')\n"
    "db.call('tools_list', {'limit': 500})\n"
    "print(time.perf_counter() - t)\n"
)
_RUNS: Final = 11
_CALLS: Final = 7

_PAGE: Final = (
    "<html><head><title>Page</title></head><body><article>"
    + "<p>Event sourcing stores every change as an event, and state is computed from them.</p>" * 40
    + "</article></body></html>"
)
_CODE: Final = (
    "import os\n\n\nclass Shop:\n    def total(self, items):\n        return sum(items)\n" * 20
)


class _Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.startswith("/search"):
            found = [{"url": "https://example.org", "title": "T", "content": "C"}] * 10
            self._answer("application/json", json.dumps({"results": found}))
        elif self.path.startswith("/works"):
            work = {"display_name": "Paper", "publication_date": "2026-01-01", "authorships": []}
            self._answer("application/json", json.dumps({"results": [work]}))
        else:
            self._answer("text/html", _PAGE)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if "images" in self.path:
            self._answer("application/json", json.dumps({"data": [{"b64_json": "aGk="}]}))
        elif "completions" in self.path:
            choice = {"message": {"content": "```python\nx = 1\n```"}, "finish_reason": "stop"}
            self._answer("application/json", json.dumps({"choices": [choice], "model": "m"}))
        else:
            self._answer("application/json", "{}")

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _start_seconds(folder: str, hidden: str) -> list[float]:
    times = []
    for number in range(_RUNS):
        command = [sys.executable, "-c", _START, f"{folder}/s{number}-{bool(hidden)}.db", hidden]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        times.append(float(done.stdout))
    return times


def _examples(url: str) -> dict[str, dict[str, Any]]:
    text = "The release was delayed by a week. A test had found a bug that lost data. " * 10
    files = [{"path": "shop.py", "content": _CODE, "language": "python"}]
    return {
        "web_search": {"query": "event sourcing"},
        "academic_search": {"query": "event sourcing", "sources": ["openalex"]},
        "web_fetch": {"url": f"{url}/page"},
        "sentiment_analysis": {"text": text},
        "entity_extraction": {"text": "Ada Lovelace paid $12 in London on 2026-03-01. " * 20},
        "summarization": {"text": text, "sentences": 2},
        "code_analysis": {"code": _CODE, "language": "python"},
        "code_parser": {"code": _CODE, "language": "python"},
        "complexity_analyzer": {"files": files},
        "security_scanner": {"files": files},
        "data_analyzer": {"content": [{"a": n, "b": n * 2} for n in range(1000)]},
        "text_generation": {"prompt": "Say hello."},
        "code_generation": {"prompt": "Say hello.", "language": "python"},
        "image_generation": {"prompt": "A lamp"},
        "data_synthesis": {"fields": [{"name": "n", "type": "name"}], "count": 100},
        "report_generator": {"content": "# Report\n\nAll is well.", "format": "pdf"},
        "database_query": {"sql": "SELECT count(*) AS n FROM items"},
        "webhook_trigger": {"data": {"a": 1}},
        "email_sender": {"to": ["a@example.org"], "subject": "s", "text": "t", "dryRun": True},
        "api_caller": {"connection": "api", "url": "/works"},
        "write_file": {"path": "a.txt", "content": "x\n" * 1000, "overwrite": True},
        "read_file": {"path": "a.txt"},
        "edit_file": {"path": "a.txt", "oldText": "x", "newText": "x", "all": True},
        "create_directory": {"path": "d"},
        "file_converter": {"content": '[{"a": 1}]', "from": "json", "to": "xlsx"},
    }


def _connect(db: stratagem.Stratagem, folder: Path, url: str) -> None:
    with sqlite3.connect(folder / "shop.sqlite") as shop:
        shop.execute("CREATE TABLE items (name)")
    shop.close()
    account = {"host": "127.0.0.1", "from": "a@example.org", "recipients": ["*@example.org"]}
    for name, kind, settings in (
        ("web", "search", {"provider": "searxng", "url": url}),
        ("openalex", "search", {"provider": "openalex", "url": f"{url}/works"}),
        ("shop", "database", {"engine": "sqlite", "path": str(folder / "shop.sqlite")}),
        ("hook", "webhook", {"url": f"{url}/hook"}),
        ("mail", "smtp", account),
        ("api", "api", {"url": url}),
        ("files", "folder", {"path": str(folder), "writable": True}),
    ):
        db.call("connection_set", {"name": name, "kind": kind, "settings": settings})
    config = {"model": "m", "imageModel": "i", "baseUrl": f"{url}/v1"}
    db.call("provider_configure", {"provider": "openai", "config": config})


def _median_ms(call: Callable[[], Any]) -> tuple[float, float]:
    started = time.perf_counter()
    call()
    first = time.perf_counter() - started
    times = []
    for _ in range(_CALLS):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return first * 1000, statistics.median(times) * 1000


def main() -> None:
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        without = statistics.median(_start_seconds(name, ",".join(_PACKAGES)))
        with_ = statistics.median(_start_seconds(name, ""))
        console.print(
            f"start, open and list: {with_ * 1000:.0f} ms with the libraries, "
            f"{without * 1000:.0f} ms without: ratio {with_ / without:.2f}"
        )
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        table = Table("tool", "first call, ms", "p50, ms")
        with stratagem.open(folder / "b.db", allow_hosts=["127.0.0.1:*"]) as db:
            _connect(db, folder, url)
            for tool, arguments in _examples(url).items():
                given = {"toolName": tool, "arguments": arguments, "options": {"skipCache": True}}
                first, middle = _median_ms(lambda given=given: db.call("tool_execute", given))  # type: ignore[misc]
                table.add_row(tool, f"{first:.1f}", f"{middle:.1f}")
        console.print(table)
        server.shutdown()


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main()
