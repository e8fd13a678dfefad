"""What a message keeps, and what becomes of its values."""

from __future__ import annotations

import base64
import random
import re
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from stratagem.debugging.signatures import placeholders
from stratagem.debugging.signatures.placeholders import normalise

HEX = "0123456789abcdef"
BASE_36 = "abcdefghijklmnopqrstuvwxyz0123456789"
BASE_62 = BASE_36 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def letters(draw: random.Random, count: int, alphabet: str = BASE_36) -> str:
    return "".join(draw.choice(alphabet) for _ in range(count))


def moment(draw: random.Random) -> datetime:
    return datetime(2001, 1, 1, tzinfo=UTC) + timedelta(microseconds=draw.randrange(10**15))


KINDS: dict[str, Callable[[random.Random], str]] = {
    "integer": lambda draw: str(draw.randint(-(10**6), 10**9)),
    "float": lambda draw: repr(draw.uniform(-1_000, 1_000)),
    "integer or float": lambda draw: str(draw.choice([draw.randint(1, 99), draw.uniform(1, 99)])),
    "scientific": lambda draw: f"{draw.uniform(0, 1):.3e}",
    "thousands": lambda draw: f"{draw.randint(1_000, 10**9):,}",
    "percent": lambda draw: f"{draw.uniform(0, 100):.1f}%",
    "version": lambda draw: ".".join(str(draw.randint(0, 30)) for _ in range(draw.randint(2, 3))),
    "early version": lambda draw: (
        f"1.{draw.randint(0, 9)}.0" + draw.choice(["", "rc1", ".dev0", "+cu118"])
    ),
    "list": lambda draw: str([draw.randint(0, 999) for _ in range(draw.randint(1, 6))]),
    "shape": lambda draw: f"{draw.randint(1, 999)}x{draw.randint(1, 999)}",
    "uuid": lambda draw: str(uuid.UUID(int=draw.getrandbits(128))),
    "sha1": lambda draw: letters(draw, 40, HEX),
    "sha256": lambda draw: letters(draw, 64, HEX),
    "md5": lambda draw: letters(draw, 32, HEX),
    "address in memory": lambda draw: hex(draw.getrandbits(47)),
    "object": lambda draw: f"<shop.models.User object at {hex(draw.getrandbits(47))}>",
    "trace": lambda draw: f"00-{letters(draw, 32, HEX)}-{letters(draw, 16, HEX)}-01",
    "email": lambda draw: f"{letters(draw, 6)}@{letters(draw, 5)}.{draw.choice(['com', 'co.uk'])}",
    "url": lambda draw: f"https://{letters(draw, 5)}.io/{letters(draw, 4)}?q={draw.randint(1, 99)}",
    "url of a database": lambda draw: f"postgresql://{letters(draw, 4)}@{letters(draw, 4)}.com/db",
    "url of a bucket": lambda draw: f"s3://bucket/{letters(draw, 6)}/x.parquet",
    "host": lambda draw: (
        f"{letters(draw, 6)}.{letters(draw, 3)}.{draw.choice(['com', 'internal'])}"
    ),
    "ipv4": lambda draw: ".".join(str(draw.randint(0, 255)) for _ in range(4)),
    "ipv4 and port": lambda draw: f"10.0.0.{draw.randint(0, 255)}:{draw.randint(30_000, 65_535)}",
    "ipv6": lambda draw: ":".join(letters(draw, 4, HEX) for _ in range(8)),
    "path": lambda draw: f"/{draw.choice(['srv', 'opt', 'home/ann'])}/{letters(draw, 6)}/out.csv",
    "windows path": lambda draw: f"C:\\Users\\{letters(draw, 5)}\\data.xlsx",
    "relative path": lambda draw: f"{letters(draw, 4)}/{letters(draw, 6)}/model.pt",
    "quoted path": lambda draw: f"'/data/My Files {draw.randint(1, 9)}/a b.txt'",
    "temporary file": lambda draw: f"/tmp/tmp{letters(draw, 8)}.json",
    "temporary folder": lambda draw: f"/tmp/tmp{letters(draw, 8)}",
    "file in a temporary folder": lambda draw: f"/var/folders/ab/cd/T/tmp{letters(draw, 8)}/x.log",
    "time": lambda draw: moment(draw).isoformat(),
    "time in words": lambda draw: moment(draw).strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "time of a server": lambda draw: moment(draw).strftime("%d/%b/%Y:%H:%M:%S +0000"),
    "day": lambda draw: moment(draw).strftime(draw.choice(["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"])),
    "clock": lambda draw: moment(draw).strftime("%H:%M:%S"),
    "duration": lambda draw: draw.choice(["12ms", "1.5s", "3m20s", "2h", "900µs", "30 seconds"]),
    "size": lambda draw: draw.choice(["20.00 MiB", "7 GB", "512K", "1 byte", "12345 bytes"]),
    "user": lambda draw: f"'user_{draw.randint(1, 99_999)}'",
    "order": lambda draw: f"ORD-{draw.randint(1, 99_999)}",
    "name with a number": lambda draw: f"abc{draw.randint(1, 99_999)}",
    "assigned name": lambda draw: f"name='{letters(draw, draw.randint(3, 9))}'",
    "assigned truth": lambda draw: f"flag={draw.choice(['True', 'False'])}",
    "ordinal": lambda draw: draw.choice(["1st", "2nd", "3rd", "11th"]),
    "ulid": lambda draw: "01" + letters(draw, 24, "0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
    "key in base 64": lambda draw: base64.b64encode(draw.randbytes(33)).decode(),
    "pod": lambda draw: f"web-{letters(draw, 9, 'bcdfghjk2456789')}-{letters(draw, 5, 'xz245')}",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sentence", ["value {} rejected", "got {}: retry", "failed (id {})"])
def test_values_of_one_kind_become_one(kind: str, sentence: str) -> None:
    draw = random.Random(kind)

    found = [normalise(sentence.format(KINDS[kind](draw))) for _ in range(40)]

    # Drawn letters are, now and then, a word.
    common = max(found, key=found.count)
    assert found.count(common) >= (40 if kind not in {"key in base 64", "pod"} else 37)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        # Codes stay.
        ("[Errno 2] No such file: 'a7'", "[Errno 2] No such file: 'a<n>'"),
        ("[WinError 10061] refused after 3 tries", "[WinError 10061] refused after <n> tries"),
        ("Permission denied (os error 13)", "Permission denied (os error 13)"),
        ("HTTP 404 from host 7", "HTTP 404 from host <n>"),
        ("HTTP/1.1 503 Service Unavailable", "HTTP 503 Service Unavailable"),
        ("HTTP Error 500: Internal Server Error", "HTTP Error 500: Internal Server Error"),
        ("Request failed with status code 429", "Request failed with status code 429"),
        ("404 Client Error: Not Found", "404 Client Error: Not Found"),
        ("429 Too Many Requests after 429 calls", "429 Too Many Requests after <n> calls"),
        ("returned non-zero exit status 127.", "returned non-zero exit status 127."),
        ("exited with code 137 after 12s", "exited with code 137 after <duration>"),
        ("ORA-00942: table 12 missing", "ORA-00942: table <n> missing"),
        ("error TS2345: argument 2", "error TS2345: argument <n>"),
        ("error[E0308]: mismatched types", "error[E0308]: mismatched types"),
        ("SQLSTATE[23000]: violation", "SQLSTATE[23000]: violation"),
        ("ERROR 1045 (28000): denied", "ERROR 1045 (28000): denied"),
        (
            "(1062, \"Duplicate entry 'x9' for key 'k'\")",
            "(1062, 'Duplicate entry '<value>' for key 'k'')",
        ),
        ("failed with error code 0x80070005", "failed with error code 0x80070005"),
        ("killed by signal 9", "killed by signal 9"),
        ("curl: (28) timed out after 3000 ms", "curl: (28) timed out after <duration>"),
        # Names stay where they are names.
        ("No module named 'psycopg2'", "No module named 'psycopg2'"),
        ("Cannot find module '@scope/pkg2/x'", "Cannot find module '@scope/pkg2/x'"),
        ("Cannot find module '/app/dist/main2'", "Cannot find module 'main2'"),
        ("undefined reference to `md5_init2'", "undefined reference to 'md5_init2'"),
        (
            "No matching distribution found for torch2==1.9",
            "No matching distribution found for torch2@1",
        ),
        ("python3: command not found", "python3: command not found"),
        ("libcudart.so.11.0: cannot open", "libcudart.so.11.0: cannot open"),
        (
            "/lib/libc.so.6: version `GLIBC_2.34' not found",
            "libc.so.6: version 'GLIBC_2.34' not found",
        ),
        ("package github.com/a/b2 is broken", "package github.com/a/b2 is broken"),
        ("cannot cast int64 to float32 in conv2d", "cannot cast int64 to float32 in conv2d"),
        (
            "sqlite3.OperationalError in urllib3.util.Retry",
            "sqlite3.OperationalError in urllib3.util.Retry",
        ),
        ("'utf-8' codec on x86_64", "'utf-8' codec on x86_64"),
        # Values go; what is in quotes keeps its words.
        ("KeyError: 'user_123'", "KeyError: 'user_<n>'"),
        (
            "invalid literal for int() with base 10: 'x'",
            "invalid literal for int() with base <n>: '<value>'",
        ),
        ("connect to db.shop.io:5432 refused", "connect to <host>:5432 refused"),
        ("connect to [::1]:40123 refused", "connect to <host> refused"),
        ("connect to localhost port 5432", "connect to <host> port 5432"),
        ("connect to localhost port 50123", "connect to <host> port <n>"),
        ("Foo::bar and std::vector<int>", "Foo::bar and std::vector<int>"),
        ("dead::beef is code", "dead::beef is code"),
        ("GET /users/123 failed", "GET users/<n> failed"),
        ("see (https://a.io/x?token=[secret]).", "see (<url>)."),
        ("a.c:12:5: error: x", "a.c: error: x"),
        ("src/a.ts(12,5): error", "a.ts: error"),
        ("commit 3f2a1b9 is gone", "commit <hex> is gone"),
        ("in main.3f2a1b9c.js:1:99", "in main.js"),
        ("mail to [email] from [ip]", "mail to <email> from <host>"),
        ("b'\\xff\\x00' is no text", "b'<value>' is no text"),
        ("and/or, application/json, I/O", "and/or, application/json, I/O"),
        ("x == 'a' but y='a'", "x == 'a' but y=<value>"),
        ("‘x’ and “y” and `z`", "'x' and 'y' and 'z'"),
        ("many   spaces\n and lines", "many spaces and lines"),
        ("in file:///srv/app/cart.mjs:3:4", "in cart.mjs"),
        ("in Shopping-Cart-Service-V2-eu7", "in Shopping-Cart-Service-V<n>-eu<n>"),
        ("in ShoppingCartServiceFactory7", "in ShoppingCartServiceFactory<n>"),
        ("mail 3rd to https://a.io/(x).", "mail <n>th to <url>."),
    ],
)
def test_a_message_keeps_what_tells_its_cause(message: str, expected: str) -> None:
    assert normalise(message) == expected
    assert normalise(expected) == expected


def test_a_message_is_cut_at_a_word() -> None:
    result = normalise("word " * 1_000)

    assert len(result) <= 600
    assert result.endswith("word")


def test_one_search_of_a_message_gives_its_values_and_what_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    message = "No matching version found for lodash@^9.1.0 after 3 attempts of one search"
    searched = []

    class Scanner:
        @staticmethod
        def finditer(text: str) -> Iterator[re.Match[str]]:
            searched.append(text)
            return scanner.finditer(text)

        @staticmethod
        def sub(replacement: Callable[[re.Match[str]], str], text: str) -> str:
            return scanner.sub(replacement, text)

    scanner: re.Pattern[str] = vars(placeholders)["_SCANNER"]
    monkeypatch.setattr(placeholders, "_SCANNER", Scanner())

    assert "lodash@9" in placeholders.normalise(message)
    assert placeholders.packages(message) == {"lodash"}
    assert searched == [message]
