"""What somebody wants from now on is told from what is said once."""

import random
import re
import time
from pathlib import Path

import orjson
import pytest

from stratagem.memory import rules
from stratagem.memory.standing import find_standing, is_standing

DATA = Path(__file__).parents[3] / "evals" / "data"
LABELLED = DATA / "standing.jsonl"
LABELLED_RULES = DATA / "standing_rules.jsonl"
STANDING = [
    "Always include version numbers when I ask about libraries.",
    "Thanks! Please never use tabs.",
    "From now on answer in French",
    "Call me Jo.",
    "I'm in a hurry, so I prefer short answers.",
    "We generally prefer trains to planes",
    "The user prefers dark mode",
    "I'd rather not fly",
    "i hate it when tests sleep",
    "No, never push to main.",
    "Yes, always ask me first.",
    "Great, from now on call me Max.",
]
SAID_ONCE = [
    "Always here to help!",
    "Never tried it?",
    "I'd like to add a chart.",
    "It's one of my favorite cities.",
    "The ferry always leaves at nine.",
    "Did you ever prefer tea?",
    "No, I never said that.",
    "Yes, always works for me.",
    "Great, always a pleasure.",
    "",
]


@pytest.mark.parametrize("text", STANDING)
def test_an_instruction_or_preference_is_recognised(text: str) -> None:
    assert is_standing(text)
    assert is_standing(text, "user")


# One for each way of saying it that the pattern knows.
WAYS = [
    "Whenever I ask, answer briefly",
    "Going forward, be brief",
    "Don't ever use tabs",
    "do not ever delete files",
    "Address me as Dr Jones",
    "Remember that I live in Bergen",
    "Keep in mind that I am new here",
    "I want you to always cite",
    "You must never guess",
    "Make sure to always test",
    "I'd much rather walk",
    "I'd prefer tea",
    "we dislike being paged",
    "I can't stand it when builds break",
    "I cannot stand being late",
    "I don't like it when it rains",
    "I do not want you to guess",
    "The user doesn't like tabs",
    "the user wants answers",
    "my stated preference is tea",
]


@pytest.mark.parametrize("text", WAYS)
def test_every_way_of_saying_it_is_recognised_in_any_case(text: str) -> None:
    assert is_standing(text)
    assert is_standing(text.upper())
    assert is_standing(f"Grüße! {text.replace(chr(39), chr(0x2019))}")


# What is done may be any verb, and something else may be said first.
ORDERS = [
    "By the way, call me Mats.",
    "For this project, always use tabs.",
    "Always squash commits",
    "Always approve my pull requests",
    "I want you to answer briefly from now on.",
    "By the way, always use tabs.",
    "By the way, from now on use pnpm.",
    "Oh, and from now on use pnpm.",
    "Never approve a pull request without tests",
    "Always rebase onto main before merging",
    "Never force-push shared branches.",
    "Always lint the code you touch.",
    "Never mock the database in integration tests",
    "Hey, always pin dependencies, please.",
    "In this repository, never edit generated files.",
    "For all our services, always prefer UTC.",
    "One more thing: never deploy on Fridays.",
    "Actually, from now on reply in Swedish.",
    "Btw, never truncate stack traces.",
    "I'd like you to run the linter first from now on.",
    "I expect you to squash fixups going forward.",
    "Oh, call me Ines.",
    "Well, you can call me Sam, ok?",
    "Always assign reviewers when you open a pull request.",
    "Never hardcode credentials",
    "Always notify the team before a release.",
    "Never open draft pull requests.",
    "Call me Madison.",
    "By the way, whenever I ask for a summary, keep it short.",
    "As a rule, always document public functions.",
    "Note: always validate user input.",
    "Never guess versions; look them up.",
    "Please always wrap lines at 100 characters.",
    "Always retry flaky requests once.",
    "Never quit the app without saving.",
    "Never stop asking me for confirmation.",
    "Never stop the server during tests.",
    "Never give credentials to third parties.",
    "Never disable warnings globally.",
    "Always copy the error message verbatim.",
    "With customers, always escalate outages.",
]
# They only look like orders: greetings, what is told or felt, questions.
NO_ORDERS = [
    "Always answer in metres? Is that possible?",
    "Call me crazy, but this is a race condition",
    "I prefer not to say",
    "Always nice to see you",
    "Never mind",
    "Never mind the tests for today.",
    "Always has been slow",
    "He always uses tabs",
    "My manager never approves a pull request without tests",
    "Always good news from you!",
    "Never again will I trust that cache.",
    "Always wondered why that works.",
    "Never had a problem with it.",
    "Always love your summaries!",
    "Never gets old.",
    "Always a pleasure working with you.",
    "Never use tabs? Why not?",
    "Always squash commits, or is a merge fine?",
    "Call me old-fashioned, but I like paper.",
    "Call me a cynic.",
    "Call me anytime.",
    "I'd prefer not to answer that.",
    "We prefer not to comment on rumours.",
    "In the past, never a single outage.",
    "By the way, always happy to help.",
    "For years, always had flaky tests.",
    "Oh, never seen that before.",
    "Should I always squash commits?",
    "She said: always rebase onto main.",
    "In the future it will always rain here.",
    "Always crashes on startup.",
    "Never fails to amaze me.",
    "Always same error on CI.",
    "Always different results.",
    "Always hungry after a deploy.",
    "Never reliable builds here.",
    "Always fun to read your code.",
    "Never quit smoking",
    "never stop dreaming!",
    "Never quit drinking coffee.",
    "Never give up hope",
    "Always wear sunscreen",
    "Never smoke indoors.",
]


# What has no word that says that it lasts: one for each form of rule.
RULES = [
    "Don't ever force-push.",
    "Do not add comments to generated code.",
    "Don't use wildcard imports",
    "Please don't delete a branch without asking me.",
    "Run `make lint` before every commit.",
    "Before each commit, run make check.",
    "Prefer composition over inheritance.",
    "Avoid using the any type in TypeScript.",
    "Avoid global variables.",
    "Remember to use British spelling.",
    "IMPORTANT: ask before deleting files.",
    "Every PR needs a changelog entry.",
    "Keep answers short.",
    "Be concise.",
    "Answer in one paragraph.",
    "Short answers, please.",
    "use 4 spaces for indentation",
    "Use pnpm instead of npm.",
    "Wrap lines at 100 characters.",
    "In this repo we use tabs, not spaces.",
    "No emoji, ever.",
    "Only ever deploy on Mondays",
    "Only commit when I tell you to.",
    "We always squash.",
    "If in doubt, ask me.",
    "Remember to always run the formatter.",
    "Update the changelog whenever you change the public API.",
    "In this repo we use dataclasses, not dicts.",
    "No magic numbers in code.",
]
# Tasks of the moment, what programs say, and what is told, in words like those of rules.
NO_RULES = [
    "Don't change the tests in this PR.",
    "Don't ever change, you're perfect.",
    "Run make lint now.",
    "Add a hook that runs the linter before every commit.",
    "Remember to call Anna tomorrow",
    "Every test passed on the second run.",
    "All tests must be green before the demo tomorrow.",
    "TypeError: functions must have a name",
    "Use httpx instead of requests in client.py.",
    "Don't use classes, a function will do.",
    "All components have to be rewritten in React.",
    "Use sugar instead of honey.",
    "Don't commit to a date.",
    "Treat customers as friends.",
    "Follow the style of the existing tests.",
    "Remember: every minute counts!",
    "Prefer the second option.",
    "Avoid touching the parser for now.",
    "Keep tests running while you look at the logs.",
    "Answer in the thread, please, not by mail.",
    "Use four eggs and a cup of milk.",
    "In this repo we have three services.",
    "No errors in the logs since yesterday.",
    "We always laugh about that outage.",
    "I hate this bug, it cost me two days.",
    "If the tests pass, merge it.",
    "Should every PR have a changelog entry?",
    "never gonna give you up",
    "You should never meet your heroes.",
]
# What ends or changes what was wanted before.
CHANGES = [
    "English is fine from now on, you can stop answering in Danish.",
    "English would be fine again.",
    "You can stop answering in Danish.",
    "Stop talking in Danish.",
    "Please answer in English again.",
    "Use tabs again, please.",
    "Back to English, please.",
    "Switch back to English",
    "You don't have to answer in Danish any more.",
    "You no longer need to answer in Danish.",
    "Forget the rule about tabs.",
    "Deploy on Tuesdays only, please.",
    "We deploy on Thursdays only.",
    "Only release on Mondays and Wednesdays",
    "Don't deploy on Fridays.",
    "No deploys to production on weekends.",
    "Next time, run the tests before you say it's done.",
    "Next time you open a pull request, add a label.",
    "And don't use print for logging, structlog only.",
    "But avoid global variables.",
]
# What is said in such words and ends nothing.
NO_CHANGES = [
    "English is fine in the report.",
    "English is a Germanic language.",
    "Stop the Danish server.",
    "You can stop the server.",
    "Can you answer in English again?",
    "Show the examples again.",
    "Switch to English in the settings, then read the label.",
    "Forget the meeting.",
    "We deploy on Thursday only.",
    "The app deploys on Tuesdays only.",
    "We deployed on Tuesdays only.",
    "Next time we meet, call me.",
    "Next time the worker dies, I quit.",
    "And don't use it.",
]
# What somebody read, and what a program printed.
QUOTED = [
    "The docs say: never run this in production.",
    "The docs say:\n\nNever run this in production.",
    "The readme says: always run make first.",
    "According to the manual: always close the file.",
    "The linter complains: don't use print for logging.",
    "Its error message shows: always call close.",
]


@pytest.mark.parametrize("text", CHANGES)
def test_what_changes_an_instruction_is_one(text: str) -> None:
    assert is_standing(text)
    assert is_standing(f"Thanks! {text}")


@pytest.mark.parametrize("text", [*NO_CHANGES, *QUOTED])
def test_what_is_said_in_words_of_a_change_or_quoted_is_none(text: str) -> None:
    assert not is_standing(text)


# Tasks, specifications, facts, and what is pasted, close to the forms of rules.
TASKS = [
    "Please check if the worker restarts before every build",
    "Show me which checks run before each merge",
    "Tell me what happens after each deploy",
    "Lint fails after every commit since the upgrade",
    "Run fails every time you change the config, any idea why",
    "Restart the server each time I reproduce the bug",
    "Log a warning whenever we drop a message",
    "save the event every time we commit",
    "all queries should hit the index",
    "New users should see the banner",
    "All imports need updating after the move",
    "Dates should be in the first column",
    "Tests should use the new fixture",
    "Tests must touch the new table",
    "I want all tests to pass",
    "I want all changes in one commit",
    "We expect all queries to be slower with the new index",
    "I dislike the second one, use the first",
    "I can't stand the new color, keep the old one",
    "I hate flaky tests, skip the three in test_api",
    "We don't use Redis in staging, so that can't be the cause",
    "We don't commit until Thursday",
    "We log requests, not responses",
    "In this repo, run make build and tell me what fails",
    "In this repo, write tests for parser.py",
    "In this repo, don't touch the parser until I'm back",
    "For this project, put together slides for Monday",
    "When debugging the crash, add a breakpoint in main",
    "When reviewing PR 12, check the locking",
    "When writing the migration, add an index on email",
    "For every PR, list the reviewers",
    "For each commit, list the files",
    "For each migration, write the SQL",
    "For each change, explain why",
    "fix: Don't push to main",
    "docs: Use conventional commits",
    "Title: Avoid global variables",
    "Changelog entry: Avoid crashes on empty files",
    "Summarize this article: Avoid global variables.",
    "Translate to German: Do not commit secrets.",
    "Fix the typo in: Do not edit generated files.",
    "Bob's review comment: Use early returns in parse_config.",
    "eslint: Prefer named exports over default exports",
    "pylint W0702: Avoid bare excepts",
    "Rule: max-len (error)",
    "1. Run the linter before each commit",
    "Avoid crashes on empty files",
    "Avoid race conditions in worker shutdown",
    "Avoid restarting production",
    "Write tests in Rust",
    "Write tests with mocks",
    "Sort imports",
    "Pin dependencies",
    "Leave tests alone",
    "Use Postgres for tests",
    "Use make instead of cmake",
    "Remember: all tickets go to Bob",
    "Show tables",
    "Show your code",
    "Give examples",
    "Explain your code",
    "Make headings bold",
    "Format tables",
    "Never log the password in auth.py",
    "Always show the header in the new table",
    "Whenever I say hello the bot crashes",
    "In the future we may use Rust",
    "Going forward is blocked by the migration",
    "When I press enter, add the item to the list",
    "Remember that I pushed to main",
    "Stop using the old endpoint in client.py",
    "Add retries to the upload client",
    "Fix the flaky test in test_sync.py",
    "Why does the build hang before each release?",
    "Run the benchmarks and compare them with main",
    "Check whether every endpoint needs a token",
    "Review the open pull requests and tell me which ones are stale",
    "Update the preview after every change",
    "Update the progress bar after each task",
    "Keep the old column until the backfill is done",
    "Keep responses under 200 ms",
    "Keep commits from the branch, drop the rest",
    "What does this do? Answer in one sentence.",
    "Summarise the incident report. Be brief.",
    "Write a haiku about Go. Short answers, please.",
    "Prefer option B over option A",
    "Prefer the smaller image for now",
    "Avoid using the cache in the first run",
    "Avoid the deadlock by taking the lock first",
    "Don't use the cache, it is broken",
    "Don't push yet",
    "Don't merge it without my approval",
    "Don't mock the clock in this test",
    "Do not edit generated_pb2.py, regenerate it",
    "Do not commit the fixtures with the fix",
    "Don't swallow the exception in close()",
    "No tests in this PR, please",
    "No comments needed",
    "No luck with the new driver",
    "Only deploy when Anna is back",
    "Only run the tests in tests/unit",
    "All migrations must be run before the demo",
    "All PRs need rebasing",
    "New PR needs a review",
    "Every user must have a unique email",
    "Every page should load in under a second",
    "Every row needs an id",
    "Every request needs a trace id in the header",
    "Each card has to show a price",
    "Any file larger than 5 MB must be rejected",
    "Tests must not use the old fixture",
    "Tests must not fail on Windows",
    "Secrets are in the vault",
    "Commit messages look odd since the import",
    "We always deploy to staging first but it still broke",
    "We never merge it because the tests fail",
    "We use Kafka, not Rabbit, so look there",
    "In this repo we use a queue to pass messages",
    "In this repo the linter runs before every commit",
    "If you're not sure, check the logs of the worker",
    "When you are done, push the branch",
    "When I click save, show a toast",
    "When you finish, list the files you changed",
    "Use the new endpoint instead of the old one",
    "Use two workers for the import",
    "Use UTC in report.py",
    "Use npm instead of yarn in the Dockerfile for now",
    "Write docstrings for the parser",
    "Write comments in the config explaining each flag",
    "Wrap lines at 100 characters in README.md",
    "Follow the steps in the runbook",
    "Ask Bob before lunch",
    "Confirm before deleting a row",
    "Tell me before you start",
    "Remember that I was on call last night",
    "Remember to close the ticket",
    "Make sure the tests pass before each step",
    "Important: the release is on Friday",
    "TODO: always validate user input",
    "Commit abc123: Never swallow exceptions",
    "2. Avoid global variables.",
    "Give sources for the second claim",
    "From now on is when the outage counts",
    "In the future I might learn Rust",
    "Going forward with the migration is fine",
    "Stop using tabs in this file",
    "Check the balance before each transfer",
    "Run the query for each tenant",
    "Be careful with the lock",
    "Treat 404 as an empty list",
]
# The same with the words of the user beside them, who does not report what somebody else said.
REMINDED = [
    "As I told you, always use metric units.",
    "As I said before, always use tabs.",
    "I prefer tabs, as I said.",
    "Important: never log personal data.",
    "House rule: never merge on Fridays.",
]


@pytest.mark.parametrize("text", TASKS)
def test_a_task_in_words_like_those_of_a_rule_is_none(text: str) -> None:
    assert not is_standing(text)
    assert not is_standing(f"{text}.")


@pytest.mark.parametrize("text", REMINDED)
def test_what_the_user_said_before_is_the_users_own(text: str) -> None:
    assert is_standing(text)


@pytest.mark.parametrize(
    "text", ["As Bob told us, always use metric units.", "I prefer tabs, Bob said."]
)
def test_what_somebody_else_said_is_not(text: str) -> None:
    assert not is_standing(text)


@pytest.mark.parametrize("rule", ["Be concise.", "Answer in one paragraph.", "If in doubt, ask."])
def test_how_to_answer_is_a_rule_unless_it_stands_beside_a_question_or_a_task(rule: str) -> None:
    assert is_standing(rule)
    assert is_standing(f"Thanks! {rule}")
    assert not is_standing(f"What is TCP? {rule}")
    assert not is_standing(f"Explain how the scheduler picks a worker. {rule}")


@pytest.mark.parametrize("text", RULES)
def test_a_rule_is_recognised_by_its_form(text: str) -> None:
    assert is_standing(text)
    assert is_standing(text.upper())
    assert is_standing(f"Thanks! {text}")
    assert not is_standing(text, "assistant")


def test_a_rule_in_a_long_text_is_part_of_a_document() -> None:
    assert not is_standing("Keep answers short. " + "word " * 200)


@pytest.mark.parametrize("text", ORDERS)
def test_an_order_is_recognised_by_its_form(text: str) -> None:
    assert is_standing(text)
    assert is_standing(f"Thanks. {text}")


@pytest.mark.parametrize("text", [*SAID_ONCE, *NO_ORDERS, *NO_RULES])
def test_what_is_said_once_is_none(text: str) -> None:
    assert not is_standing(text)


def test_an_assistant_gives_no_instructions() -> None:
    assert not is_standing("Always use tabs.", "assistant")


def test_a_document_speaks_to_everybody() -> None:
    assert not is_standing("Always use tabs. " + "word " * 1_000)


def test_the_sentence_that_says_it_is_found() -> None:
    text = "The build broke. I prefer small commits! Can you look?"

    assert find_standing(text) == "I prefer small commits!"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "Keep answers short. The build broke. Never touch the migrations. Use tabs, not spaces.",
            "Keep answers short. Never touch the migrations. Use tabs, not spaces.",
        ),
        ("Never use tabs\nThe build broke\nCall me Rob", "Never use tabs; Call me Rob"),
        ("I prefer tabs, and I prefer tea.", "I prefer tabs, and I prefer tea."),
        ("The docs say: never reboot. Always use tabs.", "Always use tabs."),
    ],
)
def test_all_sentences_that_say_it_are_found(text: str, found: str) -> None:
    assert find_standing(text) == found


def test_the_labelled_sentences_are_told_apart() -> None:
    """Half of them chose the patterns; before, precision was .71 and recall .25 on the other."""
    rows = [orjson.loads(line) for line in LABELLED.read_bytes().splitlines()]
    report = [row for row in rows if row["half"] == "report"]
    taken = [row for row in report if is_standing(row["text"])]
    right = [row for row in taken if row["standing"]]

    assert len(right) / len(taken) >= 0.95
    assert len(right) / sum(row["standing"] for row in report) >= 0.85


def test_the_labelled_rules_are_told_apart() -> None:
    """Before rules were recognised, precision was 1.0 and recall .04 on this half."""
    rows = [orjson.loads(line) for line in LABELLED_RULES.read_bytes().splitlines()]
    report = [row for row in rows if row["half"] == "report"]
    taken = [row for row in report if is_standing(row["text"])]
    right = [row for row in taken if row["standing"]]

    assert len(right) / len(taken) >= 0.98
    assert len(right) / sum(row["standing"] for row in report) >= 0.55


def test_the_first_words_of_rules_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [orjson.loads(line)["text"] for line in LABELLED_RULES.read_bytes().splitlines()]
    texts = [*RULES, *CHANGES, *TASKS, *rows]
    words = {re.match("[a-z]*", text.lower())[0] for text in texts}  # type: ignore[index]
    found = [bool(rules.match_rule(text, 0, 300)) for text in texts]

    monkeypatch.setattr(rules, "FIRST_WORDS", words)

    assert found == [bool(rules.match_rule(text, 0, 300)) for text in texts]


def test_what_spares_the_patterns_hides_nothing_from_them() -> None:
    draw = random.Random(7)
    labelled = [orjson.loads(line)["text"] for line in LABELLED.read_bytes().splitlines()]
    words = [
        *" ".join([*STANDING, *WAYS, *ORDERS, *CHANGES]).split(),
        "henceforth",
        "double-check",
        ". ",
        "\n",
        "\n ",
        "?",
    ]
    mixed = [" ".join(draw.choices(words, k=draw.randint(2, 12))) for _ in range(3_000)]

    # Beyond ASCII the patterns are always tried.
    missed = [
        text
        for text in [*STANDING, *WAYS, *ORDERS, *CHANGES, *NO_ORDERS, *labelled, *mixed]
        if is_standing(text) != is_standing(text + "\n\u00e9")
    ]

    assert missed == []


@pytest.mark.parametrize(
    "part",
    [
        "use:d;",
        "use b:",
        "no;a:",
        "when i a",
        "always ",
        "I prefer ",
        "prefer a.b to ",
        "run each ",
        "don't;use a,",
    ],
)
def test_half_instructions_in_any_number_are_read_in_no_time(part: str) -> None:
    text = (part * 2_000)[:2_000]
    is_standing(text)
    before = time.thread_time()

    find_standing(text)

    assert time.thread_time() - before < 0.1
