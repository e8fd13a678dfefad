"""Databases, webhooks, mail and named APIs, against the real thing on loopback."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword

from tests.behaviour.gateway.catalogue.conftest import Desk
from tests.manifest import proves
from tests.ports import free_port
from tests.surfaces.serving import Service, as_json

ITEMS = [("lamp", 12.5), ("chair", 40.0), ("book", 7.0)]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE items (name TEXT, price REAL)")
        connection.executemany("INSERT INTO items VALUES (?, ?)", ITEMS)
    connection.close()
    return path


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE items (name TEXT, price DOUBLE)")
        connection.executemany("INSERT INTO items VALUES (?, ?)", ITEMS)
    return path


@proves("standard:database")
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_file_is_queried_with_parameters(
    desk: Desk, shop: Path, warehouse: Path, engine: str
) -> None:
    desk.connect(
        "shop", "database", engine=engine, path=str(shop if engine == "sqlite" else warehouse)
    )
    sql = "SELECT name, price FROM items WHERE price > ? AND name <> ? ORDER BY price"

    told = desk.call("database_query", sql=sql, parameters=[10, "it's; DROP TABLE items"])

    assert told["columns"] == ["name", "price"]
    assert told["rows"] == [{"name": "lamp", "price": 12.5}, {"name": "chair", "price": 40.0}]
    limited = desk.call("database_query", sql="SELECT * FROM items", limit=2)
    assert (limited["rowCount"], limited["truncated"]) == (2, True)


@proves("standard:database")
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM items",
        "WITH gone AS (DELETE FROM items RETURNING *) SELECT * FROM gone",
        "DROP TABLE items",
        "ATTACH DATABASE '/tmp/other.db' AS other",
        "PRAGMA writable_schema = ON",
        "SELECT 1; DELETE FROM items",
        "COPY items TO '/tmp/stratagem-leak.csv'",
        "INSTALL httpfs",
        "SELECT load_extension('/tmp/x.so')",
        "SELECT * FROM read_csv_auto('/etc/passwd')",
        "VACUUM INTO '/tmp/stratagem-copy.db'",
        "SELECT * FROM '/etc/passwd'",
        "SELECT fts3_tokenizer('simple')",
        "EXPLAIN ANALYZE DELETE FROM items",
        "EXPORT DATABASE 'copy'",
        "CREATE TABLE other AS SELECT 1",
        "REPLACE INTO items VALUES ('a', 1)",
        "SET enable_external_access = true",
        "not sql at all (",
    ],
)
def test_a_connection_for_reading_changes_and_reaches_nothing(
    desk: Desk, shop: Path, warehouse: Path, engine: str, sql: str
) -> None:
    path = shop if engine == "sqlite" else warehouse
    desk.connect("shop", "database", engine=engine, path=str(path))
    before = path.read_bytes()

    refused = desk.refusal("database_query", sql=sql)

    assert refused.code in {"permission_denied", "validation_error", "execution_error"}
    assert path.read_bytes() == before


@proves("standard:database")
def test_a_writable_connection_writes_rows_and_nothing_else(desk: Desk, shop: Path) -> None:
    desk.connect("shop", "database", engine="sqlite", path=str(shop), writable=True)

    told = desk.call(
        "database_query", sql="UPDATE items SET price = ? WHERE name = ?", parameters=[9, "lamp"]
    )

    assert told["changed"] == 1
    [row] = desk.call("database_query", sql="SELECT price FROM items WHERE name = 'lamp'")["rows"]
    assert row["price"] == 9
    assert desk.refusal("database_query", sql="DROP TABLE items").code == "permission_denied"


@proves("standard:database")
def test_duckdb_says_how_many_rows_were_changed(desk: Desk, warehouse: Path) -> None:
    desk.connect("shop", "database", engine="duckdb", path=str(warehouse), writable=True)

    told = desk.call("database_query", sql="INSERT INTO items VALUES ('bed', 300), ('mat', 2)")

    assert (told["changed"], told["rows"]) == (2, [])


@proves("standard:database")
@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_a_comment_after_the_statement_is_none(
    desk: Desk, shop: Path, warehouse: Path, engine: str
) -> None:
    path = shop if engine == "sqlite" else warehouse
    desk.connect("shop", "database", engine=engine, path=str(path))

    told = desk.call("database_query", sql="/* all */ SELECT name FROM items; -- why not?")

    assert told["rowCount"] == 3


@proves("standard:database")
def test_a_query_that_never_ends_is_stopped(desk: Desk, shop: Path) -> None:
    desk.connect("shop", "database", engine="sqlite", path=str(shop))
    endless = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    )

    refused = desk.refusal("database_query", sql=endless, timeout=700)

    assert refused.code == "timeout"


@proves("standard:database")
def test_of_several_connections_one_is_named(desk: Desk, shop: Path, warehouse: Path) -> None:
    desk.connect("shop", "database", engine="sqlite", path=str(shop))
    desk.connect("warehouse", "database", engine="duckdb", path=str(warehouse))

    refused = desk.refusal("database_query", sql="SELECT 1 AS one")

    assert refused.details["allowed"] == ["shop", "warehouse"]
    told = desk.call("database_query", sql="SELECT 1 AS one", connection="warehouse")
    assert told["rows"] == [{"one": 1}]
    unknown = desk.refusal("database_query", sql="SELECT 1", connection="sohp")
    assert unknown.details["field"] == "connection"


@pytest.fixture
def postgres(
    postgres_address: str, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """A table on a real server that listens on a port of loopback."""
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS catalogue_items")
        connection.execute("CREATE TABLE catalogue_items (name text, price numeric)")
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO catalogue_items VALUES (%s, %s)", ITEMS)
        info = connection.info
        yield {"host": info.host, "port": info.port, "database": info.dbname, "user": info.user}
        connection.execute("DROP TABLE IF EXISTS catalogue_items")


@proves("standard:database")
def test_postgresql_is_queried_through_the_guard(desk: Desk, postgres: dict[str, Any]) -> None:
    if postgres["host"].startswith("/"):
        pytest.skip("the server listens on no port here")
    desk.connect("shop", "database", engine="postgres", **postgres)

    told = desk.call(
        "database_query",
        sql="SELECT name, price FROM catalogue_items WHERE price > ? AND name LIKE 'c%' ORDER BY 1",
        parameters=[10],
    )

    assert told["rows"] == [{"name": "chair", "price": "40"}]
    for sql in (
        "DELETE FROM catalogue_items",
        "SELECT pg_read_file('/etc/passwd')",
        "SELECT 1; SELECT 2",
    ):
        assert desk.refusal("database_query", sql=sql).code in {
            "permission_denied",
            "validation_error",
        }
    slow = desk.refusal(
        "database_query", sql="SELECT count(*) FROM generate_series(1, 1000000000)", timeout=500
    )
    assert slow.code == "timeout"


@proves("standard:database")
@pytest.mark.parametrize(
    "sql",
    [
        # The same as pg_read_file.
        "SELECT U&\"pg\\005fread_file\"('/etc/passwd')",
        "SELECT pg_catalog.pg_read_file('/etc/passwd')",
        "SELECT pg_notify('a', 'b')",
        "SELECT pg_advisory_lock(1)",
        "SELECT pg_switch_wal()",
        "SELECT pg_create_physical_replication_slot('stratagem')",
        "SELECT pg_stat_reset()",
        "SELECT nextval('catalogue_numbers')",
        "SELECT catalogue_clear()",
        "SELECT set_config('transaction_read_only', 'off', false)",
        "WITH gone AS (DELETE FROM catalogue_items RETURNING *) SELECT * FROM gone",
        "SELECT * INTO other FROM catalogue_items",
        "SELECT * FROM catalogue_items FOR UPDATE",
        "EXPLAIN ANALYZE DELETE FROM catalogue_items",
        "COPY catalogue_items TO PROGRAM 'cat'",
        "DO $$ BEGIN DELETE FROM catalogue_items; END $$",
    ],
)
def test_reading_from_postgresql_has_no_other_effect(
    desk: Desk, postgres: dict[str, Any], postgres_address: str, sql: str
) -> None:
    desk.connect("shop", "database", engine="postgres", **postgres)
    with psycopg.connect(postgres_address, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS catalogue_numbers")
        connection.execute(
            "CREATE OR REPLACE FUNCTION catalogue_clear() RETURNS int LANGUAGE plpgsql "
            "AS 'BEGIN DELETE FROM catalogue_items; RETURN 1; END'"
        )

    refused = desk.refusal("database_query", sql=sql)

    assert refused.code in {"permission_denied", "validation_error"}
    assert refused.details["field"] == "sql"


@proves("standard:database")
@pytest.mark.parametrize(
    ("sql", "given", "row"),
    [
        ("SELECT 7 % 4 AS rest", [], {"rest": 3}),
        ("SELECT '5 %' AS share, ? AS given -- why?", ["x"], {"share": "5 %", "given": "x"}),
        ("SELECT $$it's ?$$ AS text, CAST(? AS int) AS n", [2], {"text": "it's ?", "n": 2}),
        ("SELECT count(*) AS n FROM catalogue_items WHERE random() < 2", [], {"n": 3}),
        ("SELECT 1 AS one; -- done", [], {"one": 1}),
    ],
)
def test_what_is_written_for_postgresql_stays_as_it_is(
    desk: Desk, postgres: dict[str, Any], sql: str, given: list[Any], row: dict[str, Any]
) -> None:
    desk.connect("shop", "database", engine="postgres", **postgres)

    assert desk.call("database_query", sql=sql, parameters=given)["rows"] == [row]


@proves("standard:database")
def test_of_many_rows_of_postgresql_a_few_are_read(desk: Desk, postgres: dict[str, Any]) -> None:
    desk.connect("shop", "database", engine="postgres", **postgres, writable=True)

    many = desk.call("database_query", sql="SELECT generate_series(1, 3000000) AS n", limit=2)
    written = desk.call(
        "database_query",
        sql="UPDATE catalogue_items SET price = ? WHERE price > ? RETURNING name",
        parameters=[1, 10],
    )

    assert (many["rows"], many["truncated"]) == ([{"n": 1}, {"n": 2}], True)
    assert written["changed"] == 2
    assert {row["name"] for row in written["rows"]} == {"lamp", "chair"}


@proves("standard:webhook")
def test_an_event_is_signed_and_sent_with_its_key(
    desk: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_SECRET_HOOK", "hook-secret-0123456789")
    service.answers["/hook"] = lambda _said: as_json({"ok": True}, 202)
    desk.connect("deploy", "webhook", url=service.url("/hook"), secret="${HOOK}")
    desk.grant("webhook_trigger", "HOOK", service.url(""))

    told = desk.call(
        "webhook_trigger", event="release", data={"version": "2.1"}, idempotencyKey="r-21"
    )

    assert told == {
        "delivered": True,
        "status": 202,
        "attempts": 1,
        "idempotencyKey": "r-21",
        "response": {"ok": True},
    }
    said = service.received[-1]
    head = said["headers"]
    body = json.loads(said["body"])
    assert (body["event"], body["id"], body["data"]) == ("release", "r-21", {"version": "2.1"})
    assert head["idempotency-key"] == "r-21"
    signed = f"r-21.{head['x-stratagem-timestamp']}.".encode() + said["body"]
    digest = hmac.new(b"hook-secret-0123456789", signed, hashlib.sha256).hexdigest()
    assert head["x-stratagem-signature"] == f"sha256={digest}"


@proves("standard:webhook")
def test_a_target_that_is_down_is_tried_again_with_the_same_key(
    desk: Desk, service: Service
) -> None:
    answers = iter([(503, "text/plain", b""), (500, "text/plain", b""), (200, "text/plain", b"ok")])
    service.answers["/hook"] = lambda _said: next(answers)
    desk.connect("deploy", "webhook", url=service.url("/hook"), retries=2)

    told = desk.call("webhook_trigger", data=1)

    assert told["attempts"] == 3
    assert len({each["headers"]["idempotency-key"] for each in service.received}) == 1


@proves("standard:webhook")
def test_a_target_that_refuses_is_told_once(desk: Desk, service: Service) -> None:
    service.answers["/hook"] = lambda _said: (400, "text/plain", b"no such event")
    desk.connect("deploy", "webhook", url=service.url("/hook"))

    refused = desk.refusal("webhook_trigger", data=1)

    assert refused.code == "execution_error"
    assert service.count("/hook") == 1


class Mailbox:
    """A real SMTP server that keeps what it is given."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.logins: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 -- its name
        if any("bounce" in each for each in envelope.rcpt_tos):
            return "550 no such user"
        self.mails.append(envelope)
        return "250 OK"

    def authenticate(
        self, _server: Any, _session: Any, _envelope: Any, _kind: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        self.logins.append(data.login.decode())
        return AuthResult(success=data.password == b"mail-secret-0123456789")


@pytest.fixture
def mailbox() -> Iterator[tuple[Mailbox, int]]:
    box, port = Mailbox(), free_port()
    controller = Controller(
        box, hostname="127.0.0.1", port=port, authenticator=box.authenticate, auth_require_tls=False
    )
    controller.start()
    try:
        yield box, port
    finally:
        controller.stop()


def account(port: int, **more: Any) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "from": "Agent <agent@example.org>",
        "recipients": ["*@example.org", "boss@corp.example"],
        **more,
    }


@proves("standard:mail")
def test_a_mail_arrives_with_its_attachment(
    desk: Desk, mailbox: tuple[Mailbox, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    box, port = mailbox
    monkeypatch.setenv("STRATAGEM_SECRET_MAIL", "mail-secret-0123456789")
    desk.connect("mail", "smtp", **account(port, username="agent", password="${MAIL}"))
    desk.grant("email_sender", "MAIL", f"smtp://127.0.0.1:{port}")
    attachment = {
        "name": "a.csv",
        "content": base64.b64encode(b"x,y\n").decode(),
        "contentType": "text/csv",
    }

    told = desk.call(
        "email_sender",
        to=["Ann <ann@example.org>"],
        bcc=["boss@corp.example"],
        subject="Report für Mai",
        text="All is well.",
        html="<p>All is well.</p>",
        attachments=[attachment],
    )

    assert told["sent"] is True
    assert told["recipients"] == ["ann@example.org", "boss@corp.example"]
    [mail] = box.mails
    assert mail.rcpt_tos == ["ann@example.org", "boss@corp.example"]
    parsed = message_from_bytes(mail.content)
    assert parsed["From"] == "Agent <agent@example.org>"
    assert "boss" not in mail.content.decode("utf-8", "replace")
    assert [part.get_filename() for part in parsed.walk() if part.get_filename()] == ["a.csv"]
    assert box.logins == ["agent"]


@proves("standard:mail")
def test_a_dry_run_shows_the_mail_and_sends_nothing(
    desk: Desk, mailbox: tuple[Mailbox, int]
) -> None:
    box, port = mailbox
    desk.connect("mail", "smtp", **account(port))

    told = desk.call(
        "email_sender", to=["ann@example.org"], subject="Hi", text="Hello.", dryRun=True
    )

    assert (told["sent"], told["dryRun"]) == (False, True)
    assert "Subject: Hi" in told["preview"]
    assert "Hello." in told["preview"]
    assert box.mails == []


@proves("standard:mail")
@pytest.mark.parametrize(
    ("given", "code", "field"),
    [
        ({"to": ["eve@elsewhere.example"]}, "permission_denied", "to[0]"),
        ({"to": ["ann@example.org"], "bcc": ["eve@evil.example"]}, "permission_denied", "bcc[0]"),
        ({"to": ["ann@example.org, eve@evil.example"]}, "validation_error", "to[0]"),
        ({"to": ["no address"]}, "validation_error", "to[0]"),
        (
            {"to": ["ann@example.org"], "subject": "x\r\nBcc: eve@evil.example"},
            "validation_error",
            "subject",
        ),
        ({"to": ["ann@example.org"], "subject": "x\u2028y"}, "validation_error", "subject"),
        ({"to": ["ann@example.org"], "replyTo": "x\x0b@y"}, "validation_error", "replyTo"),
        (
            {"to": ["ann@example.org"], "attachments": [{"name": "a", "content": "%%"}]},
            "validation_error",
            "attachments[0].content",
        ),
    ],
)
def test_a_mail_goes_nowhere_else(
    desk: Desk, mailbox: tuple[Mailbox, int], given: dict[str, Any], code: str, field: str
) -> None:
    box, port = mailbox
    desk.connect("mail", "smtp", **account(port))

    refused = desk.refusal("email_sender", **{"subject": "Hi", "text": "Hello.", **given})

    assert refused.code == code
    assert refused.details["field"] == field
    assert box.mails == []


@proves("standard:mail")
def test_a_mail_server_that_refuses_is_a_failure(desk: Desk, mailbox: tuple[Mailbox, int]) -> None:
    _box, port = mailbox
    desk.connect("mail", "smtp", **account(port))

    refused = desk.refusal("email_sender", to=["bounce@example.org"], subject="Hi", text="x")

    assert refused.code == "execution_error"


@proves("standard:guarded")
def test_mail_and_databases_pass_the_guard_too(desk: Desk) -> None:
    desk.connect("mail", "smtp", **{**account(25), "host": "10.1.2.3"})
    desk.connect("pg", "database", engine="postgres", host="192.168.7.7", database="x")

    mail = desk.refusal("email_sender", to=["a@example.org"], subject="x", text="x")
    query = desk.refusal("database_query", sql="SELECT 1")

    assert mail.details["reason"] == query.details["reason"] == "not_public"


@proves("standard:api")
def test_a_named_api_is_called_with_its_own_headers(
    desk: Desk, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRATAGEM_SECRET_TOKEN", "token-0123456789")
    service.answers["/v2/items"] = lambda said: as_json(
        {"sent": said["headers"]["authorization"], "query": said["query"]}
    )
    desk.connect(
        "shop",
        "api",
        url=service.url("/v2"),
        headers={"Authorization": "Bearer ${TOKEN}"},
        query={"tenant": "a"},
    )
    desk.grant("api_caller", "TOKEN", service.url(""))

    told = desk.call(
        "api_caller",
        connection="shop",
        url="/items",
        query={"limit": 2},
        headers={"authorization": "mine"},
    )

    assert service.received[-1]["headers"]["authorization"] == "Bearer token-0123456789"
    assert service.received[-1]["query"] == "limit=2&tenant=a"
    assert "token-0123456789" not in json.dumps(told)


@proves("standard:api")
@pytest.mark.parametrize(
    "url", ["/../admin", "https://evil.example/", "//evil.example/x", "/%2e%2e/admin"]
)
def test_a_named_api_is_not_left(desk: Desk, service: Service, url: str) -> None:
    desk.connect("shop", "api", url=service.url("/v2"))

    refused = desk.refusal("api_caller", connection="shop", url=url)

    assert (refused.code, refused.details["reason"]) == ("permission_denied", "outside")
    assert service.received == []
