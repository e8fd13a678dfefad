"""Masking of secrets and personal data before anything is stored.

Rules are tried in the order of their tables, each over the whole text. `basic` masks what is a
secret or personal by its shape or by the name before it, and leaves hashes, versions, packages
and addresses alone, because an error cannot be understood without them. `strict` masks those
too that could tell where an error happened.

A placeholder replaces each of them (`[token]`, `[email]`, `~`), and no rule changes a placeholder,
so masking is idempotent. Every pattern is bounded and begins at an edge that a run of letters has
only once, so the time is linear in the length of the text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

from stratagem import limits
from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple

__all__ = ["Level", "mask", "mask_address", "mask_json", "mask_values", "secret_forms"]

Level = Literal["none", "basic", "strict"]

_Replacement = str | Callable[[re.Match[str]], str]


class _Rule(NamedTuple):
    """A pattern, what takes its place, and words of which a text must have one for it to fit."""

    pattern: str
    replacement: _Replacement
    hints: tuple[str, ...]


class _LateError(Exception):
    """The time for masking is over."""


def mask(text: str, level: Level = "basic") -> str:
    """Return a text with its secrets and personal data replaced by placeholders.

    A text that takes too long is replaced as a whole: unchecked text is never let through.
    """
    return text if level == "none" else _mask(text, level, _deadline())


def _deadline() -> float:
    """Return until when masking may go on, in seconds of this thread on the processor."""
    return time.thread_time() + limits.MASKING_SECONDS


def _mask(text: str, level: Level, until: float) -> str:
    rules = _compile_rules(level)
    try:
        for _ in range(_ROUNDS_MAX):
            # What one rule leaves may, rarely, be what an earlier one looks for.
            masked = _mask_once(text, rules, until)
            if masked == text:
                break
            text = masked
    except _LateError:
        return _UNSEEN
    return text


class _Rules(NamedTuple):
    """The rules of a level, those of them that need no hint, and the hints of all others."""

    every: tuple[tuple[re.Pattern[str], _Rule], ...]
    unhinted: tuple[tuple[re.Pattern[str], _Rule], ...]
    hints: tuple[str, ...]


def _mask_once(text: str, rules: _Rules, until: float) -> str:
    if time.thread_time() > until:
        raise _LateError
    lowered = text.lower()
    # Most texts have no hint at all; to look for them rule by rule takes twenty times as long.
    hinted = any(map(lowered.__contains__, rules.hints))
    for pattern, rule in rules.every if hinted else rules.unhinted:
        if not rule.hints or any(map(lowered.__contains__, rule.hints)):
            text = _replace(pattern, rule.replacement, text, until)
    return text


def _replace(pattern: re.Pattern[str], replacement: _Replacement, text: str, until: float) -> str:
    """Replace what a pattern fits, piece by piece where the text is long.

    `re` lets nothing else run until it is done. A piece ends one more piece later than it is
    searched, and no rule fits more than that: what is found is the same as in the whole.
    """
    if len(text) <= _PIECE_CHARS:
        return pattern.sub(replacement, text)
    parts: list[str] = []
    done = begin = 0
    while begin < len(text):
        if time.thread_time() > until:
            raise _LateError
        end = begin + 2 * _PIECE_CHARS
        match = pattern.search(text, begin, end)
        if match is None or match.start() >= begin + _PIECE_CHARS:
            begin += _PIECE_CHARS
            continue
        if match.end() >= end:
            # It may go on behind the piece.
            match = pattern.match(text, match.start()) or match
        new = match.expand(replacement) if isinstance(replacement, str) else replacement(match)
        parts += text[done : match.start()], new
        done = match.end()
        begin = max(done, match.start() + 1)
    return "".join([*parts, text[done:]])


# On first use, because starting should not wait for it.
@cache
def _compile_rules(level: Level) -> _Rules:
    rules = _BASIC if level == "basic" else _STRICT
    every = tuple((re.compile(rule.pattern), rule) for rule in rules)
    unhinted = tuple(each for each in every if not each[1].hints)
    return _Rules(
        every, unhinted, tuple(dict.fromkeys(hint for rule in rules for hint in rule.hints))
    )


def mask_json(value: Any, level: Level = "basic") -> Any:
    """Return a JSON value with every string in it masked, keys too.

    What stands under a key that names a secret (`{"password": …}`) is one, whatever it looks
    like; of numbers those that are long enough for one.
    """
    return value if level == "none" else _JsonMasker(level).value(value)


def mask_values(value: Any, secrets: Collection[str]) -> Any:
    """Return a JSON value without some secrets that are known, keys too.

    A secret is found in the forms that programs write it in: escaped, in base64 or hexadecimal,
    and cut off at the end of a text.
    """
    forms = {form for secret in secrets if secret for form in secret_forms(secret)}
    if not forms or not _may_hold(value, forms):
        return value
    # A longer form may hold a shorter one, which would leave the rest of it behind.
    return _mask_forms(value, sorted(forms, key=len, reverse=True))


def secret_forms(secret: str) -> set[str]:
    """Return the texts that stand for a secret: itself, and encoded in the usual ways."""
    from html import escape
    from json import dumps
    from urllib.parse import quote, quote_plus

    data = secret.encode("utf-8", "surrogatepass")
    in_json = {dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1]}
    in_addresses = {
        quote_plus(data),
        *(quote(data, safe=safe) for safe in ("", "/", "!'()*", "/!'()*")),
    }
    encoded = {
        *in_json,
        *(dumps(each)[1:-1] for each in in_json),
        repr(secret)[1:-1],
        *in_addresses,
        *(_PERCENT.sub(lambda match: match[0].lower(), each) for each in in_addresses),
        escape(secret, quote=False),
        escape(secret).replace("&#x27;", "&#39;"),
        escape(secret),
        data.hex(),
        data.hex().upper(),
        *_base64_forms(data),
    }
    return {secret, *(each for each in encoded if len(each) >= _FORM_CHARS_MIN)}


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield what base64 makes of some bytes, by themselves and within longer ones.

    Three bytes become four letters, so there are three ways to fall between them. Letters that
    other bytes have a part in are left out.
    """
    from base64 import b64encode, urlsafe_b64encode

    for encode in (b64encode, urlsafe_b64encode):
        whole = encode(data).decode()
        yield whole
        yield whole.rstrip("=")
        for before in range(3):
            first, last = -(-8 * before // 6), 8 * (before + len(data)) // 6
            yield encode(bytes(before) + data).decode()[first:last]


def _may_hold(value: Any, forms: Collection[str]) -> bool:
    """Whether a value may hold one of some texts, or the beginning of one: seen at one glance."""
    if isinstance(value, str):
        return any(form[:_FORM_CHARS_MIN] in value for form in forms)
    # Imported here: hooks mask without it, and it takes longer to import than they have.
    import orjson

    try:
        text = orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return True
    beginnings = {form[:_FORM_CHARS_MIN] for form in forms}
    return any(_json_text(each) in text for each in beginnings)


def _json_text(text: str) -> str:
    import orjson

    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()[1:-1]


def _mask_forms(value: Any, forms: Sequence[str]) -> Any:
    if isinstance(value, str):
        for form in forms:
            value = _mask_cut_form(value.replace(form, _SECRET), form)
        return value
    if isinstance(value, Mapping):
        return {_mask_forms(name, forms): _mask_forms(item, forms) for name, item in value.items()}
    return [_mask_forms(item, forms) for item in value] if isinstance(value, list) else value


def _mask_cut_form(text: str, form: str) -> str:
    """Mask what a text ends with, where that is the beginning of a secret: it was cut off there."""
    begin = text.find(form[:_FORM_CHARS_MIN], max(len(text) - len(form) - len(_CUT_MARK), 0))
    if begin < 0 or len(form) < _FORM_CHARS_MIN:
        return text
    return text[:begin] + _SECRET if form.startswith(text[begin:].rstrip(_CUT_MARK)) else text


def mask_address(text: str) -> str:
    """Return an address without its user, password and query; any other text as it is."""
    if "://" not in text:
        return text
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return _SECRET
    fragment = f"#{parts.fragment}" if parts.fragment else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}{fragment}"


class _JsonMasker:
    """The masking of one JSON value, all of it within the same time."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._until = _deadline()

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, dict):
            return {self.value(key): self._field(key, item) for key, item in value.items()}
        return value

    def _text(self, text: str) -> str:
        return _mask(text, self._level, self._until)

    def _field(self, key: Any, value: Any) -> Any:
        named = _SECRET_KEY.fullmatch(str(key)) and not _NO_SECRET_NAME.search(str(key))
        if not named:
            return self.value(value)
        if isinstance(value, list):
            return [self._field(key, item) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return _SECRET if len(str(abs(value))) >= _SECRET_DIGITS_MIN else value
        return _SECRET if isinstance(value, str) and _is_secret(value) else self.value(value)


_TOKEN: Final = "[token]"  # noqa: S105 - what stands for one
_SECRET: Final = "[secret]"  # noqa: S105 - as above
# What was not looked at in time.
_UNSEEN: Final = "[masked]"
# Longer than anything that a rule fits, and searched by one of them in a few milliseconds.
_PIECE_CHARS: Final = 32 * 1024
_EDGE: Final = r"(?<![A-Za-z0-9])"
_END: Final = r"(?![A-Za-z0-9])"
_PERCENT: Final = deferred_pattern(r"%[0-9A-F]{2}")
# A shorter text says too little to be taken for a secret that was encoded or cut off.
_FORM_CHARS_MIN: Final = 8
# What may stand behind a text that was cut off.
_CUT_MARK: Final = "…..."
_LINE_CHARS: Final = 300
_PASSWORD_BY_P: Final = ("mysql", "mariadb", "sshpass")
_PASSWORD_AFTER_P: Final = ("sshpass", "docker login", "podman login", "helm registry login")
_ROUNDS_MAX: Final = 4
# A personal number has four digits; fewer count something.
_SECRET_DIGITS_MIN: Final = 4

_PRIVATE_KEY: Final = (
    r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"(?:(?:(?!-----)[\s\S]){0,20000}-----END (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    # Cut off: as much as looks like a key.
    r"|(?:(?:\s|\\[nr]){1,4}[A-Za-z0-9+/=]{16,128}){0,400})"
)

# Shapes that their makers chose so that they can be found.
_TOKENS: Final = (
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}",
    r"gh[pousr]_[A-Za-z0-9]{16,255}",
    r"github_pat_\w{16,255}",
    r"gl(?:pat|ptt|dt|rt|soat|cbt|agent|ft|imt|oas)-[\w-]{12,255}",
    r"xox[abceoprs]-[\w-]{8,255}|xapp-\d-[\w-]{10,255}",
    r"sk-(?:proj|ant|svcacct|admin|or|lf)-[\w-]{12,255}",
    # `sk-` alone begins the name of many a package; a key has a digit.
    r"sk-(?=[A-Za-z_-]{0,60}\d)[\w-]{20,255}",
    r"AIza[\w-]{30,40}|ya29\.[\w-]{16,1024}|GOCSPX-[\w-]{16,64}",
    r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{8,255}|whsec_[A-Za-z0-9+/=]{16,255}",
    r"strat_[\w-]{40,64}",
    r"npm_[A-Za-z0-9]{20,64}|pypi-[\w-]{16,512}|hf_[A-Za-z0-9]{30,64}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}",
    (
        r"(?:hf|gsk|r8|sbp|fo1|nfp|figd|glsa|sntrys|dckr_pat|lin_api|ntn|pul|rubygems)_"
        r"(?=[A-Za-z_-]{0,60}\d)[\w-]{20,255}"
    ),
    r"do[opr]_v1_[a-f0-9]{32,64}|dapi[0-9a-f]{32}|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{20,64}",
    r"SG\.[\w-]{12,64}\.[\w-]{12,64}|sq0[a-z]{3}-[\w-]{16,64}|hv[sbr]\.[\w-]{16,255}",
    r"xai-[A-Za-z0-9]{32,128}|AGE-SECRET-KEY-1[A-Z0-9]{20,80}|ATATT3x[\w=-]{20,255}",
    r"NRAK-[A-Z0-9]{20,40}|(?:SK|AC)[0-9a-f]{32}|key-[0-9a-f]{32}|\d{8,10}:AA[\w-]{32,36}",
    r"eyJ[\w-]{6,2048}\.[\w-]{4,4096}(?:\.[\w-]{0,1024}){0,3}",
)

_KEY_KINDS: Final = (
    "access|private|account|auth|encryption|signing|master|session|license|shared[-_]?access|secret"
)
_SECRET_NAMES: Final = (
    r"(?:pass(?:word|wd|phrase|code)|secret|token|api[-_ ]?key|(?<![A-Za-z])(?:pwd|pat|otp|bearer)"
    r"|(?:db|database|user|admin|root|my_?sql|pg|postgres|redis|mongo|smtp|mail|ftp|ssh|http|proxy|sudo"
    r"|login|auth)[-_]?pass|(?<![\w-])pass(?==)|(?<![A-Za-z0-9])_auth(?==)"
    rf"|(?:{_KEY_KINDS})[-_]?key|(?:session|csrf|xsrf)[-_]?id|sessid|x-amz-(?:signature|credential))"
)
_SECRET_HINTS: Final = (
    *("pass", "pwd", "secret", "token", "key", "sess", "bearer", "pat", "otp"),
    *("csrf", "xsrf", "x-amz", "_auth"),
)
_SECRET_KEY: Final = deferred_pattern(rf"(?i)[\w.-]{{0,60}}?{_SECRET_NAMES}")
# `Unexpected token: x` is what a parser says; `pad_token` is a word of a vocabulary.
_NO_SECRET_NAME: Final = deferred_pattern(
    r"(?i)(?:expected|invalid|illegal|unknown|missing|near|bad|this|(?:eos|bos|pad|unk|sep|cls|mask|stop"
    r"|next|page)_?) ?token$"
)
_NO_SECRET_CHARS: Final = 12
_CLASS_NAME: Final = deferred_pattern(r"[A-Z][A-Za-z]{1,60}Token")
# What stands where a secret would, and is none: types, states, variables, placeholders.
_NO_SECRET: Final = deferred_pattern(
    r"(?i)(?:none|null|nil|true|false|yes|no|undefined|str(?:ing)?|int|bytes|bool|any|object"
    r"|optional.*+|required|missing|empty|invalid|expired|not|is|was|the|an?|of|in|for|must|should"
    r"|cannot|char|const|var|let|void|number|text|type|auto|default|unknown|unset|set|on|off|~|\*"
    r"|[*x.•…-]{2,}+|<[^>]*+>|[$%{].*+|\[[^\]]*+\]|\(\w*+\)|(?:~|/[\w.-]++)(?:/[\w.-]*+)+|[a-z_]++=\S*+"
    # What a program would read it from.
    r"|(?:os|process|env|self|config|settings|args|ctx|this|request|secrets?|vault)[.\[].*+"
    r"|(?:[a-z_]\w*+\.[\w.]*+|(?:get|read|load|fetch|new|input|prompt)\w*+)\(.*+"
    r")[.,;:!?)\]}>]*+"
)
# `failed to fetch token: 401 Unauthorized` says what a server answered.
_STATUS: Final = deferred_pattern(
    r"[45]\d\d (?:Bad Request|Unauthorized|Forbidden|Not Found|Proxy Authentication|Request Timeout"
    r"|Too Many Requests|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time-?out)",
    re.IGNORECASE,
)
_VALUE: Final = (
    r"(?:\\\"(?P<escaped>[^\"\\\r\n]{1,500})\\\"|\"(?P<double>(?:[^\"\\\r\n]|\\.){1,500})\""
    r"|'(?P<single>(?:[^'\\\r\n]|\\.){1,500})'|(?P<bare>[^\s,;&\"'\\\x1b]{1,500}))"
)


def _is_secret(value: str) -> bool:
    return bool(value) and _NO_SECRET.fullmatch(value) is None


def _mask_assignment(match: re.Match[str]) -> str:
    """Mask the value and leave its name and its quotes."""
    value = match["escaped"] or match["double"] or match["single"] or match["bare"]
    begin = match.start("name")
    before = match.string[max(begin - _NO_SECRET_CHARS, 0) : match.end("name")]
    if not _is_secret(value) or _NO_SECRET_NAME.search(before) or _is_logger(match):
        return match[0]
    if match["bare"] is not None:
        if _STATUS.match(match.string, match.start("bare")):
            return match[0]
        value = value.rstrip(")]}>") or value
    begin = match[0].rindex(value)
    return match[0][:begin] + _SECRET + match[0][begin + len(value) :]


def _mask_stated_password(match: re.Match[str]) -> str:
    """Mask a password that is stated in a sentence, and leave what is no password."""
    value = match[0][match.end("name") - match.start() :].strip()
    quote = match["quote"] or ""
    if not _is_secret(value.strip(quote) if quote else value):
        return match[0]
    return f"{match['name']} {quote}{_SECRET}{quote}"


def _is_logger(match: re.Match[str]) -> bool:
    """Say whether a class named after a token speaks: `CachedToken: Error while …`."""
    return (match["bare"] or "").isalpha() and bool(_CLASS_NAME.fullmatch(match["name"]))


def _option_masker(*programs: str) -> Callable[[re.Match[str]], str]:
    """Mask an option's value where one of some programs stands before it on its line."""

    def mask_option(match: re.Match[str]) -> str:
        begin = max(match.start() - _LINE_CHARS, 0)
        line = match.string[begin : match.start()].rpartition("\n")[2]
        known = any(program in line for program in programs)
        return match["option"] + _SECRET if known else match[0]

    return mask_option


def _mask_hex(match: re.Match[str]) -> str:
    return "[hash]" if len(match[0]) in {32, 40, 56, 64, 96, 128} else "[hex]"


def _mask_card(match: re.Match[str]) -> str:
    """Mask a number whose last digit is the one that Luhn's formula asks for."""
    digits = [int(digit) for digit in match[0] if digit.isdecimal()]
    doubled = [sum(divmod(digit * 2, 10)) for digit in digits[-2::-2]]
    return "[card]" if (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 else match[0]


def _rule(pattern: str, replacement: _Replacement, *hints: str) -> _Rule:
    return _Rule(pattern, replacement, hints)


_BASIC: Final = (
    _rule(_PRIVATE_KEY, "[key]", "private key"),
    _rule(
        r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/'\"<>@:]{0,300}:[^\s/'\"<>]{0,300}@(?=[\w\[~.-])",
        rf"\g<scheme>{_SECRET}@",
        "://",
    ),
    _rule(
        r"(?i)(?P<scheme>jdbc:oracle:\w{1,10}:[\w.-]{1,60}/)(?!\[)[^\s/@]{1,200}(?=@)",
        rf"\g<scheme>{_SECRET}",
        "jdbc:oracle",
    ),
    # A user's name alone is no secret; what is long and has a digit is no name.
    _rule(r"(?<=://)(?=[A-Za-z_-]{0,40}\d)[\w-]{16,255}(?=@)", _SECRET, "://"),
    _rule(r"(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{8,255}", _TOKEN, "hooks.slack"),
    _rule(
        rf"(?i)(?P<name>{_EDGE}(?:proxy-)?authorization\\?[\"']?[ \t]{{0,4}}[:=]"
        r"[ \t]{0,4}\\?[\"']?)"
        r"(?P<scheme>(?:bearer|basic|token|digest|negotiate|apikey|bot|aws4-hmac-sha256)\s{1,4})?"
        r"[^\s\"'\\,}\]][^\r\n\"'\\}]{0,2000}",
        rf"\g<name>\g<scheme>{_TOKEN}",
        "authorization",
    ),
    _rule(
        rf"(?i)(?P<name>{_EDGE}(?:set-)?cookie\\?[\"']?: {{0,4}}\\?[\"']?)"
        r"(?=[\w.-]{1,80}=)[^\r\n\"'\\]{1,4000}",
        rf"\g<name>{_TOKEN}",
        "cookie",
    ),
    _rule(
        rf"(?P<scheme>{_EDGE}[Bb]earer\s{{1,4}})"
        r"(?:(?=[A-Za-z._~+/=-]{0,60}\d)[\w.~+/=-]{8,4096}|[\w.~+/=-]{24,4096})",
        rf"\g<scheme>{_TOKEN}",
        "bearer",
    ),
    _rule(
        rf"(?P<scheme>{_EDGE}Basic\s{{1,4}})(?=[A-Za-z0-9+/]{{0,60}}(?:\d|=|[a-z][A-Z]))"
        r"[A-Za-z0-9+/]{8,1024}={0,2}",
        rf"\g<scheme>{_TOKEN}",
        "basic",
    ),
    _rule(rf"(?<![\w-])(?:{'|'.join(_TOKENS)})(?![A-Za-z0-9])", _TOKEN),
    _rule(
        rf"(?i)(?P<open><[\w:.-]{{0,40}}{_SECRET_NAMES}>)[^<\r\n]{{1,500}}(?=</)",
        rf"\g<open>{_SECRET}",
        "</",
    ),
    # A phrase has spaces; it ends with its line.
    _rule(
        r"(?i)(?P<name>(?<![A-Za-z])passphrase\\?[\"']?[ \t]{0,4}[:=][ \t]{0,4})"
        r"(?!\[secret\])[^\s\"'\\<({$\[][^\r\n\"'\\]{0,300}",
        rf"\g<name>{_SECRET}",
        "passphrase",
    ),
    # Said in a sentence or a statement: in quotes, or a word with a digit in it.
    _rule(
        r"(?i)(?P<name>(?<![\w-])(?:pass(?:word|wd|phrase|code)(?: (?:is|was|to|set to|of))?"
        r"|identified by))"
        r"[ \t]{1,4}(?:(?P<quote>[\"'`])(?!\[secret\])[^\"'`\r\n]{1,200}(?P=quote)"
        r"|(?=[a-z]{1,60}\d|\d{1,60}[a-z])(?!(?:sha|md|utf|base|aes|http|v|ipv|bcrypt|argon|pbkdf|p|x|oauth)-?\d)"
        r"[\w!@#$%^&*+=-]{6,200}(?![\w(]))",
        _mask_stated_password,
        *("password", "passwd", "passphrase", "passcode", "identified by"),
    ),
    _rule(r"(?P<name>[?&](?:sig|signature)=)(?!\[)[\w%+/=-]{8,512}", rf"\g<name>{_SECRET}", "sig"),
    # A variable of the environment has the whole line, whatever signs are in it.
    _rule(
        r"(?im)(?P<name>^[ \t-]{0,20}(?:export |set |ENV |ARG )?[A-Z0-9_]{0,60}"
        rf"{_SECRET_NAMES}=)(?!\[secret\]|/[\w.-]+/)[^\s\"'$\\][^\s\"'\\]{{0,500}}[ \t]{{0,20}}$",
        rf"\g<name>{_SECRET}",
        *_SECRET_HINTS,
    ),
    _rule(
        rf"(?i)(?<![\w-])(?P<name>--?(?:\w{{1,20}}-){{0,3}}{_SECRET_NAMES})\s{{1,4}}(?!-){_VALUE}",
        _mask_assignment,
        *_SECRET_HINTS,
    ),
    _rule(
        r"(?i)(?<![\w.-])(?=[\w.-]{1,100}(?: key)?\\?[\"']?\s{0,4}(?:=|:))"
        rf"(?P<name>[\w.-]{{0,60}}?{_SECRET_NAMES})\\?[\"']?[ \t]{{0,4}}"
        rf"(?:=>|:=|[:=](?![:=]))[ \t]{{0,4}}(?:\(\w{{1,20}}\) ?)?{_VALUE}",
        _mask_assignment,
        *_SECRET_HINTS,
    ),
    _rule(
        r"(?P<option>(?<=\s)-p)(?!\[)[^\s'\"]{1,200}",
        _option_masker(*_PASSWORD_BY_P),
        *_PASSWORD_BY_P,
    ),
    _rule(
        r"(?P<option>(?<=\s)-p\s{1,4})(?![\[-])(?:'[^'\r\n]{1,200}'|\"[^\"\r\n]{1,200}\"|[^\s'\"]{1,200})",
        _option_masker(*_PASSWORD_AFTER_P),
        *("sshpass", " login"),
    ),
    _rule(
        r"(?P<option>(?<=\s)(?:-a|--pass)\s{1,4})(?![\[-])[^\s'\"]{1,200}",
        _option_masker("redis-cli", "valkey-cli"),
        *("redis-cli", "valkey-cli"),
    ),
    _rule(
        r"(?P<option>(?<=\s)-u)(?!\[)[\w.@-]{1,60}:[^\s'\"]{1,200}",
        _option_masker("curl"),
        "curl",
    ),
    _rule(
        r"(?P<option>(?<=\s)(?:-u|--user)\s{1,4})(?!\[)"
        r"(?:'[^'\r\n]{1,200}'|\"[^\"\r\n]{1,200}\"|[^\s'\"]{1,200})",
        _option_masker("curl"),
        "curl",
    ),
    _rule(
        r"(?<![\w.+%/-])(?!git@)[\w.+%-]{1,64}@(?:[^\W_][^\W_-]{0,30}(?:-{1,2}[^\W_]{1,30}){0,6}\.){1,6}"
        # `getty@tty1.service` and `icon@2x.json` are files.
        r"(?!(?:service|socket|timer|mount|target|slice|scope|py|js|ts|rb|go|so|json|ya?ml|png|svg)"
        r"(?![\w-]))[A-Za-z]{2,24}(?![\w-]|\.\w)",
        "[email]",
        "@",
    ),
    # Before the next: a drive may stand before `/Users` too.
    _rule(
        r"(?i)(?<!\w)(?:[a-z]:|/[a-z]|/mnt/[a-z]|(?<![\\/])\\{2,4}[\w.$-]{1,63})[\\/]{1,2}"
        r"(?:users|documents and settings)[\\/]{1,2}"
        r"(?:[^\s\\/:*?\"'<>|]{1,64}(?: [^\s\\/:*?\"'<>|]{1,64}){0,3}(?=[\\/])"
        r"|[^\s\\/:*?\"'<>|,;)]{1,64})",
        "~",
        *("users", "documents and settings"),
    ),
    _rule(
        r"(?<![\w.~-])/(?:var/|export/|usr/)?(?:home|Users)/(?!\[)[^\s/\\:\"'<>|,;)\]}]{1,64}"
        r"(?:(?: [A-Z][^\s/\\:\"'<>|,;)\]}]{0,64}){1,3}(?=/))?",
        "~",
        *("/home/", "/users/"),
    ),
    _rule(r"(?i)%2F(?:home|users)%2F[\w.+-]{1,64}", "~", *("%2fhome%2f", "%2fusers%2f")),
)

_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_HEX4: Final = r"[0-9a-fA-F]{1,4}"
_UUID: Final = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_HEX4_MORE: Final = rf"{_HEX4}(?::{_HEX4}){{0,6}}"
_DOMAINS: Final = (
    "com|org|net|edu|gov|mil|io|dev|cloud|ai|co|uk|de|fr|jp|cn|ru|us|eu|info|biz|lan|local|corp|test"
    "|internal|example"
)
# Everybody's, and the names of packages begin with them.
_PUBLIC_HOSTS: Final = r"(?:(?:www\.)?git(?:hub|lab)\.com|bitbucket\.org|golang\.org|pypi\.org)"

_STRICT: Final = (
    *_BASIC,
    _rule(rf"{_EDGE}{_UUID}{_END}", "[uuid]", "-"),
    _rule(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\d)", "[ip]", "."),
    _rule(
        rf"(?<![\w:.>\]])(?=[0-9a-fA-F:]{{0,38}}\d)(?:(?:{_HEX4}:){{7}}{_HEX4}"
        rf"|(?:{_HEX4}:){{1,7}}:(?:{_HEX4_MORE})?|::{_HEX4_MORE})(?!\w|:\w|::)",
        "[ip]",
        ":",
    ),
    _rule(
        rf"(?<![\w.@-])(?!{_PUBLIC_HOSTS}(?![\w.-]))(?:(?:[A-Za-z0-9][\w-]{{0,62}}\.){{2,6}}(?:{_DOMAINS})"
        r"|[A-Za-z0-9][\w-]{0,62}\.(?:com|org|edu|gov|local|internal))(?![\w(-]|\.\w)",
        "[host]",
        ".",
    ),
    _rule(r"(?<![\w.-])(?:\d[ -]?){12,18}\d(?![\w-])", _mask_card),
    _rule(
        r"(?<![\w.+-])(?:\+\d{1,3}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{2,4}(?:[ .-]?\d{2,4}){1,4}"
        r"|\(\d{3}\) ?\d{3}[-.]\d{4}|\d{3}[-.]\d{3}[-.]\d{4})(?![\w-])",
        "[phone]",
    ),
    _rule(
        rf"{_EDGE}(?=[a-fA-F]{{0,40}}\d)(?=\d{{0,40}}[a-fA-F])"
        rf"(?:[0-9a-f]{{16,1024}}|[0-9A-F]{{16,1024}}){_END}",
        _mask_hex,
    ),
    _rule(
        rf"{_EDGE}(?=[A-Za-z+/_-]{{0,60}}\d)(?=[A-Z0-9+/_-]{{0,60}}[a-z])(?=[a-z0-9+/_-]{{0,60}}[A-Z])"
        rf"[A-Za-z0-9+_-]{{24,4096}}={{0,2}}{_END}",
        _TOKEN,
    ),
)
