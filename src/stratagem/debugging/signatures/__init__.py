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
`vocabulary`, `patterns`, `provenance`, and the tables of each module. `headlines` has a second,
looser form: what the error says without frames, so that its last line and the whole traceback
meet.

Two promises hold for every text: a signature is its own signature, so that stored ones can be
compared with new ones; and the time is linear in the length of the text. A change to any rule
gives the same errors other signatures: it raises `VERSION`, and stored errors are processed again;
and it raises the versions of the read models of the stores, which have the signatures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from stratagem.deferred_modules import hashlib
from stratagem.function_cache import cache_texts

if TYPE_CHECKING:
    from stratagem.debugging.signatures.headlines import Agreement, Headline

__all__ = [
    "VERSION",
    "agreement",
    "are_other_particulars",
    "asked_by_code",
    "code_parts",
    "find_codes",
    "find_error",
    "find_headlines",
    "fingerprint",
    "fingerprint_and_headlines",
    "headline",
    "is_bare_status",
    "kept_headlines",
    "signature",
    "signature_fields",
    "stand_in_one_place",
    "stated_particulars",
    "states_error",
    "title_headlines",
]

VERSION: Final = 9

_DIGEST_CHARS: Final = 32
# A question about a code is shorter.
_CODE_QUESTION_CHARS_MAX: Final = 120


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
    return _digest(signature(text))


def fingerprint_and_headlines(text: str) -> tuple[str, list[Headline]]:
    """Return both of an error, which is looked for once."""
    from stratagem.debugging.signatures import extraction

    signed, headlines = extraction.signature_and_headlines(text)
    return _digest(signed), headlines


def _digest(signed: str) -> str:
    if not signed:
        return ""
    digest = hashlib.sha256(signed.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{VERSION}:{digest[:_DIGEST_CHARS]}"


def find_headlines(text: str) -> list[Headline]:
    """Return what the error of a text says, and what each of its causes says, newest first."""
    from stratagem.debugging.signatures import extraction

    return extraction.find_headlines(text)


def agreement(asked: Sequence[Headline], known: Sequence[Headline]) -> Agreement:
    """Return what two errors have to do with each other by their headlines."""
    from stratagem.debugging.signatures import headlines

    return headlines.agreement(asked, known)


def stand_in_one_place(asked: Sequence[Headline], known: Sequence[Headline]) -> bool:
    """Say whether the newest frames of two errors are the same."""
    return bool(asked and known and asked[0].frame) and asked[0].frame == known[0].frame


def find_codes(text: str) -> frozenset[str]:
    """Return the codes of the errors that a text speaks of, in lower case."""
    from stratagem.debugging.signatures import codes

    return codes.find_codes(text)


def are_other_particulars(
    one: Collection[str], other: Collection[str], *, in_one_place: bool = False
) -> bool:
    """Say whether two errors in the same words state that they are two (`failed with E1234`).

    In one place of a program they may be about other values.
    """
    from stratagem.debugging.signatures import particulars

    return particulars.are_others(one, other, in_one_place=in_one_place)


def stated_particulars(text: str) -> frozenset[str]:
    """Return what the error of a text states beside its words: codes, tests, bounds of versions.

    Signatures do not have it: there it looks like values. What other lines end in is no code of
    this error: the number of a request, or a commit.
    """
    from stratagem.debugging.signatures import extraction

    return extraction.stated_particulars(text)


def states_error(text: str) -> bool:
    """Say whether a text has a stack, or a line that is surely an error and no prose."""
    from stratagem.debugging.signatures import extraction

    return extraction.states_error(text)


def is_bare_status(text: str) -> bool:
    """Say whether a text says no more than that something failed: `exit code 1`, `Broken pipe`."""
    from stratagem.debugging.signatures import codes, particulars

    return codes.is_bare_status(text) or particulars.is_system_answer(text)


def code_parts(code: str) -> frozenset[str]:
    """Return a code, and what words may be left of it in a headline."""
    from stratagem.debugging.signatures import codes

    return codes.code_parts(code)


def asked_by_code(text: str) -> str | None:
    """Return what a question says beside the code that it asks about; None where it is no such one.

    A message that stands behind the code, or several lines, say more than the code does.
    """
    from stratagem.debugging.signatures import codes

    line = text.strip()
    is_more = "\n" in line or len(line) > _CODE_QUESTION_CHARS_MAX or codes.gives_message(line)
    return None if is_more or not codes.find_codes(line) else codes.without_codes(line)


def signature_fields(text: str, masked: str) -> dict[str, Any]:
    """Return what an incident keeps of its error beside the text: what it is found and judged by.

    Headlines are words of the error, so they are those of the text as it is kept, `masked`.
    """
    return {
        "fingerprint": fingerprint(text),
        "headlines": [each.as_dict() for each in _read_headlines(masked)],
        "signature_version": VERSION,
    }


def kept_headlines(content: Mapping[str, Any]) -> list[Headline]:
    """Return the headlines of an incident: of its newest error, and of its root cause."""
    from stratagem.debugging.signatures.headlines import Headline

    if content.get("signature_version") == VERSION:
        return [Headline.from_dict(each) for each in content.get("headlines", ())]
    # Written under older rules.
    return _read_headlines(content.get("error_signature") or "")


def title_headlines(title: str) -> list[Headline]:
    """Return the headlines of a title, which may be an error by itself."""
    return _read_headlines(title)


@cache_texts(1024)
def _read_headlines(text: str) -> list[Headline]:
    return _ends(find_headlines(text)) if text else []


def _ends(found: Sequence[Headline]) -> list[Headline]:
    return [found[0], found[-1]] if len(found) > 1 else list(found)
