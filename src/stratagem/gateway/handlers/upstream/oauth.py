"""OAuth 2.1 as a client of upstream servers, on behalf of one user at a time.

Authorization code with PKCE (S256), refresh, resource indicators (RFC 8707), the issuer in the
response (RFC 9207); as a client we are known by a metadata document, by dynamic registration, or by
the id that the definition has. Documents are interpreted by the MCP SDK. This module stores
nothing: the state between the two halves of a sign-in, and tokens, are plain JSON that the caller
stores.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypedDict
from urllib.parse import quote, urlencode, urlsplit

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_client_info_from_metadata_url,
    create_client_registration_request,
    create_oauth_metadata_request,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    handle_registration_response,
    issuers_match,
    should_use_client_metadata_url,
    validate_authorization_response_iss,
)
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url
from pydantic import AnyUrl, ValidationError

from stratagem import limits
from stratagem.deferred_dataclasses import dataclass
from stratagem.deferred_tuples import NamedTuple
from stratagem.errors import ExecutionFailed, StratagemError

__all__ = [
    "BegunSignIn",
    "OAuthClient",
    "PendingSignIn",
    "UserTokens",
    "client_metadata",
]

_SECOND: Final = 1_000_000
_GRANTS: Final = ["authorization_code", "refresh_token"]
_CODE_CHARS_MAX: Final = 100


class PendingSignIn(TypedDict):
    """The state that the second half of a sign-in needs from the first."""

    url: str
    metadata: dict[str, Any]
    client: dict[str, Any]
    resource: str
    scope: str | None
    verifier: str
    redirectUri: str


class UserTokens(TypedDict):
    """A user's tokens for one server, and how they are refreshed. Times in microseconds."""

    accessToken: str
    refreshToken: str | None
    expiresAt: int | None
    scope: str | None
    metadata: dict[str, Any]
    client: dict[str, Any]
    resource: str


class BegunSignIn(NamedTuple):
    """A sign-in that a person continues: its address, and the state by which it is recognised."""

    address: str
    state: str
    pending: PendingSignIn


def client_metadata(redirect_uris: list[str], address: str | None) -> dict[str, Any]:
    """Return what we say about ourselves, as a metadata document at an address has it."""
    said: dict[str, Any] = {
        "client_name": "Stratagem",
        "redirect_uris": redirect_uris,
        "grant_types": _GRANTS,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web" if address else "native",
    }
    return said | ({"client_id": address} if address else {})


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """Signs users in to upstream servers."""

    http_client: Callable[[], httpx2.AsyncClient]
    random: Callable[[int], bytes]
    now: Callable[[], int]

    async def begin(
        self,
        url: str,
        *,
        redirect_uri: str,
        metadata_url: str | None,
        state: str,
        settings: Mapping[str, Any],
        known_client: Callable[[str], dict[str, Any] | None],
    ) -> BegunSignIn:
        """Find out where a user of a server signs in; return the address, and what to keep.

        `metadata_url` is where our metadata document is. `known_client` returns as what we were
        registered before with an issuer.

        Raises:
            ExecutionFailed: The server, or its authorization server, does not say how.
        """
        async with self._requests(url) as http:
            resource_metadata, challenge = await _find_resource(http, url)
            server = await _find_server(http, url, resource_metadata)
            resource = _resource_of(url, resource_metadata)
            scope = settings.get("scope") or get_client_metadata_scopes(
                challenge.scope, resource_metadata, server, _GRANTS
            )
            client = await _client_of(
                http,
                server,
                redirect_uri,
                metadata_url=metadata_url,
                scope=scope,
                settings=settings,
                known_client=known_client,
            )
        verifier = base64.urlsafe_b64encode(self.random(48)).decode().rstrip("=")
        pending: PendingSignIn = {
            "url": url,
            "metadata": server.model_dump(mode="json", exclude_none=True),
            "client": client.model_dump(mode="json", exclude_none=True),
            "resource": resource,
            "scope": scope,
            "verifier": verifier,
            "redirectUri": redirect_uri,
        }
        return BegunSignIn(_authorization_address(server, pending, state), state, pending)

    async def finish(self, pending: PendingSignIn, code: str, issuer: str | None) -> UserTokens:
        """Exchange the code of a sign-in for tokens.

        Raises:
            ExecutionFailed: The authorization server does not take it, or is another one.
        """
        server = OAuthMetadata.model_validate(pending["metadata"])
        try:
            validate_authorization_response_iss(issuer, server)
        except OAuthFlowError as error:
            raise _error(pending["url"], str(error)) from None
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending["redirectUri"],
            "code_verifier": pending["verifier"],
            "resource": pending["resource"],
        }
        async with self._requests(pending["url"]) as http:
            answer = await _ask_for_token(http, server, pending["client"], form)
        if isinstance(answer, str):
            raise _error(pending["url"], f"the code was refused ({answer})")
        return self._tokens(answer, pending, None)

    async def refresh(self, url: str, tokens: UserTokens) -> UserTokens | None:
        """Return new tokens; None where the user has to sign in again.

        Raises:
            ExecutionFailed: The authorization server cannot be reached.
        """
        if tokens["refreshToken"] is None:
            return None
        server = OAuthMetadata.model_validate(tokens["metadata"])
        form = {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refreshToken"],
            "resource": tokens["resource"],
        }
        async with self._requests(url) as http:
            answer = await _ask_for_token(http, server, tokens["client"], form)
        if isinstance(answer, str):
            return None
        return self._tokens(answer, tokens, tokens["refreshToken"])

    def _tokens(
        self, answer: OAuthToken, asked: PendingSignIn | UserTokens, refresh: str | None
    ) -> UserTokens:
        """Return what to keep; an answer may leave out what has not changed."""
        expires = answer.expires_in
        return {
            "accessToken": answer.access_token,
            "refreshToken": answer.refresh_token or refresh,
            "expiresAt": None if expires is None else self.now() + expires * _SECOND,
            "scope": answer.scope or asked["scope"],
            "metadata": asked["metadata"],
            "client": asked["client"],
            "resource": asked["resource"],
        }

    def _requests(self, url: str) -> AbstractAsyncContextManager[httpx2.AsyncClient]:
        return _requests(self.http_client, url)


@contextlib.asynccontextmanager
async def _requests(
    http_client: Callable[[], httpx2.AsyncClient], url: str
) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client for one step, within a time limit; what fails is said of the server."""
    try:
        async with asyncio.timeout(limits.SIGN_IN_REQUEST_SECONDS), http_client() as http:
            yield http
    except StratagemError:
        raise
    except TimeoutError:
        raise _error(url, "its authorization server does not answer in time") from None
    except (OAuthFlowError, ValidationError) as error:
        reason = str(error).splitlines()[0][: limits.UPSTREAM_ERROR_CHARS_MAX]
        raise _error(url, reason) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        reason = str(error) or type(error).__name__
        raise _error(url, f"its authorization server cannot be reached: {reason}") from None


class _Challenge(NamedTuple):
    metadata: str | None
    scope: str | None


async def _find_resource(
    http: httpx2.AsyncClient, url: str
) -> tuple[ProtectedResourceMetadata | None, _Challenge]:
    """Return a server's metadata about its authorization server."""
    challenge = await _challenge_of(http, url)
    for each in build_protected_resource_metadata_discovery_urls(challenge.metadata, url):
        answer = await http.send(create_oauth_metadata_request(each))
        found = await handle_protected_resource_response(answer)
        if found is None:
            continue
        wanted = resource_url_from_server_url(url)
        if not check_resource_allowed(
            requested_resource=wanted, configured_resource=str(found.resource)
        ):
            raise OAuthFlowError(f"its metadata is about another server: {found.resource}")
        return found, challenge
    return None, challenge


async def _challenge_of(http: httpx2.AsyncClient, url: str) -> _Challenge:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    headers = {"accept": "application/json, text/event-stream"}
    answer = await http.post(url, json=ping, headers=headers)
    if answer.status_code != httpx2.codes.UNAUTHORIZED:
        return _Challenge(None, None)
    return _Challenge(
        extract_resource_metadata_from_www_auth(answer), extract_scope_from_www_auth(answer)
    )


async def _find_server(
    http: httpx2.AsyncClient, url: str, resource: ProtectedResourceMetadata | None
) -> OAuthMetadata:
    """Return the metadata of the authorization server."""
    named = str(resource.authorization_servers[0]) if resource is not None else None
    parts = urlsplit(url)
    expected = named or f"{parts.scheme}://{parts.netloc}"
    for each in build_oauth_authorization_server_metadata_discovery_urls(named, url):
        answer = await http.send(create_oauth_metadata_request(each))
        go_on, found = await handle_auth_metadata_response(answer)
        if found is not None:
            _check_server(found, expected, parts.scheme)
            return found
        if not go_on:
            break
    raise OAuthFlowError("it has no authorization server that says how users sign in")


def _check_server(server: OAuthMetadata, expected: str, scheme: str) -> None:
    if not issuers_match(str(server.issuer), expected):
        raise OAuthFlowError(f"the metadata of {expected} names another issuer, {server.issuer}")
    if "S256" not in (server.code_challenge_methods_supported or ()):
        raise OAuthFlowError("its authorization server does not support PKCE with S256")
    for each in (server.authorization_endpoint, server.token_endpoint):
        if scheme == "https" and not str(each).startswith("https://"):
            raise OAuthFlowError("its authorization server does not use https")


def _resource_of(url: str, metadata: ProtectedResourceMetadata | None) -> str:
    return resource_url_from_server_url(url) if metadata is None else str(metadata.resource)


async def _client_of(
    http: httpx2.AsyncClient,
    server: OAuthMetadata,
    redirect_uri: str,
    *,
    metadata_url: str | None,
    scope: str | None,
    settings: Mapping[str, Any],
    known_client: Callable[[str], dict[str, Any] | None],
) -> OAuthClientInformationFull:
    """Return as what we are known to an authorization server; register where we are not yet."""
    uris: list[AnyUrl] = [AnyUrl(redirect_uri)]
    if settings.get("clientId"):
        secret = settings.get("clientSecret")
        return OAuthClientInformationFull(
            client_id=settings["clientId"],
            client_secret=secret,
            redirect_uris=uris,
            token_endpoint_auth_method="client_secret_post" if secret else "none",
        )
    if should_use_client_metadata_url(server, metadata_url):
        assert metadata_url is not None
        return create_client_info_from_metadata_url(metadata_url, uris)
    known = known_client(str(server.issuer))
    if known is not None:
        return OAuthClientInformationFull.model_validate(known)
    if server.registration_endpoint is None:
        raise OAuthFlowError(
            "its authorization server does not register clients: give a `clientId` in `auth`"
        )
    said = client_metadata([redirect_uri], None)
    said["application_type"] = "web" if metadata_url else "native"
    asked = OAuthClientMetadata.model_validate({**said, "scope": scope})
    answer = await http.send(create_client_registration_request(server, asked, str(server.issuer)))
    return await handle_registration_response(answer)


def _authorization_address(server: OAuthMetadata, pending: PendingSignIn, state: str) -> str:
    challenge = hashlib.sha256(pending["verifier"].encode()).digest()
    asked = {
        "response_type": "code",
        "client_id": pending["client"]["client_id"],
        "redirect_uri": pending["redirectUri"],
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(challenge).decode().rstrip("="),
        "code_challenge_method": "S256",
        "resource": pending["resource"],
    }
    if pending["scope"]:
        asked["scope"] = pending["scope"]
        if "offline_access" in pending["scope"].split():
            # Without it an OpenID provider gives no refresh token.
            asked["prompt"] = "consent"
    place = str(server.authorization_endpoint)
    return f"{place}{'&' if '?' in place else '?'}{urlencode(asked)}"


async def _ask_for_token(
    http: httpx2.AsyncClient,
    server: OAuthMetadata,
    client: Mapping[str, Any],
    form: dict[str, str],
) -> OAuthToken | str:
    """Return tokens, or the code of the error with which they were refused."""
    headers = {"accept": "application/json"}
    secret, client_id = client.get("client_secret"), client["client_id"]
    if secret and client.get("token_endpoint_auth_method") == "client_secret_basic":
        pair = f"{quote(client_id, safe='')}:{quote(secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    else:
        form["client_id"] = client_id
        if secret:
            form["client_secret"] = secret
    answer = await http.post(str(server.token_endpoint), data=form, headers=headers)
    if answer.is_success:
        return OAuthToken.model_validate_json(answer.content)
    if answer.status_code >= httpx2.codes.INTERNAL_SERVER_ERROR:
        raise OAuthFlowError(f"its authorization server answers {answer.status_code}")
    try:
        code = answer.json().get("error")
    except (ValueError, AttributeError):
        code = None
    # Its description may repeat what was sent.
    return (
        code
        if isinstance(code, str) and len(code) <= _CODE_CHARS_MAX
        else f"HTTP {answer.status_code}"
    )


def _error(url: str, reason: str) -> ExecutionFailed:
    host = urlsplit(url).hostname
    return ExecutionFailed(
        f"Nobody can sign in to {host}: {reason.rstrip('.')}.", safe=True, reason="sign_in"
    )
