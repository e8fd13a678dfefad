"""Frames of a stack, in the ways that languages write them.

A frame is a function and the file it is in. Line, column and address are left out, and of the
file the directories; where the function has its module before it (`com.shop.Cart.add`,
`main.run`, `shop::cart::add`) the file is left out too. Names that a compiler, a proxy or a
bundler made up lose what they made up.

A frame is of the *system* when it belongs to the language, a library or a framework. Those
count only where a stack has no others: the same mistake may pass through another version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from stratagem.debugging.signatures import paths

__all__ = ["SHOWN", "Frame", "frame", "module_frame", "python_frame", "telling"]

FRAMES_MAX: Final = 30
_NAME_CHARS_MAX: Final = 160


class Frame(NamedTuple):
    """A function, its file where the name does not say its module, and whose it is."""

    name: str
    file: str
    system: bool = False

    def __str__(self) -> str:
        """Return the frame as a signature shows it."""
        return "  in " + " ".join(filter(None, (self.name, f"({self.file})" if self.file else "")))


# A frame as a signature shows it.
SHOWN: Final = re.compile(r"^  in (?P<name>[^\s()]\S*)?(?:(?(name) )\((?P<file>[^\s()]+)\))?$")

# Oldest first, the line of source below.
_PYTHON: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r'^\s*File "(?P<file>[^"]{1,500})", line \d+(?:, in (?P<name>.{1,200}))?\s*$',
        r"^File (?P<file>\S{1,500}\.pyx?):\d+(?:, in (?P<name>[\w.<>]{1,200}))?.{0,500}$",
        r"^(?P<file>Cell) In ?\[\d+\], line \d+(?:, in (?P<name>[\w.<>]{1,200}))?.{0,500}$",
        r"^(?P<file><ipython-input-[\w-]{1,60}>) in (?P<name>[\w.<>]{1,200})\(.{0,500}$",
        r"^(?P<file>[/~.]?[\w./\\-]{1,300}\.py) in (?P<name>[\w.<>]{1,200})\(.{0,500}$",
        r"^(?P<file>[\w./\\-]{1,300}\.py):\d+: in (?P<name>[\w.<>]{1,200})$",
    )
)
# Newest first. A module stands in the name where the group is called `path`.
_OTHERS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # Java and its kin
        r"^\s*at (?:[\w.-]{1,60}(?:@[\w.]{1,30})?/{1,2})?(?P<path>[\w$]+(?:[./][\w$<>-]+)+)"
        r"\((?P<file>Native Method|Unknown Source|[^\s():]{1,100})(?::\d+)?\)(?: [~\[].{0,200})?$",
        # JavaScript
        r"^\s*at (?:async )?(?:new )?(?P<name>[^()]{1,200}?) \((?P<file>[^()\s][^()]{0,500}?)(?::\d+){0,2}\)(?: \{)?$",
        r"^\s*at (?:async )?(?P<file>(?:[\w+-]{2,20}:|/|\.{1,2}/|[A-Za-z]:\\|<)[^\s()]{0,500}?)(?::\d+){0,2}(?: \{)?$",
        r"^(?P<name>[^\s@]{0,200})@(?P<file>[a-z-]{2,20}://[^\s]{1,500}?):\d+:\d+$",
        # .NET
        r"^\s*at (?P<path>[\w$<>`+.|,\[\]]{3,300})\([^()]{0,500}\)(?: in (?P<file>.{1,500}?):line \d+)?$",
        # PHP, then Ruby
        r"^#\d+ (?P<file>\S{1,500}\.php)\(\d+\): (?P<name>[^(]{1,200})\(.{0,1000}$",
        r"^\s*(?:from )?(?P<file>\S{1,500}\.rb):\d+:in ['`](?P<name>[^']{1,200})'$",
        # gdb, then the sanitizers
        r"^\s*#\d+ +(?:0x[0-9a-f]+ in )?(?P<name>[^\s(][^(]{0,300}?) ?\(.{0,1000}\)(?: const)?"
        r"(?: (?:at|from) (?P<file>\S{1,500}?)(?::\d+)?)?$",
        r"^\s*#\d+ +0x[0-9a-f]+ in (?P<name>.{1,500}?) (?P<file>\(?/\S{1,500}|<null>|\S{1,300}\.\w{1,4}:\d\S*)(?: \(BuildId.{0,100})?$",
        r"^\s*#\d+ +0x[0-9a-f]+ +\((?P<file>\S{1,500})\)(?: \(BuildId.{0,100})?$",
    )
)
_COMPREHENSIONS: Final = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})

_MADE_UP: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\$\$Lambda(?:[$/][\w/]*)?", "$Lambda"),
        (r"\$\$(?:Enhancer|FastClass|SpringCGLIB|KeyFactory|_javassist)\w*(?:\$\$\w+)*", ""),
        (r"\blambda\$([\w$]+?)\$\d+\b", r"lambda$\1"),
        (r"(\$Proxy|Accessor)\d+", r"\1"),
        (r"\$\d+(?=\W|$)", ""),
        (r"\$default$|-impl$", ""),
        (r"(?:\.func|\.gowrap|-fm\b)[\d.]*(?:\.\d+)*(?=\W|$)", ".func"),
        (r"\[\.\.\.\]|\[\[?(?:[0-9a-f]{8,16}|hex)\]?\]", ""),
        (r"::h[0-9a-f]{16}$", ""),
        (r"\{\{closure\}\}|\{closure(?:#\d+|_env#\d+)?\}|\{impl#\d+\}|\{\{impl\}\}", "{closure}"),
        (r"^<(.{1,200}?) as .{1,200}?>(?=::)", r"\1"),
        (r" \[(?:as|clone) [^\]]*\]", ""),
        (r"(?:\.(?:isra|constprop|part|cold|lto_priv)(?:\.\d+)?)+$", ""),
        (r"@@?[A-Z]+_[\d.]+$|\+0x[0-9a-f]+$", ""),
        (r"^(?:async |new |Object\.|Module\.|Function\.|global\.|exports\.)+(?=.)", ""),
        (r"<anonymous>|\(anonymous(?: function)?\)|^anonymous$|^eval$|\.<computed>", ""),
        (r"<(\w+)>[a-z]__\w+(?:\|[\d_]+)?", r"\1"),
        (r"`\d+", ""),
    )
)
_TEMPLATE: Final = re.compile(r"(?<=[\w>])<[^<>]*>")
_TEMPLATE_DEPTH_MAX: Final = 8

_SYSTEM_FILE: Final = re.compile(
    r"""(?x) (?:site|dist)-packages[/\\] | \blib(?:64)?[/\\]python\d | [\\/]python\d*[\\/]lib[\\/]
    | ^<(?:frozen|__array_function__|decorator-gen|attrs\ generated|string>_) | node_modules[/\\] | ^node: | ^internal/
    | ^native | ^<anonymous>$ | ^<null>$ | ^index\ \d | webpack/(?:runtime|bootstrap)
    | /(?:usr/local|usr/lib|opt)/go[\d.-]*/src/ | /go/pkg/mod/ | /libexec/src/ | /golang\.org/toolchain
    | \.cargo[/\\] | ^/?rustc/ | ^/lib(?:32|64)?/ | ^/usr/(?:lib|include)(?:32|64)?/ | ^\.\.?/(?:sysdeps|nptl|csu|stdlib|elf|malloc|string)/
    | \.(?:so|dylib|dll)(?:[.\d]*)(?:\+0x\w+)?\)?$ | /gems/ | /vendor/ | ^Native\ Method$ | libsanitizer"""
)
_SYSTEM_NAME: Final = re.compile(
    r"""(?x) ^(?:
    (?:java|javax|jdk|jakarta|sun|com\.sun|kotlin|kotlinx|scala|groovy|clojure|android|androidx|com\.android|dalvik)[./]
    | (?:junit|reactor|okhttp3|retrofit2|rx|akka|play|feign|lombok|oracle)\.
    | org\.(?:springframework|apache|hibernate|junit|eclipse|gradle|jboss|mockito|testng|slf4j|postgresql|codehaus|graalvm|aspectj|jetbrains)\.
    | io\.(?:netty|micrometer|grpc|undertow|reactivex|vertx|quarkus|micronaut)\.
    | com\.(?:zaxxer|fasterxml|google\.common|google\.inject|mysql|intellij|netflix|rabbitmq)\. | ch\.qos\.
    | System\. | Microsoft\.
    | (?:runtime|testing|reflect|sync|net/http|internal|os|bufio|io|encoding|database/sql|syscall)(?:/[\w/]+)?\.
    | <?(?:std|core|alloc|tokio|futures\w*|test|backtrace|anyhow|rayon\w*|hyper)(?:\[[0-9a-f]+\])?:: | rust_(?:begin|panic)|__rust|_rust
    | __libc|__GI_|__cxa|__gnu|__asan|__ubsan|__tsan|__interceptor|__pthread|_start$|start_thread$|__clone|clone\d?$|raise$|abort$|_Unwind
    | operator\ (?:new|delete) | malloc$|free$|calloc$|realloc$|memcpy$|strlen$|main\ thread
    | (?:Module\._|Function\.executeUserEntryPoint|process\.processTicks|Array\.|Promise\b|new\ Promise|__webpack_require__|processTicksAndRejections)
    | \?\?$ | <unknown>$
    )"""
)


def shown(line: str) -> Frame | None:
    """Return the frame that a line of a signature shows, if it shows one."""
    match = _SHOWN.match(line)
    if match is None or not (match["name"] or match["file"]):
        return None
    return Frame(match["name"] or "", match["file"] or "")


def python_frame(line: str) -> Frame | None:
    """Return the frame that a line of a Python traceback shows, if it shows one."""
    for pattern in _PYTHON:
        if (match := pattern.match(line)) is not None:
            return python(match["file"], match["name"] or "")
    return None


def python(file: str, name: str) -> Frame:
    """Return the frame of a Python function."""
    # Python 3.12 runs a comprehension inside of the function around it, without a frame.
    system = bool(_SYSTEM_FILE.search(file)) or name in _COMPREHENSIONS
    return Frame(_tidy(name), _tidy_file(file), system)


def frame(line: str) -> Frame | None:
    """Return the frame that a line of any other stack shows, if it shows one."""
    for pattern in _OTHERS:
        if (match := pattern.match(line)) is not None:
            found = match.groupdict()
            return _frame(found.get("path"), found.get("name"), found.get("file"))
    return None


def module_frame(name: str, file: str) -> Frame:
    """Return the frame of a function whose name says its module; of none, its file."""
    return _frame(name or None, None, file)


def telling(found: Iterable[Frame], *, ours: bool) -> list[Frame]:
    """Return the frames that count: each once, the newest thirty, only ours if so asked."""
    once = {str(frame): frame for frame in reversed([*found]) if not (ours and frame.system)}
    return [frame for frame in reversed(once.values()) if frame.name or frame.file][:FRAMES_MAX]


def _frame(path: str | None, name: str | None, file: str | None) -> Frame:
    full, where = path or name or "", file or ""
    system = bool(_SYSTEM_NAME.match(full) or "$$Lambda" in full or _SYSTEM_FILE.search(where))
    return Frame(_tidy(full), "" if path else _tidy_file(where), system)


def _tidy(name: str) -> str:
    """Return a function's name without what was made up, arguments and white space."""
    for pattern, replacement in _MADE_UP:
        name = pattern.sub(replacement, name)
    if "::" in name or "<" in name[1:]:
        name = _without_templates(name)
    name = name.partition("(")[0] if "(" in name[1:] and not _RECEIVER.search(name) else name
    return "".join(name.split())[:_NAME_CHARS_MAX].strip(".")


_RECEIVER: Final = re.compile(r"\.\(\*?\w")


def _without_templates(name: str) -> str:
    for _ in range(_TEMPLATE_DEPTH_MAX):
        shorter = _TEMPLATE.sub("", name)
        if shorter == name:
            break
        name = shorter
    return name


def _tidy_file(file: str) -> str:
    return "_".join(re.sub(r"(?::\d+)+$|^\(|\)$|\+0x\w+", "", paths.base(file)).split())
