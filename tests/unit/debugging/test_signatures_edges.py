"""Signatures where little is said: exit codes, letters drawn by lot, prose, logs of megabytes."""

from __future__ import annotations

import random
import string
from time import thread_time

import pytest

from stratagem.debugging import retrieval
from stratagem.debugging.signatures import fingerprint, signature

ERROR = (
    "Traceback (most recent call last):\n"
    '  File "/srv/shop/app.py", line 7, in pay\n'
    "    charge(order)\n"
    "ValueError: order 77 has no card\n"
)
MEGABYTES = 10_000_000


@pytest.mark.parametrize(
    "text",
    [
        "exit code 1",
        "Process exited with code 1",
        "Command failed with exit code 2",
        "error: command failed, exit status: 255",
        "Error",
        "make: *** Error 1",
        "npm ERR! errno 1",
        "Error: build failed",
        "something went wrong",
        "Segmentation fault (core dumped)",
        "Internal Server Error",
        "Killed",
    ],
)
def test_what_names_no_cause_matches_nothing(text: str) -> None:
    assert fingerprint(text) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("exit code 127", "exit code 137"),
        ("Command failed: webpack, exit code 1", "Command failed: jest, exit code 1"),
        (
            "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! shop@1.0.0 build: `webpack`",
            "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! shop@1.0.0 test: `jest`",
        ),
        (
            "Process exited with code 1\nlint: missing semicolon",
            "Process exited with code 1\nno such image: shop",
        ),
        ("OSError: [Errno 28] No space left on device", "OSError: [Errno 24] Too many open files"),
        ("错误：无法连接数据库", "错误：磁盘空间不足"),
    ],
)
def test_an_exit_code_alone_does_not_make_two_causes_one(one: str, other: str) -> None:
    assert signature(one)
    assert signature(other)
    assert signature(one) != signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RuntimeError: job qwhzkxvtbn is gone", "RuntimeError: job plmzxcvrtq is gone"),
        ("RuntimeError: run sess-QxZtRvBnMk ended", "RuntimeError: run sess-AbTyKuRwPl ended"),
        ("ImportError: libfoo 1.2.3.4 is too old", "ImportError: libfoo 1.3 is too old"),
        ("ImportError: version 1.2.3.4 of x", "ImportError: version 1.2.5 of x"),
        ("Error: needs numpy>=2.2.3.4 here", "Error: needs numpy>=2.0.1 here"),
        ("Error: cannot reach host=10.0.0.4 now", "Error: cannot reach host=10.9.8.7 now"),
        ("Bind for 0.0.0.0:80 failed: port is taken", "Bind for 0.0.0.0:81 failed: port is taken."),
        (
            "ERROR 1062 (23000): Duplicate entry 'ann' for key 'users.name'",
            "ERROR 1062 (23000) at line 12: Duplicate entry 'bob-7' for key 'users.name'",
        ),
        (
            "(2003, \"Can't connect to MySQL server on '10.0.0.1' (111)\")",
            "(2003, \"Can't connect to MySQL server on 'db1.prod' (111)\")",
        ),
        ("/home/ann/x.c:5:3: error: 'foo' undeclared", "x.c:15:3: error: ‘foo’ undeclared"),
        (
            "jq : The term 'jq' is not recognized as the name of a cmdlet.\nAt line:1 char:1\n+ jq .",
            "jq : The term 'jq' is not recognized as the name of a cmdlet.\nAt C:\\x\\a.ps1:12 char:5",
        ),
        (
            "... 40 lines omitted\n\tat shop.B.run(B.java:3)\nCaused by: java.io.IOException: disk full",
            "\tat shop.B.run(B.java:13)\nCaused by: java.io.IOException: disk full",
        ),
        ("Ошибка: нет связи с 10.1.2.3 за 30 секунд", "Ошибка: нет связи с 10.9.2.3 за 60 секунд"),
    ],
)
def test_values_of_unusual_shape_are_values(one: str, other: str) -> None:
    assert signature(one) == signature(other)
    assert signature(signature(one)) == signature(one)


@pytest.mark.parametrize(
    ("one", "elsewhere", "signed"),
    [
        (
            "ERROR in ./src/App.tsx 5:0-30\nModule not found: Error: Can't resolve 'got' in '/a/src'",
            "ERROR in ./b.js\nModule not found: Error: Can't resolve 'got' in '/w/pages'",
            "Module not found: Error: Can't resolve 'got' in <path>",
        ),
        (
            "ERROR in src/a.ts:3:5\nTS2322: Type 'string' is not assignable to type 'number'.",
            "ERROR in b.tsx:9:11\nTS2322: Type 'string' is not assignable to type 'number'.",
            "TS2322: Type 'string' is not assignable to type 'number'",
        ),
        (
            "/a/a.js\n  3:5  error  'foo' is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)",
            "/w/b.js\n  9:1  error  'foo' is not defined  no-undef\n\n✖ 2 problems (2 errors, 0 warnings)",
            "error: 'foo' is not defined (no-undef)",
        ),
        (
            "[ERROR] /a/Main.java:[3,5] cannot find symbol\n[ERROR]   symbol:   class Foo",
            "[ERROR] /w/Main.java:[9,25] cannot find symbol\n[ERROR]   symbol:   class Foo",
            "Main.java: error: cannot find symbol: class Foo",
        ),
        (
            "e: file:///a/Main.kt:3:5 Unresolved reference: foo",
            "e: /w/Main.kt: (9, 1): Unresolved reference: foo",
            "Main.kt: error: Unresolved reference: foo",
        ),
        (
            '│ Error: Bad argument\n│ \n│   on a.tf line 3:\n│    3: foo = 1\n│ \n│ No "foo" is expected.',
            '│ Error: Bad argument\n│ \n│   on b.tf line 7:\n│    7: foo = 2\n│ \n│ No "foo" is expected.',
            "Error: Bad argument No 'foo' is expected",
        ),
        (
            "error: redundant clone of text\n --> src/a.rs:3:5\n  |\n3 |     say(&a_name);",
            "error: redundant clone of text\n   --> src/b.rs:30:15",
            "error: redundant clone of text",
        ),
        (
            'nginx: [emerg] unknown directive "proxy_pas" in /etc/nginx/nginx.conf:12',
            'nginx: [emerg] unknown directive "proxy_pas" in /etc/nginx/conf.d/site.conf:3',
            "nginx: [emerg] unknown directive 'proxy_pas'",
        ),
        (
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'got' imported from /a/build.js",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'got' imported from /w/cli.mjs",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'got' imported from <path>",
        ),
    ],
)
def test_what_a_tool_says_of_the_place_is_no_part_of_its_error(
    one: str, elsewhere: str, signed: str
) -> None:
    assert signature(one) == signature(elsewhere) == signature(signed) == signed


def test_a_refused_push_is_known_by_the_reason_and_not_by_the_branch() -> None:
    behind = " ! [rejected]        main -> main (non-fast-forward)"
    fetch = "To gitlab.com:a/b.git\n ! [rejected]        dev -> dev (fetch first)"
    refused = " ! [remote rejected] main -> main (pre-receive hook declined)"
    summary = "error: failed to push some refs to 'https://example.com/acme/app.git'"

    one, other, third = (signature(f"{said}\n{summary}") for said in (behind, fetch, refused))

    assert one == other == signature(one) == "push rejected: non-fast-forward"
    assert third == "push rejected: pre-receive hook declined"
    assert signature(summary).startswith("error: failed to push some refs to")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Error: ENOSPC: no space left on device, write '/a/b'",
            "Error: ENOSPC: no space left on device, write '/var/lib/app/data.bin'",
        ),
        (
            "OSError: [Errno 28] No space left on device: '/tmp/x/part1'",
            "OSError: [Errno 28] No space left on device: 'orders.csv'",
        ),
        (
            "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
            "write ~/thing.tar: no space left on device",
        ),
        (
            "OSError: [Errno 24] Too many open files: '/a/x.log'",
            "OSError: [Errno 24] Too many open files: '/b/orders.csv'",
        ),
        (
            "cp: error writing '/mnt/big.iso': Disk quota exceeded",
            "cp: error writing '/home/ann/b.dat': Disk quota exceeded",
        ),
        (
            "ann@web1: Permission denied (publickey).",
            "git@example.com: Permission denied (publickey).",
        ),
        ("root@10.0.0.7: Permission denied (publickey)", "bob@db-2: Permission denied (publickey)"),
        ("exec /app/start.sh: exec format error", "exec /usr/local/bin/entry: exec format error"),
        (
            "fatal: detected dubious ownership in repository at '/workspace/shop'",
            "fatal: detected dubious ownership in repository at 'C:/Users/ann/blog'",
        ),
        (
            "OSError: [Errno 30] Read-only file system: '/app/cache'",
            "OSError: [Errno 30] Read-only file system: '/srv/data/orders.csv'",
        ),
        (
            "error: unable to create file src/a/very/long/path.txt: Filename too long",
            "error: unable to create file docs/another/one.md: Filename too long",
        ),
        (
            r"File C:\nodejs\npm.ps1 cannot be loaded because running scripts is disabled on this system.",
            r"File C:\yarn\yarn.ps1 cannot be loaded because running scripts is disabled on this system.",
        ),
    ],
)
def test_where_it_happened_to_come_out_is_a_value(one: str, other: str) -> None:
    assert signature(one) == signature(other) != ""
    assert signature(signature(one)) == signature(one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "Error: ENOSPC: no space left on device, write '/a/b'",
            "Error: ENOSPC: System limit for number of file watchers reached, watch '/a/b'",
        ),
        (
            "Error: ENOENT: no such file or directory, open '/a/orders.json'",
            "Error: ENOENT: no such file or directory, open '/a/secrets.txt'",
        ),
        ("ann@web1: Permission denied (publickey).", "ann@web1: Permission denied (password)."),
    ],
)
def test_what_went_wrong_there_is_none(one: str, other: str) -> None:
    assert signature(one) != signature(other)


def test_words_are_no_letters_drawn_by_lot() -> None:
    words = (
        "IllegalStateException strengths catchphrase nightschool maximize rozszerzenie subprocess"
    )

    assert signature(f"Oops: {words}") == f"Oops: {words}"


def test_most_letters_drawn_by_lot_are_known_for_what_they_are() -> None:
    draw = random.Random(7)
    drawn = ["".join(draw.choices(string.ascii_lowercase, k=12)) for _ in range(300)]

    known = [
        signature(f"Error: job {word} vanished") == "Error: job <id> vanished" for word in drawn
    ]

    assert sum(known) > 0.6 * len(drawn)


def test_long_prose_has_no_signature_of_its_beginning() -> None:
    opening = "the shop was slow this morning and nobody knew why. " * 40

    assert signature(f"{opening} It was the cache.") == ""
    assert signature("the shop was slow this morning") != ""


CALM = "2026-11-15 10:00:00 INFO worker is fine\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("at the end", CALM * (MEGABYTES // len(CALM) - 10) + ERROR),
        ("at the beginning", ERROR + CALM * (MEGABYTES // len(CALM) - 10)),
        ("below a progress bar", "50%\r" * (MEGABYTES // 4 - 100) + "\n" + ERROR),
        ("below a line without end", "x" * (MEGABYTES - 1_000) + "\n" + ERROR),
    ],
)
def test_the_error_is_found_in_megabytes_within_a_second(name: str, text: str) -> None:
    signature(ERROR)
    begin = thread_time()

    problem = retrieval.parse_problem(text)

    assert thread_time() - begin < 10, name
    assert problem.fingerprint == fingerprint(ERROR), name


@pytest.mark.parametrize(
    "piece",
    [CALM, "a\r", "\r\n", "x", " ", "[", "\x1b[", "\x00", ">", "错误", "\\n  File ", "\tat "],
)
def test_no_log_of_megabytes_takes_long(piece: str) -> None:
    text = piece * (MEGABYTES // len(piece))
    begin = thread_time()

    retrieval.parse_problem(text)

    assert thread_time() - begin < 10
