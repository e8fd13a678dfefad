"""What an error states beside its words, and when that makes two of one."""

from __future__ import annotations

import re

import pytest

from stratagem.debugging.signatures import are_other_particulars, stated_particulars

FRAME = 'Traceback (most recent call last):\n  File "/srv/test_cart.py", line 7, in test_total\n'


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("curl: (22) The requested URL returned error: 404", {"status 404"}),
        ("The upstream responded with a 502 for /pay", {"status 502"}),
        ("The import failed after 300 rows", set()),
        ("Address in use: 127.0.0.1:5432", {"port 5432"}),
        ("cannot listen at udp [::]:53 twice", {"port 53"}),
        ("OSError: cannot connect to ('::1', 5432, 0, 0), ('10.0.0.7', 81)", {"port 5432"}),
        ('This needs "node": wanted: ">=18.2" and "<21"', {"bound from 18", "bound below 21"}),
        ("Could not find a valid gem 'nokogirii' (>= 0) in any repository", set()),
        (
            "FAILED tests/unit/test_a.py::TestA::test_b[1-2] - assert None",
            {"test test_a.py::test_b"},
        ),
        ("FAILED test_a.py::test_b - ModuleNotFoundError: No module named 'yaml'", set()),
        ("AssertionError: expected 200, got 500", {"values 200 500"}),
        ("KeyError: 17", {"values 17"}),
        (f"{FRAME}    total()\nKeyError: 17", {"test test_cart.py::test_total"}),
        ("ValueError: cannot reshape array of size 12 into shape (5, 3)", set()),
        ("It rains.", set()),
        ("Container exited with code 137", {"exit 137"}),
        ("State: Terminated\n  Reason: Error\n  Exit Code: 1", {"exit failed"}),
        ("sqlite3.OperationalError: no such table: users", {"thing table"}),
        ('ERROR: relation "users" does not exist', {"thing table"}),
        ("error: failed to push some refs to 'origin' (rejected)", {"reason rejected"}),
        ("failed to push some refs: the remote rejected it", {"reason remote", "reason rejected"}),
        ("certificate verify failed: expired (_ssl.c:1006)", {"reason expired"}),
        ("fetch failed again: FATAL: no route", {"reason route"}),
        ("failed: rejected", set()),
        (
            "Could not load /a/node_modules/@x/got/a.js from /a/node_modules/foo/b.js",
            {"package @x/got"},
        ),
        ("Could not load /a/node_modules/.pnpm/got@1/node_modules/got/a.js", {"package got"}),
        (r"Could not load C:\a\node_modules\@x\got\a.js", {"package @x/got"}),
    ],
)
def test_a_text_states_what_tells_it_from_others_in_the_same_words(
    text: str, stated: set[str]
) -> None:
    found = {re.sub(r"^reason:\w+", "reason", each) for each in stated_particulars(text)}

    assert found - {"port other"} == stated


@pytest.mark.parametrize(
    ("one", "other", "in_one_place", "are_others"),
    [
        ({"status 403"}, {"status 500"}, False, True),
        ({"status 403"}, {"status 403", "status 500"}, False, False),
        ({"status 403"}, {"port 5432"}, False, False),
        ({"status 403", "port 5432"}, {"status 403", "port 6379"}, False, True),
        ({"test a.py::test_b"}, {"test a.py::test_c"}, False, True),
        ({"test a.py::test_b"}, {"test a.py::test_c"}, True, False),
        (set(), {"status 500"}, False, False),
    ],
)
def test_one_kind_with_nothing_in_common_makes_two_errors_others(
    one: set[str], other: set[str], in_one_place: bool, are_others: bool
) -> None:
    assert are_other_particulars(one, other, in_one_place=in_one_place) is are_others
    assert are_other_particulars(other, one, in_one_place=in_one_place) is are_others


@pytest.mark.parametrize(
    ("one", "other", "are_others"),
    [
        (
            "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com",
            "fatal: unable to access 'https://github.com/a/b/': The requested URL returned error: 403",
            True,
        ),
        (
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
            "UnicodeDecodeError: 'ascii' codec can't decode byte 0xe2 in position 3: ordinal not in range",
            True,
        ),
        (
            "cannot load the plugin 'a.so': dlopen: wrong architecture",
            "cannot load the plugin 'b.so': dlopen: wrong architecture",
            False,
        ),
        (
            "connection to server failed: FATAL: sorry, too many clients already",
            "connection to server failed: FATAL: password authentication failed",
            True,
        ),
        (
            "ssh: connect to host web port 22: Connection timed out",
            "ssh: connect to host web port 22: Connection refused",
            True,
        ),
        (
            "dial tcp 10.0.0.1:5432: connect: connection refused",
            "connect ECONNREFUSED 10.0.0.9:5432",
            False,
        ),
        (
            "Get 'https://a.example': dial tcp: lookup a.example: no such host",
            "Get 'https://b.example': dial tcp: lookup b.example on 10.0.0.1:53: no such host",
            False,
        ),
    ],
)
def test_a_reason_may_have_parts_and_what_it_is_about_is_none(
    one: str, other: str, are_others: bool
) -> None:
    stated = stated_particulars(one), stated_particulars(other)

    assert are_other_particulars(*stated) is are_others
