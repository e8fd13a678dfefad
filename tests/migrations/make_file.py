"""Make the database file that later versions must open: `python -m tests.migrations.make_file`.

It is made once for each format, by the version that introduced it, and never again.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from datetime import UTC
from pathlib import Path

from stratagem import Stratagem
from stratagem.bootstrap import Settings, start
from stratagem.operation import Caller
from stratagem.storage.relational.store import Adapters
from stratagem.storage.sqlite.format import VERSION
from tests.contracts.samples import Clock, salts

FOLDER = Path(__file__).parent


def make(path: Path) -> None:
    """Write a little of everything into a new database."""
    clock = Clock()
    settings = Settings(str(path), embedder="none", adapters=Adapters(clock, salts()), zone=UTC)
    with Stratagem(start(settings), Caller(actor="maker")) as db:
        memory = db.memory
        memory.store("city", {"name": "Oslo", "by": "a fjord"}, tags=["norway"])
        memory.store("city", {"name": "Bergen", "by": "a fjord"}, tags=["norway", "rain"])
        memory.store("brief", "gone soon", ttl="10s")
        memory.store("counter", 7, index=False, namespace="other")
        memory.store("secret", "xyzzyplugh")
        memory.log("ask", "where is the lighthouse?", session="s")
        memory.log("answer", "on the northern cape", session="s", tags=["t"])
        clock.advance(60)
        memory.fork("trial")
        memory.store("city", "Stavanger", path="$.name", branch="trial")
        memory.store("idea", ["a", 1.5, None], branch="trial", request_id="r1")
        memory.forget("counter", namespace="other")
        memory.log("note", "only on trial", branch="trial")
        memory.fork("old", as_of="@3")
        memory.create("fresh")
        memory.merge("trial")
        memory.delete("old")
        memory.purge("secret")
        memory.store("last", "the end")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.db"
        make(path)
        target = FOLDER / f"format_{VERSION}.db.gz"
        if target.exists():
            sys.exit(f"{target.name} is there already, and is never made again.")
        target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        print(f"{target.name}: {target.stat().st_size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
