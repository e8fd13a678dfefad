"""Flip single bits of a database file, by kind of page, and see what becomes of it.

Run `python -m tests.faults.bitflips` for the table: how many flips of bits in use `doctor` found, told
rightly (damage to what is made from the log is repairable, damage to the log is not), how many
`--repair` mended, and how many entries a rescue saved. Nothing that is read is ever wrong.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw

import stratagem
from stratagem.bootstrap import (
    Runtime,
    Settings,
    examine_unopened,
    open_store,
    rescue,
    start,
)
from stratagem.errors import StratagemError
from stratagem.operation import Caller
from stratagem.projections.settings import ExternalSettings
from stratagem.storage.contract import Finding

ENTRIES = 310
LOG_TABLES = frozenset({"events", "subjects", "spaces", "sqlite_schema"})
WORDS = ("river", "stone", "valley", "boat", "water", "tree", "cold", "wind", "north", "rain")

Values = dict[str, Any]


@dataclass
class Row:
    """What became of the flips in one table or index."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    saved_least: int = ENTRIES
    wrong: list[str] = field(default_factory=list)


def make_database(folder: Path, entries: int = ENTRIES) -> Path:
    """Return a closed database with something in every table."""
    path = folder / "memory.db"
    draw = random.Random(12)
    with stratagem.open(str(path), durability="fast") as db:
        for number in range(entries):
            text = " ".join(draw.choices(WORDS, k=12))
            db.memory.store(f"key {number}", text, tags=["some"], request_id=f"r{number}")
        db.memory.log("note", data="it rains", session="s")
        db.memory.log("note", data="it rains again", session="s")
        db.memory.branch("fork", name="trial")
        db.memory.store("key 1", "another value", branch="trial")
        db.memory.branch("merge", source="trial")
        db.memory.store("key 2", "x" * 9_000)
        db.memory.search("river valley")
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "delete")
    return path


def used_bytes(path: Path) -> dict[str, list[int]]:
    """Return where in the file each table and index has bytes that mean something."""
    data = path.read_bytes()
    places: dict[str, list[int]] = {}
    with closing(apsw.Connection(str(path))) as connection:
        size = int(connection.pragma("page_size"))
        rows: list[Any] = connection.execute(
            "SELECT name, pageno, pagetype, unused FROM dbstat"
        ).fetchall()
    for name, page, kind, unused in rows:
        begin = (page - 1) * size
        end = begin + size - (unused if kind == "overflow" else 0)
        used = set(range(begin, end))
        if kind != "overflow":
            header = begin + (100 if page == 1 else 0)
            length = 12 if kind == "internal" else 8
            cells = int.from_bytes(data[header + 3 : header + 5], "big")
            content = int.from_bytes(data[header + 5 : header + 7], "big") or 65_536
            used -= set(range(header + length + 2 * cells, begin + content))
            used -= set(_free_blocks(data, begin, header))
            # Fragments are counted in the header, and mean nothing.
            used -= {header + 7}
        places.setdefault(name, []).extend(used)
    return places


def _free_blocks(data: bytes, begin: int, header: int) -> Iterator[int]:
    at = int.from_bytes(data[header + 1 : header + 3], "big")
    while at:
        length = int.from_bytes(data[begin + at + 2 : begin + at + 4], "big")
        yield from range(begin + at, begin + at + length)
        at = int.from_bytes(data[begin + at : begin + at + 2], "big")


def open_quietly(path: Path, *, read_only: bool = False) -> Runtime:
    return start(_settings(path, read_only=read_only))


def _settings(path: Path, *, read_only: bool) -> Settings:
    quiet = ExternalSettings()
    return Settings(str(path), read_only=read_only, deliver=False, external=quiet)


def examine(path: Path) -> list[Finding]:
    """Return what doctor finds, in a file that can be opened or not."""
    try:
        with open_store(_settings(path, read_only=True)) as store:
            return store.examine(_quiet, None)
    except StratagemError:
        return examine_unopened(str(path), _quiet)


def repair(path: Path) -> None:
    """Mend a database as `doctor --repair` does."""
    with open_store(_settings(path, read_only=False)) as store:
        store.repair(_quiet)
    with closing(open_quietly(path)) as runtime:
        runtime.foundation.index.embed_waiting(_quiet)


def read_values(path: Path, entries: int = ENTRIES) -> Values:
    """Return every entry that can be recalled; an error counts as a miss."""
    found: Values = {}
    with closing(open_quietly(path, read_only=True)) as runtime:
        for number in range(entries):
            key = f"key {number}"
            try:
                answer = runtime.call("strata_recall", {"key": key}, Caller())
            except StratagemError:
                continue
            if answer.get("found"):
                found[key] = answer["value"]
    return found


def contents(path: Path) -> list[Any]:
    """Return every row of every table, as SQL gives them, and where every word is found."""
    with closing(apsw.Connection(str(path))) as connection:
        names: list[Any] = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage"
        ).fetchall()
        # The names are those of the file itself; how FTS5 keeps its words is its own affair.
        rows = [
            connection.execute(f"SELECT * FROM {name}").fetchall()  # noqa: S608
            for (name,) in names
            if not name.startswith("texts_")
        ]
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab (main, texts, row)")
        words: list[Any] = connection.execute("SELECT term FROM words").fetchall()
        match = "SELECT rowid, bm25(texts) FROM texts WHERE texts MATCH ?"
        found = [connection.execute(match, (f'"{word}"',)).fetchall() for (word,) in words]
        return [*rows, words, found]


def try_flip(path: Path, row: Row, right: Values, whole: list[Any], what: str) -> None:
    """Count what becomes of one damaged file."""
    row.counts["flips"] += 1
    findings = examine(path)
    if not findings:
        if contents(path) == whole:
            # The number of a row is stored twice, and SQLite looks at one of them.
            row.counts["flips"] -= 1
            row.counts["no effect"] += 1
        else:
            row.wrong.append(f"{what}: not found")
        return
    row.counts["found"] += 1
    repairable = all(each.repairable for each in findings)
    derived = row.name not in LOG_TABLES
    row.counts["told"] += repairable or not derived
    if derived and not repairable:
        row.wrong.append(f"{what}: {[(f.what, f.where) for f in findings if not f.repairable][:2]}")
    if repairable:
        _try_repair(path, row, right, what)
    else:
        _try_rescue(path, row, right, what)


def _try_repair(path: Path, row: Row, right: Values, what: str) -> None:
    row.counts["repairable"] += 1
    try:
        repair(path)
        left = examine(path)
        same = read_values(path, len(right)) == right
    except (StratagemError, apsw.Error, AssertionError) as error:
        row.wrong.append(f"{what}: repair failed: {error!r}")
        return
    if left or not same:
        row.wrong.append(f"{what}: after the repair {left[:1]}, values the same: {same}")
        return
    row.counts["mended"] += 1


def _try_rescue(path: Path, row: Row, right: Values, what: str) -> None:
    row.counts["damaged"] += 1
    made = path.with_name("rescued.db")
    try:
        rescued = rescue(str(path), str(made), _quiet)
        saved = read_values(made, len(right))
    except (StratagemError, apsw.Error, AssertionError) as error:
        row.wrong.append(f"{what}: rescue failed: {error!r}")
        row.saved_least = 0
        return
    finally:
        for each in path.parent.glob("rescued.db*"):
            each.unlink()
    stale = {loss.key for loss in rescued.losses}
    strange = [key for key in saved if saved[key] != right[key] and key not in stale]
    if strange:
        row.wrong.append(f"{what}: wrong values of {strange[:3]}")
    row.counts["rescued"] += not strange
    row.saved_least = min(row.saved_least, len(saved))


def campaign(folder: Path, each: int, seed: int) -> list[Row]:
    """Flip bits of every table and index; return what became of them."""
    pristine = make_database(folder)
    right = read_values(pristine)
    assert len(right) == ENTRIES
    written = contents(pristine)
    whole, draw = pristine.read_bytes(), random.Random(seed)
    harmed = folder / "harmed" / "memory.db"
    rows = []
    for name, places in sorted(used_bytes(pristine).items()):
        row = Row(name)
        for place in draw.sample(places, min(each, len(places))):
            bit = draw.randrange(8)
            shutil.rmtree(harmed.parent, ignore_errors=True)
            harmed.parent.mkdir()
            data = bytearray(whole)
            data[place] ^= 1 << bit
            harmed.write_bytes(data)
            try_flip(harmed, row, right, written, f"{name} byte {place} bit {bit}")
        rows.append(row)
    return rows


def _quiet(_done: int, _total: int, _what: str) -> None:
    pass


def main() -> int:
    """Print the table; say by the exit code whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=10, help="flips in each table and index")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bitflips-") as folder:
        rows = campaign(Path(folder), given.each, given.seed)
    write = sys.stdout.write
    columns = ("no effect", "flips", "found", "told", "repairable", "mended", "damaged", "rescued")
    write(f"{'page of':<30}" + "".join(f"{each:>11}" for each in columns) + "  least saved\n")
    total: Counter[str] = Counter()
    for row in rows:
        total += row.counts
        saved = f"{row.saved_least:>8} of {ENTRIES}" if row.counts["damaged"] else ""
        write(f"{row.name:<30}" + "".join(f"{row.counts[c]:>11}" for c in columns) + saved + "\n")
    write(f"{'all':<30}" + "".join(f"{total[c]:>11}" for c in columns) + "\n")
    wrong = [line for row in rows for line in row.wrong]
    write("".join(f"  {line}\n" for line in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
