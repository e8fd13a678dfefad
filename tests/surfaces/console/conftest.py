from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from stratagem.bootstrap import Settings
from stratagem.demo import make_demo
from tests.surfaces.serving import Served, serving

if TYPE_CHECKING:
    from playwright._impl._api_structures import SetCookieParam
    from playwright.sync_api import Browser, BrowserContext
    from playwright.sync_api import Page as BrowserPage

_CODE = re.compile(r"/signin\?code=([\w-]+)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HTML = {"accept": "text/html"}


@dataclass
class Console:
    """A server on the example database, and the code that opens its console."""

    served: Served
    database: Path
    codes: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.served.url

    @property
    def code(self) -> str:
        return str(_CODE.findall(self.served.log.read_text("utf-8"))[-1])

    def browser(self, **headers: str) -> httpx2.Client:
        """Return a client that keeps cookies and asks for pages, as browsers do."""
        return httpx2.Client(
            base_url=self.url, headers={**HTML, **headers}, trust_env=False, timeout=60
        )

    def operator(self) -> httpx2.Client:
        """Return a client that was opened by the address that the server printed."""
        client = self.browser()
        assert client.get("/signin", params={"code": self.code}).status_code == 303
        return client


@contextmanager
def a_console(database: Path, *options: str) -> Iterator[Console]:
    with serving(database, *options) as served:
        yield Console(served, database)


def fill(client: httpx2.Client, path: str, act: str, **fields: Any) -> httpx2.Response:
    """Send a form as the page at a path has it."""
    page = client.get(path)
    token = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert token, page.text[:2000]
    return client.post(path, data={"form_token": token[1], "act": act, **fields})


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database as `stratagem demo` makes it; never written to."""
    path = tmp_path_factory.mktemp("demo") / "harbor.db"
    make_demo(str(path), Settings(str(path)).adapters.clock())
    return path


@pytest.fixture(scope="session")
def console(example: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    """A console of a copy of the example."""
    folder = tmp_path_factory.mktemp("console")
    for file in example.parent.iterdir():
        if file.is_file():
            shutil.copy(file, folder / file.name)
    with a_console(folder / example.name) as running:
        yield running


# While it runs the thread has a running event loop, which tests of other modules need for themselves.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: on Debian, apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=120_000
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def sign_in_cookies(console: Console) -> list[SetCookieParam]:
    """The session that the printed address opens: it opens one only, for the browsers of all modules."""
    with closing(console.operator()) as client:
        return [
            {"name": name, "value": value, "url": console.url}
            for name, value in client.cookies.items()
        ]


@pytest.fixture(scope="module")
def signed_in(
    chromium: Browser, console: Console, sign_in_cookies: list[SetCookieParam]
) -> Iterator[BrowserContext]:
    """A browser with all rights."""
    context = chromium.new_context(base_url=console.url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(60_000)
    context.add_cookies(sign_in_cookies)
    yield context
    context.close()


@dataclass
class Visitor:
    """Somebody with a browser. `clicks` counts what they have clicked or entered."""

    page: BrowserPage
    clicks: int = 0

    def click(self, words: str, role: Any = "link", **which: Any) -> None:
        self.clicks += 1
        self.page.get_by_role(role, name=words, **which).first.click()

    def search(self, words: str) -> None:
        self.clicks += 1
        self.page.keyboard.press("/")
        self.page.keyboard.type(words)
        self.page.keyboard.press("Enter")
        self.page.wait_for_url("**/search**")

    def sees(self, words: str) -> None:
        self.page.get_by_text(words).first.wait_for()


@pytest.fixture
def visitor(signed_in: BrowserContext) -> Iterator[Visitor]:
    page = signed_in.new_page()
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # What the policy of the page forbids is told there.
    page.on(
        "console",
        lambda said: errors.append(said.text) if "Content Security" in said.text else None,
    )
    page.goto("/")
    yield Visitor(page)
    page.close()
    assert errors == []
