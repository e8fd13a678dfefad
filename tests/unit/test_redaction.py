"""Secrets and personal data are masked; what an error is understood by is not."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from time import thread_time
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stratagem import limits, redaction
from stratagem.redaction import Level, mask, mask_json, mask_values
from tests.unit.debugging.causes_managed import MANAGED
from tests.unit.debugging.causes_native import NATIVE
from tests.unit.debugging.causes_services import SERVICES

# Made up, and put together here so that no scanner of repositories takes them for real.
TOKENS = {
    "AWS": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub": "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a",
    "GitHub, fine-grained": "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz",
    "GitLab": "glpat-" + "xY12zAbCdEfGhIjKlMnO",
    "Slack": "xoxb-" + "123456789012-abcdefGHIJKL",
    "OpenAI": "sk-" + "proj-abcdEFGH1234ijklMNOP5678",
    "OpenAI, old": "sk-" + "abcdEFGH1234ijklMNOP5678qrst",
    "Anthropic": "sk-ant-" + "api03-abcdefGHIJKL1234567890",
    "Google": "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "Stripe": "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "npm": "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "PyPI": "pypi-" + "AgEIcHlwaS5vcmcCJGFiY2RlZg",
    "Hugging Face": "hf_" + "AbCdEfGhIjKlMnOpQrStUvWx12",
    "SendGrid": "SG." + "abcdefghijklmnop.qrstuvwxyz0123456789",
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123-_xyz",
    "Vault": "hvs." + "CAESIJ1234567890abcdefghij",
}
SYNTAXES = [
    "{}",
    "key is {}.",
    "token={}",
    '{{"apiKey": "{}"}}',
    "curl -H 'X-Api-Key: {}' https://a.io",
    "https://a.io/x?key={}&y=1",
    "https://{}@github.com/a/b.git",
    "401 for {}\nnext line",
    "export X={}",
]
SECRET = "hunter2!"
ASSIGNMENTS = [
    "password={}",
    "password = {}",
    "PASSWORD='{}'",
    'DB_PASSWORD="{}"',
    "export PGPASSWORD={}",
    "passwd: {}",
    "secret: {}",
    "  client_secret: '{}'",
    "access_token={}&x=1",
    "api_key={}",
    "api-key: {}",
    "apiKey = '{}'",
    '{{"password": "{}", "user": "ann"}}',
    '{{\\"password\\": \\"{}\\"}}',
    "connect(user='ann', password='{}')",
    "Server=db;User Id=sa;Password={};Database=x",
    "mysql -u root -p{} shop",
    "login --password {} --verbose",
    "login --api-key={}",
    "curl -u ann:{} https://a.io",
    "<password>{}</password>",
    "aws_secret_access_key = {}",
    "spring.datasource.password={}",
    "X-Auth-Token: {}",
    "password => '{}'",
    "AccountKey={};EndpointSuffix=x",
]
URLS = [
    "postgres://app:{}@db.io:5432/shop",
    "redis://:{}@localhost:6379/0",
    "https://ann:{}@a.io/x",
    "mongodb+srv://ann:{}@cluster.a.io",
    "jdbc:mysql://db/shop?user=ann&password={}",
    "amqp://ann:p@{}@mq.internal//",
]
KEPT = [
    "commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a is missing",
    "sha256:3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a3f2a1b9c8d7e6f5a4b3c2d1e",
    "request 3f2a1b9c-8d7e-4f5a-9b3c-2d1e0f9a8b7c failed",
    "No module named 'sklearn'",
    "sk-learn-contrib-something-very-long is no package",
    "torch==2.1.0+cu121 on 10.0.0.5 (db.prod.example.com)",
    "SyntaxError: Unexpected token: x",
    "failed to fetch anonymous token: 401 Unauthorized",
    "GET /token: 503 Service Unavailable",
    "near token: ')'",
    "max_tokens=4096, eos_token='</s>', pad_token=x",
    "KeyError: 'api_key'",
    "password: str = Field(...)",
    "def login(password: Optional[str] = None)",
    "token = request.headers.get('x')",
    "password=os.environ['PASSWORD']",
    "password=$PASSWORD, secret: ${SECRET}, token=<token>",
    "Access denied for user 'root'@'localhost' (using password: YES)",
    "password authentication failed for user",
    "Enter password:\njava.lang.NullPointerException",
    "PWD=/srv/app/current",
    "compat: strict mode",
    "AADToken: HTTP connection failed",
    "git@github.com:acme/shop.git and ssh://git@github.com/acme/shop",
    "getty@tty1.service failed; com.shop.Cart@1b2c3d4e",
    "npm ERR! notarget react@18.2.0 and @types/node@20.1.0",
    "Bearer authentication is required; Basic authentication is off",
    "std::vector<int>::at and Foo::bar at 12:30:45",
    "/var/lib/home.txt /srv/home/x",
]


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("kind", TOKENS)
def test_well_known_tokens_are_masked(kind: str, syntax: str) -> None:
    text = syntax.format(TOKENS[kind])

    masked = mask(text)

    assert TOKENS[kind] not in masked
    assert TOKENS[kind][8:] not in masked
    assert "[token]" in masked or "[secret]" in masked


@pytest.mark.parametrize("syntax", [*ASSIGNMENTS, *URLS])
@pytest.mark.parametrize("secret", [SECRET, "0000", "Tr0ub4dor-3", "zXc%9(k", "correcthorse"])
def test_what_is_named_a_secret_is_masked(syntax: str, secret: str) -> None:
    masked = mask(syntax.format(secret))

    assert secret not in masked
    assert "[secret]" in masked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer abc.def.ghi", "Authorization: Bearer [token]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [token]"),
        ('{"Authorization": "token abc"}', '{"Authorization": "token [token]"}'),
        ("sent Bearer abcd1234efgh to it", "sent Bearer [token] to it"),
        ("Cookie: session=abc; theme=dark", "Cookie: [token]"),
        ("hooks.slack.com/services/T0/B0/abcdef12", "hooks.slack.com/[token]"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----\nok",
            "[key]\nok",
        ),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nmore", "[key]\nmore"),
        ("mail ann.b+c@shop.co.uk!", "mail [email]!"),
        ("'ann@shop.io', \"bo@shop.io\"", "'[email]', \"[email]\""),
        ("/home/ann/x.py", "~/x.py"),
        ("in /Users/ann: no", "in ~: no"),
        ('File "/home/ann/a b/x.py"', 'File "~/a b/x.py"'),
        ("C:\\Users\\Ann Lee\\x.py", "~\\x.py"),
        ("C:\\\\Users\\\\ann\\\\x.py", "~\\\\x.py"),
        ("C:/Users/ann/x.py", "~/x.py"),
        ("file:///home/ann/x.js", "file://~/x.js"),
    ],
)
def test_what_stands_for_a_secret(text: str, expected: str) -> None:
    assert mask(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_what_an_error_is_understood_by_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 10.0.0.5:80 and fe80::1", "at [ip]:80 and [ip]"),
        ("db.prod.example.com is down", "[host] is down"),
        ("https://api.shop.io/v1", "https://[host]/v1"),
        ("id 3f2a1b9c-8d7e-4f5a-9b3c-2d1e0f9a8b7c", "id [uuid]"),
        ("sha 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a", "sha [hash]"),
        ("trace 3f2a1b9c8d7e6f5a4b3c", "trace [hex]"),
        ("blob QWxhZGRpbjpvcGVuIHNlc2FtZTEyMzQ1Njc4", "blob [token]"),
        ("card 4111 1111 1111 1111", "card [card]"),
        ("no card 4111 1111 1111 1112", "no card 4111 1111 1111 1112"),
        ("call +1 415-555-1234 or (415) 555-1234", "call [phone] or [phone]"),
        ("see github.com/acme/shop", "see github.com/acme/shop"),
        ("ann@shop.io", "[email]"),
    ],
)
def test_strict_masks_where_it_happened(text: str, expected: str) -> None:
    assert mask(text, "strict") == expected


def test_none_masks_nothing() -> None:
    text = "password=hunter2 ann@shop.io"

    assert mask(text, "none") == text
    assert mask_json({"password": "hunter2"}, "none") == {"password": "hunter2"}


def test_json_is_masked_string_by_string() -> None:
    value: Any = {
        "ann@shop.io": "a key can be a secret too",
        "password": "x7",
        "pin_code_password": 4711,
        "max_token": 7,
        "secret": ["abc", "def"],
        "API_KEY": "abc",
        "token": None,
        "pad_token": "<pad>",
        "n": 5,
        "steps": ["mail ann@shop.io", {"secret": "abc", "note": "TOKEN=abc"}, ["/home/ann/x"]],
    }

    assert mask_json(value) == {
        "[email]": "a key can be a secret too",
        "password": "[secret]",
        "pin_code_password": "[secret]",
        "max_token": 7,
        "secret": ["[secret]", "[secret]"],
        "API_KEY": "[secret]",
        "token": None,
        "pad_token": "<pad>",
        "n": 5,
        "steps": ["mail [email]", {"secret": "[secret]", "note": "TOKEN=[secret]"}, ["~/x"]],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DB_PASS=hunter2", "DB_PASS=[secret]"),
        ("mysql://h/x?pass=hunter2", "mysql://h/x?pass=[secret]"),
        ("all tests pass: 12", "all tests pass: 12"),
        ("//npm.acme.io/:_auth=aHVudGVyMg", "//npm.acme.io/:_auth=[secret]"),
        (
            "jdbc:oracle:thin:scott/hunter2@//db:1521/x",
            "jdbc:oracle:thin:scott/[secret]@//db:1521/x",
        ),
        ("curl -ubob:hunter2 https://x", "curl -u[secret] https://x"),
        ("sshpass -p hunter2 ssh host", "sshpass -p [secret] ssh host"),
        ("docker login -u bob -p 'hunter 2' x", "docker login -u bob -p [secret] x"),
        ("docker run -p 8080:80 web", "docker run -p 8080:80 web"),
        ("redis-cli -a hunter2 ping", "redis-cli -a [secret] ping"),
        ("The password is hunter2.", "The password is [secret]."),
        ("ALTER USER x WITH PASSWORD 'hunter2'", "ALTER USER x WITH PASSWORD '[secret]'"),
        ("IDENTIFIED BY 'hunter2'", "IDENTIFIED BY '[secret]'"),
        ("machine x login bob password hunter2", "machine x login bob password [secret]"),
        ("password authentication failed for user", "password authentication failed for user"),
        ("password must have 8 characters", "password must have 8 characters"),
        ("the password 'None' is not text", "the password 'None' is not text"),
        ("password sha256 mismatch", "password sha256 mismatch"),
        ("passphrase: correct horse battery staple", "passphrase: [secret]"),
        ("https://x.blob/?sv=1&sig=aGVsbG8%3Dxyz", "https://x.blob/?sv=1&sig=[secret]"),
        ("hf_" + "abcDEFghij" * 3, "[token]"),
        ("MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs", "[token]"),
        ("mailto:ann@shop.io", "mailto:[email]"),
        ("user:ann@shop.io", "user:[email]"),
        ("jürgen@müller.de", "[email]"),
        ("/usr/home/ann/x.c", "~/x.c"),
        ("/Users/Ann Smith/Library/x", "~/Library/x"),
        ("see /Users/ann and /Users/bob/x", "see ~ and ~/x"),
        (r"\\fileserver\Users\ann\x", r"~\x"),
        ("file=%2Fhome%2Fann%2Fx.py", "file=~%2Fx.py"),
        ("/srv/app/home/index.html", "/srv/app/home/index.html"),
    ],
)
def test_more_shapes_of_secrets_and_what_only_looks_like_one(text: str, expected: str) -> None:
    assert mask(text) == expected
    assert mask(expected) == expected


@pytest.mark.parametrize("level", ["basic", "strict"])
def test_masking_twice_is_masking_once(level: Level) -> None:
    errors = [text for causes in (MANAGED, NATIVE, SERVICES) for v in causes.values() for text in v]
    planted = [
        syntax.format(secret)
        for syntax in [*SYNTAXES, *ASSIGNMENTS, *URLS]
        for secret in (*TOKENS.values(), SECRET)
    ]
    for text in [*errors, *planted, *KEPT]:
        masked = mask(text, level)

        assert mask(masked, level) == masked


PIECES = st.sampled_from(
    [
        *"a9 \n'\"=:/@[](){}<>\\-_.,;&",
        *(
            "password",
            "token",
            "Bearer ",
            "https://",
            "ann@shop.io",
            "/home/ann",
            "C:\\Users\\ann\\",
        ),
        *(
            "ghp_16C7e42F292c6912E77",
            "10.0.0.1",
            "::1",
            "Authorization: ",
            "secret: ",
            "[secret]",
            "~",
        ),
    ]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join), st.sampled_from(["basic", "strict"]))
def test_every_text_can_be_masked_twice(text: str, level: Level) -> None:
    masked = mask(text, level)

    assert mask(masked, level) == masked


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "a",
            "1",
            " ",
            "(",
            "-",
            "'\"",
            "a@",
            "a.",
            "/a",
            "x_",
            "a-",
            "0-",
            "::",
            "password=",
            "token ",
        ),
        *("Bearer ", "x://a:", "curl -", "mysql -", "-----BEGIN PRIVATE KEY-----", "eyJaaaaaa."),
        *("C:\\Users\\a b ", "Authorization: ", "Cookie: a=", "sk-a", "+1 "),
    ],
)
@pytest.mark.parametrize("level", ["basic", "strict"])
def test_no_text_takes_long(unit: str, level: Level) -> None:
    text = unit * (60_000 // len(unit))
    begin = thread_time()

    mask(text, level)

    assert thread_time() - begin < 10


LONG = "\n".join(
    [
        *(
            f"{syntax.format(token)} at /home/ada/x"
            for syntax in SYNTAXES
            for token in TOKENS.values()
        )
    ]
    * 40
)


@pytest.mark.parametrize("level", ["basic", "strict"])
def test_a_long_text_is_masked_piece_by_piece_to_the_same_end(
    level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_pieces = mask(LONG, level)
    monkeypatch.setattr(redaction, "_PIECE_CHARS", len(LONG))

    assert len(LONG) > 6 * 32 * 1024
    assert in_pieces == mask(LONG, level)
    assert not any(token in in_pieces for token in TOKENS.values())


def test_a_private_key_is_masked_wherever_a_piece_ends() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBg\n" * 800 + "-----END PRIVATE KEY-----"

    for offset in (0, 10_000, 20_000, 32 * 1024 - 10, 32 * 1024 + 10):
        masked = mask("x " * (offset // 2) + key + " y" * 40_000)

        assert "MIIEvQ" not in masked
        assert masked.count("[key]") == 1


def test_what_is_not_masked_in_time_is_not_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MASKING_SECONDS", 0.0)

    assert mask(f"the password is {SECRET}") == "[masked]"
    assert mask_json({"a": [f"password={SECRET}"], "n": 1}) == {"[masked]": 1}
    assert mask("[masked]") == "[masked]"


def test_a_placeholder_for_what_was_not_seen_stays_as_it_is() -> None:
    assert mask("[masked]", "strict") == "[masked]"


# With a character for each way of writing that escapes some.
KNOWN = "pa$$ w\u00f6rd/\"<'&%+\\=?12"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(in_base64, id="base64"),
        pytest.param(lambda text: in_base64(text).rstrip("="), id="base64 without padding"),
        pytest.param(
            lambda text: base64.urlsafe_b64encode(text.encode()).decode(), id="base64 of URLs"
        ),
        pytest.param(lambda text: in_base64(f"user:{text}"), id="base64, after five bytes"),
        pytest.param(lambda text: in_base64(f"us:{text}:x"), id="base64, between other bytes"),
        pytest.param(lambda text: in_base64(f"u:{text};yy"), id="base64, after two bytes"),
        pytest.param(lambda text: text.encode().hex(), id="hexadecimal"),
        pytest.param(lambda text: text.encode().hex().upper(), id="hexadecimal in capitals"),
        pytest.param(lambda text: quote(text, safe=""), id="percent"),
        pytest.param(quote, id="percent in a path"),
        pytest.param(lambda text: quote(text, safe="!'()*~"), id="encodeURIComponent"),
        pytest.param(lambda text: quote(text, safe="").lower(), id="percent in small letters"),
        pytest.param(quote_plus, id="a form"),
        pytest.param(lambda text: json.dumps(text)[1:-1], id="JSON in ASCII"),
        pytest.param(lambda text: json.dumps(text, ensure_ascii=False)[1:-1], id="JSON"),
        pytest.param(lambda text: json.dumps(json.dumps(text))[3:-3], id="JSON within JSON"),
        pytest.param(html.escape, id="HTML"),
        pytest.param(repr, id="Python"),
    ],
)
def test_a_known_secret_is_masked_however_it_is_written(write: Callable[[str], str]) -> None:
    written = write(KNOWN)
    before, after = "says ", " to you"

    masked = mask_values({before + written + after: [{"a": written}]}, [KNOWN])

    ((name, ((content,),)),) = [(name, (each[0].values(),)) for name, each in masked.items()]
    assert name.startswith(before)
    assert name.endswith(after)
    assert "[secret]" in name
    assert "[secret]" in content
    # What was written beside the secret, and a letter at each end in which both have a part.
    assert len(name) - len(before + "[secret]" + after) <= 12


@pytest.mark.parametrize("end", ["", "…", "..."])
def test_a_known_secret_that_was_cut_off_is_masked(end: str) -> None:
    secret = "plantedSecretValue9876543210"

    masked = mask_values(f"bad key {secret[:15]}{end}", [secret])

    assert masked == "bad key [secret]"


def test_what_only_looks_like_a_known_secret_is_left() -> None:
    said = {"a": "c2VjcmV0 the plan is 7365", "b": [1, None, True]}

    assert mask_values(said, ["se", "the plan was"]) == said
