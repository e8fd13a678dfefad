"""20. The console: who gets in, what they may do there, and that stored text stays text."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any

import httpx2
import pytest

from stratagem.hooks.session_files import log_path
from stratagem.surfaces.console.app import ROUTES
from stratagem.surfaces.serving.settings import ConsoleKeys
from tests.manifest import proves
from tests.security.house import House, make_token, revoke, serving
from tests.surfaces.serving import eventually

HTML = {"accept": "text/html"}
CODE = "the-code-that-was-printed"
# Each would run, load or tell something if it were taken for markup anywhere.
SCRIPTS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "[click](javascript:alert(1))",
    "![pixel](https://evil.example/p.png)",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "**<b onclick=alert(1)>bold</b>**",
    "{{ 7 * 7 }}{% raw %}",
)


class Markup(HTMLParser):
    """Reads a page as a browser does, and lists what only somebody else's markup could have."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        loads = given.get("src", "/static/")
        leads = given.get("href", "/").split(":")[0].lower()
        bad = [name for name in given if name.startswith("on") or name == "style"]
        if (
            bad
            or tag in {"b", "iframe", "object", "embed", "base"}
            or not loads.startswith("/static/")
        ):
            self.found.append(f"<{tag} {given}>")
        if leads in {"javascript", "data", "vbscript"} or (tag == "script" and "src" not in given):
            self.found.append(f"<{tag} {given}>")


PATHS = (
    "/", "/memory?ns=planted", "/memory/entry?ns=planted&key=0", "/sessions", "/sessions/transcript?ns=planted&id=s",
    "/branches", "/debugging", "/knowledge", "/tools", "/tools/calls", "/system", "/search?q=alert",
)  # fmt: skip


def browser(house: House) -> httpx2.Client:
    client = httpx2.Client(base_url=house.url, headers=HTML, trust_env=False, timeout=60)
    house.stack.callback(client.close)
    return client


def signed_in(house: House, name: str) -> httpx2.Client:
    client = browser(house)
    answer = client.post("/signin", data={"token": house.tokens[name], "next": "/memory"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/memory")
    return client


def token_of(page: httpx2.Response) -> str:
    found = re.search(r'name="form_token" value="([^"]+)"', page.text)
    assert found, page.text[:500]
    return found[1]


def send(client: httpx2.Client, path: str, act: str, **fields: str) -> httpx2.Response:
    form = {"form_token": token_of(client.get(path)), "act": act, **fields}
    return client.post(path, data=form)


def plant(house: House) -> None:
    for place, text in enumerate(SCRIPTS):
        for name, arguments in (
            ("strata_store", {"key": str(place), "value": text, "namespace": "planted", "tags": [text[:30].replace(",", "")]}),
            ("strata_store", {"key": text, "value": {text: [text]}, "namespace": "planted"}),
            ("strata_log", {"event": "message", "data": {"role": text, "content": text}, "session": "s", "namespace": "planted"}),
            ("create_concept", {"name": f"{place} {text}", "explanation": text, "area": text}),
            ("add_incident", {"title": f"{place} {text}", "steps": text, "env": {"os": "linux"}, "worked": True, "error_signature": f"{place} {text}"}),
        ):  # fmt: skip
            assert house.call("rest", "admin", name, arguments).error is None
    fork = "<script>alert(2)</script>"
    house.call("rest", "admin", "strata_branch", {"action": "fork", "name": fork})
    # What both branches change is shown by a comparison and asked about by a merge.
    for branch in (fork, "default"):
        changed = {"key": "0", "value": {branch: SCRIPTS}, "namespace": "planted", "branch": branch}
        house.call("rest", "admin", "strata_store", changed)
    said = {"event": "message", "data": {"content": SCRIPTS}, "namespace": "planted"}
    house.call("rest", "admin", "strata_log", {**said, "session": SCRIPTS[0]})
    schema = {
        "type": "object",
        "properties": {
            SCRIPTS[2]: {"type": "string", "description": SCRIPTS[0], "enum": [*SCRIPTS]}
        },
    }
    planted = {
        "name": "planted_tool",
        "description": " ".join(SCRIPTS),
        "inputSchema": schema,
        "handler": {"type": "webhook", "url": "https://planted.example/"},
    }
    assert house.call("rest", "admin", "tool_register", planted).error is None


@proves("console:sign-in")
@pytest.mark.parametrize(
    "path", sorted({each.path for each in ROUTES} | {"/live", "/signout", "/theme"})
)
def test_nothing_but_the_sign_in_page_is_open(house: House, path: str) -> None:
    client = browser(house)

    pages = [
        client.get(path),
        client.get(path if path == "/" else f"{path}.json", headers={"accept": "application/json"}),
        client.post(path, data={"act": "x"}),
    ]

    assert {page.status_code for page in pages} == {401}
    assert all("entries" not in page.text for page in pages)


@proves("console:sign-in")
def test_a_browser_without_a_token_is_asked_for_one(house: House) -> None:
    client = browser(house)

    page = client.get("/memory", params={"ns": "harbor"})

    assert page.status_code == 401
    assert 'name="token"' in page.text
    assert 'value="/memory?ns=harbor"' in page.text
    assert client.get("/static/console.css").status_code == 200
    assert client.get("/signin").status_code == 200


@proves("console:sign-in")
def test_a_session_is_a_cookie_that_no_script_reads_and_no_other_site_sends(house: House) -> None:
    client = browser(house)

    answer = client.post(
        "/signin", data={"token": house.tokens["reader"], "next": "//evil.example/x"}
    )

    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert house.tokens["reader"] not in cookie
    assert answer.headers["location"] == "/"
    # It opens the console alone.
    assert client.get("/memory").status_code == 200
    assert client.get("/api/mcp/tools").status_code == 401
    assert client.post("/api/memory/strata_status", json={}).status_code == 401


@proves("console:sign-in")
@pytest.mark.parametrize("token", ["revoked", "expired"])
def test_a_token_that_is_none_any_more_opens_nothing(house: House, token: str) -> None:
    answer = browser(house).post("/signin", data={"token": house.tokens[token]})

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@proves("console:sign-in")
def test_revoking_a_token_ends_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    secret = make_token(path, "short", "*:admin")
    with serving(path) as house:
        house.tokens = {"short": secret}
        client = signed_in(house, "short")
        assert client.get("/").status_code == 200

        revoke(path, "short")

        # Servers look for revoked tokens twice a second.
        began = time.monotonic()
        while client.get("/").status_code == 200 and time.monotonic() - began < 30:
            time.sleep(0.05)
        assert client.get("/").status_code == 401


@proves("console:sign-in")
@pytest.mark.parametrize(
    "cookie", ["", "x", "e30.x", "WyJvcGVyYXRvciIsIiIsOTk5OTk5OTk5OTk5OTk5OTk5LCJ4Il0=.forged"]
)
def test_a_cookie_that_the_server_did_not_sign_opens_nothing(house: House, cookie: str) -> None:
    port = house.address[1]

    answer = browser(house).get("/", headers={"cookie": f"stratagem_{port}={cookie}"})

    assert answer.status_code == 401


@proves("console:policy")
def test_every_page_forbids_scripts_of_others(house: House) -> None:
    client = signed_in(house, "admin")

    for path in PATHS[:1] + PATHS[2:3] + ("/signin", "/nothing"):
        answer = client.get(path)
        policy = answer.headers.get("content-security-policy", "")
        if path == "/nothing":
            continue
        assert "default-src 'none'" in policy, path
        assert "unsafe-inline" not in policy
        assert "<style" not in answer.text
        assert not re.search(r"\sstyle=\"", answer.text)


@proves("console:policy")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/static/..%2fapp.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/static/", 404),
        ("/static/console.css/x", 404),
        ("/signin?next=http://[evil", 200),
        ("/signin/x", 401),
        ("/memory/nowhere", 401),
    ],
)
def test_whoever_is_not_signed_in_makes_no_address_fail(
    house: House, path: str, status: int
) -> None:
    assert browser(house).get(path).status_code == status


@proves("console:sign-in")
@pytest.mark.parametrize(
    "address",
    [
        "//evil.example/memory/x",
        "////evil.example",
        "/\\evil.example",
        "https:evil.example",
        "javascript:alert(1)",
        "http://[evil",
    ],
)
def test_nobody_is_sent_elsewhere(house: House, address: str) -> None:
    client = browser(house)

    signed = client.post("/signin", data={"token": house.tokens["reader"], "next": address})
    themed = client.post("/theme", data={"theme": "dark"}, headers={"referer": address})

    for answer in (signed, themed):
        assert answer.status_code == 303
        where = answer.headers["location"]
        assert where == "/" or where.startswith("/memory")


@proves("console:forms")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/?branch=nope", 404),
        ("/memory?branch=" + "b" * 5000, 400),
        ("/memory?at=" + "9" * 5000, 400),
        ("/memory?at=@99999999999999999999", 400),
        ("/tools?offset=x", 400),
        ("/tools?offset=-1", 400),
        ("/branches/compare?offset=x", 400),
        ("/branches/compare?side=x", 400),
        ("/memory/entry?key=%00", 400),
    ],
)
def test_what_an_address_cannot_mean_is_said(house: House, path: str, status: int) -> None:
    answer = signed_in(house, "admin").get(path)

    assert answer.status_code == status
    assert "Not done" in answer.text


@proves("console:forms")
def test_a_form_that_is_no_text_is_refused(house: House) -> None:
    client = signed_in(house, "member")

    assert client.post("/memory", content=b"a=\xff\xfe").status_code == 400
    theme = client.post("/theme", content="theme=☃;x".encode())
    assert (theme.status_code, "set-cookie" in theme.headers) == (303, False)


@proves("console:stored-text")
def test_stored_text_never_becomes_markup(house: House) -> None:
    plant(house)
    client = signed_in(house, "admin")
    incidents = house.call("rest", "admin", "list_incidents", {"limit": 50}).answer["results"]
    concepts = house.call("rest", "admin", "get_recent_concepts", {"limit": 20}).answer["results"]
    more = [f"/debugging/problem?id={each['incident_id']}" for each in incidents]
    more += [f"/knowledge/concept?id={each['concept_id']}" for each in concepts]
    more += [
        f"/memory/entry?ns=planted&key={place}&form={form}"
        for place in range(len(SCRIPTS))
        for form in ("text", "markdown", "tree", "json")
    ]
    more += [
        str(httpx2.URL("/memory/entry", params={"ns": "planted", "key": text})) for text in SCRIPTS
    ]
    more += [str(httpx2.URL("/search", params={"q": text})) for text in SCRIPTS[:4]]
    fork = "<script>alert(2)</script>"
    more += [
        str(httpx2.URL("/branches/compare", params={"theirs": fork})),
        str(httpx2.URL("/branches/merge", params={"source": fork, "target": "default"})),
        str(httpx2.URL("/sessions/transcript", params={"ns": "planted", "id": SCRIPTS[0]})),
        "/tools/tool?name=planted_tool",
    ]
    more += [
        str(httpx2.URL("/memory", params={"ns": text, "at": text, "branch": text}))
        for text in SCRIPTS[:3]
    ]

    found = []
    for path in (*PATHS, *more):
        page = client.get(path)
        assert page.status_code < 500, path
        reader = Markup()
        reader.feed(page.text)
        found += [f"{path}: {each}" for each in reader.found]

    assert found == []


@proves("console:forms")
@pytest.mark.parametrize("given", [{}, {"form_token": ""}, {"form_token": "x"}])
def test_a_form_without_its_token_does_nothing(house: House, given: dict[str, str]) -> None:
    client = signed_in(house, "member")
    fields = {"act": "new", "ns": "forms", "key": "forged", "value": "1", "as": "text"}

    answer = client.post("/memory", data={**fields, **given})

    assert answer.status_code == 403
    assert not house.call(
        "rest", "member", "strata_recall", {"key": "forged", "namespace": "forms"}
    ).answer["found"]


@proves("console:forms")
def test_a_form_of_another_session_does_nothing(house: House) -> None:
    mine, other = signed_in(house, "member"), signed_in(house, "admin")
    token = token_of(other.get("/memory"))

    answer = mine.post(
        "/memory", data={"form_token": token, "act": "new", "key": "k", "value": "v"}
    )

    assert answer.status_code == 403


@proves("console:forms")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"host": "evil.example"},
    ],
)
def test_other_pages_reach_nothing(house: House, headers: dict[str, str]) -> None:
    client = signed_in(house, "admin")

    assert client.get("/memory", headers=headers).status_code == 403
    assert client.post("/memory", headers=headers, data={"act": "new"}).status_code == 403


@proves("console:rights")
def test_whoever_only_reads_sees_no_button_that_would_fail(house: House) -> None:
    house.call(
        "rest", "member", "strata_store", {"key": "seen", "value": "x", "namespace": "rights"}
    )
    client = signed_in(house, "reader")

    for path in (
        "/memory?ns=rights",
        "/memory/entry?ns=rights&key=seen",
        "/branches",
        "/debugging",
        "/tools",
        "/tools/tool?name=calculator",
        "/system",
    ):
        page = client.get(path)
        assert page.status_code == 200, path
        acts = set(re.findall(r'name="act" value="(\w+)"', page.text))
        assert acts == set(), path


@proves("console:rights")
@pytest.mark.parametrize(
    ("holder", "path", "act", "fields"),
    [
        ("reader", "/memory/entry?ns=rights&key=seen", "forget", {"key": "seen", "ns": "rights"}),
        ("reader", "/branches", "fork", {"name": "mine"}),
        (
            "member",
            "/memory/entry?ns=rights&key=seen",
            "purge",
            {"key": "seen", "ns": "rights", "confirm": "seen"},
        ),
        ("member", "/system", "create_token", {"name": "mine", "preset": "admin"}),
        ("member", "/system", "back_up", {"file": "x.backup"}),
        # It reads all there is.
        ("member", "/system", "check", {}),
        ("member", "/tools", "add_server", {"name": "s", "where": "/bin/true"}),
        (
            "reader",
            "/tools/tool?name=calculator",
            "try",
            {"tool": "calculator", "arg:expression": "1"},
        ),
    ],
)
def test_nobody_does_more_in_the_console_than_elsewhere(
    house: House, holder: str, path: str, act: str, fields: dict[str, str]
) -> None:
    house.call(
        "rest", "member", "strata_store", {"key": "seen", "value": "x", "namespace": "rights"}
    )
    client = signed_in(house, holder)

    answer = send(client, path, act, **fields)

    refused = answer.status_code in {403, 405} or "does not allow" in answer.text
    assert refused, (answer.status_code, answer.text[:500])
    assert house.call(
        "rest", "member", "strata_recall", {"key": "seen", "namespace": "rights"}
    ).answer["found"]


@proves("console:rights")
def test_a_database_is_examined_once_at_a_time(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sends the form again and again takes no more than one thread from the others."""
    store = type(house.database.runtime().foundation.store)
    examine, begun, go_on = store.examine, threading.Event(), threading.Event()

    def examine_slowly(*given: Any) -> Any:
        begun.set()
        assert go_on.wait(60)
        return examine(*given)

    monkeypatch.setattr(store, "examine", examine_slowly)
    client, answers = signed_in(house, "admin"), []
    first = threading.Thread(target=lambda: answers.append(send(client, "/system", "check")))
    first.start()
    assert begun.wait(60)
    second = send(signed_in(house, "admin"), "/system", "check")
    go_on.set()
    first.join(60)

    assert second.status_code == 503
    assert "examined already" in second.text
    assert answers[0].status_code == 200


@proves("console:rights")
def test_an_administrator_erases_after_typing_the_key(house: House) -> None:
    house.call(
        "rest", "member", "strata_store", {"key": "gone", "value": "secret", "namespace": "rights"}
    )
    client = signed_in(house, "admin")
    path = "/memory/entry?ns=rights&key=gone"

    wrong = send(client, path, "purge", key="gone", ns="rights", confirm="no")
    right = send(client, path, "purge", key="gone", ns="rights", confirm="gone")

    assert wrong.status_code == 400
    assert right.status_code == 303
    assert client.get(path).status_code == 404


@pytest.fixture
def open_house(tmp_path: Path) -> Iterator[House]:
    """A server without tokens, and the code that it printed."""
    keys = ConsoleKeys(code=CODE, code_ends_at=2**62)
    with serving(tmp_path / "memory.db", console_keys=keys) as running:
        yield running


@proves("console:operator")
def test_a_bare_request_on_loopback_looks_and_edits_and_no_more(open_house: House) -> None:
    client = browser(open_house)

    stored = send(
        client, "/memory", "new", key="city", value="Oslo", ns="default", **{"as": "text"}
    )
    purged = send(client, "/memory/entry?key=city", "purge", key="city", confirm="city")
    made = send(client, "/system", "create_token", name="mine", preset="admin")

    assert stored.status_code == 303
    assert purged.status_code == 403
    assert made.status_code == 403
    assert "Oslo" in client.get("/memory/entry?key=city").text
    assert 'value="purge"' not in client.get("/memory/entry?key=city").text
    assert "create_token" not in client.get("/system").text


@proves("console:operator")
def test_the_printed_address_opens_the_console_once_with_all_rights(open_house: House) -> None:
    first, second = browser(open_house), browser(open_house)

    opened_first = first.get("/signin", params={"code": CODE})
    opened_second = second.get("/signin", params={"code": CODE})
    wrong = browser(open_house).get("/signin", params={"code": "another"})
    made = send(first, "/system", "create_token", name="mine", preset="admin")

    assert (opened_first.status_code, opened_second.status_code, wrong.status_code) == (
        303,
        403,
        403,
    )
    assert made.status_code == 200
    secret = re.search(r"strat_[\w-]+", made.text)
    assert secret
    # From now on everybody needs a token, and whoever opened the address is still in.
    eventually(lambda: second.get("/memory").status_code == 401)
    assert first.get("/memory").status_code == 200
    assert second.post("/signin", data={"token": secret[0]}).status_code == 303


@proves("console:operator")
def test_a_code_that_was_never_printed_or_is_old_opens_nothing(tmp_path: Path) -> None:
    for ends_at in (0, 1):
        keys = ConsoleKeys(code=CODE, code_ends_at=ends_at)
        with serving(tmp_path / f"{ends_at}.db", console_keys=keys) as house:
            assert browser(house).get("/signin", params={"code": CODE}).status_code == 403


@proves("console:workspaces")
def test_another_workspace_is_never_reachable(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    tokens = {
        "red": make_token(path, "red", "*:admin", roles={"red": "admin"}),
        "both": make_token(path, "both", "*:admin", roles={"red": "admin", "blue": "admin"}),
    }
    with serving(path) as house:
        house.tokens = tokens
        for workspace in ("red", "blue"):
            house.call(
                "rest",
                "both",
                "strata_store",
                {"key": "whose", "value": f"{workspace} secret"},
                workspace,
            )
        red, both = signed_in(house, "red"), browser(house)
        both.headers["authorization"] = f"Bearer {tokens['both']}"

        mine = red.get("/memory/entry?key=whose")
        others = [
            red.get(each)
            for each in (
                "/memory/entry?key=whose&workspace=blue",
                "/memory/entry.json?key=whose&workspace=blue",
                "/live?workspace=blue",
                "/search?q=secret&workspace=default",
            )
        ]

        assert "red secret" in mine.text
        assert {each.status_code for each in others} == {403}
        assert all("blue secret" not in each.text for each in others)
        assert "blue secret" in both.get("/memory/entry?key=whose&workspace=blue").text
        assert "blue" not in red.get("/memory").text
        # The tokens of the server are none of a workspace's.
        assert "create_token" not in red.get("/system").text


@proves("console:workspaces")
def test_a_token_of_several_workspaces_signs_in_to_one_and_goes_on_to_another(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    both = make_token(path, "both", "*:write", roles={"red": "member", "blue": "member"})
    with serving(path) as house:
        house.tokens["both"] = both

        client = signed_in(house, "both")
        first = client.get("/memory")
        other = client.get("/memory?workspace=red")

    assert [each.status_code for each in (first, other)] == [200, 200]
    assert "<option selected>blue" in first.text
    assert "<option selected>red" in other.text


@proves("console:json")
def test_every_page_has_its_data_as_json(house: House) -> None:
    house.call(
        "rest", "member", "strata_store", {"key": "one", "value": {"n": 1}, "namespace": "json"}
    )
    client = house.client("admin", accept="application/json")

    listed: Any = client.get("/memory", params={"ns": "json"}).json()
    entry: Any = client.get(
        "/memory/entry.json", params={"ns": "json", "key": "one"}, headers=HTML
    ).json()
    about: Any = client.get("/").json()

    assert [each["key"] for each in listed["entries"]] == ["one"]
    assert entry["entry"]["value"] == {"n": 1}
    assert entry["view"] == {"workspace": "default", "branch": "default", "at": None}
    assert about["mcp"] == "/mcp"
    for route in ROUTES:
        answer = client.get("/index.json" if route.path == "/" else f"{route.path}.json")
        assert answer.headers["content-type"] == "application/json", route.path
        assert answer.status_code < 500, route.path


@proves("console:undo")
def test_what_is_forgotten_comes_back_and_nothing_is_overwritten_unseen(house: House) -> None:
    client = signed_in(house, "member")
    path = "/memory/entry?ns=undo&key=plan"
    send(client, "/memory", "new", key="plan", value="first", ns="undo", **{"as": "text"})
    version = str(
        client.get("/memory/entry.json", params={"ns": "undo", "key": "plan"}).json()["entry"][
            "version"
        ]
    )

    edited = send(
        client,
        path,
        "edit",
        key="plan",
        ns="undo",
        value="second",
        version=version,
        **{"as": "text"},
    )
    stale = send(
        client,
        path,
        "edit",
        key="plan",
        ns="undo",
        value="third",
        version=version,
        **{"as": "text"},
    )
    forgotten = send(client, path, "forget", key="plan", ns="undo")
    note = client.get(forgotten.headers["location"]).text
    undo = dict(
        re.findall(
            r'name="(act|key|ns|version|expected)" value="([^"]*)"',
            note.split('class="note"')[1].split("</form>")[0],
        )
    )
    restored = send(client, path, **undo)

    assert (edited.status_code, stale.status_code, restored.status_code) == (303, 409, 303)
    assert "Undo" in note
    assert (
        house.call("rest", "member", "strata_recall", {"key": "plan", "namespace": "undo"}).answer[
            "value"
        ]
        == "second"
    )


@proves("console:review")
def test_what_hooks_captured_is_decided_about_and_what_they_injected_is_shown(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.db"
    with serving(path) as house:
        house.call("rest", None, "strata_store", {"key": "deploy", "value": "make deploy"})
        folder = Path(log_path(str(path))).parent
        folder.mkdir(parents=True, exist_ok=True)
        line = {
            "at": 1_790_000_000.5,
            "session": "s",
            "event": "prompt",
            "why": ["words"],
            "tokens": 17,
            "text": "<script>",
        }
        Path(log_path(str(path))).write_text(json.dumps(line) + "\n", "utf-8")
        client = browser(house)

        page = client.get("/review")
        data: Any = client.get("/review.json").json()

    assert "stratagem init" in page.text
    assert "&lt;script&gt;" in page.text
    assert data["tokens"] == 17
    assert data["injections"][0]["at"].startswith("2026-09-21T")


@proves("console:light")
def test_the_console_is_light(house: House) -> None:
    folder = Path(str(resources.files("stratagem.surfaces.console")))
    files = [each for each in folder.rglob("*") if each.is_file() and each.suffix != ".pyc"]

    assert sum(each.stat().st_size for each in files) < 300_000
    for begin in range(0, 1_000, 100):
        concepts = [
            {
                "name": f"Concept number {begin + place}",
                "explanation": "What it means, in a sentence. " * 5,
                "area": f"area {place % 7}",
            }
            for place in range(100)
        ]
        assert house.call("rest", "admin", "create_concepts", {"concepts": concepts}).error is None
    page = house.client("admin", accept="text/html").get("/knowledge")
    assert page.status_code == 200
    assert len(page.content) < 500 * 1024
