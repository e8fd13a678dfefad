"""4. Forged tokens are refused: ours, and those that an issuer is said to have signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from stratagem import limits
from stratagem.access.oauth import OAuthSettings
from tests.security.house import SURFACES, House, Surface, make_token, opened, serving
from tests.security.issuer import AUDIENCE, Issuer, wall_clock
from tests.surfaces.serving import Service

STATUS: dict[str, Any] = {}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Service() as service:
        yield Issuer(service)


@pytest.fixture(scope="module")
def trusting(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    path = tmp_path_factory.mktemp("oauth") / "memory.db"
    own = make_token(path, "own", "*:admin")
    settings = OAuthSettings(issuer.url, (AUDIENCE,))
    with (
        pytest.MonkeyPatch.context() as patch,
        serving(path, oauth=settings) as house,
    ):
        patch.setattr(limits, "WRONG_TOKENS_PER_MINUTE", 1_000_000)
        house.tokens["own"] = own
        yield house


def part(value: Any) -> str:
    return part_of(json.dumps(value))


def part_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def unsigned(issuer: Issuer, algorithm: str) -> str:
    return f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': 'first'})}.{part(issuer.claims())}."


def confused(issuer: Issuer) -> str:
    """Sign with the issuer's public key, as if it were a secret that both sides share."""
    body = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(issuer.claims())}"
    signed = hmac.new(issuer.public_text("first"), body.encode(), hashlib.sha256).digest()
    return f"{body}.{base64.urlsafe_b64encode(signed).rstrip(b'=').decode()}"


def of_another_key(issuer: Issuer, **headers: Any) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return jwt.encode(issuer.claims(), key, algorithm="RS256", headers={"kid": "first", **headers})


def reheaded(issuer: Issuer, **headers: Any) -> str:
    _head, *rest = issuer.token().split(".")
    return ".".join([part({"alg": "RS256", "typ": "JWT", **headers}), *rest])


def changed(issuer: Issuer) -> str:
    head, _claims, signature = issuer.token().split(".")
    return f"{head}.{part(issuer.claims(scope='*:admin'))}.{signature}"


FORGERIES: dict[str, Any] = {
    "alg none": lambda issuer: unsigned(issuer, "none"),
    "alg None": lambda issuer: unsigned(issuer, "None"),
    "no signature": lambda issuer: unsigned(issuer, "RS256"),
    "public key as secret": confused,
    "another key": of_another_key,
    "its own key in the header": lambda issuer: of_another_key(issuer, jwk=issuer.keys[0]),
    "an address of keys": lambda issuer: of_another_key(
        issuer, jku=issuer.service.url("/elsewhere"), kid="elsewhere"
    ),
    "an unknown key": lambda issuer: of_another_key(issuer, kid="unknown"),
    "changed claims": changed,
    "another issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "no issuer": lambda issuer: issuer.token(iss=None),
    "issuer with a slash": lambda issuer: issuer.token(iss=issuer.url + "/"),
    "another audience": lambda issuer: issuer.token(aud="https://other.example"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "expired": lambda issuer: issuer.token(exp=wall_clock() - 120),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "expiry as text": lambda issuer: issuer.token(exp=str(wall_clock() + 600)),
    "expiry for ever": lambda issuer: issuer.token(exp=float("inf")),
    "a key by number": lambda issuer: reheaded(issuer, kid=1),
    "a header too deep": lambda _issuer: f"{part_of('[' * 8_000)}.e30.e30",
    "claims too deep": lambda issuer: (
        f"{issuer.token().split('.')[0]}.{part_of('[' * 8_000)}.{issuer.token().split('.')[2]}"
    ),
    "not yet valid": lambda issuer: issuer.token(nbf=wall_clock() + 120),
    "no subject": lambda issuer: issuer.token(sub=None),
    "an id token by type": lambda issuer: issuer.token(headers={"typ": "dpop+jwt"}),
    "something critical": lambda issuer: issuer.token(headers={"crit": ["exp"]}),
    "no workspace": lambda issuer: issuer.token(workspaces=[]),
    "a workspace that is a path": lambda issuer: issuer.token(workspaces=["../x"]),
    "too long": lambda issuer: issuer.token(extra="x" * 20_000),
    "not a token": lambda _issuer: "a.b.c",
    "empty parts": lambda _issuer: "..",
    "binary": lambda _issuer: "\xff\xfe.\xff.\xff",
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_token_is_refused(trusting: House, issuer: Issuer, forgery: str) -> None:
    trusting.tokens["forged"] = FORGERIES[forgery](issuer)
    header = f"Bearer {trusting.tokens['forged']}".encode("latin-1")

    response = trusting.client().post(
        "/api/memory/strata_status", json=STATUS, headers=[(b"authorization", header)]
    )

    assert response.status_code == 401, response.text
    assert "resource_metadata=" in response.headers["www-authenticate"]
    assert "/elsewhere" not in [each["path"] for each in issuer.service.received]


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize(
    "forgery", ["alg none", "public key as secret", "expired", "another audience"]
)
def test_a_forged_token_opens_no_surface(
    trusting: House, issuer: Issuer, surface: Surface, forgery: str
) -> None:
    trusting.tokens["forged"] = FORGERIES[forgery](issuer)

    outcome = trusting.call(surface, "forged", "strata_status", STATUS)

    assert outcome.error == "unauthenticated"


@pytest.mark.parametrize("surface", ["mcp", "rest"])
def test_a_token_of_the_issuer_is_taken(trusting: House, issuer: Issuer, surface: Surface) -> None:
    trusting.tokens["alice"] = issuer.token()

    stored = trusting.call(surface, "alice", "strata_store", {"key": "k", "value": surface})
    refused = trusting.call(surface, "alice", "create_concept", {"name": "c", "explanation": "e"})

    assert stored.error is None
    assert refused.error == "permission_denied"
    with opened(trusting.path, read_only=True) as runtime:
        # The server itself records refusals of earlier tests, a moment after them.
        actors = [each.actor for each in runtime.foundation.store.log() if each.actor != "server"]
    assert actors[-1].startswith("oauth:alice#")


@pytest.mark.parametrize("surface", ["mcp", "rest"])
def test_a_token_has_no_right_of_another_one_of_its_user(
    trusting: House, issuer: Issuer, surface: Surface
) -> None:
    wide: dict[str, Any] = {
        "scope": "*:admin",
        "workspaces": ["default", "red"],
        "sub": f"demoted-{surface}",
    }
    trusting.tokens["wide"] = issuer.token(**wide)
    trusting.tokens["narrow"] = issuer.token(**{**wide, "workspaces": ["red"]})
    handler = {"type": "mcp", "server": "s", "tool": "t"}
    tool = {"description": "x", "inputSchema": {"type": "object"}, "handler": handler}

    def register(token: str, name: str) -> str | None:
        return trusting.call(surface, token, "tool_register", {**tool, "name": name}, "red").error

    before = register("wide", f"before_{surface}")
    demoted = register("narrow", f"demoted_{surface}")
    after = register("wide", f"after_{surface}")

    # What runs on the machine takes an administrator of the server's own workspace.
    assert (before, demoted, after) == (None, "permission_denied", None)


def test_a_session_of_the_protocol_keeps_no_right_that_its_user_has_lost(
    trusting: House, issuer: Issuer
) -> None:
    wide: dict[str, Any] = {"scope": "*:admin", "workspaces": ["default", "red"], "sub": "demoted"}
    trusting.tokens["once"] = issuer.token(**wide)
    trusting.tokens["now"] = issuer.token(**{**wide, "workspaces": ["red"]})
    headers = {
        "accept": "application/json, text/event-stream",
        "x-stratagem-workspace": "red",
        "mcp-protocol-version": "2025-06-18",
    }
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    session = trusting.client("once", **headers).post("/mcp", json=begin).headers["mcp-session-id"]
    headers["mcp-session-id"] = session
    ask = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}

    lost = trusting.client("now", **headers).post("/mcp", json=ask)
    own = trusting.client("once", **headers).post("/mcp", json=ask)

    assert (lost.status_code, own.status_code) == (404, 200)


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("EC", "ES256"), ("OKP", "EdDSA"), ("RSA", "PS384")]
)
def test_a_key_that_the_issuer_adds_is_fetched(
    trusting: House, issuer: Issuer, kind: str, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OAUTH_KEYS_RETRY_SECONDS", 0.0)
    issuer.add(algorithm, kind)
    trusting.tokens["alice"] = issuer.token(algorithm, algorithm)

    assert trusting.call("rest", "alice", "strata_status", STATUS).error is None


def test_a_key_for_one_algorithm_serves_no_other(trusting: House, issuer: Issuer) -> None:
    issuer.keys[0]["alg"] = "RS512"
    fresh = OAuthSettings(issuer.url, (AUDIENCE,))
    try:
        with serving(trusting.path, oauth=fresh) as house:
            house.tokens = {"wrong": issuer.token(), "right": issuer.token(algorithm="RS512")}
            assert house.call("rest", "wrong", "strata_status", STATUS).error == "unauthenticated"
            assert house.call("rest", "right", "strata_status", STATUS).error is None
    finally:
        del issuer.keys[0]["alg"]


def test_a_key_that_the_issuer_withdraws_is_taken_no_longer(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OAUTH_KEYS_SECONDS", 0.0)
    monkeypatch.setattr(limits, "OAUTH_KEYS_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(limits, "OAUTH_KEPT_SECONDS", 0.0)
    issuer.add("leaked", "RSA")
    with serving(tmp_path / "memory.db", oauth=OAuthSettings(issuer.url, (AUDIENCE,))) as house:
        house.tokens = {"alice": issuer.token("leaked"), "bob": issuer.token()}
        before = house.call("rest", "alice", "strata_status", STATUS)
        issuer.keys[:] = [key for key in issuer.keys if key["kid"] != "leaked"]

        after = house.call("rest", "alice", "strata_status", STATUS)

        assert before.error is None, before.text
        assert after.error == "unauthenticated"
        assert house.call("rest", "bob", "strata_status", STATUS).error is None


def test_scopes_of_another_service_are_not_taken_for_ours(trusting: House, issuer: Issuer) -> None:
    trusting.tokens |= {
        "ours": issuer.token(scope=f"{AUDIENCE}/memory:write"),
        "theirs": issuer.token(scope="https://other.example/memory:write memory:read"),
    }
    store = {"key": "k", "value": 1}

    assert trusting.call("rest", "ours", "strata_store", store).error is None
    assert trusting.call("rest", "theirs", "strata_store", store).error == "permission_denied"
    assert trusting.call("rest", "theirs", "strata_recall", {"key": "k"}).error is None


def test_a_name_that_cannot_be_written_is_one_all_the_same(trusting: House, issuer: Issuer) -> None:
    trusting.tokens["odd"] = issuer.token(sub="half a pair \ud83d")

    assert trusting.call("rest", "odd", "strata_store", {"key": "k", "value": 1}).error is None


def test_made_up_keys_make_no_flood_of_requests(trusting: House, issuer: Issuer) -> None:
    trusting.call("rest", "own", "strata_status", STATUS)
    before = issuer.service.count("/keys")

    for number in range(20):
        trusting.tokens["forged"] = of_another_key(issuer, kid=f"made up {number}")
        assert trusting.call("rest", "forged", "strata_status", STATUS).error == "unauthenticated"

    assert issuer.service.count("/keys") - before <= 2


def test_an_issuer_that_is_away_stops_only_its_own(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    own = make_token(path, "own", "*:admin")
    with Service() as service:
        issuer = Issuer(service)
        settings = OAuthSettings(issuer.url, (AUDIENCE,))
    with serving(path, oauth=settings) as house:
        house.tokens = {"own": own, "alice": issuer.token()}

        assert house.call("rest", "alice", "strata_status", STATUS).error == "service_unavailable"
        assert house.call("rest", "own", "strata_status", STATUS).error is None


def test_the_metadata_says_who_issues_tokens(trusting: House, issuer: Issuer) -> None:
    challenge = trusting.post("tools/list", None).headers["www-authenticate"]
    (address,) = [
        each.partition('"')[2].rstrip('"')
        for each in challenge.split(", ")
        if "resource_metadata" in each
    ]
    told = trusting.client().get(address).json()

    assert address == f"{trusting.url}/.well-known/oauth-protected-resource/mcp"
    assert told["resource"] == f"{trusting.url}/mcp"
    assert told["authorization_servers"] == [issuer.url]
    assert "memory:read" in told["scopes_supported"]
    plain = trusting.client().get("/.well-known/oauth-protected-resource").json()
    assert plain["resource"] == trusting.url


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("shown", ["revoked", "expired", "cut", "longer", "other case", "hash"])
def test_a_token_of_ours_is_taken_only_as_it_was_made(
    house: House, surface: Surface, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WRONG_TOKENS_PER_MINUTE", 1_000_000)
    good = house.tokens["admin"]
    house.tokens["forged"] = {
        "revoked": house.tokens["revoked"],
        "expired": house.tokens["expired"],
        "cut": good[:-1],
        "longer": good + "A",
        "other case": good.swapcase(),
        "hash": hashlib.sha256(good.encode()).hexdigest(),
    }[shown]

    assert house.call(surface, "forged", "strata_status", STATUS).error == "unauthenticated"
    assert house.call(surface, "admin", "strata_status", STATUS).error is None


def test_nothing_kept_opens_the_door(house: House) -> None:
    """Whoever reads the database learns no token from it."""
    kept = b"".join(each.read_bytes() for each in house.path.parent.iterdir() if each.is_file())

    for secret in house.tokens.values():
        if secret.startswith("strat_"):
            assert secret.encode() not in kept
            assert secret.removeprefix("strat_").encode() not in kept
