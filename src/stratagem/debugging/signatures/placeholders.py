"""From one message to what every message of its kind has in common.

One pass from left to right over one table of rules. At each place the first rule that fits
decides, so the order of the table is the order of the rules: what is kept comes first, then
the values, from the most telling shape (an e-mail address) to the least (a number), then words.

* A code stays, because it says what went wrong: errno, HTTP status, exit code, SQLSTATE.
* A name stays where the words before it say that it is one: `No module named 'x2'`.
* A value becomes a placeholder: `<email>`, `<url>`, `<host>`, `<uuid>`, `<hash>`, `<time>`,
  `<duration>`, `<size>`, `<hex>`, `<id>`, `<n>`, `<value>`. Integers, floats and versions share
  one, and so do all addresses: which of them it was is part of the value.
* A path becomes the name at its end.
* Of a word the digits at its end go: `user_123` is `user_<n>`.

Every pattern is bounded and begins at the edge of a word, and a message is cut before it is
read, so the time is linear in its length. What comes out stays as it is when it goes in again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from stratagem.debugging.signatures import paths
from stratagem.debugging.signatures.vocabulary import (
    CODE_HOSTS,
    CODES,
    HOSTED,
    NAMED,
    PORTS,
    TECHNICAL,
    TOP_LEVEL_DOMAINS,
    TOP_LEVEL_DOMAINS_SURE,
    VALUED,
)

__all__ = ["normalise"]

# Longer messages carry whole documents; what they say, they say at the beginning.
_CHARS_READ_MAX: Final = 1_200
_CHARS_MAX: Final = 600

_QUOTES: Final = str.maketrans(dict.fromkeys('"`´‘’‚‛“”„‹›«»', "'"))  # noqa: RUF001
_QUOTED: Final = r"'(?:[^'\\]|\\.){0,400}'"
_EDGE: Final = r"(?<![^\W_])"
_END: Final = r"(?![^\W_])"
_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}"
_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)(?: ?[AP]M)?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|CES?T|[EPCM][SD]T|[+-]\d{2}:?\d{2})(?![^\W_]))?"
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_PORT: Final = r"(?::\d{1,5})?"
_HEX4: Final = r"[0-9a-fA-F]{1,4}"
_FILE: Final = r"[\w@+~%-][\w.@+~%-]{0,120}"
_EXTENSION: Final = r"\.[A-Za-z]\w{0,7}"
_WHERE: Final = r"(?:(?::\d+){1,2}(?!\d)(?:-\d+)?|\(\d+(?:,\d+)?\))?"
_UNIT: Final = (
    r"(?:ns|nanos(?:econds?)?|[uµμ]s|micros(?:econds?)?|ms|millis(?:econds?)?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|days?)"
)
_BYTES: Final = r"(?:[KMGTP]i?B|[kKMGTP]i?[bB]?(?:ytes?)?|bytes?|B)"

_Handler = Callable[[re.Match[str]], str]


def normalise(message: str) -> str:
    """Return a message with its values replaced, on one line of at most 600 characters."""
    plain = " ".join(message[:_CHARS_READ_MAX].translate(_QUOTES).split())
    scanned = _NUMBERS.sub("<n>", _scan(plain))
    return _cut(" ".join(scanned.split()))


def _scan(text: str) -> str:
    return _SCANNER.sub(_replace, text)


def _replace(match: re.Match[str]) -> str:
    assert match.lastgroup is not None, "every rule is a group"
    replacement = _REPLACEMENTS[match.lastgroup]
    return replacement if isinstance(replacement, str) else replacement(match)


def _cut(text: str) -> str:
    if len(text) <= _CHARS_MAX:
        return text
    return text[:_CHARS_MAX].rpartition(" ")[0] or text[:_CHARS_MAX]


def _keep(match: re.Match[str]) -> str:
    return match[0]


def _code(match: re.Match[str]) -> str:
    return _HTTP_VERSION.sub("HTTP", match[0])


def _masked(match: re.Match[str]) -> str:
    """Return the placeholder for what redaction has replaced by one of its own."""
    name = match[0][1:-1]
    return f"<{_MASKED.get(name, name)}>"


def _named(match: re.Match[str]) -> str:
    """Keep a name to the letter; of one that is a path, its end."""
    context, name = match["named_context"], match["named_name"]
    if name.startswith(("/", "~")) or name[1:3] == ":\\":
        name = paths.base(name)
    return _scan(context) + name


def _valued(match: re.Match[str]) -> str:
    return f"{_scan(match['valued_context'])}'<value>'"


def _url(match: re.Match[str]) -> str:
    address = match[0].rstrip(".,;:!?)]}'")
    rest = match[0][len(address) :]
    scheme, _, path = address.partition("://")
    if scheme == "file" or scheme.startswith("webpack"):
        return _scan(path) + rest
    return f"<url>{rest}"


def _hosted(match: re.Match[str]) -> str:
    return match["hosted_context"] + _host(match)


def _host(match: re.Match[str]) -> str:
    port = match[0].rpartition(":")[2]
    return f"<host>:{port}" if port.isdigit() and int(port) in PORTS else "<host>"


def _port(match: re.Match[str]) -> str:
    number = match["port_number"]
    return match[0] if int(number) in PORTS else match[0].replace(number, "<n>")


def _path(match: re.Match[str]) -> str:
    """Return the last part that has a word in it, and what follows it."""
    found = match[0].strip("'")
    ending = match[0][len(found) + match[0].startswith("'") :]
    quote = "'" if ending else ""
    path = _WHERE_AT_END.sub("", found).rstrip(".,;:)]}")
    rest = _WHERE_AT_END.sub("", found)[len(path) :]
    kept: list[str] = []
    for name in reversed(paths.parts(path)[-3:]):
        kept.insert(0, _scan_name(paths.stable(name)))
        if _WORD.search(_PLACEHOLDER.sub("", kept[0])):
            break
    return quote + ("/".join(kept) or path) + rest + quote


def _scan_name(name: str) -> str:
    return name if name.startswith("<") else _scan(name)


def _word(match: re.Match[str]) -> str:
    """Take the digits from the end of a word; a word drawn by lot is an id."""
    word = match[0]
    if _DRAWN.match(word):
        return "<id>"
    stem = word.rstrip("0123456789")
    return word if len(stem) == len(word) else f"{stem}<n>"


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


# In the order in which they are tried.
_RULES: Final[tuple[tuple[str, str, str | _Handler], ...]] = (
    ("placeholder_host", r"<host>:\d{1,5}(?!\d)", _host),
    ("placeholder", r"<[a-z]{1,12}>", _keep),
    ("masked_host", r"\[(?:ip|host)\](?::\d{1,5}(?!\d))?", _host),
    ("masked", r"\[(?:email|token|secret|password|key|uuid|hex|phone|card)\]", _masked),
    (
        "named",
        rf"(?P<named_context>{_EDGE}{_any(*NAMED)} ?'?)(?P<named_name>[^\s',;]{{1,200}}?)(?=[',;:)\]]*(?:\s|$)|[=<>~!]=|')",
        _named,
    ),
    ("command", rf"{_EDGE}[\w.+-]{{1,80}}(?=: command not found)", _keep),
    ("valued", rf"(?P<valued_context>{_EDGE}{_any(*VALUED)} ?){_QUOTED}", _valued),
    ("code", _any(*CODES), _code),
    (
        "hosted",
        rf"(?P<hosted_context>{_EDGE}{_any(*HOSTED)} '?)[\w.-]{{1,253}}(?<=\w){_PORT}(?![\w(])",
        _hosted,
    ),
    ("port", rf"{_EDGE}(?:port|PORT)\b[ :='(]{{1,3}}(?P<port_number>\d{{1,5}})(?!\d)", _port),
    ("technical", rf"{_EDGE}(?i:{_any(*TECHNICAL)}){_END}", _keep),
    ("library", rf"{_EDGE}lib[\w+-]{{1,60}}\.(?:so|dylib|dll)(?:\.\d{{1,4}}){{0,4}}{_END}", _keep),
    ("repository", r"(?<![\w@.])git@[\w.-]{1,100}:[\w./~-]{1,200}", "<url>"),
    (
        "email",
        r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![\w-])",
        "<email>",
    ),
    (
        "url",
        rf"{_EDGE}[A-Za-z][A-Za-z0-9+-]{{1,20}}(?::[a-z0-9]{{2,12}})?://[^\s<>'|\\^{{}}]{{1,1000}}",
        _url,
    ),
    ("package", rf"{_EDGE}{_any(*CODE_HOSTS)}(?:/[\w.~-]{{1,80}}){{1,8}}", _keep),
    (
        "host",
        rf"(?<![\w.@/-])(?:[A-Za-z0-9](?:[\w-]{{0,62}}\.)){{1}}"
        rf"(?:(?:[\w-]{{1,63}}\.){{1,6}}{_any(*TOP_LEVEL_DOMAINS)}|{_any(*TOP_LEVEL_DOMAINS_SURE)})"
        rf"(?![\w(-]|\.\w|::){_PORT}(?![\w])",
        _host,
    ),
    ("localhost", rf"(?<![\w.@-])(?:localhost|host\.docker\.internal){_END}(?!\.\w){_PORT}", _host),
    ("ipv4", rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\d)(?:/\d{{1,2}}(?!\d)|{_PORT})", _host),
    (
        "ipv6",
        rf"(?<![\w:.>])\[?(?=[0-9a-fA-F:]{{0,38}}\d)(?:(?:{_HEX4}:){{7}}{_HEX4}"
        rf"|(?:{_HEX4}:){{1,7}}:(?:{_HEX4}(?::{_HEX4}){{0,6}})?|::(?:{_HEX4}(?::{_HEX4}){{0,6}}))"
        rf"(?:%\w{{1,16}})?(?![\w:])\]?{_PORT}",
        _host,
    ),
    (
        "path",
        r"'(?:/|~[/\\]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\)[^'<>|*?\n]{1,400}'"
        rf"|(?<![\w.<>/\\:*-])(?:(?:~|\.{{1,2}}|[A-Za-z]:|\\)?[/\\](?:Program Files(?: \(x86\))?[/\\])?"
        rf"(?:[\w.@+~%$#=,{{}}-]{{1,120}}[/\\]){{0,30}}[\w.@+~%$#={{}}-]{{1,120}}){_WHERE}"
        rf"|{_EDGE}(?<![./\\@-])(?:{_FILE}[/\\]){{1,30}}{_FILE}(?<=[\w@+~%-])(?:{_EXTENSION}){_WHERE}{_END}",
        _path,
    ),
    (
        "file",
        rf"{_EDGE}(?<![./\\@-])(?=[\w.@+~%-]{{0,130}}[A-Za-z]\w{{0,7}}[:(]\d){_FILE}{_EXTENSION}(?:(?::\d+){{1,2}}(?!\d)|\(\d+(?:,\d+)?\))",
        _path,
    ),
    (
        "traceparent",
        rf"{_EDGE}[0-9a-f]{{2}}-[0-9a-f]{{32}}-[0-9a-f]{{16}}-[0-9a-f]{{2}}{_END}",
        "<trace>",
    ),
    (
        "uuid",
        rf"{_EDGE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_END}",
        "<uuid>",
    ),
    (
        "hash",
        rf"{_EDGE}(?:sha(?:1|256|512)[:-])?(?:[0-9a-f]{{128}}|[0-9a-f]{{96}}|[0-9a-f]{{64}}|[0-9a-f]{{56}}|[0-9a-f]{{40}}|[0-9a-f]{{32}}){_END}",
        "<hash>",
    ),
    (
        "time",
        rf"{_EDGE}(?:(?:{_DAY},? )?(?:\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}|{_MONTH} {{1,2}}\d{{1,2}}(?:, \d{{4}})?{_END})(?:(?:,? | at |:){_CLOCK}{_ZONE})?(?: \d{{4}}(?!\d))?"
        rf"|\d{{4}}(?P<date_mark>[-/.])\d{{1,2}}(?P=date_mark)\d{{1,2}}(?:(?:T|_| at |,? ){_CLOCK}{_ZONE}|T\d{{2}}:\d{{2}}{_ZONE}|{_END})"
        rf"|\d{{1,2}}(?P<day_mark>[-/.])\d{{1,2}}(?P=day_mark)(?:19|20)\d{{2}}(?:,? {_CLOCK}{_ZONE}|{_END})"
        rf"|(?:19|20)\d{{6}}T\d{{4,6}}Z?{_END}|{_CLOCK}{_ZONE}(?![:\d]))",
        "<time>",
    ),
    (
        "duration",
        rf"{_EDGE}(?:\d+(?:\.\d+)?(?:d|h|m(?!s)|min) ?){{0,3}}\d+(?:\.\d+)? ?{_UNIT}{_END}(?!['/(])"
        rf"|{_EDGE}PT?(?:\d+(?:\.\d+)?[DHMS]){{1,4}}{_END}",
        "<duration>",
    ),
    ("size", rf"{_EDGE}\d[\d,]{{0,20}}(?:\.\d+)? ?{_BYTES}{_END}", "<size>"),
    (
        "hex",
        rf"{_EDGE}(?:0[xX][0-9a-fA-F]{{1,64}}|(?![a-f]{{2,8}}\d{{1,13}}{_END})(?![A-F]{{2,8}}\d{{1,13}}{_END})"
        rf"(?=[a-fA-F]{{0,64}}\d)(?=\d{{0,64}}[a-fA-F])(?!\d+[eE]\d+{_END})(?:[0-9a-f]{{7,128}}|[0-9A-F]{{7,128}})){_END}",
        "<hex>",
    ),
    (
        "secret",
        rf"{_EDGE}(?=[A-Za-z+/_-]{{0,40}}\d)(?=[A-Z0-9+/_-]{{0,40}}[a-z])(?=[a-z0-9+/_-]{{0,40}}[A-Z])[A-Za-z0-9+/_-]{{32,512}}={{0,2}}{_END}",
        "<id>",
    ),
    ("ordinal", rf"{_EDGE}\d{{1,6}}(?:st|nd|rd|th){_END}", "<n>th"),
    (
        "number",
        rf"(?:(?<![\w.)\]'<>-])[-+])?{_EDGE}(?:\d{{1,3}}(?:,\d{{3}}){{1,6}}(?![\d,])(?:\.\d+)?"
        rf"|\d+(?:\.\d+){{1,6}}(?:[-.+]?(?:rc|alpha|beta|dev|post|pre|a|b|cu|snapshot|final|release)[.-]?\d*){{0,3}}(?:[eE][-+]?\d{{1,4}}{_END})?"
        rf"|\d+(?:[eE][-+]?\d{{1,4}}{_END})?)",
        "<n>",
    ),
    ("assigned", rf"(?<=[^=!<>]=)(?:{_QUOTED}|(?i:true|false){_END})", "<value>"),
    ("qualified", rf"{_EDGE}(?:[a-z_]\w{{0,60}}\.){{1,12}}[A-Z][A-Za-z]\w{{0,100}}", _keep),
    ("word", rf"{_EDGE}[^\W\d_]+(?:\d+[^\W\d_]+)*\d*", _word),
)

_SCANNER: Final = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in _RULES))
_REPLACEMENTS: Final = {name: replacement for name, _, replacement in _RULES}
_MASKED: Final = {
    "hex": "hash",
    "token": "value",
    "secret": "value",
    "password": "value",
    "key": "value",
}
_HTTP_VERSION: Final = re.compile(r"HTTP/\d(?:\.\d)?")
_WHERE_AT_END: Final = re.compile(rf"{_WHERE}$")
_PLACEHOLDER: Final = re.compile(r"<[a-z]{1,12}>")
_WORD: Final = re.compile(r"[^\W\d_]{2}")
# Letters and digits in turn, three times and more: no word is built like that.
_DRAWN: Final = re.compile(
    r"(?=.{8})[^\W\d_]*(?:\d+[^\W\d_]+){2,}\d*$|[^\W\d_]+(?:\d+[^\W\d_]+){2,}\d+$"
)
# As many as there happened to be: the shape of an array, a list of ids.
_NUMBERS: Final = re.compile(r"<n>(?:(?:, ?| x )<n>)+,?")
