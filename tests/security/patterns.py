# ruff: noqa: SLF001, T201 -- looks into `re` and into what the package keeps to itself; a command
"""Every regular expression of the package, attacked: `python -m tests.security.patterns`.

A pattern may be tried in so many ways that its time grows with the square of a text, or without
any bound, and `re` holds the whole process meanwhile. Here each pattern is tried on texts that
are made of its own parts: something that leads to a repetition, then what it repeats a thousand
times, then something on which the match fails. Where the time for four times as much text is more
than that of a linear pattern could be, the pattern is named, with the text that does it.

Patterns are found in two ways. All modules are imported with `re` watched, which finds those that
are made at import. The source is read for those that are made in functions: one that is written
out is tried like any other, and one that is put together when it is needed has to be listed in
`MADE_WHEN_NEEDED`, with a call that has it made.

A pattern that is only ever given short texts may say so in a comment above it, `At most 200
characters: ...`; it is then tried on texts of that length, and has to be quick.
"""

from __future__ import annotations

import ast
import gc
import importlib
import itertools
import json
import math
import pkgutil
import re
import selectors
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from re import _compiler, _parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeGuard

import stratagem
from stratagem import deferred_patterns, redaction
from stratagem.deferred_patterns import DeferredPattern

PACKAGE: Final = Path(stratagem.__file__).parent
ROOT: Final = PACKAGE.parents[1]
# A linear pattern takes four times as long for four times the text, a quadratic one sixteen times.
FACTOR: Final = 4
GROWTH_MAX: Final = 8.0
SIZE: Final = 2_000
# Below this a text of the smaller size tells nothing; no quadratic pattern is as quick.
SUSPECT_SECONDS: Final = 0.0004
# As long as one trial may take, in time of the processor; a pattern that is interrupted has no bound.
TRIAL_SECONDS: Final = 0.5
PATTERN_SECONDS: Final = 240.0
# Of one pattern: the most telling come first.
ATTACKS_MAX: Final = 600
ROUNDS: Final = 4
_TIMES: Final = 3
# What takes as long as this is no noise.
CERTAIN_SECONDS: Final = 0.05
_PROCESSES: Final = 2
_SHOWN: Final = 20
BOUNDED_SECONDS: Final = 0.01
METHODS: Final = ("search", "match", "fullmatch", "sub")
_AS_SUB: Final = frozenset({"sub", "subn", "split", "findall", "finditer"})
_NAMED_BOUND: Final = re.compile(r"# At most ([0-9,]{1,12}) characters")
_MODULE_FUNCTIONS: Final = frozenset({"compile", "match", "search", "fullmatch", *_AS_SUB})
_REPEATS: Final = frozenset({_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT})
# A repetition that ends before this is a constant, not a growth.
_COUNTS: Final = 64
_CANDIDATES: Final = tuple(
    "a_0 .-/:=,;\"'\\[](){}<>@#!?*+&|~^$%`A\n\t\r\x00\x1ezZ19\u00e9\u2022\u2026\u00a0\u4e2d\u0663"
)
_VARIANTS: Final = 4

# What compiles patterns that stand in other modules.
_DEFERRED: Final = Path(deferred_patterns.__file__)
# Functions that make patterns when they are needed, and what has them made; None where the
# pattern is a caller's and is never run by `re`, with the reason beside it.
MADE_WHEN_NEEDED: Final[Mapping[str, Callable[[], object] | None]] = {
    "redaction.py:_compile_rules": lambda: [
        redaction._compile_rules(each) for each in ("basic", "strict")
    ],
    # Called when the module is imported.
    "gateway/calls/error_readings.py:_row": lambda: importlib.import_module(
        "stratagem.gateway.calls.error_readings"
    ),
    "gateway/learning/debugging_advice.py:hide_arguments": lambda: importlib.import_module(
        "stratagem.gateway.learning.debugging_advice"
    ).hide_arguments("no value 12", {"x": "value 12"}),
    "storage/postgres/connection.py:_hint": lambda: importlib.import_module(
        "stratagem.storage.postgres.connection"
    )._hint(Exception("something else")),
    # Of the schemas of operations, which none but this one has.
    "parameters.py:_read_typed": lambda: importlib.import_module(
        "stratagem.gateway.inputs"
    ).GrantInput.read({"tool": "t", "name": "n", "host": "h"}),
    # Patterns of other modules, which are looked for there.
    "deferred_patterns.py:compiled": None,
    # Of a document: read to see whether it is a pattern, and never matched by `re`.
    "gateway/openapi/schemas.py:_is_pattern": None,
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern, where it stands, how it is used, and how long its texts are at most."""

    place: str
    text: str
    flags: int = 0
    methods: tuple[str, ...] = METHODS
    chars_max: int | None = None
    in_bytes: bool = False

    def compiled(self) -> re.Pattern[Any]:
        """Return it ready for use."""
        return re.compile(self.text.encode("latin-1") if self.in_bytes else self.text, self.flags)


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that grows: something before, what is repeated, something after."""

    before: str
    pump: str
    after: str

    def of(self, size: int) -> str:
        """Return it at about a size."""
        return self.before + self.pump * max(1, size // len(self.pump)) + self.after


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about a pattern: its worst attack and how its time grew."""

    place: str
    text: str
    tried: int = 0
    growth: float = 1.0
    method: str = ""
    attack: Attack | None = None
    seconds: float = 0.0
    wrong: bool = False

    @property
    def shown(self) -> str:
        """The attack as one would write it."""
        attack = self.attack
        return f"{attack.before!r} + {attack.pump!r} * n + {attack.after!r}" if attack else ""

    def __str__(self) -> str:
        """Where it is, what does it, and how much."""
        return f"{self.place} {self.text[:80]!r} grows {self.growth:.1f} times: {self.method} on {self.shown}"


# ------------------------------------------------------------------ texts from the parse tree


class Tree:
    """A parsed pattern: samples of its parts, and the ways to its repetitions."""

    def __init__(self, pattern: Pattern) -> None:
        text = pattern.text.encode("latin-1") if pattern.in_bytes else pattern.text
        self._parsed = _parser.parse(text, pattern.flags)
        self._flags = self._parsed.state.flags
        self._in_bytes = pattern.in_bytes
        self._sets: dict[str, tuple[str, ...]] = {}
        self.letters = self._representatives()

    def attacks(self) -> list[Attack]:
        """Return texts that may take long, those that look most like it first."""
        found: dict[Attack, int] = {}
        whole = self._sample(list(self._parsed))
        for index, (before, body) in enumerate(self._repeats(list(self._parsed), ("",))):
            pumps = self._pumps(body)
            leads = list(dict.fromkeys([before[0], "", *before[1:2]]))
            for rank, (pump, lead) in enumerate(itertools.product(pumps, leads)):
                for last, after in enumerate(self._afters()):
                    found.setdefault(Attack(lead, pump, after), rank + 6 * last + index)
            # Searching begins anew at each place: what leads to the repetition, repeated.
            for rank, (lead, pump) in enumerate(itertools.product(before[:2], pumps[:3])):
                if lead:
                    found.setdefault(Attack("", lead + pump, ""), rank + index)
                    found.setdefault(Attack("", lead, pump), rank + index)
                    found.setdefault(Attack("", lead, "\x00"), rank + index)
        for rank, letter in enumerate(self.letters):
            for last, after in enumerate(self._afters()):
                found.setdefault(Attack("", letter, after), rank + 4 * last)
        for rank, text in enumerate(whole):
            if text:
                found.setdefault(Attack("", text, "\x00"), rank)
                found.setdefault(Attack("", text[:-1] or text, "\x00"), rank)
        return sorted(found, key=lambda attack: found[attack])[:ATTACKS_MAX]

    def _afters(self) -> tuple[str, ...]:
        return "", "\x00", "\n!", "y"

    def _representatives(self) -> tuple[str, ...]:
        """Return one letter of each kind that the pattern tells apart."""
        nodes = [node for node in _walk(list(self._parsed)) if _is_letter(node)]
        literals = [chr(node[1]) for node in nodes if node[0] is _parser.LITERAL]
        kinds: dict[tuple[bool, ...], str] = {}
        tests = [self._test(node) for node in nodes[:40]]
        for letter in dict.fromkeys([*literals[:40], *_CANDIDATES]):
            if self._in_bytes and ord(letter) > 255:
                continue
            kinds.setdefault(tuple(test(letter) for test in tests), letter)
        return tuple(kinds.values())

    def _test(self, node: Any) -> Callable[[str], bool]:
        sub = _parser.SubPattern(self._parsed.state, [node])
        compiled = _compiler.compile(sub, self._flags)

        def fits(letter: str) -> bool:
            if self._in_bytes:
                return (
                    ord(letter) < 256 and compiled.fullmatch(letter.encode("latin-1")) is not None
                )
            return compiled.fullmatch(letter) is not None

        return fits

    def _letters_of(self, node: Any) -> tuple[str, ...]:
        key = repr(node)
        if key not in self._sets:
            fits = self._test(node)
            own = (
                [chr(value) for op, value in node[1] if op is _parser.LITERAL]
                if (node[0] is _parser.IN and node[1][0][0] is not _parser.NEGATE)
                else []
            )
            known = dict.fromkeys([*self.letters, *own, *_CANDIDATES])
            self._sets[key] = tuple(letter for letter in known if fits(letter))
        return self._sets[key]

    def _sample(self, nodes: Sequence[Any]) -> list[str]:
        """Return a few texts that a sequence matches, the shortest ways first."""
        found = [""]
        for node in nodes:
            parts = self._sample_one(node)
            found = (
                [text + part for text, part in itertools.product(found, parts)][:_VARIANTS]
                if len(parts) > 1
                else [text + parts[0] for text in found]
            )
        return found or [""]

    def _sample_one(self, node: Any) -> list[str]:  # noqa: PLR0911 -- a case for each kind
        kind, value = node
        if _is_letter(node):
            return list(self._letters_of(node)[:3]) or [""]
        if kind in _REPEATS:
            low, _high, body = value
            inner = self._sample(list(body))
            if low == 0:
                return ["", *(text for text in inner[:2] if text)]
            return [text * min(low, _COUNTS) for text in inner[:3]]
        if kind is _parser.BRANCH:
            each = [self._sample(list(branch)) for branch in value[1]]
            return [text for texts in each for text in texts[:1]][:12] or [""]
        if kind is _parser.SUBPATTERN:
            return self._sample(list(value[-1]))
        if kind is _parser.ATOMIC_GROUP:
            return self._sample(list(value))
        if kind is _parser.ASSERT:
            return self._sample(list(value[1])) if value[0] < 0 else [""]
        if kind is _parser.GROUPREF_EXISTS:
            return self._sample(list(value[1]))
        return [""]

    def _pumps(self, body: Sequence[Any]) -> list[str]:
        """Return what a repetition repeats: letters, ways through it, two of them together."""
        ways = [text for text in self._ways(body) if text]
        pairs = ["".join(pair) for pair in itertools.permutations(ways[:3], 2)]
        return list(dict.fromkeys([*ways[:8], *pairs]))

    def _ways(self, body: Sequence[Any]) -> list[str]:
        found = list(self._sample(body))
        for node in body:
            found += self._sample_one(node)
            if node[0] in _REPEATS:
                found += self._ways(list(node[1][2]))
            elif node[0] is _parser.BRANCH:
                found += [way for branch in node[1][1] for way in self._ways(list(branch))[:2]]
            elif node[0] is _parser.SUBPATTERN:
                found += self._ways(list(node[1][-1]))
        return list(dict.fromkeys(found))

    def _repeats(
        self, nodes: Sequence[Any], before: Sequence[str]
    ) -> Iterator[tuple[list[str], list[Any]]]:
        """Yield each repetition that has no small end, and what leads to it."""
        leads = list(before)
        for node in nodes:
            kind, value = node
            if kind in _REPEATS:
                _low, high, body = value
                if high is _parser.MAXREPEAT or high > _COUNTS:
                    yield leads, list(body)
                yield from self._repeats(list(body), leads)
            for branch in _children(node) if kind not in _REPEATS else ():
                yield from self._repeats(branch, leads)
            ways = self._sample_one(node)
            longest = [max(ways, key=len)]
            leads = list(
                dict.fromkeys(a + b for a, b in itertools.product(leads, [*ways[:2], *longest]))
            )[:_VARIANTS]


def _is_letter(node: Any) -> bool:
    return node[0] in {_parser.LITERAL, _parser.NOT_LITERAL, _parser.ANY, _parser.IN}


def _children(node: Any) -> list[list[Any]]:
    """Return the sequences that a part of a pattern has in it."""
    kind, value = node
    if kind is _parser.ATOMIC_GROUP:
        return [list(value)]
    if kind is _parser.BRANCH or kind is _parser.GROUPREF_EXISTS:
        branches = value[1] if kind is _parser.BRANCH else value[1:]
        return [list(branch) for branch in branches if branch]
    inside = {_parser.SUBPATTERN: -1, _parser.ASSERT: 1, _parser.ASSERT_NOT: 1}
    inside |= dict.fromkeys(_REPEATS, 2)
    return [list(value[inside[kind]])] if kind in inside else []


def possessive_groups(pattern: Pattern) -> list[str]:
    """Return what in a pattern misses matches before Python 3.11.5 (gh-101955).

    A single character that repeats possessively does not.
    """
    data = pattern.text.encode("latin-1") if pattern.in_bytes else pattern.text
    return [
        str(node)
        for node in _walk(_parser.parse(data, pattern.flags))
        if node[0] is _parser.ATOMIC_GROUP
        or (
            node[0] is _parser.POSSESSIVE_REPEAT
            and (len(node[1][2]) != 1 or not _is_letter(node[1][2][0]))
        )
    ]


def _walk(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        yield node
        for child in _children(node):
            yield from _walk(child)


# --------------------------------------------------------------------------- trying


class _InterruptedError(Exception):
    """A trial took too long."""


def try_pattern(pattern: Pattern, attacks_max: int = ATTACKS_MAX) -> Verdict:
    """Try a pattern with every attack, in each way that it is used."""
    attacks = Tree(pattern).attacks()[:attacks_max]
    worst = Verdict(pattern.place, pattern.text)
    tried = 0
    # Whoever searches in vain has matched at each place.
    skipped = {"match"} if "search" in pattern.methods else set[str]()
    for method in [each for each in pattern.methods if each not in skipped]:
        trial = _Trial(pattern, method)
        for attack in attacks:
            tried += 1
            found = trial.attack(attack)
            if found is not None and found.growth > worst.growth:
                worst = found
            if worst.wrong:
                return replace(worst, tried=tried)
    return replace(worst, tried=tried)


class _Trial:
    """One pattern, used in one way."""

    def __init__(self, pattern: Pattern, method: str) -> None:
        self._pattern = pattern
        self._method = method
        self._use = getattr(pattern.compiled(), method)
        # How long a text of the smaller size took that was then found to grow as it should.
        self._cleared = SUSPECT_SECONDS

    def attack(self, attack: Attack) -> Verdict | None:
        """Return how the time grows on an attack; None where there is nothing to be seen."""
        if self._pattern.chars_max is not None:
            return self._bounded(attack, self._pattern.chars_max)
        # By the wall: that may be longer than what the processor spent on it, never shorter.
        began = time.perf_counter()
        first = self._seconds(attack.of(SIZE))
        if first == math.inf and self._seconds(attack.of(SIZE)) == math.inf:
            return self._verdict(attack, math.inf, TRIAL_SECONDS, wrong=True)
        if time.perf_counter() - began < self._cleared:
            return None
        growth, seconds = self._growth(attack)
        if growth < GROWTH_MAX:
            self._cleared = max(self._cleared, 1.5 * first)
        return self._verdict(attack, growth, seconds, wrong=growth >= GROWTH_MAX)

    def _growth(self, attack: Attack) -> tuple[float, float]:
        """Return by how much the time grows at least; a busy machine can only add to it."""
        least, long = math.inf, 0.0
        for _ in range(ROUNDS):
            short = statistics.median(self._several(attack.of(SIZE)))
            long = min(self._several(attack.of(FACTOR * SIZE)))
            least = min(least, long / max(short, SUSPECT_SECONDS / FACTOR))
            if long < FACTOR * SUSPECT_SECONDS:
                # Too little to tell; whatever is quadratic takes four times as long.
                least = min(least, float(FACTOR))
            if least < GROWTH_MAX or long > CERTAIN_SECONDS:
                break
        return least, long

    def _bounded(self, attack: Attack, size: int) -> Verdict | None:
        seconds = self._seconds(attack.of(size))
        if seconds <= BOUNDED_SECONDS or min(self._several(attack.of(size))) <= BOUNDED_SECONDS:
            return None
        return self._verdict(attack, math.inf, seconds, wrong=True)

    def _several(self, text: str) -> list[float]:
        taken = [self._seconds(text)]
        # Even a time that is certainly too long is taken twice: a virtual machine may have stood
        # still meanwhile.
        while len(taken) < (_TIMES if taken[0] < CERTAIN_SECONDS else 2):
            taken.append(self._seconds(text))
        return taken

    def _seconds(self, text: str) -> float:
        """Return how long one use takes, in time of this processor; a long one is cut off."""
        in_bytes = self._pattern.in_bytes
        given: Any = text.encode("latin-1", "replace") if in_bytes else text
        arguments = (b"" if in_bytes else "", given) if self._method == "sub" else (given,)
        began = time.thread_time()
        # The timer may go off just before it is stopped: then, too, it took too long.
        try:
            try:
                signal.setitimer(signal.ITIMER_PROF, TRIAL_SECONDS)
                self._use(*arguments)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
        except _InterruptedError:
            return math.inf
        return time.thread_time() - began

    def _verdict(self, attack: Attack, growth: float, seconds: float, *, wrong: bool) -> Verdict:
        pattern = self._pattern
        return Verdict(
            pattern.place, pattern.text, 1, growth, self._method, attack, seconds, wrong=wrong
        )


def _interrupt(_number: int, _frame: object) -> None:
    raise _InterruptedError


# --------------------------------------------------------------------------- finding


def collect() -> list[Pattern]:
    """Return every pattern of the package. Watches `re`: to be called in a process of its own."""
    sources = {path: Source(path) for path in sorted(PACKAGE.rglob("*.py"))}
    uses = _uses(sources.values())
    made = _made()
    for path, source in sources.items():
        made += [_Made(path, *each) for each in source.written_out()]
    return list(dict.fromkeys(sources[each.path].pattern(each, uses) for each in made))


class _Made(NamedTuple):
    """A pattern as `re` was given it."""

    path: Path
    line: int
    text: str | bytes
    flags: int


def _made() -> list[_Made]:
    """Import everything, and return the patterns that are made meanwhile."""
    made: list[_Made] = []
    inner = re._compile  # type: ignore[attr-defined]

    def watched(pattern: Any, flags: Any) -> Any:
        frame = sys._getframe(2)
        path = Path(frame.f_code.co_filename)
        is_ours = path.is_relative_to(PACKAGE) and path != _DEFERRED
        if is_ours and isinstance(pattern, str | bytes):
            made.append(_Made(path, frame.f_lineno, pattern, int(flags)))
        return inner(pattern, flags)

    re._compile = watched  # type: ignore[attr-defined]
    try:
        for name in _modules():
            module = importlib.import_module(name)
            made += _deferred_in(module)
        for call in MADE_WHEN_NEEDED.values():
            if call is not None:
                call()
    finally:
        re._compile = inner  # type: ignore[attr-defined]
    return made


def _deferred_in(module: ModuleType) -> Iterator[_Made]:
    """Yield the patterns of a module that are compiled when they are first used."""
    path = Path(module.__file__ or "")
    if not any(isinstance(each, DeferredPattern) for each in vars(module).values()):
        return
    for node in Source(path).tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        pattern = vars(module).get(target.id) if isinstance(target, ast.Name) else None
        if isinstance(pattern, DeferredPattern):
            compiled = pattern.compiled
            yield _Made(path, node.lineno, compiled.pattern, compiled.flags & ~re.UNICODE)


def _modules() -> list[str]:
    # What runs inside of the sandbox is not ours to import here; its source is read all the same.
    inside = ("stratagem.gateway.sandbox.inside", "stratagem.gateway.sandbox.attacks")
    names = (each.name for each in pkgutil.walk_packages([str(PACKAGE)], "stratagem."))
    return [name for name in names if not name.startswith(inside) and "__main__" not in name]


class Source:
    """The source of one module: where its patterns stand, and how they are used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        text = path.read_text("utf-8")
        self._lines = text.splitlines()
        self.tree = ast.parse(text)
        self.stem = path.stem
        # Walked but once: the package has a million of them.
        self._nodes = list(ast.walk(self.tree))
        self._calls = [node for node in self._nodes if _is_of_re(node)]

    def place(self, line: int) -> str:
        """Return where a line is, as one would write it."""
        return f"{self._path.relative_to(PACKAGE)}:{line}"

    def pattern(self, made: _Made, uses: Mapping[str, set[str] | None]) -> Pattern:
        """Return a pattern with how it is used, as far as the source tells."""
        used = uses.get(self._name_at(made.line)) or METHODS
        direct = self._function_at(made.line)
        in_bytes = isinstance(made.text, bytes)
        return Pattern(
            self.place(made.line),
            made.text.decode("latin-1") if isinstance(made.text, bytes) else made.text,
            made.flags,
            (direct,) if direct in METHODS else tuple(sorted(used)),
            self._bound_above(made.line),
            in_bytes,
        )

    def written_out(self) -> Iterator[tuple[int, str | bytes, int]]:
        """Yield the patterns that stand in a call as they are."""
        for call in self._calls:
            given = call.args[0] if call.args else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str | bytes):
                more = [*call.args[1:], *(each.value for each in call.keywords)]
                yield call.lineno, given.value, _flags_in(more)

    def uses(self) -> Iterator[tuple[str, str | None]]:
        """Yield each name with a method that is called on it; None where it is used otherwise."""
        called = {id(each.value) for each in self._nodes if isinstance(each, ast.Attribute)}
        for node in self._nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                method = "sub" if node.attr in _AS_SUB else node.attr
                yield f"{self.stem}.{node.value.id}", method if method in METHODS else None
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if id(node) not in called:
                    yield f"{self.stem}.{node.id}", None
            elif isinstance(node, ast.ImportFrom):
                module = (node.module or "").rpartition(".")[2]
                yield from ((f"{module}.{each.name}", None) for each in node.names)

    def made_when_needed(self) -> Iterator[str]:
        """Yield the functions in which patterns are put together."""
        functions = [
            each for each in self._nodes if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        ]
        for call in self._calls:
            around = [each for each in functions if _is_within(call, each)]
            if around and not (call.args and isinstance(call.args[0], ast.Constant)):
                yield f"{self._path.relative_to(PACKAGE)}:{around[-1].name}"

    def _function_at(self, line: int) -> str:
        """Return the function of `re` that is called at a line."""
        for call in self._calls:
            if call.lineno <= line <= (call.end_lineno or line):
                if isinstance(call.func, ast.Name):
                    return "compile"
                assert isinstance(call.func, ast.Attribute)
                return "sub" if call.func.attr in _AS_SUB else call.func.attr
        return ""

    def _name_at(self, line: int) -> str:
        """Return the name that a pattern is given where it stands, if it is given one."""
        node = self._statement_at(line)
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0]
        value = getattr(node, "value", None)
        if not isinstance(target, ast.Name) or value not in self._calls:
            return ""
        return f"{self.stem}.{target.id}"

    def _bound_above(self, line: int) -> int | None:
        """Return how long a comment says that the texts of a pattern are at most."""
        node = self._statement_at(line)
        begin = node.lineno if node is not None else line
        for text in reversed(self._lines[: begin - 1]):
            if not text.strip().startswith("#"):
                return None
            if named := _NAMED_BOUND.search(text):
                return int(named[1].replace(",", ""))
        return None

    def _statement_at(self, line: int) -> ast.stmt | None:
        found = (each for each in self.tree.body if each.lineno <= line <= (each.end_lineno or 0))
        return next(found, None)


def _is_of_re(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == "deferred_pattern"
    return (
        isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in _MODULE_FUNCTIONS
    )


def _is_within(node: ast.expr, other: ast.stmt) -> bool:
    return other.lineno <= node.lineno <= (other.end_lineno or 0)


def _uses(sources: Iterable[Source]) -> dict[str, set[str] | None]:
    """Return for each name in a module how it is used; None where others may use it as well."""
    uses: dict[str, set[str] | None] = {}
    for source in sources:
        for name, method in source.uses():
            known = uses.setdefault(name, set())
            if method is None or known is None:
                uses[name] = None
            else:
                known.add(method)
    return uses


def _flags_in(nodes: Sequence[ast.expr]) -> int:
    """Return the flags that are named among the arguments of a call."""
    names = [
        each.attr for node in nodes for each in ast.walk(node) if isinstance(each, ast.Attribute)
    ]
    return sum(
        {
            int(getattr(re, name))
            for name in names
            if isinstance(getattr(re, name, None), re.RegexFlag)
        }
    )


# --------------------------------------------------------------------------- processes


def try_all(patterns: Sequence[Pattern], attacks_max: int = ATTACKS_MAX) -> list[Verdict]:
    """Try patterns in processes that can be ended, for `re` cannot be."""
    shares = [patterns[number::_PROCESSES] for number in range(_PROCESSES)]
    with ThreadPoolExecutor(_PROCESSES) as pool:
        found = pool.map(lambda share: list(_verdicts(share, attacks_max)), shares)
        return [verdict for verdicts in found for verdict in verdicts]


def _verdicts(patterns: Sequence[Pattern], attacks_max: int) -> Iterator[Verdict]:
    """Yield what a process finds; a pattern at which it hangs is wrong, and another goes on."""
    left = list(patterns)
    while left:
        with _child("--try", str(attacks_max)) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps([asdict(each) for each in left]))
            process.stdin.close()
            for line in _lines(process):
                found = json.loads(line)
                attack = Attack(**found["attack"]) if found["attack"] else None
                yield Verdict(**{**found, "attack": attack})
                left = left[1:]
        if left:
            yield Verdict(left[0].place, left[0].text, 1, math.inf, wrong=True)
            left = left[1:]


def _child(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.security.patterns", *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _lines(process: subprocess.Popen[str]) -> Iterator[str]:
    """Yield what a process says, until it ends or says nothing for too long."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(PATTERN_SECONDS):
            line = process.stdout.readline()
            if not line:
                return
            yield line
    process.kill()


@cache
def collect_apart() -> list[Pattern]:
    """Return every pattern of the package, found in a process of its own."""
    with _child("--collect") as process:
        said, _ = process.communicate()
    return [Pattern(**{**each, "methods": tuple(each["methods"])}) for each in json.loads(said)]


def _try_given(attacks_max: int) -> None:
    signal.signal(signal.SIGPROF, _interrupt)
    for given in json.loads(sys.stdin.read()):
        print(json.dumps(asdict(try_pattern(Pattern(**given), attacks_max))), flush=True)


def _report() -> int:
    """Print what was tried, and the worst of it."""
    began = time.perf_counter()
    verdicts = sorted(try_all(collect_apart()), key=lambda each: (-each.wrong, -each.growth))
    tried, wrong = sum(each.tried for each in verdicts), sum(each.wrong for each in verdicts)
    print(f"patterns tried: {len(verdicts)}")
    print(f"attacks: {tried:,} in {time.perf_counter() - began:.0f} s")
    print(f"worst growth on {FACTOR} times the text: {verdicts[0].growth:.1f}")
    print(f"super-linear (more than {GROWTH_MAX:g}): {wrong}\n")
    print(f"{'growth':>8} {'ms':>8}  place, way and attack")
    for each in verdicts[: max(_SHOWN, wrong)]:
        text = f"{each.place} {each.method} {each.shown}"
        print(f"{each.growth:8.1f} {1000 * each.seconds:8.2f}  {text[:150]}")
    return int(wrong > 0)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--try", most]:
            _try_given(int(most))
        case ["--collect"]:
            # Of the trees of all modules nothing is garbage; looking for some took half of the time.
            gc.disable()
            print(json.dumps([asdict(each) for each in collect()]))
        case _:
            sys.exit(_report())
