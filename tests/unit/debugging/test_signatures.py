"""Signatures: one for each cause, whatever surrounds the error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations
from time import thread_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stratagem.debugging.signatures import VERSION, find_error, fingerprint, headline, signature
from stratagem.redaction import mask
from stratagem.storage.sqlite import format as sqlite_format
from tests.unit.debugging.causes_managed import MANAGED
from tests.unit.debugging.causes_native import NATIVE
from tests.unit.debugging.causes_services import SERVICES

CAUSES = {**MANAGED, **NATIVE, **SERVICES}
TEXTS = [
    pytest.param(text, id=f"{cause} {number}")
    for cause, texts in CAUSES.items()
    for number, text in enumerate(texts)
]
# One of each language, with a stack and without.
SAMPLES = [
    MANAGED["python: handled and raised again"][0],
    MANAGED["python: exception group"][0],
    MANAGED["python: failed assertion in pytest"][0],
    MANAGED["node: missing file"][0],
    MANAGED["java: with causes"][0],
    NATIVE["go: index"][0],
    NATIVE["rust: with a backtrace"][0],
    NATIVE["rustc: mismatch"][0],
    NATIVE["asan: use after free"][0],
    NATIVE["gcc: undeclared"][0],
    SERVICES["shell: command"][1],
    SERVICES["mysql: access"][0],
]
PREFIXES = [
    "2026-11-11 01:12:41,123 ERROR [worker-1 pid={n}] ",
    "2026-11-11 01:12:41,123 - app.worker - ERROR - ",
    "2026-11-11T01:12:41.123456Z ",
    "[2026-11-11 01:12:41,123: ERROR/MainProcess] ",
    "[2026-11-11 01:12:41] [ERROR] ",
    "2026-11-11 01:12:41.123 ERROR {n} --- [nio-8080-exec-1] c.e.demo.Api : ",
    "2026-11-11 01:12:41,123 [main] ERROR com.shop.Api - ",
    "11/Nov/2026:01:12:41 +0000 ",
    "Nov 11 01:12:41 host-1 shop[{n}]: ",
    "2026-11-11T01:12:41.123456+00:00 app[web.1]: ",
    "E1111 01:12:41.123456   {n} main.go:77] ",
    "11-11 01:12:41.123  {n}  {n} E AndroidRuntime: ",
    "[01:12:41 ERR] ",
    "web-1  | ",
    "my_app_web_1       | ",
    "api  | 2026-11-11 01:12:41 ERROR ",
    "[pod/web-7f9c/app] ",
    "#12 3.456 ",
    "[stderr] ",
    "ERROR: ",
]
WRAPPINGS: dict[str, Callable[[str], str]] = {
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "colours": lambda text: f"\x1b[1;31m{text}\x1b[0m",
    "colours on each line": lambda text: re.sub(r"(?m)^(.*)$", "\x1b[31m\\1\x1b[0m", text),
    "colours without escape": lambda text: f"[31m{text}[0m",
    "quoted": lambda text: re.sub(r"(?m)^", "> ", text),
    "indented": lambda text: re.sub(r"(?m)^", "    ", text),
    "in a report": lambda text: f"Hi, I get this:\n\n```\n{text}```\n\nAny idea? Thanks!\n",
    "after a log": lambda text: chatter(40) + text,
    "before a log": lambda text: text + chatter(40),
    "in a record": lambda text: json.dumps({"level": "error", "msg": "failed", "stack": text}),
}


def chatter(lines: int) -> str:
    return "".join(
        f"2026-11-11 01:12:{line % 60:02},123 INFO request {line} served in {line % 90}ms\n"
        for line in range(lines)
    )


def prefixed(text: str, prefix: str) -> str:
    lines = text.rstrip("\n").split("\n")
    return "\n".join(
        prefix.replace("{n}", str(100 + number)) + line for number, line in enumerate(lines)
    )


def frame_lines(signed: str) -> list[str]:
    return [line for line in signed.split("\n") if line.startswith("  in ")]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_has_one_signature(cause: str) -> None:
    signed = {signature(text) for text in CAUSES[cause]}

    assert len(signed) == 1
    assert signed != {""}


def test_two_causes_have_two_signatures() -> None:
    signed = {cause: {signature(text) for text in texts} for cause, texts in CAUSES.items()}

    shared = [(one, other) for one, other in combinations(signed, 2) if signed[one] & signed[other]]

    assert shared == []


def test_there_are_enough_causes_to_trust() -> None:
    pairs = sum(len(texts) * (len(texts) - 1) // 2 for texts in CAUSES.values())

    assert len(CAUSES) >= 100
    assert pairs >= 60


@pytest.mark.parametrize("text", TEXTS)
def test_a_signature_is_its_own_signature(text: str) -> None:
    signed = signature(text)

    assert signature(signed) == signed


@pytest.mark.parametrize("text", TEXTS)
def test_masking_first_makes_no_difference(text: str) -> None:
    assert signature(mask(text)) == signature(text)


@pytest.mark.parametrize("text", TEXTS)
def test_the_error_that_is_found_has_the_signature_of_the_text(text: str) -> None:
    assert signature(find_error(text)) == signature(text)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_prefixes_of_a_log_make_no_difference(prefix: str) -> None:
    for text in SAMPLES:
        assert signature(prefixed(text, prefix)) == signature(text)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_is_around_an_error_makes_no_difference(wrapping: str) -> None:
    # A record names its own error where the text in it names none by a stack.
    samples = [text for text in SAMPLES if wrapping != "in a record" or "\n" in text.strip()]
    for text in samples:
        assert signature(WRAPPINGS[wrapping](text)) == signature(text)


def test_a_signature_reads_like_the_error() -> None:
    text = MANAGED["python: handled and raised again"][0]

    assert signature(text) == (
        "JobFailed: job <n> gave up\n"
        "  in run (jobs.py)\n"
        "  in <module> (jobs.py)\n"
        "Caused by: TimeoutError: no answer in <duration>\n"
        "  in step (jobs.py)\n"
        "  in run (jobs.py)"
    )


@pytest.mark.parametrize("text", ["", " \n\t \r\n", "\x1b[0m", "12345", "2026-01-02 03:04:05"])
def test_a_text_that_says_nothing_has_no_signature(text: str) -> None:
    assert signature(text) == ""
    assert fingerprint(text) == ""


def test_prose_is_taken_whole() -> None:
    text = "The page stays white\nafter 3 failed logins."

    assert signature(text) == "The page stays white after <n> failed logins"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            'time=2026-01-02T03:04:05Z level=error msg="cannot open \\"a7\\"" err="permission denied"',
            "cannot open 'a<n>': permission denied",
        ),
        (
            (
                '{"time": "2026-01-02", "level": "error", "msg": "request 7 failed", "err": {"message": '
                '"connection refused"}}'
            ),
            "request <n> failed: connection refused",
        ),
        ('{"level": 50, "message": "connection refused"}', "connection refused"),
        ('{"no message": 7}', "{'no message': <n>}"),
        ('{"broken": ', "{'broken':"),
        (
            (
                '"trace": "Traceback (most recent call last):\\n  File \\"/a/b.py\\", line 3, in f\\n'
                '    g()\\nValueError: bad 7"'
            ),
            "ValueError: bad <n>'\n  in f (b.py)",
        ),
    ],
)
def test_records_and_strings_are_unpacked(line: str, expected: str) -> None:
    assert signature(line) == expected


def test_a_program_that_aborts_says_why() -> None:
    text = (
        "shop: cart.c:12: total: Assertion `cart != NULL' failed.\n\n"
        "Program received signal SIGABRT, Aborted.\n"
        "#0  __pthread_kill_implementation (no_tid=0) at ./nptl/pthread_kill.c:44\n"
        "#1  0x0000555555555170 in total (cart=0x0) at cart.c:12\n"
    )

    assert signature(text) == (
        "shop: cart.c: total: Assertion 'cart != NULL' failed\n  in total (cart.c)"
    )


def test_a_cause_that_says_nothing_new_is_left_out() -> None:
    text = (
        "java.lang.Error: a\n\tat com.shop.A.run(A.java:1)\n"
        "Caused by: java.lang.Error: a\n\tat com.shop.B.run(B.java:1)\n"
    )

    assert signature(text) == "java.lang.Error: a\n  in com.shop.A.run"


def test_a_group_whose_parts_were_cut_off_keeps_its_message() -> None:
    whole = MANAGED["python: exception group"][0]

    cut = whole[: whole.index("    | Traceback")]

    assert signature(cut) == signature(whole)[: len(signature(cut))]
    assert signature(cut).startswith("ExceptionGroup: unhandled errors")


def test_system_frames_count_where_there_are_no_others() -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/usr/lib/python3.11/runpy.py", line 198, in _run_module_as_main\n'
        '  File "/usr/lib/python3.11/json/tool.py", line 19, in <module>\n'
        "ValueError: no JSON\n"
    )

    assert frame_lines(signature(text)) == [
        "  in <module> (tool.py)",
        "  in _run_module_as_main (runpy.py)",
    ]


def test_a_recursion_counts_once() -> None:
    once = '  File "/a/tree.py", line 5, in walk\n    walk(child)\n'
    text = (
        "Traceback (most recent call last):\n"
        '  File "/a/tree.py", line 9, in <module>\n    walk(root)\n'
        + once * 3
        + "  [Previous line repeated 970 more times]\n"
        + "RecursionError: maximum recursion depth exceeded\n"
    )

    assert frame_lines(signature(text)) == ["  in walk (tree.py)", "  in <module> (tree.py)"]


def test_the_newest_thirty_frames_count() -> None:
    frames = "".join(
        f'  File "/a/deep.py", line {line}, in step_{chr(97 + line % 26)}{line // 26 * "x"}\n'
        for line in range(200)
    )
    text = f"Traceback (most recent call last):\n{frames}ValueError: too deep\n"

    signed = signature(text)

    assert len(frame_lines(signed)) == 30
    assert len(signed) <= 2_000


def test_a_long_chain_keeps_its_messages_before_its_frames() -> None:
    frames = "".join(f"\tat com.shop.{'Long' * 20}{line}.run(A.java:1)\n" for line in "abcdefghij")
    text = "java.lang.AError: a\n" + frames
    text += "".join(f"Caused by: java.lang.{name}Error: {name}\n{frames}" for name in "BCDEF")

    signed = signature(text)

    assert len(signed) <= 2_000
    assert re.findall(r"lang\.(\w)Error", signed) == ["A", "B", "C", "D", "E", "F"]


def test_a_traceback_cut_in_front_keeps_its_message_and_newest_frames() -> None:
    text = MANAGED["python: inside a library"][1]
    whole = signature(text)

    for lines in range(1, 4):
        assert signature("\n".join(text.split("\n")[lines:])).split("\n")[0] == whole.split("\n")[0]


@pytest.mark.parametrize("cause", ["java: with causes", "go: index", "node: missing file"])
def test_a_stack_cut_at_its_end_keeps_its_message_and_newest_frames(cause: str) -> None:
    text = CAUSES[cause][0]
    whole = signature(text).split("\n")

    cut = signature("\n".join(text.split("\n")[:6])).split("\n")

    assert cut == whole[: len(cut)]
    assert len(cut) > 1


def test_a_stack_without_its_message_keeps_its_frames() -> None:
    text = "\tat com.shop.Cart.size(Cart.java:14)\n\tat com.shop.Main.main(Main.java:5)\n"

    assert signature(text) == "  in com.shop.Cart.size\n  in com.shop.Main.main"


def test_the_last_error_of_a_log_is_found() -> None:
    first = prefixed(SAMPLES[0], "2026-11-11 01:12:41,123 ERROR [w] ")
    last = prefixed(SAMPLES[3], "2026-11-11 01:12:49,123 ERROR [w] ")
    log = f"{chatter(2_000)}{first}\n{chatter(9_000)}{last}\n{chatter(9_000)}"

    found = find_error(log)

    assert "ENOENT" in found
    assert "INFO" not in found
    assert signature(log) == signature(SAMPLES[3])


def test_the_most_telling_line_counts_where_there_is_no_stack() -> None:
    log = (
        chatter(30)
        + "2026-11-11 01:12:42,123 WARNING cache is cold\n"
        + "2026-11-11 01:12:43,123 ERROR could not bind: [Errno 98] Address already in use\n"
        + "2026-11-11 01:12:43,124 ERROR shutting down\n"
        + chatter(3)
    )

    assert signature(log) == "could not bind: [Errno 98] Address already in use"


def test_an_error_of_any_size_is_cut_to_the_room_there_is() -> None:
    frames = "".join(f"\tat com.shop.Tree.walk{line}(Tree.java:7)\n" for line in range(5_000))
    text = f"java.lang.StackOverflowError: deep\n{frames}"

    found = find_error(text, chars_max=5_000)

    assert len(found) <= 5_000
    assert found.startswith("java.lang.StackOverflowError: deep")
    assert headline(found) == "java.lang.StackOverflowError: deep"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MANAGED["python: missing module"][1], "ModuleNotFoundError: No module named 'yaml2'"),
        (
            MANAGED["java: with causes"][0],
            ("java.lang.IllegalStateException: Failed to load ApplicationContext"),
        ),
        (NATIVE["rust: unwrap"][0], "panicked: called `Option::unwrap()` on a `None` value"),
        (SERVICES["shell: command"][2], "kubectl2: command not found"),
        ("Error: " + "word " * 90, "Error: " + "word " * 37 + "word…"),
        ("x" * 300, "x" * 199 + "…"),
        ("\tat com.shop.Cart.size(Cart.java:14)\n", "in com.shop.Cart.size"),
        ("", ""),
    ],
)
def test_a_headline_is_the_newest_error_as_it_was_written(text: str, expected: str) -> None:
    assert headline(text) == expected
    assert len(expected) <= 200


def test_a_fingerprint_is_short_and_says_its_version() -> None:
    one, other = MANAGED["python: key of a user"]

    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(MANAGED["python: key of an order"][0])
    assert re.fullmatch(rf"{VERSION}:[0-9a-f]{{32}}", fingerprint(one))


def test_a_change_of_the_rules_raises_the_version() -> None:
    """These are stored. Where one of them changes, so must `VERSION`, and then these.

    Read models have them too, and are made anew where their version is raised.
    """
    known = {text: fingerprint(text) for text in (SAMPLES[0], SAMPLES[4], SAMPLES[11])}

    assert VERSION == 9
    assert sqlite_format.READ_MODELS_VERSION >= 17
    assert list(known.values()) == [
        "9:8b11123bbbf729d3b48fe746221bedef",
        "9:dea97f536b1b62a5ba105fc21ff4e1cc",
        "9:d2da0b01df8530dbf122f1ad15c17a82",
    ]


ALPHABET = st.sampled_from(
    [
        *"aZ09 \n\t'\"<>[]()/\\.:=-_#@,;|~^$%&*+?!`é中",
        *(
            "Error: ",
            "Caused by: ",
            "  in f (a.py)\n",
            "    at f (/a/b.js:1:2)\n",
            "panic: ",
            "E   x",
        ),
        *(
            '  File "/a/b.py", line 3, in f\n',
            "Traceback (most recent call last):\n",
            "ERROR ",
            "0x1f",
        ),
        *(
            "2026-01-02 03:04:05 ",
            "http://a.com/x",
            "a@b.cd",
            "10.0.0.1:80",
            "/tmp/x1",
            "<n>",
            "[ip]",
        ),
        *(
            "No module named '",
            "exit code 1",
            "[Errno 2]",
            "thread 'a' panicked at b.rs:1:2:\n",
            "::1",
        ),
        *(
            "error[E0308]: ",
            "\x1b[31m",
            "... 3 more\n",
            "bash: ",
            "user_1",
            "1.2.3",
            "12ms",
            "\\n  at f",
        ),
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(ALPHABET, max_size=40).map("".join))
@example("ERROR: ERROR: x")
@example("bash: bash: ./x.sh: y")
@example("E   E   assert 1")
def test_every_text_has_a_signature_that_keeps(text: str) -> None:
    signed = signature(text)

    assert signature(signed) == signed
    assert len(signed) <= 2_000
    assert len(headline(text)) <= 200
    assert "\x1b" not in signed


MEGABYTE = 1_000_000
HOSTILE = [
    *("a", "(", "1", " ", "\n", "'\"", "a ", "1.", "/a", "a.", "a@", "a:", ":", "<", "$", "=", "-"),
    *("0a", "{", "[", "x_", "\x1b[", "\\n  at ", "f(", "()", "a\\", "12:", "ERROR ", "[ERROR] "),
    *("  at a.b(c:1)\n", '  File "a", line 1, in f\n', "E   x\n", "Caused by: x\n", "error: x\n"),
    *("#0 0x1 in f (a) at b:1\n", "main.f()\n\t/a/b.go:1\n", "  1: a::b\n     at c:1\n"),
    *("Traceback (most recent call last):\n", '{"message":', "a |\n", "https://", "user_1 "),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_no_text_takes_long(unit: str) -> None:
    text = unit * (MEGABYTE // len(unit))
    begin = thread_time()

    signature(text)
    headline("Error: " + text[:3_000])

    # A quarter of that on a machine that does nothing else; this one may be busy.
    assert thread_time() - begin < 10
