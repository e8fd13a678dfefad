"""21. What a user is let in to an upstream server by is that user's alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stratagem.errors import AuthorizationRequired, ValidationFailed
from stratagem.gateway import names
from stratagem.gateway.registry.credentials import UserCredentials
from stratagem.operation import Caller
from tests import forkserver
from tests.ports import free_port
from tests.security.authorization_server import (
    Browser,
    HeaderNotes,
    Notes,
    protected_server,
    query_of,
    serving_app,
    tls_proxy,
)
from tests.security.house import House, make_token, opened, serving

PEOPLE = ("root", "alice", "bob")


@pytest.fixture(scope="module")
def notes() -> Iterator[Notes]:
    try:
        with protected_server() as running:
            yield running
    except LookupError as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def house(notes: Notes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    folder = tmp_path_factory.mktemp("people")
    path = folder / "memory.db"
    tokens = {
        name: make_token(path, name, *(["*:admin"] if name == "root" else ["*:write", "*:execute"]))
        for name in PEOPLE
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATAGEM_SECRET_KEY_FILE", str(folder.parent / f"{folder.name}.key"))
        with serving(path, allow_hosts=("127.0.0.1:*",)) as running:
            running.tokens.update(tokens)
            added = running.client("root").post(
                "/api/mcp/servers",
                json={"name": "notes", "url": notes.url, "auth": {"type": "oauth"}},
            )
            assert added.status_code == 201, added.text
            needs = added.json()["data"]["needs"]
            assert needs["code"] == "authorization_required"
            sign_in(running, needs["address"], "ruth")
            refreshed = running.client("root").post(
                "/api/mcp/servers/notes/refresh", json={"approve": True}
            )
            assert refreshed.json()["data"]["registered"] == ["whoami"], refreshed.text
            yield running


def call(house: House, name: str) -> Any:
    return house.call("rest", name, "tool_execute", {"toolName": "whoami", "arguments": {}})


def sign_in(house: House, address: str, account: str, place: str | None = None) -> str:
    """Sign in as people do: by the address that a call was refused with."""
    own, place = Browser(), place or house.url
    page = own.client.get(address)
    assert page.status_code == 200, page.text
    link = page.text.partition('class="go" href="')[2].partition('"')[0].replace("&amp;", "&")
    back = own.sign_in(f"{place}{link}", account, f"{place}/oauth/callback")
    done = own.client.get(back)
    own.close()
    assert done.status_code == 200, done.text
    return done.text


def address_of(house: House, name: str) -> str:
    outcome = call(house, name)
    assert outcome.error == "authorization_required", outcome.text
    address: str = outcome.answer["error"]["details"]["address"]
    return address


@pytest.fixture
def signed_out(house: House) -> House:
    for name in ("alice", "bob"):
        house.client(name).delete("/api/mcp/credentials/notes")
    return house


def test_each_user_signs_in_and_is_known_as_themselves(signed_out: House, notes: Notes) -> None:
    house = signed_out
    address = address_of(house, "alice")

    said = sign_in(house, address, "al@work")
    hers = call(house, "alice")
    his = call(house, "bob")

    assert "token:alice" in said
    assert "al@work" in hers.text
    assert his.error == "authorization_required"
    sign_in(house, address_of(house, "bob"), "bo@work")
    assert "bo@work" in call(house, "bob").text
    assert "al@work" in call(house, "alice").text
    listed = house.client("alice").get("/api/mcp/credentials").json()["data"]["credentials"]
    assert [each["user"] for each in listed] == ["token:alice"]
    # The server repeats the token, which nobody gets to see.
    sent = [each for each in notes.tokens if each]
    recorded = house.client("root").get("/api/mcp/executions").text
    kept = b"".join(each.read_bytes() for each in house.path.parent.rglob("*") if each.is_file())
    for token in set(sent):
        assert token not in hers.text + recorded
        assert token.encode() not in kept


def test_a_token_that_the_server_no_longer_takes_is_refreshed(
    signed_out: House, notes: Notes
) -> None:
    sign_in(signed_out, address_of(signed_out, "alice"), "al@work")
    call(signed_out, "alice")
    first = notes.tokens[-1]
    assert first is not None
    notes.revoked.add(first)

    again = call(signed_out, "alice")

    assert "al@work" in again.text
    assert notes.tokens[-1] != first


def test_signing_out_ends_it(signed_out: House) -> None:
    sign_in(signed_out, address_of(signed_out, "alice"), "al@work")

    signed_out.client("alice").delete("/api/mcp/credentials/notes")

    assert call(signed_out, "alice").error == "authorization_required"


def test_an_address_that_was_used_is_worth_nothing(signed_out: House) -> None:
    address = address_of(signed_out, "alice")
    sign_in(signed_out, address, "al@work")
    browser = Browser()

    again = browser.client.get(address)
    browser.close()

    assert again.status_code == 404


def test_nobody_is_signed_in_for_another_unseen(signed_out: House) -> None:
    """Mallory begins, and has somebody else's browser go on behind the page that says so."""
    address = address_of(signed_out, "bob")
    state = address.rpartition("/")[2]
    victim = Browser()

    skipped = victim.client.get(f"{signed_out.url}/oauth/continue/{state}?mark=guessed")
    page = victim.client.get(address)
    forged = victim.client.get(f"{signed_out.url}/oauth/callback?state={state}&code=stolen")
    victim.close()

    assert skipped.headers["location"] == f"/oauth/sign-in/{state}"
    assert "token:bob" in page.text
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert forged.status_code == 403
    assert call(signed_out, "bob").error == "authorization_required"


def test_only_a_person_signs_others_in(signed_out: House) -> None:
    given = {"name": "notes", "user": "token:bob"}

    refused = signed_out.call("rest", "alice", "server_sign_in", given)
    allowed = signed_out.call("rest", "root", "server_sign_in", given)

    assert refused.error == "permission_denied"
    assert allowed.error is None


def test_an_answer_of_another_authorization_server_is_refused(signed_out: House) -> None:
    address = address_of(signed_out, "alice")
    browser = Browser()
    page = browser.client.get(address)
    link = page.text.partition('class="go" href="')[2].partition('"')[0].replace("&amp;", "&")
    callback = f"{signed_out.url}/oauth/callback"
    back = browser.sign_in(f"{signed_out.url}{link}", "al@work", callback)

    mixed = browser.client.get(back.replace("iss=", "iss=http%3A%2F%2Fevil.example&was="))
    browser.close()

    assert query_of(back)["iss"]
    assert mixed.status_code == 403
    assert call(signed_out, "alice").error == "authorization_required"


def test_each_user_gives_a_header_of_their_own(tmp_path: Path) -> None:
    """Without OAuth: what a user was given by hand goes into a header of that user's calls."""
    server = HeaderNotes()
    root, bob = Caller("cli", authority="operator"), Caller("token:bob", authority="token")
    given = {
        "name": "plain",
        "url": server.url,
        "headers": {"X-Notes": "Bearer ${user.NOTES_TOKEN}"},
    }
    ping = {"toolName": "repeat_header", "arguments": {}}
    with (
        serving_app(server),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("STRATAGEM_SECRET_KEY_FILE", str(tmp_path / "key"))
        with opened(tmp_path / "memory.db", allow_hosts=("127.0.0.1:*",)) as runtime:
            needs = runtime.call("server_add", given, root)["needs"]

            def give(caller: Caller, value: str, name: str = "NOTES_TOKEN") -> None:
                given = {"server": "plain", "name": name, "value": value}
                runtime.call("credential_set", given, caller)

            give(root, "of-root-0123")
            runtime.call("server_refresh", {"name": "plain", "approve": True}, root)
            with pytest.raises(AuthorizationRequired) as refused:
                runtime.call("tool_execute", ping, bob)
            give(bob, "of-bob-4567")
            answers = [runtime.call("tool_execute", ping, each)["result"] for each in (bob, root)]
            sent = server.seen[-1]
            give(bob, "anew-8901")
            runtime.call("tool_execute", ping, bob)
            with pytest.raises(ValidationFailed):
                give(bob, "x", "OTHER")

    assert needs["command"] == "stratagem tools credential plain NOTES_TOKEN --user cli"
    assert refused.value.details["user"] == "token:bob"
    assert "Bearer of-bob-4567" in server.seen
    assert sent == "Bearer of-root-0123"
    assert server.seen[-1] == "Bearer anew-8901"
    # What the server repeats of it is taken out.
    assert all("of-" not in str(each) for each in answers)


def test_a_client_metadata_document_says_who_we_are(tmp_path: Path) -> None:
    """The authorization server registers nobody, and reads our document over https."""
    port, path = free_port(), tmp_path / "memory.db"
    token = make_token(path, "root", "*:admin")
    variables = {
        "CLIENT_DOCUMENTS": "1",
        "DOCUMENTS_ACK": "draft-02",
        "NODE_TLS_REJECT_UNAUTHORIZED": "0",
    }
    public = f"https://localhost:{port}"
    try:
        with (
            protected_server(3600, **variables) as notes,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setenv("STRATAGEM_SECRET_KEY_FILE", str(tmp_path / "key"))
            with (
                serving(path, allow_hosts=("127.0.0.1:*",), public_url=public) as house,
                tls_proxy(house.url, port),
            ):
                house.tokens["root"] = token
                given = {"name": "notes", "url": notes.url, "auth": {"type": "oauth"}}
                added = house.client("root").post("/api/mcp/servers", json=given)
                address = added.json()["data"]["needs"]["address"]

                said = sign_in(house, address, "ruth", place=public)
                document = house.client().get("/oauth/client.json").json()

    except LookupError as reason:
        pytest.skip(str(reason))
    assert "token:root" in said
    assert document["client_id"] == f"{public}/oauth/client.json"
    assert document["redirect_uris"] == [f"{public}/oauth/callback"]


def test_a_person_signs_in_from_the_command_line(
    notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    key = str(tmp_path / "key")
    environment = {
        **os.environ,
        "STRATAGEM_DB": str(path),
        "STRATAGEM_SECRET_KEY_FILE": key,
        "STRATAGEM_ALLOW_HOSTS": "127.0.0.1:*",
    }
    command = [sys.executable, "-m", "stratagem"]
    added = forkserver.run(
        [*command, "tools", "add", "notes", "--mcp", notes.url, "--oauth"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    signing_in = forkserver.Process(
        [*command, "tools", "sign-in", "notes"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert signing_in.stderr is not None
    address = signing_in.stderr.readline().rpartition(" ")[2].strip()

    browser = Browser()
    back = browser.sign_in(address, "op@work", query_of(address)["redirect_uri"])
    shown = browser.client.get(back)
    browser.close()
    said, _ = signing_in.communicate(timeout=60)
    monkeypatch.setenv("STRATAGEM_SECRET_KEY_FILE", key)
    operator = Caller("cli", authority="operator")
    with opened(path, allow_hosts=("127.0.0.1:*",)) as runtime:
        runtime.call("server_refresh", {"name": "notes", "approve": True}, operator)
        answer = runtime.call("tool_execute", {"toolName": "whoami", "arguments": {}}, operator)

    assert "stratagem tools sign-in notes --user cli" in added.stdout
    assert shown.status_code == 200
    assert said == "cli is signed in to notes.\n"
    assert "op@work" in str(answer["result"])


def test_what_was_replaced_is_erased_with_old_executions(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATAGEM_SECRET_KEY_FILE", str(tmp_path / "key"))
        with opened(tmp_path / "memory.db") as runtime:
            store, caller = runtime.gateway.secrets.credentials, Caller("cli", authority="operator")
            for value in ("first", "second"):
                given: UserCredentials = {"origin": "https://a:443", "values": {"X": value}}
                store.write("s", "cli", given, caller)

            runtime.call("executions_erase", {"days": 0}, caller)

            log = runtime.foundation.store.log()
            left = [each for each in log if each.space == names.CREDENTIALS]
            kept = store.read("s", "cli", "https://a:443")
    assert [each.payload is None for each in left] == [True, False]
    assert kept is not None
    assert kept["values"] == {"X": "second"}


def test_a_server_that_moves_gets_nothing(tmp_path: Path, notes: Notes) -> None:
    """Credentials are for the origin that they were given for."""
    key = str(tmp_path / "key")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STRATAGEM_SECRET_KEY_FILE", key)
        with opened(tmp_path / "memory.db") as runtime:
            store = runtime.gateway.secrets.credentials
            caller = Caller("cli", authority="operator")
            store.write("s", "cli", {"origin": "https://a:443", "values": {"X": "v"}}, caller)

            assert store.read("s", "cli", "https://a:443") is not None
            assert store.read("s", "cli", "https://a:8443") is None
            assert store.read("s", "token:bob", "https://a:443") is None
    assert Path(key).exists()
