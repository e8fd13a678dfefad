"""store, recall, search, forget, log, history and status."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import limits
from tests import forkserver
from tests.surfaces.cli.console import Cli


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("Oslo", "Oslo"),
        ("42", 42),
        ("true", True),
        ("null", None),
        ('{"a": [1]}', {"a": [1]}),
        ('"42"', "42"),
        ("NaN", "NaN"),
        ("007", "007"),
        ("{broken", "{broken"),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_a_value_is_json_where_it_is_json_and_else_text(cli: Cli, given: str, value: Any) -> None:
    cli("store", "key", given)

    assert cli.json("recall", "key")["value"] == value


def test_text_is_taken_as_it_is(cli: Cli) -> None:
    cli("store", "key", "42", "--text")

    assert cli.json("recall", "key")["value"] == "42"


@pytest.mark.parametrize(
    ("flags", "value"), [((), "line one\nline two"), (("--text",), "line one\nline two\n")]
)
def test_a_dash_reads_the_value_from_stdin(cli: Cli, flags: tuple[str, ...], value: str) -> None:
    cli("store", "key", "-", *flags, given="line one\nline two\n")

    assert cli.json("recall", "key")["value"] == value


@pytest.mark.parametrize(
    "given",
    [
        '[{"key": "a", "value": 1}, {"key": "b", "value": 2}]',
        '{"key": "a", "value": 1}\n\n{"key": "b", "value": 2}\n',
        '{"key": "a", "value": "one\u2028two"}\r\n{"key": "b", "value": 2}\r\n',
    ],
)
def test_items_come_from_a_file_or_from_stdin(cli: Cli, given: str) -> None:
    Path("items.json").write_text(given, encoding="utf-8")

    assert "Stored 2 entries" in cli("store", "--items", "items.json")
    assert "Stored 2 entries" in cli("store", "--items", "-", given=given)
    assert cli.json("recall", "b")["value"] == 2


def test_items_with_one_key_are_counted_as_versions_of_one_entry(cli: Cli) -> None:
    items = '{"key": "a", "value": 1}\n{"key": "a", "value": 2}\n'

    assert "Stored 1 entry in 2 versions" in cli("store", "--items", "-", given=items)


@pytest.mark.parametrize(
    ("args", "given", "words"),
    [
        (("store", "--items", "-"), "{broken", "Line 1 is no JSON"),
        (("store", "--items", "-"), '{"key": "a", "value": 1}\n\n{', "Line 3 is no JSON"),
        (("store", "--items", "-"), "[1,", "are no JSON array"),
        (("store", "--items", "no-such-file"), None, "cannot be read"),
        (("store", "key", "-"), b"\xff\xfe", "not text in UTF-8"),
        (("store", "key", "-"), "[" * 100_000, "nested too deeply"),
        (("store", "key", "123456789012345678901234567890"), None, "64 bits"),
        (("store", "key"), None, "value"),
        (("store", "--text"), None, "key"),
    ],
)
def test_what_cannot_be_stored_is_refused(
    cli: Cli, args: tuple[str, ...], given: str | bytes | None, words: str
) -> None:
    assert words in cli.refused(*args, code=2, given=given)
    assert cli.json("status")["keys"] == 0


def test_store_hands_on_all_of_its_options(cli: Cli) -> None:
    first = cli.json("store", "key", '{"a": 1}', "-t", "x", "-t", "y", "--ttl", "7d", "--no-index")

    cli("store", "key", "2", "--path", "$.a", "--expected-version", str(first["version"]))

    entry = cli.json("recall", "key")
    assert entry["value"] == {"a": 2}
    assert entry["tags"] == ["x", "y"]
    assert "expires" in entry
    found = cli("search", "key", "--no-auto-embed")
    assert found == "Nothing was found.\n"


@pytest.mark.parametrize(
    ("options", "listed"),
    [
        ((), ["city"]),
        (("--namespace", "hobby"), ["deploy"]),
        (("--branch", "t"), ["trial", "city"]),
        (("--namespace", "hobby", "--branch", "t", "--as-of", "@3"), ["deploy"]),
    ],
)
def test_what_is_advised_where_nothing_was_found_lists_what_was_searched(
    cli: Cli, options: tuple[str, ...], listed: list[str]
) -> None:
    cli("store", "city", "Gothenburg")
    cli("store", "deploy", "Heroku", "--namespace", "hobby")
    cli("branch", "fork", "t")
    cli("store", "trial", "1", "--branch", "t")
    cli("store", "later", "Vercel", "--namespace", "hobby", "--branch", "t")

    said = cli.run("search", "zanzibar", "--no-auto-embed", *options).stderr
    advised = re.findall("`stratagem ([^`]+)`", said)

    assert len(advised) == 1
    answer = cli.json(*shlex.split(advised[0]))
    assert [entry["key"] for entry in answer["results"]] == listed


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [("search", "--max-results", "-k"), ("recall", "--at", "--as-of")],
)
def test_an_option_by_another_name_is_answered_with_its_own(
    cli: Cli, command: str, option: str, meant: str
) -> None:
    said = cli.refused(command, "x", option, "3", code=2)

    assert f"No such option: {option}. Did you mean {meant}?" in said


def test_a_search_takes_the_flag_of_lists_for_the_number_of_results(cli: Cli) -> None:
    for number in range(3):
        cli("store", f"zebra/{number}", "a zebra")

    assert len(cli.json("search", "zebra", "--limit", "2")["results"]) == 2


def test_an_option_without_its_value_is_not_taken_for_another_one(cli: Cli) -> None:
    said = cli.refused("recall", "--limit", code=2)

    assert "requires an argument" in said
    assert "Did you mean" not in said


def test_a_store_that_expected_another_version_is_refused(cli: Cli) -> None:
    cli("store", "key", "1")

    said = cli.refused("store", "key", "2", "--expected-version", "0", code=4)

    assert "version" in said


def test_a_request_id_makes_a_repeat_harmless(cli: Cli) -> None:
    first = cli.json("log", "note", "once", "--request-id", "r1")

    again = cli.json("log", "note", "once", "--request-id", "r1")

    assert again == first
    assert cli.json("status")["events"] == 1


def test_recall_shows_what_is_known_about_an_entry(cli: Cli) -> None:
    cli("store", "city", "Oslo", "-t", "north")

    shown = cli("recall", "city")

    title, value = shown.splitlines()
    assert title.startswith("city  version 2 · ")
    assert title.endswith("tags: north")
    assert value == "Oslo"


def test_recall_raw_gives_the_value_alone(cli: Cli) -> None:
    cli("store", "text", "one\ttwo \x1b[31m", "--text")
    cli("store", "json", '{"a": 1}')

    assert cli("recall", "text", "--raw") == "one\ttwo \x1b[31m\n"
    assert json.loads(cli("recall", "json", "--raw")) == {"a": 1}


def test_broken_json_is_stored_as_text_with_a_word_about_it(cli: Cli) -> None:
    broken, text = cli.run("store", "a", '{"x": 1,}'), cli.run("store", "b", "[x](y)")
    cut = cli.run("store", "a", '{"x":')

    assert "looks like JSON but is not" in broken.stderr
    assert "looks like JSON but is not" in cut.stderr
    assert text.stderr == ""
    assert cli.run("store", "c", "{x}", "--text").stderr == ""


def test_times_are_told_in_the_readers_zone(cli: Cli) -> None:
    stored = cli("store", "a", "1", "--ttl", "1h")
    listed = cli("list").splitlines()

    assert re.search(r"expires \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.$", stored)
    assert listed[0].split()[-1] == "EXPIRES"


def test_a_miss_is_no_error(cli: Cli) -> None:
    cli("store", "user/name", "Ada")

    assert cli("recall", "usr/name") == "Nothing is stored under 'usr/name'. Near: user/name.\n"
    assert cli("recall", "nothing", "--raw") == ""
    assert cli.json("recall", "nothing")["found"] is False


def test_several_keys_are_recalled_as_a_table(cli: Cli) -> None:
    cli("store", "a", "1")
    cli("store", "b", "2")

    shown = cli("recall", "a", "b", "c")

    assert [line.split()[0] for line in shown.splitlines()[:3]] == ["KEY", "a", "b"]
    assert "Nothing is stored under 'c'." in shown


def test_a_value_longer_than_any_answer_is_recalled_whole(cli: Cli) -> None:
    value = "x" * (limits.ANSWER_CHARS_MAX + 10)
    cli("store", "long", "-", given=value)

    assert cli("recall", "long", "--raw") == value + "\n"
    assert cli.json("recall", "long")["value"] == value


def test_recall_shows_the_past(cli: Cli) -> None:
    first = cli.json("store", "city", "Oslo")
    cli("store", "city", "Bergen")

    assert "Oslo" in cli("recall", "city", "--as-of", f"@{first['version']}")


def test_search_shows_score_name_and_why(cli: Cli) -> None:
    cli("store", "prefs/theme", "The user prefers dark mode")
    cli("log", "observation", "The deploy timed out", "-t", "ops")

    shown = cli("search", "dark", "mode")

    assert "1.00  prefs/theme  entry · " in shown
    assert "prefers **dark** **mode**" in shown
    assert "observation @3  event" in cli("search", "deploy", "--tag", "ops")


def test_a_terminal_gets_colours_instead_of_marks(cli: Cli) -> None:
    cli("store", "theme", "dark mode")

    shown = cli("search", "dark", FORCE_COLOR="1", TERM="xterm")

    assert "\x1b[" in shown
    assert "**" not in shown
    assert "dark" in shown


def test_search_says_that_there_is_more_and_goes_on_from_there(cli: Cli) -> None:
    for number in range(3):
        cli("store", f"note-{number}", "the same words", "--no-auto-embed")

    first = cli.run("search", "words", "-k", "2", "--no-auto-embed")
    rest = cli("search", "words", "-k", "2", "--cursor", "2", "--no-auto-embed")

    assert "There is more: add --cursor 2." in first.stderr
    assert rest.count("entry · ") == 1


def test_keys_are_never_cut_where_there_is_no_terminal(cli: Cli) -> None:
    key = "k" * limits.KEY_CHARS_MAX
    cli("store", key, "value " * 100)
    cli("store", "short", "1")

    for shown in (cli("recall", key, "short"), cli("search", "value"), cli("recall", key)):
        assert key in shown
        assert "\x1b" not in shown


TURNING = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]


def test_what_was_stored_cannot_turn_the_direction_of_reading(cli: Cli) -> None:
    turning = "".join(map(chr, TURNING))
    cli("store", f"key{turning}", f"value {turning}", "--text", "--tag", f"tag{turning}")
    for shown in (
        cli("recall", f"key{turning}"),
        cli("search", "value"),
        cli("history", f"key{turning}"),
    ):
        assert not set(turning) & set(shown)
        assert r"\u202e" in shown


def test_what_was_stored_cannot_send_control_codes(cli: Cli) -> None:
    cli("store", "evil", "before \x1b[2J\x07 after", "--text")

    for shown in (
        cli("recall", "evil"),
        cli("search", "before"),
        cli("history", "evil"),
        cli("recall", "evil", "evil"),
    ):
        assert "\x1b" not in shown
        assert r"\x1b[2J" in shown


def test_forget_removes_one_key_or_several(cli: Cli) -> None:
    for key in ("a", "b", "c"):
        cli("store", key, "1")

    assert cli("forget", "a") == "Forgot 'a'.\n"
    assert cli("forget", "b", "c") == "Forgot 'b', 'c'.\n"
    assert cli("forget", "x") == "Nothing was stored under 'x'.\n"


def test_history_shows_what_each_version_changed(cli: Cli) -> None:
    cli("store", "k", '{"a": 1, "b": 1}', "-t", "x")
    cli("store", "k", "2", "--path", "$.a")
    cli("store", "k", '{"a": 2, "b": 1}', "-t", "x")
    cli("forget", "k")

    lines = cli("history", "k").splitlines()

    assert [line.split()[0] for line in lines if line.startswith("@")] == ["@5", "@4", "@3", "@2"]
    assert lines[0].endswith("forgotten")
    assert lines[2] == "    the same again"
    assert lines[4] == "    $.a  1 → 2"
    assert lines[6:] == ['    value  {"a": 1, "b": 1}', "    tags   x"]


def test_history_pages(cli: Cli) -> None:
    for number in range(3):
        cli("store", "counter", str(number))

    first = cli.run("history", "counter", "--limit", "2")

    assert "add --cursor 3" in first.stderr
    assert len(cli("history", "counter", "--cursor", "3").splitlines()) == 2


def test_history_without_a_key_is_the_time_range(cli: Cli) -> None:
    assert "shows nothing yet" in cli("history")

    cli("store", "city", "Oslo")

    assert cli("history").startswith("The branch default can be seen from ")


def test_a_key_that_was_never_stored_has_no_history(cli: Cli) -> None:
    assert cli("history", "nothing") == "Nothing was ever stored under 'nothing'.\n"


def test_log_takes_text_and_json(cli: Cli) -> None:
    cli("log", "message", '{"who": "ada"}', "--session", "chat")
    cli("log", "message", "plain words", "--session", "chat")

    found = cli.json("search", "ada")["results"][0]

    assert (found["value"], found["session"]) == ({"who": "ada"}, "chat")
    assert re.search(r"^events +2$", cli("status"), re.MULTILINE)


def test_status_names_the_database(cli: Cli) -> None:
    assert str(cli.database) in cli("status")


def test_what_is_stored_is_listed_as_a_table(cli: Cli) -> None:
    cli("store", "user/name", "Ada", "--tag", "home")
    cli("store", "user/city", "Oslo")
    cli("store", "plan", "x", "--namespace", "work")

    newest, by_key = cli("list").splitlines(), cli("list", "user/", "--order", "key").splitlines()

    assert newest[0].split() == ["KEY", "WHEN", "VALUE", "TAGS"]
    assert [line.split()[0] for line in newest[1:]] == ["user/city", "user/name"]
    assert [line.split()[0] for line in by_key[1:]] == ["user/city", "user/name"]
    assert newest[2].split()[-2:] == ["Ada", "home"]
    assert cli("list", "zebra").startswith("There are no such entries.")
    assert cli("namespaces").splitlines()[1].split()[:4] == ["*", "default", "2", "0"]
    assert cli("tags").splitlines()[1].split() == ["home", "1"]


def test_a_list_says_how_to_go_on(cli: Cli) -> None:
    for key in "abc":
        cli("store", key, "1")

    first = cli.json("list", "--limit", "2")
    rest = cli.json("list", "--limit", "2", "--cursor", first["next"])

    assert [entry["key"] for entry in (*first["results"], *rest["results"])] == ["c", "b", "a"]


def test_a_recall_without_a_key_lists_what_there_is(cli: Cli) -> None:
    for key in ("user/city", "user/name", "plan"):
        cli("store", key, "x", "--tag", key[:4])

    some = cli("recall", "--prefix", "user/", "--order", "key").splitlines()
    tagged = cli("recall", "--tags", "plan").splitlines()
    paged = cli.run("recall", "--limit", "2")

    assert [line.split()[0] for line in some] == ["KEY", "user/city", "user/name"]
    assert [line.split()[0] for line in tagged] == ["KEY", "plan"]
    assert "There is more: add --cursor" in paged.stderr
    assert "name its key" in cli.refused("recall", "--raw", code=2)
    assert "leave the key out" in cli.refused("recall", "plan", "--prefix", "user/", code=2)


def test_a_search_with_a_note_still_says_how_to_go_on(cli: Cli) -> None:
    filler = "This sentence has nothing to do with it. " * 40
    for key in "abc":
        cli("store", key, f"{filler} The launch is in May. {filler}")

    said = cli.run("search", "launch", "-k", "2", "--branch", "default")
    first = said.stdout.splitlines()[0]

    assert "part of 3," in first
    assert "passage_at " in first
    assert "`stratagem recall KEY --namespace NAMESPACE" in said.stderr
    assert "There is more: add --cursor 2." in said.stderr


def test_what_was_left_out_for_its_length_is_said_once(cli: Cli) -> None:
    for key in range(30):
        cli("store", f"k{key}", f"launch {key} " * 60)

    said = cli.run("search", "launch", "-k", "30", "--max-chars", "2000")

    assert said.stderr.count("--cursor") == 1


def test_a_search_shows_the_session_of_a_message_and_its_reply(cli: Cli) -> None:
    for role, text in (("user", "Where do the puffins nest?"), ("assistant", "On northern cliffs")):
        cli("log", "message", json.dumps({"role": role, "text": text}), "--session", "trip")

    asked = cli("search", "puffins", "-k", "1")
    answered = cli("search", "cliffs", "-k", "1")

    assert "session trip" in asked.splitlines()[0]
    assert "reply @3: On northern cliffs" in asked
    assert "reply to @2: Where do the puffins nest?" in answered


def test_events_are_shown_in_order(cli: Cli) -> None:
    cli("log", "step", '{"n": 1}', "--session", "s")
    cli("log", "note", "two")

    lines = cli("events").splitlines()

    assert lines[0].split() == ["SEQUENCE", "WHEN", "EVENT", "DATA", "SESSION"]
    assert [line.split()[3] for line in lines[1:]] == ["step", "note"]
    assert "step" not in cli("events", "note")
    assert cli("events", "nothing") == "There are no such events. Labels in use: note, step.\n"


def test_events_are_followed_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    command = [sys.executable, "-m", "stratagem", "--db", str(path), "events", "--follow", "--json"]
    with stratagem.open(path, embedder="none") as db:
        db.memory.log("step", 1)
        with forkserver.Process(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            seen = [json.loads(process.stdout.readline())["data"]]
            for number in (2, 3):
                db.memory.log("step", number)
                seen.append(json.loads(process.stdout.readline())["data"])
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0

    assert seen == [1, 2, 3]


@pytest.mark.parametrize(("answer", "kept"), [("n\n", 1), ("y\n", 0)])
def test_a_namespace_is_deleted_from_a_terminal_only_when_that_is_meant(
    cli: Cli, answer: str, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("store", "plan", "x", "--namespace", "work")

    with monkeypatch.context() as terminal:
        terminal.setattr("typer.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
        asked = cli.run("delete-namespace", "work", given=answer)

    assert "Forget every entry of the namespace 'work'?" in asked.output
    assert len(cli.json("list", "--namespace", "work")["results"]) == kept


def test_a_namespace_is_deleted_and_restored(cli: Cli) -> None:
    cli("store", "plan", "x", "--namespace", "work")

    said = cli("delete-namespace", "work", "--yes")
    restored = cli("restore-namespace", "work", "--as-of", "@2")

    restoring = "`stratagem restore-namespace work --as-of @2` brings them back."
    assert said == f"Forgot 1 entry of 'work'. {restoring}\n"
    assert restored == "Restored 1 entry of 'work'.\n"
