"""2. A server listens on loopback; any other address without auth refuses to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from stratagem.access.oauth import OAuthSettings
from stratagem.errors import ValidationFailed
from stratagem.surfaces.server.http import check_exposure, run
from stratagem.surfaces.serving.database import Database
from stratagem.surfaces.serving.settings import ServerSettings
from tests.security.house import make_token, revoke

ELSEWHERE = ("0.0.0.0", "192.0.2.1", "::", "2001:db8::1")  # noqa: S104 -- only asked about


def check(path: Path, **options: object) -> None:
    settings = ServerSettings(str(path), **options)  # type: ignore[arg-type]
    database = Database(settings)
    try:
        check_exposure(settings, database)
    finally:
        database.close()


def test_a_server_is_on_loopback_unless_told_otherwise(tmp_path: Path) -> None:
    assert ServerSettings(str(tmp_path / "memory.db")).host == "127.0.0.1"


@pytest.mark.parametrize("host", ELSEWHERE)
def test_an_address_of_others_without_a_token_does_not_start(tmp_path: Path, host: str) -> None:
    settings = ServerSettings(str(tmp_path / "memory.db"), host=host, port=0)

    with pytest.raises(ValidationFailed, match="there is no token yet"):
        run(settings)


@pytest.mark.parametrize("host", ELSEWHERE)
def test_with_auth_it_may_be_reached(tmp_path: Path, host: str) -> None:
    path = tmp_path / "memory.db"
    issuer = OAuthSettings("https://issuer.example", ("stratagem",))

    check(path, host=host, auth="token")
    check(path, host=host, oauth=issuer)
    make_token(path, "alice", "*:read")
    check(path, host=host)
    revoke(path, "alice")
    check(path, host=host)


def test_an_issuer_whose_keys_anybody_could_exchange_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationFailed, match="not an https address"):
        check(tmp_path / "memory.db", oauth=OAuthSettings("http://issuer.example", ("a",)))
    with pytest.raises(ValidationFailed, match="needs an audience"):
        check(tmp_path / "memory.db", oauth=OAuthSettings("https://issuer.example", ()))
