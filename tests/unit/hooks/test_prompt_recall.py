"""A prompt is answered by the passage of a memory that was found, wherever that stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stratagem
from stratagem import limits
from stratagem.hooks.prompt_recall import find_memories
from stratagem.storage.sqlite.direct_reader import DirectReader

ANSWER = "The violet canoe of Amara is kept in the chapel."
PROMPT = "Where is the violet canoe of Amara kept, in the chapel?"
# White space that is shown as one space moves all borders of passages.
FILLER = "The ferry leaves the harbour\n\n\n   at nine in the morning. "
BOOK = FILLER * (3 * limits.INDEXED_CHARS_MAX // len(FILLER))
# In microseconds; nothing here expires.
NOW = 1_800_000_000_000_000


@pytest.mark.parametrize(
    "value",
    [
        f"{FILLER * 20}{ANSWER} {FILLER * 20}",
        f"{BOOK}{ANSWER} {FILLER * 200}",
        {"chapters": [BOOK, f"{FILLER * 200}{ANSWER} {FILLER * 200}"]},
    ],
    ids=["short", "long", "object"],
)
def test_the_passage_of_an_entry_that_answers_is_shown(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(path) as db:
        db.memory.store("book", value)
        for number in range(30):
            db.memory.store(f"note{number}", f"Lunch note {number}")
    reader = DirectReader(str(path), "default", NOW)

    [found] = find_memories(reader, PROMPT, known=(), session="another", floor=0.5)

    reader.close()
    assert ANSWER in found.text
    assert "  " not in found.text


def test_a_long_text_that_matches_everywhere_leaves_room_for_others(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(path) as db:
        db.memory.store("book", f"{PROMPT}\n\n" * 1_500)
        db.memory.store("lunch", ANSWER)
    reader = DirectReader(str(path), "default", NOW)

    found = find_memories(reader, PROMPT, known=(), session="another", floor=0.5)

    reader.close()
    assert {each.content.key for each in found} == {"book", "lunch"}


def test_of_texts_that_match_alike_the_newest_are_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(path) as db:
        for number in range(30):
            db.memory.log("note", f"The violet canoe {number}")
        newest = db.memory.log("note", "The violet canoe 30").sequence
    reader = DirectReader(str(path), "default", NOW)

    found = reader.matches('"violet" OR "canoe"', without_facet="untrusted", limit=1)

    reader.close()
    assert [sequence for sequence, *_ in found] == [newest]


def test_the_passage_of_a_message_that_answers_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(path) as db:
        data = {"role": "assistant", "content": f"{BOOK}{ANSWER} {FILLER * 200}", "tokens": 7}
        db.memory.log("message", data, session="earlier")
        for number in range(30):
            db.memory.store(f"note{number}", f"Lunch note {number}")
    reader = DirectReader(str(path), "default", NOW)

    [found] = find_memories(reader, PROMPT, known=(), session="another", floor=0.5)

    reader.close()
    assert ANSWER in found.text


@pytest.mark.parametrize("prompt", ["run the linter", "run the formatter", "run the migration"])
def test_a_word_that_no_memory_has_still_says_what_a_prompt_means(
    tmp_path: Path, prompt: str
) -> None:
    path = tmp_path / "memory.db"
    with stratagem.open(path) as db:
        db.memory.store("nightly", "The nightly job runs on the CI runner")
        db.memory.store("db/version", "Postgres 16 runs in production")
        # A search embeds what waits for it.
        db.memory.search("harbour")
    reader = DirectReader(str(path), "default", NOW)

    found = find_memories(reader, prompt, known=(), session="another", floor=0.8)

    reader.close()
    assert found == []
