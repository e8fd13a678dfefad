"""Frames of a stack, in the ways that languages write them.

A frame is a function and the file it is in. Line, column and address are left out, and of the
file the directories; where the function has its module before it (`com.shop.Cart.add`,
`main.run`, `shop::cart::add`) the file is left out too.

Frames of the system count only where a stack has no others, because the same mistake may pass
through another version of a library. A frame counts once, where it is newest: that is what a
recursion comes down to, whatever its depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from stratagem.debugging.signatures import paths, provenance
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import cache_texts

__all__ = [
    "Frame",
    "file_frame",
    "frame",
    "module_frame",
    "parse_signature_frame",
    "python_frame",
    "python_function_frame",
    "relevant_frames",
]

_FRAMES_MAX: Final = 30
_NAME_CHARS_MAX: Final = 160
_TEMPLATE_DEPTH_MAX: Final = 8


class Frame(NamedTuple):
    """A function, its file where the name does not say its module, and whose it is."""

    name: str
    file: str
    system: bool = False

    def __str__(self) -> str:
        """Return the frame as a signature shows it."""
        file = f"({self.file})" if self.file else ""
        return "  in " + " ".join(filter(None, (self.name, file)))


# A frame as a signature shows it.
_SHOWN: Final = re.compile(r"^  in (?P<name>[^\s()]\S*)?(?:(?(name) )\((?P<file>[^\s()]+)\))?$")

# Python, IPython and pytest: the oldest first.
_PYTHON: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r'^\s*File "(?P<file>[^"]{1,500})", line \d++(?:, in (?P<name>.{1,200}))?\s*$',
        r"^File (?P<file>\S{1,500}\.pyx?):\d++(?:, in (?P<name>[\w.<>]{1,200}))?.{0,500}$",
        r"^(?P<file>Cell) In ?\[\d+\], line \d++(?:, in (?P<name>[\w.<>]{1,200}))?.{0,500}$",
        r"^(?P<file><ipython-input-[\w-]{1,60}>) in (?P<name>[\w.<>]{1,200})\(.{0,500}$",
        r"^(?P<file>[/~.]?[\w./\\-]{1,300}\.py) in (?P<name>[\w.<>]{1,200})\(.{0,500}$",
        r"^(?P<file>[\w./\\-]{1,300}\.py):\d+: in (?P<name>[\w.<>]{1,200})$",
    )
)

_LINE: Final = r"(?::\d+){0,2}"
_ADDRESS: Final = r"0x[0-9a-f]{1,16}"
_BUILD: Final = r"(?: \(BuildId.{0,100})?"
_JAVA: Final = (
    r"^\s*at (?:[\w.-]{1,60}(?:@[\w.]{1,30})?/{1,2})?(?P<path>[\w$]+(?:[./][\w$<>-]+)+)"
    r"\((?P<file>Native Method|Unknown Source|[^\s():]{1,100})(?::\d+)?\)(?: [~\[].{0,200})?$"
)
_JAVASCRIPT: Final = (
    r"^\s*at (?:async )?(?:new )?(?P<name>[^()]{1,200}?)"
    rf" \((?P<file>[^()\s][^()]{{0,500}}?){_LINE}\)(?: \{{)?$"
)
_JAVASCRIPT_FILE: Final = (
    r"^\s*at (?:async )?(?P<file>(?:[\w+-]{2,20}:|/|\.{1,2}/|[A-Za-z]:\\|<)[^\s()]{0,500}?)"
    rf"{_LINE}(?: \{{)?$"
)
_FIREFOX: Final = r"^(?P<name>[^\s@]{0,200})@(?P<file>[a-z-]{2,20}://\S{1,500}?):\d+:\d+$"
_DOTNET: Final = (
    r"^\s*at (?P<path>[\w$<>`+.|,\[\]]{3,300})\([^()]{0,500}\)"
    r"(?: in (?P<file>.{1,500}?):line \d+)?$"
)
_PHP: Final = r"^#\d+ (?P<file>\S{1,500}\.php)\(\d+\): (?P<name>[^(]{1,200})\(.{0,1000}$"
_RUBY: Final = r"^\s*(?:from )?(?P<file>\S{1,500}\.rb):\d+:in ['`](?P<name>[^']{1,200})'$"
_GDB: Final = (
    rf"^\s*#\d+ +(?:{_ADDRESS} in )?(?P<name>[^\s(][^(]{{0,300}}?) ?\((?!/).{{0,1000}}\)(?: const)?"
    r"(?: (?:at|from) (?P<file>\S{1,500}?)(?::\d+)?)?$"
)
_SANITIZER: Final = (
    rf"^\s*#\d+ +{_ADDRESS} in (?P<name>.{{1,500}}?)"
    rf" (?P<file>\(?/\S{{1,500}}|<null>|\S{{1,300}}\.\w{{1,4}}:\d\S*){_BUILD}$"
)
_SANITIZER_FILE: Final = rf"^\s*#\d+ +{_ADDRESS} +\((?P<file>\S{{1,500}})\){_BUILD}$"

# Everybody else: the newest first. The group `path` is a name with its module.
_OTHERS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        *(_JAVA, _JAVASCRIPT, _JAVASCRIPT_FILE, _FIREFOX, _DOTNET, _PHP, _RUBY),
        *(_GDB, _SANITIZER, _SANITIZER_FILE),
    )
)
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
_TEMPLATE: Final = re.compile(r"(?<=[\w>])<[^<>]*>")
# `main.(*Cart).add`: the brackets of Go are part of the name.
_RECEIVER: Final = re.compile(r"\.\(\*?\w")
_FILE_REST: Final = re.compile(r"(?::\d{1,9}){1,4}$|^\(|\)$|\+0x\w+")


def parse_signature_frame(line: str) -> Frame | None:
    """Return the frame that a line of a signature shows, if it shows one."""
    match = _SHOWN.match(line)
    if match is None or not (match["name"] or match["file"]):
        return None
    return Frame(match["name"] or "", match["file"] or "")


def python_frame(line: str) -> Frame | None:
    """Return the frame that a line of a Python traceback shows, if it shows one."""
    for pattern in _PYTHON:
        if (match := pattern.match(line)) is not None:
            return python_function_frame(match["file"], match["name"] or "")
    return None


def python_function_frame(file: str, name: str) -> Frame:
    """Return the frame of a Python function."""
    # Python 3.12 runs a comprehension inside of the function around it, without a frame.
    system = provenance.is_system_file(file) or name in _COMPREHENSIONS
    return Frame(_tidy(name), _tidy_file(file), system)


def frame(line: str) -> Frame | None:
    """Return the frame that a line of any other stack shows, if it shows one."""
    for pattern in _OTHERS:
        if (match := pattern.match(line)) is None:
            continue
        found = match.groupdict()
        file = found.get("file") or ""
        if path := found.get("path"):
            return module_frame(path, file)
        name = found.get("name") or ""
        return Frame(_tidy(name), _tidy_file(file), provenance.is_system(name, file))
    return None


def module_frame(name: str, file: str) -> Frame:
    """Return the frame of a function whose name says its module."""
    return Frame(_tidy(name), "", provenance.is_system(name, file))


def file_frame(file: str) -> Frame:
    """Return a frame of which only the file is known."""
    return Frame("", _tidy_file(file), provenance.is_system_file(file))


def relevant_frames(found: Iterable[Frame], *, ours: bool) -> list[Frame]:
    """Return the frames that count: each once, the newest thirty, only ours if so asked."""
    wanted = (frame for frame in found if frame.name or frame.file)
    once: dict[str, Frame] = {}
    for frame in wanted:
        if not (ours and frame.system):
            once.setdefault(str(frame), frame)
    return list(once.values())[:_FRAMES_MAX]


# Deep stacks are made of few functions.
@cache_texts(1_024)
def _tidy(name: str) -> str:
    """Return a function's name without what was made up, arguments and white space."""
    name = provenance.without_made_up(name)
    if "::" in name or "<" in name[1:]:
        name = _without_templates(name)
    if "(" in name[1:] and not _RECEIVER.search(name):
        name = name.partition("(")[0]
    return "".join(name.split())[:_NAME_CHARS_MAX].strip(".")


def _without_templates(name: str) -> str:
    for _ in range(_TEMPLATE_DEPTH_MAX):
        shorter = _TEMPLATE.sub("", name)
        if shorter == name:
            break
        name = shorter
    return name


@cache_texts(1_024)
def _tidy_file(file: str) -> str:
    return "_".join(_FILE_REST.sub("", paths.base(file)).split())
