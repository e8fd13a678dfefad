"""How soon the pages of the console begin to arrive, and how large they are.

`python -m benchmarks.console` adds 100,000 entries to the example database, serves it, and prints
for each page the median time to its first byte and its size: 100 ms and 500 KB are the bounds.
`--entries` and `--times` say how many, and how often each page is asked for.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import httpx2

import stratagem
from benchmarks import texts
from stratagem.bootstrap import Settings
from stratagem.demo import make_demo
from tests.surfaces.serving import serving

__all__ = ["main"]

FIRST_BYTE_MS_MAX: Final = 100.0
BYTES_MAX: Final = 500 * 1024
_AT_ONCE: Final = 1_000
# Every page, in a namespace with all the entries where it shows some.
PAGES: Final = (
    "/",
    "/memory?ns=many",
    "/memory?ns=many&order=key",
    "/memory?ns=many&tag=even",
    "/memory?ns=many&author=sdk",
    "/memory?ns=many&at=1+day+ago",
    "/memory/entry?ns=harbor&key=api/rate-limit",
    "/search?q=customs+service",
    "/sessions",
    "/sessions/transcript?ns=harbor&id=kickoff",
    "/branches",
    "/branches/compare?theirs=pricing-by-container",
    "/branches/compare?theirs=pricing-by-container&side=ours&offset=50000",
    "/branches/merge?source=pricing-by-container&target=default",
    "/debugging",
    "/knowledge",
    "/knowledge/concept?id=ETA",
    "/knowledge/learn?target=ETA",
    "/knowledge/review",
    "/tools",
    "/tools/tool?name=calculator",
    "/tools/calls",
    "/tools/corrections",
    "/review",
    "/system",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=11)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "console.db"
        make_demo(str(path), Settings(str(path)).adapters.clock())
        _fill(path, given.entries)
        with serving(path) as served:
            missed = _measure(served.url, given.times)
    print(f"\n{'all within the bounds' if not missed else 'missed: ' + ', '.join(missed)}")
    sys.exit(bool(missed))


def _fill(path: Path, count: int) -> None:
    with stratagem.open(str(path), durability="fast") as db:
        batch = []
        for place, (key, text) in enumerate(texts.entries(count)):
            batch.append({"key": key, "value": text, "tags": ["even" if place % 2 else "odd"]})
            if len(batch) == _AT_ONCE or place == count - 1:
                db.memory.store(items=batch, namespace="many")
                batch = []
                print(f"\r{place + 1:,} entries", end="", flush=True)
    print()


def _measure(url: str, times: int) -> list[str]:
    missed = []
    print(f"{'page':62} {'first byte':>11} {'size':>10}")
    with httpx2.Client(base_url=url, headers={"accept": "text/html"}, trust_env=False) as client:
        for path in PAGES:
            taken, size = [], 0
            # The first time a page is asked for, its template and its operations are read.
            for _ in range(times + 1):
                begun = time.perf_counter()
                with client.stream("GET", path, timeout=60) as response:
                    taken.append(1000 * (time.perf_counter() - begun))
                    assert response.status_code == 200, (path, response.status_code)
                    size = len(response.read())
            median = statistics.median(taken[1:])
            fits = median <= FIRST_BYTE_MS_MAX and size <= BYTES_MAX
            missed += [] if fits else [path]
            print(f"{path:62} {median:8.1f} ms {size / 1024:7.1f} KB{'' if fits else '  MISSED'}")
    return missed


if __name__ == "__main__":
    main()
