"""Find the error of a text, read it, and write it as a signature.

The rules are some hundred patterns, which take a while to make ready: this module is imported
when the first text comes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from stratagem import redaction
from stratagem.debugging.signatures import (
    codes,
    error_lines,
    frames,
    heads,
    lines,
    particulars,
    stacks,
)
from stratagem.debugging.signatures.error_chain import ErrorChain, ParsedError
from stratagem.debugging.signatures.headlines import (
    Headline,
    headline_of,
    names_something,
)
from stratagem.debugging.signatures.placeholders import CHARS_READ_MAX, normalise, packages
from stratagem.function_cache import cache_texts

__all__ = [
    "find_error",
    "find_headlines",
    "headline",
    "signature",
    "signature_and_headlines",
    "stated_particulars",
    "states_error",
]

_CHARS_MAX: Final = 2_000
_HEADLINE_CHARS_MAX: Final = 200
_ERROR_CHARS_MAX: Final = 20_000
_ERRORS_MAX: Final = 8
_ROUNDS_MAX: Final = 4
# Nearly every error fits into the first; the second holds the deepest recursion, prefixes included.
_WINDOW_CHARS: Final = 24_000
_WINDOW_CHARS_MAX: Final = 300_000
# Of a longer text only the error is masked.
_MASKED_CHARS_MAX: Final = 100_000
_LINES_BEFORE: Final = 2
_LINES_TO_NAME_MAX: Final = 3
_LINES_OF_PACKAGES_MAX: Final = 12
_PACKAGES_MAX: Final = 20
_LINES_AFTER: Final = 10
_CUT: Final = "\n...\n"
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_WORD: Final = re.compile(r"[^\W\d_]")
# Such words say that something went wrong, and nothing of what: alone they match any error. A
# status above two was given for a reason: 127 is a missing command, 137 a killed process.
_SAYS_NOTHING: Final = re.compile(
    r"(?i)[\s\W\d_]|(?<![^\W_])(?:an?|the|with|was|is|has|by|due|to|in|did|not|of|from|complete[ds]?"
    r"|errors?|err|errno|exceptions?|exit(?:ed|s)?|code|status|return(?:ed|s)?|value|non|zero|process"
    r"|command|script|task|job|step|build|run|running|test|tests|child|sub|program|failed|failure"
    r"|fails?|fatal|unknown|unexpected|unhandled|uncaught|occurred|something|went|wrong|make|npm"
    r"|successfully|terminated|aborted|aborting|stopped|finished|segmentation|fault|core|dumped"
    r"|killed|internal|server|caused|n)(?![^\W_])"
)
_TELLING_STATUS: Final = re.compile(
    r"(?i)(?:code|status)\b\W{0,4}(?!255\b)(?:[3-9]|\d{2,})\b|\b(?:errno|error) [1-9]\d"
)


def signature(text: str) -> str:
    """Return the normalised error of a text."""
    return _stable_signature(redaction.mask(_find_masked_error(text)))


def signature_and_headlines(text: str) -> tuple[str, list[Headline]]:
    """Return both forms of the error of a text, which is looked for once."""
    error = redaction.mask(_find_masked_error(text))
    return _stable_signature(error), _headlines_of(error)


def _find_masked_error(text: str) -> str:
    # A secret may hide in what looks like an error, and the other way round.
    if len(text) <= _MASKED_CHARS_MAX:
        text = redaction.mask(lines.plain(text))
    return find_error(text)


def _stable_signature(masked: str) -> str:
    current = _signature(masked)
    for _ in range(_ROUNDS_MAX):
        # What a cut or a placeholder leaves may, rarely, fit another rule.
        again = _signature(redaction.mask(current))
        if again == current:
            break
        current = again
    return current


def find_error(text: str, chars_max: int = _ERROR_CHARS_MAX) -> str:
    """Return the part of a text that is the error."""
    shown = error_lines.window(text, _WINDOW_CHARS, _WINDOW_CHARS)
    read = lines.read(shown.text)
    chain = _last_chain(read)
    if chain is not None and _at_edge(chain, len(read), shown):
        before = _WINDOW_CHARS_MAX if chain.begin == 0 else _WINDOW_CHARS
        after = _WINDOW_CHARS_MAX if chain.end == len(read) else _WINDOW_CHARS
        read = lines.read(error_lines.window(text, before, after).text)
        chain = _last_chain(read)
    begin, end = _locate_error(read, chain)
    return _truncate_middle("\n".join(line.raw for line in read[begin:end]), chars_max)


def headline(text: str) -> str:
    """Return the newest error of a text in one line."""
    error = next(iter(_parse_errors(find_error(text))), None)
    if error is None:
        return ""
    line = " ".join(error.head.split())
    if not line and error.frames:
        line = str(error.frames[0]).strip()
    if len(line) <= _HEADLINE_CHARS_MAX:
        return line
    cut = line[: _HEADLINE_CHARS_MAX - 1]
    return (cut.rpartition(" ")[0] or cut) + "…"


def find_headlines(text: str) -> list[Headline]:
    """Return the headlines of the error of a text and of its causes, newest first."""
    return _headlines_of(redaction.mask(_find_masked_error(text)))


# A question is compared with many incidents.
@cache_texts(8)
def stated_particulars(text: str) -> frozenset[str]:
    """Return what the error of a text states beside its words."""
    error = text if len(text) <= _ERROR_CHARS_MAX else find_error(text)
    masked = redaction.mask(_find_masked_error(error))
    errors = [each for each in _parse_errors(masked, for_headline=True) if each.head]
    said = [each.head for each in errors]
    said += [line.text for line in _read_error(masked) if codes.is_code_line(line.text)]
    if not errors:
        return particulars.of_codes("\n".join(said))
    return particulars.particulars(
        errors[0].head, _headline(errors[0]), "\n".join(said), lines.plain(error)
    )


@cache_texts(8)
def states_error(text: str) -> bool:
    """Say whether a text has a stack, or a line that is surely an error."""
    read = lines.read(text)
    span = error_lines.worst(read)
    return _last_chain(read) is not None or (span is not None and span.weight > error_lines.WEAK)


def _headlines_of(masked: str) -> list[Headline]:
    errors = _parse_errors(masked, for_headline=True)
    headlines = [_headline(each) for each in errors if each.head]
    if headlines:
        headlines[0] = headlines[0]._replace(packages=_packages_around(errors, masked))
    if headlines and (clause := heads.innermost_clause(errors[-1].head)):
        root = _headline(ParsedError(clause, errors[-1].frames))
        # What names something in front of it is more than a wrapping.
        if set(headlines[-1].names) <= set(root.names):
            headlines.append(root)
    return headlines


def _packages_around(errors: list[ParsedError], text: str) -> tuple[str, ...]:
    """Return the packages that an error names, or, where it has no frames, the lines around it."""
    said = [error.head for error in errors]
    if len(errors) == 1 and not errors[0].frames:
        calm = error_lines.CALM_LEVELS
        read = [line.text for line in _read_error(text) if line.text and line.level not in calm]
        said += read[:_LINES_OF_PACKAGES_MAX]
    return tuple(sorted({name for each in said for name in packages(each)}))[:_PACKAGES_MAX]


def _headline(error: ParsedError) -> Headline:
    return headline_of(error, names_a_cause=_names_a_cause(normalise(error.head)))


def _signature(masked: str) -> str:
    signed = _render(_parse_errors(masked))
    return signed if _names_a_cause(signed) else ""


def _names_a_cause(signed: str) -> bool:
    """Say whether a signature tells one problem from others: values and `exit code 1` do not."""
    said = _PLACEHOLDER.sub("", signed)
    if _TELLING_STATUS.search(said):
        return True
    return _WORD.search(_SAYS_NOTHING.sub("", said)) is not None


def _parse_errors(text: str, *, for_headline: bool = False) -> list[ParsedError]:
    """Return the error of a text and its causes, newest first.

    For a headline, what a compiler writes below the place is left out, and so is all but the
    first line of a text that names no error.
    """
    read = _read_error(text)
    chain = _last_chain(read)
    if chain is not None:
        return chain.errors[:_ERRORS_MAX]
    span = error_lines.worst(read)
    if span is None or span.weight <= error_lines.WEAK:
        said = heads.rewrite(error_lines.prose(_first_line(read) if for_headline else read))
        # Of a longer text only the beginning would count, and that is not where it went wrong.
        return [ParsedError(said, [])] if said and len(said) <= CHARS_READ_MAX else []
    texts = [line.text for line in read]
    head, end = heads.compose(texts, span.line, len(texts), labelled=not for_headline)
    head = _with_name(head, read[end:])
    file = heads.place(texts[span.line])
    return [ParsedError(head, [frames.file_frame(file)] if file else [])]


# An error is read for its signature, for its headline and for the packages in it.
@cache_texts(4)
def _read_error(text: str) -> list[lines.LogLine]:
    return lines.read(text)


def _with_name(head: str, below: list[lines.LogLine]) -> str:
    """Return a message that names nothing together with the lines below it, up to a name.

    Package managers announce that something could not be resolved, and then say what.
    """
    if not below or names_something(head):
        return head
    has_code = bool(headline_of(ParsedError(head, [])).names)
    first = 0
    filled = (line for line in below if line.text.strip() and not heads.is_shown_place(line.text))
    said = list(islice(filled, _LINES_TO_NAME_MAX))
    for number, line in enumerate(said, 1):
        is_calm = line.level in error_lines.CALM_LEVELS
        if is_calm or heads.is_note(line.text) or error_lines.only_summarises(line):
            break
        if packages(line.text):
            return " ".join([head, *(each.text.strip() for each in said[:number])])
        if not has_code and not first and names_something(line.text):
            first = number
    return " ".join([head, *(each.text.strip() for each in said[:first])])


def _first_line(read: list[lines.LogLine]) -> list[lines.LogLine]:
    filled = [line for line in read if line.text.strip()]
    telling = [line for line in filled if not error_lines.only_summarises(line)] or filled
    # What is only announced is said below.
    return telling[: 2 if telling and telling[0].text.rstrip().endswith(":") else 1]


def _last_chain(read: list[lines.LogLine]) -> ErrorChain | None:
    found = deque(stacks.error_chains([line.text for line in read]), maxlen=1)
    return found[0] if found else None


def _at_edge(chain: ErrorChain, count: int, shown: error_lines.Window) -> bool:
    """Say whether an error may continue beyond the cut of the window."""
    return (chain.begin == 0 and shown.cut_before) or (chain.end == count and shown.cut_after)


def _locate_error(read: list[lines.LogLine], chain: ErrorChain | None) -> tuple[int, int]:
    """Return the range of lines that holds the error."""
    if chain is not None:
        return chain.begin, chain.end
    span = error_lines.worst(read)
    if span is None or span.weight <= error_lines.WEAK:
        return 0, len(read)
    return max(span.line - _LINES_BEFORE, 0), span.end + _LINES_AFTER


def _truncate_middle(text: str, chars_max: int) -> str:
    """Return a text cut in its middle: what matters stands at its ends."""
    if len(text) <= chars_max:
        return text
    half = max((chars_max - len(_CUT)) // 2, 0)
    first = text[:half].rpartition("\n")[0] or text[:half]
    last = text[len(text) - half :]
    return (first + _CUT + (last.partition("\n")[2] or last))[:chars_max]


def _render(errors: Iterable[ParsedError]) -> str:
    """Return the signature of an error. Where there is no room, the oldest frames go first."""
    said = list(_render_errors(errors))
    room = _CHARS_MAX - sum(len(head) + 1 for head, _ in said)
    shown: list[str] = []
    for head, found in said:
        shown.append(head)
        for frame in found:
            room -= len(frame) + 1
            if room < 0:
                break
            shown.append(frame)
    return "\n".join(filter(None, shown))


def _render_errors(errors: Iterable[ParsedError]) -> Iterator[tuple[str, list[str]]]:
    """Yield messages and frames as they are shown, as many messages as there is room for."""
    room = _CHARS_MAX
    for number, error in enumerate(errors):
        # One program ends its sentence, the next one does not.
        head = normalise(error.head).rstrip(" .")
        head = f"Caused by: {head}" if number else head
        room -= len(head) + 1
        if room < 0:
            return
        yield head, [str(frame) for frame in error.frames]
