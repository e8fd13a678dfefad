"""The shapes of values, in the order in which a message is searched for them.

Each pattern begins at the edge of a word and is bounded, so that no text takes it long to find
out that it does not fit. An underscore is an edge: `user_123` is a word and a number.
"""

from __future__ import annotations

from typing import Final

from stratagem.debugging.signatures.vocabulary import (
    CODE_HOSTS,
    CODES,
    HOSTED,
    NAMED,
    NO_PACKAGES,
    REFERRED,
    REGISTRIES,
    TECHNICAL,
    TOP_LEVEL_DOMAINS,
    TOP_LEVEL_DOMAINS_SURE,
    VALUED,
)

__all__ = ["PATTERNS", "WHERE"]


def _any(*patterns: str) -> str:
    return f"(?:{'|'.join(patterns)})"


_EDGE: Final = r"(?<![^\W_])"
_END: Final = r"(?![^\W_])"
_QUOTED: Final = r"'(?:[^'\\]|\\.){0,400}'"

# Line and column, as compilers put them behind a file.
WHERE: Final = r"(?:(?::\d+){1,2}(?!\d)(?:-\d+)?|\(\d+(?:,\d+)?\))"
_PORT: Final = r"(?::\d{1,5}(?!\d))?"
_FILE: Final = r"[\w@+~%-][\w.@+~%-]{0,120}"
_EXTENSION: Final = r"\.[A-Za-z]\w{0,7}"
_PART: Final = r"[\w.@+~%$#=,{}-]{1,120}"
_PATH_QUOTED: Final = r"'(?:/|~[/\\]|\.{1,2}[/\\]|[A-Za-z]:[/\\]|\\\\)[^'<>|*?\n]{1,400}'"
_PATH_ROOTED: Final = (
    r"(?<![\w.<>/\\:*-])(?:~|\.{1,2}|[A-Za-z]:|\\)?[/\\](?:Program Files(?: \(x86\))?[/\\])?"
    rf"(?:{_PART}[/\\]){{0,30}}[\w.@+~%$#={{}}-]{{1,120}}{WHERE}?"
)
_PATH_RELATIVE: Final = (
    rf"{_EDGE}(?<![./\\@-])(?:{_FILE}[/\\]){{1,30}}{_FILE}(?<=[\w@+~%-]){_EXTENSION}{WHERE}?{_END}"
)
_FILE_WITH_LINE: Final = (
    r"(?<![\w./\\@-])(?=[\w.@+~%-]{0,130}[A-Za-z]\w{0,7}[:(]\d)" + _FILE + _EXTENSION + WHERE
)

_HOST: Final = (
    r"(?<![\w.@/-])[A-Za-z0-9][\w-]{0,62}\."
    + _any(
        r"(?:[\w-]{1,63}\.){1,6}" + _any(*TOP_LEVEL_DOMAINS),
        _any(*TOP_LEVEL_DOMAINS_SURE),
    )
    + rf"(?![\w(-]|\.\w|::){_PORT}(?!\w)"
)
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
# Versions have four parts too, and are told by the words around them.
_VERSION_BEFORE: Final = "".join(
    f"(?<!{word})"
    for word in (
        "ersion ",
        "ersion: ",
        "elease ",
        "==",
        ">=",
        "<=",
        "~=",
        "need ",
        "requires ",
        "than ",
    )
)
_VERSION_AFTER: Final = (
    r"(?! (?:is )?(?:too (?:old|new)|or (?:newer|later|higher|above|greater|older|lower|below)"
    r"|installed|required))"
)
_IPV4: Final = (
    rf"(?<![\w.]){_VERSION_BEFORE}(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\d)"
    rf"(?:/\d{{1,2}}(?!\d)|{_PORT}){_VERSION_AFTER}"
)
_HEX4: Final = r"[0-9a-fA-F]{1,4}"
_HEX4_MORE: Final = rf"{_HEX4}(?::{_HEX4}){{0,6}}"
_IPV6: Final = (
    # Two colons alone are the business of C++ and Rust: there must be a digit.
    r"(?<![\w:.>])\[?(?=[0-9a-fA-F:]{0,38}\d)"
    + _any(
        rf"(?:{_HEX4}:){{7}}{_HEX4}",
        rf"(?:{_HEX4}:){{1,7}}:(?:{_HEX4_MORE})?",
        rf"::{_HEX4_MORE}",
    )
    + rf"(?:%\w{{1,16}})?(?!\w|:\w|::)\]?{_PORT}"
)

_MONTH: Final = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}"
_DAY: Final = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?"
_ZONE: Final = r"(?: ?(?:Z|UTC|GMT|CES?T|[EPCM][SD]T|[+-]\d{2}:?\d{2})(?![^\W_]))?"
_CLOCK: Final = rf"\d{{1,2}}:\d{{2}}:\d{{2}}(?:[.,]\d{{1,9}})?(?: ?[AP]M)?{_ZONE}"
_TIME: Final = _EDGE + _any(
    rf"{_DAY}\d{{1,2}}[ /-]{_MONTH}[ /-]\d{{4}}(?:(?:,? | at |:){_CLOCK})?",
    (
        rf"{_DAY}{_MONTH} {{1,2}}\d{{1,2}}(?:, \d{{4}})?{_END}"
        rf"(?:(?:,? | at ){_CLOCK})?(?: \d{{4}}(?!\d))?"
    ),
    r"\d{4}(?P<year_mark>[-/.])\d{1,2}(?P=year_mark)\d{1,2}"
    rf"(?:(?:T|_| at |,? ){_CLOCK}|T\d{{2}}:\d{{2}}{_ZONE}|{_END})",
    r"\d{1,2}(?P<day_mark>[-/.])\d{1,2}(?P=day_mark)(?:19|20)\d{2}" + rf"(?:,? {_CLOCK}|{_END})",
    rf"(?:19|20)\d{{6}}T\d{{4,6}}Z?{_END}",
    rf"{_CLOCK}(?![:\d])",
)
_UNIT: Final = _any(
    r"ns|nanos(?:econds?)?|[uµμ]s|micros(?:econds?)?|ms|millis(?:econds?)?|milliseconds?",
    r"s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|days?",
)
_DURATION: Final = _EDGE + _any(
    rf"(?:\d{{1,9}}(?:\.\d{{1,9}})?(?:d|h|m(?!s)|min) ?){{0,3}}\d{{1,12}}(?:\.\d{{1,12}})? ?{_UNIT}"
    rf"{_END}(?!['/(])",
    rf"PT?(?:\d{{1,9}}(?:\.\d{{1,9}})?[DHMS]){{1,4}}{_END}",
)
_BYTES: Final = r"(?:[KMGTP]i?B|[kKMGTP]i?[bB]?(?:ytes?)?|bytes?|B)"

_HASH_DIGITS: Final = (128, 96, 64, 56, 40, 32)
_HEX: Final = _EDGE + _any(
    r"0[xX][0-9a-fA-F]{1,64}",
    r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}",
    # A word of the letters a to f with a number behind it is just that.
    rf"(?!(?i:[a-f]{{2,8}}\d{{1,13}}){_END})(?!\d{{1,9}}[eE]\d{{1,3}}{_END})"
    r"(?=[a-fA-F]{0,64}\d)(?=\d{0,64}[a-fA-F])(?:[0-9a-f]{7,128}|[0-9A-F]{7,128})",
)
_POD: Final = (
    # Kubernetes draws from letters and digits that make no words.
    r"(?<=[a-z0-9])-(?=[b-z]{0,9}\d)[bcdfghjklmnpqrstvwxz2456789]{8,10}"
    rf"-[bcdfghjklmnpqrstvwxz2456789]{{5}}{_END}"
)
_LONG_ID: Final = (
    r"(?=[A-Za-z+/_-]{0,40}\d)(?=[A-Z0-9+/_-]{0,40}[a-z])(?=[a-z0-9+/_-]{0,40}[A-Z])"
    r"[A-Za-z0-9+/_-]{16,512}={0,2}"
)
_NUMBER: Final = rf"(?:(?<![\w.)\]'<>-])[-+])?{_EDGE}" + _any(
    r"\d{1,3}(?:,\d{3}){1,6}(?![\d,])(?:\.\d+)?",
    r"\d+(?:\.\d+){1,6}"
    r"(?:[-.+]?(?:rc|alpha|beta|dev|post|pre|a|b|cu|snapshot|final|release)[.-]?\d*){0,3}"
    rf"(?:[eE][-+]?\d{{1,4}}{_END})?",
    rf"\d+(?:[x×*]\d+){{1,5}}{_END}",
    rf"\d+(?:[eE][-+]?\d{{1,4}})?{_END}",
)

_VERSION: Final = (
    r"v?\d{1,5}(?:\.(?:\d{1,9}|[xX*])){%s}"
    r"(?:[-+.][A-Za-z0-9][\w.+-]{0,40}(?<=\w))?"
)
_COMPARED: Final = r"(?:===?|[<>~!]=|~>|[~^<>])"
# A package and the version that is asked for, as package managers write them. What stands there is
# a name, whatever it looks like.
_REQUIREMENT: Final = (
    rf"{_EDGE}(?<![.@/:%$-])(?P<package_name>(?!{_any(*NO_PACKAGES)}{_END})"
    r"@?[A-Za-z](?:[\w+]|[./-](?=\w)|:(?=[A-Za-z])){0,100}?(?<![._+]))"
    + _any(
        # npm, yarn, Go, GitHub: `chalk@^5.3.0`, `chalk@npm:^5`, `chalk@'>=4 <6'`, `checkout@v4`
        # `root@10.0.0.7` is none.
        r"@(?!(?:\d{1,3}\.){3}\d)(?:[a-z]{2,9}:)?"
        rf"(?:'[\^~<>= ]{{0,3}}{_VERSION % '0,4'}[^']{{0,40}}'"
        rf"|[\^~<>= ]{{0,3}}{_VERSION % '0,4'}|\*|latest{_END})",
        # pip, Cargo, Composer, gem: `torch==1.7.1`, `axum = '^9'`, `mailer ^9.0`, `puma (~> 9.0)`
        rf" ?\((?:=|{_COMPARED}) ?{_VERSION % '0,4'}[^()]{{0,40}}\)",
        rf" = '{_COMPARED}?{_VERSION % '0,4'}[^']{{0,40}}'",
        rf"(?:{_COMPARED}| [\^~]){_VERSION % '0,4'}(?:, ?{_COMPARED} ?{_VERSION % '0,4'})?",
        rf" \({_VERSION % '1,4'}\)",
        # Images and Maven: `acme/api:2.4`, `node:23-alpine`, `com.acme:billing:jar:1.4.2`
        rf":(?:{_VERSION % '1,4'}|\d{{1,5}}-[A-Za-z][\w.-]{{0,40}}(?<=\w))",
        # Cargo, Conan, Bundler: `shop v0.1.0`, `boost/1.85.0`, `ffi-1.16.3`
        rf"(?:[/-]| (?=v)){_VERSION % '2,4'}",
        # NuGet, Bundler, npm: `Serilog from 4.0.0 to 3.1.1`
        rf" from {_VERSION % '1,4'} to {_VERSION % '0,4'}",
    )
    + rf"{_END}(?![/\\])"
)

_UNGROUPED: Final = _REQUIREMENT.replace("?P<package_name>", "?:")

# Name and pattern of each rule, in the order in which they are tried.
PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    # What is kept
    ("url_placeholder", r"<url>(?:/@?[\w.+<>-]{1,120}){0,2}"),
    ("host_placeholder", rf"(?:<host>|\[(?:ip|host)\]){_PORT}"),
    ("placeholder", r"<[a-z]{1,12}>"),
    ("masked", r"\[(?:email|token|secret|key|uuid|hash|hex|phone|card)\]"),
    (
        "named",
        (
            rf"(?P<named_context>{_EDGE}{_any(*NAMED)} ?'?)(?!{_UNGROUPED})"
            r"(?P<name>[^\s',;]{1,200}?)"
            # A version behind the name is none of it: `nokogiri-1.15.4`.
            r"(?=[',;:)\]]*(?:\s|$)|[=<>~!]=|-\d{1,6}\.\d|-<n>|')"
        ),
    ),
    (
        "command",
        (
            rf"{_EDGE}(?<![./@-])(?!(?:is|was)\b)@?[\w.+/-]{{1,80}}"
            r"(?=: command not found| \((?:no such package\)|not found)"
            r"| (?:(?:was|is) )?not (?:found )?in "
            rf"(?:the |this |any |your )?(?:\w{{1,20}} ){{0,2}}{_any(*REGISTRIES)}\b)"
        ),
    ),
    (
        "valued",
        (
            rf"(?P<valued_context>{_EDGE}{_any(*VALUED)} ?){_QUOTED}"
            r"(?: \((?:[0-9a-fA-F.:]{2,45}|\[ip\])\))?"
        ),
    ),
    # A host that refuses a key: of `ann@web1` neither says why.
    ("login", r"(?<![\w.+%@/-])[\w.+%-]{1,64}@[\w.-]{1,253}(?=: [Pp]ermission denied \()"),
    ("code", _any(*CODES)),
    (
        "hosted",
        rf"(?P<hosted_context>{_EDGE}{_any(*HOSTED)} '?)[\w.-]{{1,253}}(?<=\w){_PORT}(?![\w(])",
    ),
    ("port", rf"{_EDGE}(?:port|PORT)\b[ :='(]{{1,3}}(?P<port_number>\d{{1,5}})(?!\d)"),
    ("requirement", _REQUIREMENT),
    ("library", rf"{_EDGE}lib[\w+-]{{1,60}}\.(?:so|dylib|dll)(?:\.\d{{1,4}}){{0,4}}{_END}"),
    # Values
    ("repository", r"(?<![\w@.])git@[\w.-]{1,100}:[\w./~-]{1,200}"),
    ("email", r"(?<![\w.+%-])[\w.+%-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,24}(?![\w-])"),
    # Where to read more says nothing about what went wrong.
    (
        "reference",
        (
            rf"(?P<reference_context>{_EDGE}{_any(*REFERRED)}\b[^\n:'<>]{{0,60}}:? )"
            r"https?://[^\s<>'|\\^{}]{1,1000}"
        ),
    ),
    (
        "url",
        rf"{_EDGE}[A-Za-z][A-Za-z0-9+-]{{1,20}}(?::[a-z0-9]{{2,12}})?://[^\s<>'|\\^{{}}]{{1,1000}}",
    ),
    ("package", rf"{_EDGE}{_any(*CODE_HOSTS)}(?:/[\w.~-]{{1,80}}){{1,8}}"),
    ("host", _HOST),
    ("localhost", rf"(?<![\w.@-])(?:localhost|host\.docker\.internal){_END}(?!\.\w){_PORT}"),
    ("ipv4", _IPV4),
    ("ipv6", _IPV6),
    ("path", _any(_PATH_QUOTED, _PATH_ROOTED, _PATH_RELATIVE)),
    ("file", _FILE_WITH_LINE),
    ("trace", rf"{_EDGE}[0-9a-f]{{2}}-[0-9a-f]{{32}}-[0-9a-f]{{16}}-[0-9a-f]{{2}}{_END}"),
    ("uuid", rf"{_EDGE}[0-9a-fA-F]{{8}}(?:-[0-9a-fA-F]{{4}}){{3}}-[0-9a-fA-F]{{12}}{_END}"),
    (
        "hash",
        rf"{_EDGE}(?:sha(?:1|256|512)[:-])?"
        + _any(*(rf"[0-9a-f]{{{digits}}}" for digits in _HASH_DIGITS))
        + _END,
    ),
    ("time", _TIME),
    ("technical", rf"{_EDGE}(?i:{_any(*TECHNICAL)}){_END}"),
    ("duration", _DURATION),
    ("size", rf"{_EDGE}\d[\d,]{{0,20}}(?:\.\d{{1,12}})? ?{_BYTES}{_END}"),
    ("hex", _HEX + _END),
    ("pod", _POD),
    # What tells one object of a class from another: `_TimerState#11b2c`.
    ("object", r"(?<=\w)#(?=[a-f]{0,8}\d)[0-9a-f]{4,8}(?![^\W_])"),
    ("long_id", _EDGE + _LONG_ID + _END),
    ("ordinal", rf"{_EDGE}\d{{1,6}}(?:st|nd|rd|th){_END}"),
    ("number", _NUMBER),
    ("assigned", rf"(?<=[^=!<>]=){_QUOTED}|(?:(?<=[^=!<>]=)|(?<=': ))(?i:true|false){_END}"),
    ("bytes", r"(?<![\w'])b'(?=[^'\\]{0,400}\\)(?:[^'\\]|\\.){0,400}'"),
    # Words
    ("qualified", rf"{_EDGE}(?:[a-z_]\w{{0,60}}\.){{1,12}}[A-Z][A-Za-z]\w{{0,100}}"),
    ("word", rf"{_EDGE}[^\W_]+"),
)
