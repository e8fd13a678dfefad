"""From one message to what every message of its kind has in common.

One pass from left to right over one table of rules (`patterns`). At each place the first rule
that fits decides: what is kept comes first, then the values, from the most telling shape (an
e-mail address) to the least (a number), then words.

* A code stays, because it says what went wrong: errno, HTTP status, exit code, SQLSTATE.
* A name stays where the words before it say that it is one: `No module named 'x2'`.
* A package stays with the major version that is asked for: `chalk@^5.3.0` is `chalk@5`.
* Of an address of a registry the package stays: `<url>/chalk`. All other addresses are values.
* A value becomes a placeholder. Integers, floats and versions share one, and so do all
  addresses: which of them it was is part of the value.
* A path becomes the name at its end. Where something is used up (a disk, handles of files), or what
  is said holds for all files alike (a policy, a processor), it only says which one happened to be
  next, and is a value; so is what stands in quotes there, and who imports what cannot be loaded.
* Of a word the digits at its end go: `user_123` is `user_<n>`.

A message is cut before it is read. What comes out stays as it is when it goes in again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from stratagem.debugging.signatures import paths
from stratagem.debugging.signatures.patterns import PATTERNS, WHERE
from stratagem.debugging.signatures.vocabulary import PATH_WORDS, PORTS, REGISTRY_HOSTS
from stratagem.deferred_tuples import NamedTuple
from stratagem.function_cache import FunctionCache, cache_texts

__all__ = ["CHARS_READ_MAX", "NamedParts", "named_parts", "normalise", "numbers", "packages"]

# Longer messages carry whole documents; what they say, they say at the beginning.
CHARS_READ_MAX: Final = 1_200
_CHARS_MAX: Final = 600
# So short are the pieces of an id that was drawn by lot: letters of one case, or digits.
_PIECE_CHARS_MEAN: Final = 2.6
_PATH_PARTS_MAX: Final = 3

_QUOTES: Final = str.maketrans(
    dict.fromkeys('"`´‘’‚‛“”„‹›«»', "'")  # noqa: RUF001
    # Lines that a terminal draws around what is said.
    | dict.fromkeys(map(chr, range(0x2500, 0x2580)), " ")
)
# Names go only behind the words that say so: what asked for it may be named in front.
_OF_ANY_FILE: Final = re.compile(
    r"\b(?:E(?:DQUOT|MFILE|NAMETOOLONG|NFILE|NOEXEC|NOSPC|ROFS)\b"
    r"|(?:[Nn]o space left on|[Nn]ot enough space on)\b"
    r"|[Tt]oo many open files\b|[Dd]isk quota exceeded\b|[Rr]ead-only file system\b"
    r"|[Ff]ile ?name too long\b|[Ee]xec format error\b|dubious ownership in repository\b"
    r"|running scripts is disabled on this system\b)"
)
_QUOTED: Final = re.compile(r"'[^']{1,400}'")
# Behind what was not found or could not be loaded: who asked for it.
_IMPORTER: Final = re.compile(
    r"(?P<asked>\b(?:imported from|ES Module \S{1,300} from"
    r"|(?:[Cc](?:an't|ould not) resolve|[Cc]annot find (?:module|package)"
    r"|[Ff]ailed to resolve import) '[^']{1,300}' (?:from|in)) )"
    r"(?:'[^']{1,400}'|[^\s']{0,200}[/\\.][^\s']{0,200})"
)
_PATHS: Final = frozenset({"path", "file"})
_HTTP_VERSION: Final = re.compile(r"HTTP/\d(?:\.\d)?")
_WHERE_AT_END: Final = re.compile(rf"{WHERE}$")
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
# `x.c` is short, but it is the name of a file.
_WORD: Final = re.compile(r"[^\W\d_]{2}|[^\W\d_]\.[A-Za-z]")
# Letters and digits in turn, again and again: no word is built like that.
_DRAWN: Final = re.compile(
    r"(?=.{8})[^\W\d_]*(?:\d+[^\W\d_]+){2,}\d*$|(?=.{6})[^\W\d_]*(?:\d+[^\W\d_]+){2,}\d+$"
)
_PIECE: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
# Letters without digits: words have vowels, few rare letters, and do not change case all the time.
# They know six in ten runs of ten letters drawn by lot, and take six words of 6,000 for one.
_LETTERS: Final = re.compile(r"[A-Za-z]{8,64}")
_CONSONANTS: Final = re.compile(r"[bcdfghjklmnpqrstvwxz]+")
_CONSONANTS_NEVER: Final = 8
_CONSONANTS_ODD: Final = 5
_VOWELS_ODD: Final = 0.3
_CASED_CHARS_MIN: Final = 10
_CASED_PIECE_MEAN: Final = 2.2
_OPENED_BY: Final = {")": "(", "]": "[", "}": "{"}
_SIGNS: Final = re.compile(r"([+/_=-]+)")
# As many as there happened to be: the shape of an array, a list of ids.
_NUMBERS: Final = re.compile(r"<n>(?:(?:, ?| x )<n>)+,?")
_NAMING: Final = frozenset({"command", "library", "package"})
_FIRST_NUMBER: Final = re.compile(r"\d+|\*")
# How Maven calls what it looks for, beside its name.
_PACKAGING: Final = re.compile(r":(?:jar|pom|war|aar|ear|bundle|klib)$")
_ARCHIVE: Final = re.compile(
    r"\.(?:tar\.\w{1,4}|tgz|zip|whl|gem|crate|jar|pom|war|aar|deb|rpm|apk|nupkg|git|json|info|mod"
    r"|metadata)$"
)
# At most 1000 characters: a part of an address, which has no line ends.
# `numpy-2.1.0-cp312-cp312-linux_x86_64` is numpy, `curl_7.68.0-1ubuntu2.18_amd64` is curl.
_BEHIND_NAME: Final = re.compile(r"[-_@]v?\d{1,9}(?:[._-].*)?$")
_VERSION_PART: Final = re.compile(r"@?v?\d[\w.+-]*$|@\w$")
# At most 300 characters: a host is cut before it gets here.
_REGISTRY: Final = re.compile(rf"(?:^|[.-])(?:{'|'.join(REGISTRY_HOSTS)})\d{{0,2}}(?=[.:-]|$)")
_HOST_CHARS_MAX: Final = 300
# What cannot stand in a name.
_UNNAMED: Final = re.compile(r"[^\w.@+-]")
_NAME_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
_MASKED: Final = {"token": "value", "secret": "value", "key": "value"}


# A message is normalised for its signature, its headline and the names in it.
@cache_texts(256)
def normalise(message: str) -> str:
    """Return a message with its values replaced, on one line of at most 600 characters."""
    plain = _IMPORTER.sub(r"\g<asked><path>", _on_one_line(message))
    of_any = _OF_ANY_FILE.search(plain)
    if of_any:
        behind = of_any.end()
        plain = plain[:behind] + _QUOTED.sub("'<path>'", plain[behind:])
    pieces: list[str] = []
    end = 0
    for match in _find_parts(plain):
        is_value = of_any and match.lastgroup in _PATHS
        pieces += plain[end : match.start()], "<path>" if is_value else _replace(match)
        end = match.end()
    scanned = _NUMBERS.sub("<n>", "".join([*pieces, plain[end:]]))
    return _truncate(" ".join(scanned.split()))


def _on_one_line(message: str) -> str:
    return " ".join(message[:CHARS_READ_MAX].translate(_QUOTES).split())


# For its values and then for what it names, one message is searched twice in a row. Few, because
# each match holds a kilobyte.
@cache_texts(4)
def _find_parts(message: str) -> list[re.Match[str]]:
    """Return what the rules find in a message."""
    return list(_SCANNER.finditer(message))


class NamedParts(NamedTuple):
    """What a message names (modules, commands, packages), and the packages of its addresses."""

    names: tuple[str, ...]
    resources: tuple[str, ...]


@cache_texts(256)
def named_parts(message: str) -> NamedParts:
    """Return what a message names, as it was written or normalised."""
    names, resources = [], []
    for match in _find_parts(message):
        kind = match.lastgroup
        if kind == "named":
            names.append(match["name"])
        elif kind == "requirement":
            names.append(match["package_name"])
        elif kind in _NAMING:
            names.append(match[0])
        elif kind == "url_placeholder":
            resources.append(match[0].partition("/")[2])
        elif kind == "url":
            resources.append(_resource_name(_without_tail(match[0]).partition("://")[2]))
    return NamedParts(tuple(names), tuple(filter(None, resources)))


def numbers(message: str) -> list[str]:
    """Return the numbers of a message that normalisation takes for values, in their order."""
    return [each[0] for each in _find_parts(_on_one_line(message)) if each.lastgroup == "number"]


def packages(message: str) -> frozenset[str]:
    """Return the packages, modules and commands that a message names, each by its short name."""
    named = named_parts(_on_one_line(message))
    return frozenset(filter(None, map(_short_name, (*named.names, *named.resources))))


def _short_name(name: str) -> str:
    """Return the last part of a name, as one registry spells it like another; a scope stays."""
    scoped = name if name.startswith("@") else re.split(r"[/:]", name)[-1]
    return scoped.lower().replace("_", "-").removesuffix(".git")


def _scan(text: str) -> str:
    return _SCANNER.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    assert match.lastgroup is not None, "every rule is a group"
    replacement = _REPLACEMENTS[match.lastgroup]
    return replacement if isinstance(replacement, str) else replacement(match)


def _truncate(text: str) -> str:
    if len(text) <= _CHARS_MAX:
        return text
    return text[:_CHARS_MAX].rpartition(" ")[0] or text[:_CHARS_MAX]


def _keep(match: re.Match[str]) -> str:
    return match[0]


def _code(match: re.Match[str]) -> str:
    return _HTTP_VERSION.sub("HTTP", match[0])


def _replace_redacted(match: re.Match[str]) -> str:
    """Return our placeholder for what redaction has replaced by one of its own."""
    name = match[0][1:-1]
    return f"<{_MASKED.get(name, name)}>"


def _keep_name(match: re.Match[str]) -> str:
    """Keep a name to the letter; of one that is a path, its end."""
    name = match["name"]
    if name.startswith(("/", "~")) or name[1:3] == ":\\":
        name = paths.base(name)
    return _scan(match["named_context"]) + name


def _replace_value(match: re.Match[str]) -> str:
    return f"{_scan(match['valued_context'])}'<value>'"


def _replace_host(match: re.Match[str]) -> str:
    return match["hosted_context"] + _host(match)


def _host(match: re.Match[str]) -> str:
    """Keep a well-known port: it names the service."""
    port = match[0].rpartition(":")[2]
    return f"<host>:{port}" if port.isdecimal() and int(port) in PORTS else "<host>"


def _port(match: re.Match[str]) -> str:
    number = match["port_number"]
    return match[0] if int(number) in PORTS else match[0].replace(number, "<n>")


def _url(match: re.Match[str]) -> str:
    address = _without_tail(match[0])
    rest = match[0][len(address) :]
    scheme, _, path = address.partition("://")
    if scheme == "file" or scheme.startswith("webpack"):
        return _scan(path) + rest
    name = _resource_name(path)
    return f"<url>/{name}{rest}" if name else f"<url>{rest}"


def _resource_name(path: str) -> str:
    """Return the package that an address of a registry leads to; nothing for other addresses."""
    host, *parts = re.split(r"/|%2[fF]", path.partition("?")[0].partition("#")[0])
    is_archive = any(map(_ARCHIVE.search, parts))
    if not is_archive and not _REGISTRY.search(host[:_HOST_CHARS_MAX]):
        return ""
    scope = name = ""
    for part in parts:
        found = _without_version(part)
        if part.startswith("@") and found:
            scope, name = part, ""
        elif found:
            name = found
    return f"{scope}/{name}" if scope and name else name or scope


def _without_version(part: str) -> str:
    """Return the name in a part of an address; nothing for versions, ids and common words."""
    if _VERSION_PART.match(part):
        return ""
    name = _BEHIND_NAME.sub("", _ARCHIVE.sub("", part))
    if name.lower() in PATH_WORDS or _UNNAMED.search(name):
        return ""
    shown = _scan(name)
    return shown if _NAME_LETTERS.search(_PLACEHOLDER.sub("", shown)) and shown != "<id>" else ""


def _replace_reference(match: re.Match[str]) -> str:
    return _scan(match["reference_context"]) + "<url>"


def _requirement(match: re.Match[str]) -> str:
    """Keep a package to the letter, and of its version the first number."""
    name = match["package_name"]
    version = _FIRST_NUMBER.search(match[0], len(name))
    return f"{_PACKAGING.sub('', name)}@{version[0] if version else '*'}"


def _without_tail(address: str) -> str:
    """Return an address without what belongs to the sentence around it."""
    while address and _ends_sentence(address, address[-1]):
        address = address[:-1]
    return address


def _ends_sentence(address: str, sign: str) -> bool:
    opened = address.count(_OPENED_BY[sign]) if sign in _OPENED_BY else 0
    return sign in ".,;:!?'" or (sign in _OPENED_BY and address.count(sign) > opened)


def _path(match: re.Match[str]) -> str:
    quote = "'" if match[0].startswith("'") else ""
    found = _WHERE_AT_END.sub("", match[0].strip("'"))
    path = found.rstrip(".,;:)]}")
    return quote + (_last_word(path) or path) + found[len(path) :] + quote


def _last_word(path: str) -> str:
    """Return the last part of a path that has a word in it, and what follows that part."""
    kept = ""
    for name in reversed(paths.parts(path)[-_PATH_PARTS_MAX:]):
        stable = paths.stable(name)
        shown = stable if stable.startswith("<") else _scan(stable)
        kept = f"{shown}/{kept}" if kept else shown
        if paths.TEMPORARY in shown or _WORD.search(_PLACEHOLDER.sub("", shown)):
            break
    return kept


def _long_id(match: re.Match[str]) -> str:
    """Return what stands for a long run of letters and digits: drawn by lot, or words."""
    pieces = _PIECE.findall(match[0])
    if sum(map(len, pieces)) <= _PIECE_CHARS_MEAN * len(pieces):
        return "<id>"
    parts = _SIGNS.split(match[0])
    return "".join(map(_scan, parts)) if len(parts) > 1 else _named_by(match[0])


def _word(match: re.Match[str]) -> str:
    return _WORDS[match[0]]


def _named_by(word: str) -> str:
    """Return a word without the digits at its ends; one that was drawn by lot is an id."""
    if _DRAWN.match(word) or _is_random(word):
        return "<id>"
    stem = word.rstrip("0123456789")
    if stem:
        inner = stem.lstrip("0123456789")
        return f"{'<n>' * (inner != stem)}{inner}{'<n>' * (stem != word)}"
    return "<n>" if word else word


def _is_random(word: str) -> bool:
    """Say whether a run of letters was drawn by lot."""
    if not _LETTERS.fullmatch(word):
        return False
    if not word[1:].islower():
        pieces = _PIECE.findall(word)
        return len(word) >= _CASED_CHARS_MIN and len(word) <= _CASED_PIECE_MEAN * len(pieces)
    lowered = word.lower()
    longest = max(map(len, _CONSONANTS.findall(lowered)), default=0)
    vowels = sum(map(lowered.count, "aeiouy")) / len(lowered)
    rare = sum(map(lowered.count, "jqxz"))
    return (
        longest >= _CONSONANTS_NEVER
        or (longest >= _CONSONANTS_ODD and rare >= 1)
        or (vowels <= _VOWELS_ODD and rare > 1)
    )


# Errors are made of few words.
_WORDS: Final = FunctionCache(_named_by, entries_max=4096, chars_max=40)
_REPLACEMENTS: Final[dict[str, str | Callable[[re.Match[str]], str]]] = {
    "url_placeholder": _keep,
    "host_placeholder": _host,
    "placeholder": _keep,
    "masked": _replace_redacted,
    "named": _keep_name,
    "command": _keep,
    "valued": _replace_value,
    "login": "<email>",
    "code": _code,
    "hosted": _replace_host,
    "port": _port,
    "requirement": _requirement,
    "library": _keep,
    "repository": "<url>",
    "email": "<email>",
    "reference": _replace_reference,
    "url": _url,
    "package": _keep,
    "host": _host,
    "localhost": _host,
    "ipv4": _host,
    "ipv6": _host,
    "path": _path,
    "file": _path,
    "trace": "<trace>",
    "uuid": "<uuid>",
    "hash": "<hash>",
    "time": "<time>",
    "technical": _keep,
    "duration": "<duration>",
    "size": "<size>",
    "hex": "<hex>",
    "pod": "-<id>",
    "object": "",
    "long_id": _long_id,
    "ordinal": "<n>th",
    "number": "<n>",
    "assigned": "<value>",
    "bytes": "b'<value>'",
    "qualified": _keep,
    "word": _word,
}
_RULES: Final = "|".join(f"(?P<{name}>{pattern})" for name, pattern in PATTERNS)
# No rule begins with a space, and to find that out takes as long as to find a word.
_SCANNER: Final = re.compile(rf"(?!\s)(?:{_RULES})")
