"""Threads that first import the systems at the same time find them whole."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, threading
sys.setswitchinterval(1e-6)
failed = []
barrier = threading.Barrier(2)

def run(first):
    barrier.wait()
    try:
        first()
    except BaseException as error:
        failed.append(repr(error))

def open_database():
    import stratagem.bootstrap

def read_table():
    from stratagem.operations import TABLE
    list(TABLE)

threads = [threading.Thread(target=run, args=(each,)) for each in (open_database, read_table)]
for each in threads: each.start()
for each in threads: each.join()
print(failed)
"""


def test_opening_a_database_and_listing_tools_at_once_import_whole_modules() -> None:
    for _attempt in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
        )

        assert ended.stdout.strip() == "[]", ended.stdout
