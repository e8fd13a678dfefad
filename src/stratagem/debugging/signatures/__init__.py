"""Signatures: a normalised form that errors of the same cause share.

A signature is the error without anything that differs between machines and runs: type, code and
message without values, then the frames of the program itself, newest first, then the causes
in the same form. It is extracted from a traceback, a message or a log.

    ValueError: lookup failed at <time>
      in outer (main.py)
      in <module> (main.py)
    Caused by: KeyError: 'id'
      in inner (main.py)

`extraction` combines the other modules: `lines` removes what a log put around the text; `stacks`,
`tracebacks` and `error_lines` find the error in it; `frames` and `heads` parse its parts;
`placeholders` replaces values in the message. What the rules know of languages and tools is data:
`vocabulary`, `patterns`, `provenance`, and the tables of each module.

Two promises hold for every text: a signature is its own signature, so that stored ones can be
compared with new ones; and the time is linear in the length of the text. A change to any rule
gives the same errors other signatures: it raises `VERSION`, and stored errors are processed again.
"""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["VERSION", "find_error", "fingerprint", "headline", "signature"]

VERSION: Final = 2

_DIGEST_CHARS: Final = 32


def signature(text: str) -> str:
    """Return the normalised error of a text: at most 2,000 characters, empty if there is none.

    The signature of a signature is itself, and no secret gets into one.
    """
    from stratagem.debugging.signatures import extraction

    return extraction.signature(text)


def find_error(text: str, chars_max: int = 20_000) -> str:
    """Return the part of a text that is the error, as it stands there.

    The last stack with its message and causes; without a stack the lines that say most about
    what went wrong. A text that says nothing of the kind comes back whole, or its end. Colours
    and quotation marks of a mail are left out, and a record in JSON is unpacked.
    """
    from stratagem.debugging.signatures import extraction

    return extraction.find_error(text, chars_max)


def headline(text: str) -> str:
    """Return one line for a title, at most 200 characters: the newest error as it was written."""
    from stratagem.debugging.signatures import extraction

    return extraction.headline(text)


def fingerprint(text: str) -> str:
    """Return a short key that texts of one signature share; empty for an empty signature."""
    signed = signature(text)
    if not signed:
        return ""
    digest = hashlib.sha256(signed.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{VERSION}:{digest[:_DIGEST_CHARS]}"
