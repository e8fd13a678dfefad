"""What an error says of itself: its type, its code and its message, on one line.

Shells, compilers and test runners report one error in several ways. Differences that only depend on
the program are removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from stratagem.function_cache import cache_texts

__all__ = [
    "CHAIN",
    "TYPE",
    "compose",
    "is_message",
    "is_note",
    "is_shown_place",
    "place",
    "rewrite",
]

_LINES_MORE_MAX: Final = 2
_CLAUSE_WORDS_MIN: Final = 2
_CLAUSE_WORD: Final = re.compile(r"(?<![^\W_])[^\W\d_]{3,}(?![\w.(])")
_LABEL_LINES_MAX: Final = 10

# What may be the type of an exception at the beginning of a line.
TYPE: Final = re.compile(r"^(?:[\w$]+(?:\.|::))*[\w$]+(?: \[[\w-]+\])?(?::(?=\s|$)|$)")
# A cause below what it caused.
CHAIN: Final = re.compile(
    r"^\s*(?:(?:Caused by|Suppressed|Wrapped by|\[cause\]|\[errors\]):|--->)(?:\s+|$)(?P<head>.*)$"
)

_RAISED: Final = (
    r"(?:Error|Exception|Fault|Failure|Timeout|Interrupt|Exit|Warning|Group|Panic)\d?"
    r"(?: \[[\w-]+\])?(?::(?=\s|$)|$)"
)
_MESSAGES: Final = (
    rf"^(?:[\w$]+(?:\.|::|/))*[A-Z]\w*{_RAISED}",
    r"^(?:[a-z_]\w*\.)+[A-Z]\w+: |^[a-z_]+\.(?:\w*error|timeout): ",
    r"^[Ee]rror(?: \[[\w-]+\])?: |^error\[E\d|^PHP |^\S+\.rb:\d+:in ",
    r"^(?:panic|fatal error|Exception in thread|Uncaught|Unhandled|goroutine stack)\b",
    r"\bpanicked at\b|\b[A-Z]\w{1,20}Sanitizer: |\bruntime error: |signal SIG[A-Z]+",
)
_MESSAGE: Final = re.compile("|".join(_MESSAGES))

_SHELL: Final = r"-?(?:[\w.~-]*/)*(?:ba|z|da|k|a|c|fi)?sh"
_SCRIPT: Final = r"(?:[\w.~-]*/)*[\w.-]+\.(?:sh|bash|zsh)"
# How shells say it in other languages.
_COMMAND_NOT_FOUND: Final = (
    "Befehl nicht gefunden|Kommando nicht gefunden|commande introuvable|orden no encontrada"
    "|comando non trovato|comando não encontrado|команда не найдена"
    "|未找到命令|コマンドが見つかりません"
)
# GCC quotes in the manner of the locale.
_TERMINATED: Final = (
    "terminate called after throwing an instance of ['`\u2018]([^'\u2019]+)['\u2019]"
)
_REWRITES: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        # Who caught it
        (r'^Exception in thread "[^"]*" ', ""),
        (r"^\(node:\d+\) (?:\[\w+\] )?(?:UnhandledPromiseRejectionWarning: )?", ""),
        (r"^Uncaught (?:exception: )?(?:\(in promise\) )?", ""),
        (r"^Unhandled (?:[Ee]xception[.:] |Rejection \(\w+\): )", ""),
        (r"^PHP (?:Fatal|Parse) error: +(?:Uncaught )?", ""),
        # Where it was found
        (r" in /\S+:\d+$", ""),
        # Who cut it
        (r"^\[?(?:\.{3}|…) ?\(?\d* ?(?:more )?(?:lines?|frames?|characters?|bytes?)\b.{0,40}$", ""),
        (r"^\S+\.rb:\d+:in ['`][^']*': (.*) \(([\w:]+)\)$", r"\2: \1"),
        (r"^(?:__main__|__mp_main__)\.(?=\w)", ""),
        # Panics, signals, aborts
        (r"^thread '[^']*'(?: \(\d+\))? panicked at '(.*)', \S+$", r"panicked: \1"),
        (r"^thread '[^']*'(?: \(\d+\))? panicked at \S+?(?::\d+){1,2}:\s*", "panicked: "),
        (r" \[recovered(?:, repanicked)?\]$", ""),
        (r"^(?:ERROR: )?(\w+Sanitizer: .*?) on (?:unknown )?address.*$", r"\1"),
        (r"^(?:ERROR: )?(\w+Sanitizer: .*?)(?: \(pc 0x|: 0x\w+ at pc).*$", r"\1"),
        (r'^(?:Program|Thread \S+(?: "[^"]*")?) (?:received|terminated with) signal ', "signal "),
        (rf"^{_TERMINATED}$", r"\1"),
        (rf"^{_TERMINATED} what\(\): *+(.*)$", r"\1: \2"),
        # Shells and tools
        (rf"^(?:{_SHELL}(?::(?: line)? ?\d+)?|{_SCRIPT}:(?: line)? ?\d+): (?!-)", ""),
        (r"^command not found: (\S+)$", r"\1: command not found"),
        (r"^(\S+): not found$", r"\1: command not found"),
        (rf"^(\S+): (?:{_COMMAND_NOT_FOUND})\W*$", r"\1: command not found"),
        (r"^docker: (?=Error response)", ""),
        # Of a push the reason counts, not which branch; what was fetched meanwhile is no other one.
        (r"^! \[(?:remote )?rejected\] +\S+ -> \S+ \((.+)\)$", r"push rejected: \1"),
        (r"^push rejected: fetch first$", "push rejected: non-fast-forward"),
        # pip says it twice, and either line is quoted.
        (
            r"^(?:ERROR: )?Could not find a version that satisfies the requirement (\S+).*$",
            r"No matching distribution found for \1",
        ),
        (r"^(?:ERROR: )?(?=No matching distribution found for )", ""),
        (r"^(Can't locate \S+\.pm in @INC)\b.*$", r"\1"),
        (r"^(ERROR \d{4} \([0-9A-Z]{5}\)) at line \d+(?= in file:|:)(?: in file: '[^']*')?", r"\1"),
        (r"^make(?:\[\d+\])?: \*\*\* ", "make: "),
        # Compilers, linkers, test runners
        (r"^(?:\S*/)?ld(?:\.\w+)?: (?=\S+: )", ""),
        (r"^(\S+):\(\.\w+(?:\.[\w.]+)?\+0x[0-9a-f]+\): ", r"\1: "),
        (
            (
                r"^(?:Error: )?(\S+\.[cm]?[jt]sx?)(?:\(\d+,\d+\)|:\d+:\d+)(?: -|:)"
                r" error ((?:TS|NG)\d+: )"
            ),
            r"\1: error \2",
        ),
        (r" \[plugin [\w-]+\]$", ""),
        (r"^\d+:\d+ ++error ++(\S++(?: \S++)*) {2,}+([@\w/-]+)$", r"error: \1 (\2)"),
        (r"^(\S+\.(?:java|kt|scala)):\[\d+,\d+\] (?:error: )?", r"\1: error: "),
        (r"^e: (?:file://)?(\S+?\.kts?):(?:\d+:\d+:?| \(\d+, \d+\):) ", r"\1: error: "),
        (r"^FAILED \S+ - ", ""),
        (r"^E {3,}", ""),
        (r"^(assert\b)", r"AssertionError: \1"),
        (r"^([A-Z]\w+(?:Error|Exception))\('(.*)',?\)$", r"\1: \2"),
    )
)
_MESSAGE_BELOW: Final = re.compile(r"panicked at \S+:\d+:$")
# What stands below is the other half of the message.
_UNFINISHED: Final = re.compile(
    r":$|: \[[A-Z]+-?\d+\]$|^terminate called|\bvalidation errors? for "
)
# Of a list that is announced, the first item belongs to it, also below an empty line.
_LISTED: Final = re.compile(r"^\s*[-*] [\w@]")
# What stands below is no part of it: advice, the statement, the frames.
_NOTE: Final = re.compile(
    r"^\s*(?:(?:DETAIL|HINT|CONTEXT|STATEMENT|LINE \d+|QUERY|[Nn]ote|[Hh]elp|[Hh]int) ?:"
    r"|\[(?:SQL|parameters|generated in)|\((?:Background|node:)|For (?:further|more) information"
    r"|(?:During|The above|at|See|Aborted|Require stack|Is the server running)\b"
    r"|\.\.\.|- /|File \"|--> )"
)
# Where it was, as Terraform shows it between what it says.
_SHOWN_PLACE: Final = re.compile(r"^\s*(?:on \S+ line \d+|\d+: )")
_COMPILER: Final = re.compile(
    r"^error(?:\[\w+\])?: |: error: |^\S+\.(?:java|kt|scala):\[\d+,\d+\] "
)
_RUSTC_WHOLE: Final = re.compile(r"^error\[E\d{4}\]: (?:\S+ ){2,}\S")
# rustc points at the place and says what it found there; javac names the symbol.
_LABEL: Final = re.compile(
    r"^[\s\d|]*+(?:[-~]++ ++)?\^[-~^]*+ (?P<label>[^\s^~-].{1,300})$"
    r"|^\s*symbol: +(?P<symbol>\S.{1,200})$"
)
_PANIC_PLACE: Final = re.compile(
    r"^(?=(?P<until>.*?panicked at ))(?P=until)(?:'.*', )?(?P<file>[^\s:']++)(?::\d++){1,2}:?$"
)


def is_message(line: str) -> bool:
    """Say whether a line is surely the message of an error."""
    return _MESSAGE.search(line) is not None


def innermost_clause(head: str) -> str:
    """Return the last clause of a message, which has the cause: `pull failed: no space left`.

    Nothing where there is one clause only, or where the last one is a value.
    """
    outer, _, last = head.rpartition(": ")
    words = _CLAUSE_WORD.findall(last)
    if len(_CLAUSE_WORD.findall(outer)) < _CLAUSE_WORDS_MIN or len(words) < _CLAUSE_WORDS_MIN:
        return ""
    return last


def is_note(line: str) -> bool:
    """Say whether a line below a message is no part of it: advice, a statement, a frame."""
    return _NOTE.match(line) is not None


def is_shown_place(line: str) -> bool:
    """Say whether a line only shows where something was, or the code there."""
    return _SHOWN_PLACE.match(line) is not None


def place(line: str) -> str:
    """Return the file that a panic without a stack names."""
    match = _PANIC_PLACE.search(line)
    return match["file"] if match else ""


def compose(
    texts: Sequence[str], begin: int, end: int, *, labelled: bool = True
) -> tuple[str, int]:
    """Return the message that begins at a line, and the line after all that it needs."""
    first = texts[begin].strip()
    if _MESSAGE_BELOW.search(first):
        below = next((line for line in range(begin + 1, end) if texts[line].strip()), begin)
        return rewrite(f"{first} {texts[below].strip()}" if below > begin else first), below + 1
    if _COMPILER.search(first):
        if _UNFINISHED.search(first):
            more = _more(first, texts[begin + 1 : end])
            return rewrite(" ".join([first, *more])), begin + 1 + len(more)
        label, lines = _label(texts[begin + 1 : begin + 1 + _LABEL_LINES_MAX])
        # What rustc says of the place comes on top of a message that is whole without it.
        whole = not labelled and _RUSTC_WHOLE.match(first)
        return rewrite(first if whole else first + label), begin + 1 + lines
    more = _more(first, texts[begin + 1 : end])
    return rewrite(" ".join([first, *more])), begin + 1 + len(more)


# A message is rewritten for its signature and right after that for its headline.
@cache_texts(4)
def rewrite(head: str) -> str:
    """Return a message without who says it."""
    for pattern, replacement in _REWRITES:
        # Most fit at the beginning only, where replacing would look for them everywhere.
        if pattern.pattern[0] != "^" or pattern.match(head):
            head = pattern.sub(replacement, head, count=1)
    return head.strip()


def _more(first: str, texts: Sequence[str]) -> list[str]:
    """Return the lines that finish what the first one began."""
    if not _UNFINISHED.search(first):
        return []
    more: list[str] = []
    if len(texts) > 1 and not texts[0].strip() and _LISTED.match(texts[1]):
        texts = texts[1:]
    for text in texts[:_LINES_MORE_MAX]:
        if not text.strip() or _NOTE.match(text):
            break
        more.append(text.strip())
    return more


def _label(texts: Sequence[str]) -> tuple[str, int]:
    """Return what a compiler writes below the place: without it, all mismatches look alike."""
    for line, text in enumerate(texts):
        if _COMPILER.search(text):
            break
        if match := _LABEL.match(text):
            return f": {match['label'] or match['symbol']}", line + 1
    return "", 0
