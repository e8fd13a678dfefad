"""Words that names of parameters are made of: what some always mean, and which words there are.

A name made of real words is no misspelling of another, however similar they are. The words are
those of the embedder in `search/model`, numbered by how common they are: first those of general
English, then those of programming. They are read when the first name is compared with another,
which takes about 20 ms; nothing else about a correction depends on a file.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from stratagem.function_cache import cache_texts

__all__ = [
    "CALL_NAMES",
    "CONSENT",
    "GENERIC",
    "METADATA",
    "NAMED_THINGS",
    "NOISE",
    "PAYLOADS",
    "PLACES",
    "SPOKEN_OF",
    "SYNONYMS",
    "TAKING_BACK",
    "UNITS",
    "distance",
    "is_common",
    "is_word",
    "normal",
    "same_tool",
    "singular",
    "tokens",
]

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
_NAME_CHARS_MAX: Final = 128
# Letters of other alphabets that look like ours.
_LOOKS_LIKE: Final = str.maketrans("аеорсухіјѕνοα", "aeopcyxijsvoa")  # noqa: RUF001
_FILE: Final = Path(__file__).parents[2] / "search" / "model" / "tokenizer.json"
# Beyond are rare words, and misspellings that are met often.
_WORDS_MAX: Final = 28_700
# Most short tokens beyond are abbreviations and pieces of names.
_SHORT_WORDS_MAX: Final = 3_000
_SHORT_CHARS: Final = 3
# Others are made of these.
_COMMON_MAX: Final = 8_000
# What the vocabulary lacks: short names of quantities, and words that are a letter away from
# others with another meaning (`assignor`, `assignee`).
_TERMS: Final = frozenset(
    """
    a acc ace add aim alt an api app arg as asc assignee assignor at ate avg bake bathe bet bid bin
    bolder borrower bot buy by calc cap capo caption cat celsius cod col collage consignee
    consignor cpe cpu crm cry csm cve cwe deceive decrement denominator desc dest dev devise
    dine dir dividend divisor docket dot egg env equip expend fan faq fat fax fee fit fix freq
    gap geo go gpu grantee grantor ham hat hay hen hip id idp ids idx if in inn inst int invoice
    is it jam jar jaw jet joy kilogram kit lab lander lap lat len lender lessee lessor lid lip
    lng log lon mac map mentee min mod mol mols mud mug net no num numerator nut oak odd of on
    or pad pan payee payees payout pen pend pet pig pin pint pit pod postfix pot prev prob prod
    pub purl racket radium raw ref repaid row rrule rub sad scaler sec semicolon sender sine ski
    spy sql src ssid ssl stationery sub subtract sum tag tap tea tenet ticker tie tint tip tls
    to toe toy untied up uri url us var vender vocation wet x y yearn z zip
    """.split()
)


def normal(name: str) -> str:
    """Return a name without case and separators: what all its styles share."""
    plain = unicodedata.normalize("NFKC", name[:_NAME_CHARS_MAX]).casefold()
    if not plain.isascii():
        plain = plain.translate(_LOOKS_LIKE)
    return "".join(char for char in plain if char.isalnum())


def same_tool(name: str, tool: str) -> bool:
    """Tell whether a call names a tool, with or without what models put before it."""
    plain = name.strip()
    for before in ("functions.", "tools.", "default_api.", "self."):
        plain = plain.removeprefix(before)
    return normal(plain) == normal(tool)


# Names repeat: those of schemas with every call, those of callers with every caller.
@cache_texts(4096)
def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name, in lower case."""
    return tuple(word.casefold() for word in _WORD.findall(name[:_NAME_CHARS_MAX]))


def singular(word: str) -> str:
    """Return a word without its plural ending."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("ches", "ch"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 2 and not word.endswith("ss"):  # noqa: PLR2004
            return word[: -len(ending)] + instead
    return word


# Names of an object around the arguments.
PAYLOADS: Final = frozenset(
    {
        "actioninput", "args", "argument", "arguments", "body", "data", "functionargs",
        "functionarguments", "functioncalls", "invoke",
        "functioncall", "function", "input", "inputs", "kwargs", "options", "param",
        "parameter", "parameters", "params", "payload", "properties", "request", "toolargs",
        "toolarguments", "toolcall", "toolcalls", "toolinput", "toolparams", "toolparameters",
        "toolrequest", "tooluse", "value", "values", "call",
    }
)  # fmt: skip


# What stands beside the arguments in a call.
CALL_NAMES: Final = frozenset(
    {
        "action", "function", "functionname", "id", "index", "jsonrpc", "method", "name", "object",
        "recipientname", "role", "tool", "toolcallid", "toolname", "toolsname", "type", "callid",
    }
)  # fmt: skip


# What models add about a call: no tool that has no such parameter could have meant it.
METADATA: Final = frozenset(
    {
        "apiversion", "callid", "chainofthought", "confidence", "correlationid", "explanation",
        "functionname", "innerthoughts", "internalreasoning", "invocationid", "justification",
        "meta", "modelname", "rationale", "reasoning", "requestid", "requesttimestamp",
        "schemaversion", "spanid", "stepid", "thinking",
        "dummy", "randomstring", "thought", "thoughts", "thoughtprocess",
        "timestamp", "toolcallid", "toolname", "traceid", "typename", "uimetadata", "toolversion",
    }
)  # fmt: skip


# What such a name may be about, if the tool has a parameter for it.
_WHY: Final = frozenset({"reason", "why", "cause", "purpose", "justification", "motive", "ground"})


_MOMENT: Final = frozenset(
    "at created datetime moment occurred since time until updated when".split()
)


_DEGREE: Final = frozenset(
    "alpha certainty level likelihood percentile probability score significance threshold".split()
)


SPOKEN_OF: Final = {
    **dict.fromkeys(("explanation", "justification", "rationale", "reasoning", "thought"), _WHY),
    **dict.fromkeys(("timestamp", "requesttimestamp"), _MOMENT),
    "confidence": _DEGREE,
}


# A parameter of such a name is there to be agreed to.
CONSENT: Final = frozenset(
    """accept acknowledge acknowledged agree agreed approve approved certify confirm confirmation
    confirmed consent force understand understood""".split()
)


# What models write around JSON that says nothing about the task. No word that takes something back.
NOISE: Final = frozenset(
    """action and answer are args argument arguments as assistant body call called calling calls
    certainly code final following for function functioncall functioncalls functions go here i input
    inputs invoke is it json ll name object ok okay parameter parameters params payload python
    request s sure tag the these this to tool toolcall toolcalls tools use using will with you
    """.split()
)


# What takes back, or changes, what is said beside it.
TAKING_BACK: Final = frozenset(
    """avoid but cancel don dont except instead never no not rather stop unless without wrong
    """.split()
)


# They say too little to tell two names apart.
GENERIC: Final = frozenset({"id", "name", "api", "tool", "call", "request", "function", "model"})


# Parameters whose single values have commas in them.
PLACES: Final = frozenset(
    """address addresses airport airports area areas capital capitals city cities countries country
    county destination destinations district districts geography home hometown itinerary landmark
    landmarks locality location locations neighborhood neighbourhood origin origins place places
    province provinces region regions route routes state states stop stops street streets territory
    town towns venue venues village waypoint waypoints where zone""".split()
)


NAMED_THINGS: Final = frozenset(
    """actor actors album albums answer answers article articles artist artists attendee attendees
    author authors book books candidate candidates contact contacts customer customers employee
    employees guest guests member members participant participants parties party patient patients
    player players speaker speakers strings student students users citation citations
    comment comments company companies description descriptions director directors film films
    headline message messages movie movies names note notes paragraph paragraphs people person
    persons phrase phrases prompt prompts question questions quote quotes quotation reference
    references review reviews sentence sentences series show shows song songs story subject text
    texts title titles track tracks utterance utterances command commands expression expressions
    formula formulas greeting greetings instruction instructions line lines pattern patterns queries
    query regex script scripts sql statement statements""".split()
)


# Only offered: what one tool calls a city another calls a location.
SYNONYMS: Final = tuple(
    frozenset(group.split())
    for group in (
        "location city place town address destination where area",
        "query search q searchquery searchterm term keyword keywords text question prompt",
        "limit count max maxresults n num number size top topk k pagesize",
        "start begin from since origin startdate fromdate source",
        "end finish to until till enddate todate destination target",
        "name title label fullname",
        "id identifier uid key uuid",
        "file path filename filepath filelocation document",
        "directory folder dir",
        "message content body text msg contents",
        "recipient to receiver",
        "email mail emailaddress",
        "phone telephone phonenumber mobile",
        "url link uri href address",
        "type kind category sort class",
        "unit units measure",
        "language lang locale",
        "user username userid account login",
        "amount price cost value sum total",
        "date day when time datetime",
        "duration length period timespan",
        "quantity amount count number",
        "description summary details info",
        "company organization organisation firm business",
        "country nation",
        "movie film",
        "color colour",
        "order sort sortby orderby ordering",
        "format style",
        "mode method",
        "enabled active on enable",
    )
)


# Units as names have them: `timeout_s` is no misspelling of `timeout_ms`.
UNITS: Final = frozenset(
    """s ms us ns m min mins h hr hrs d mm cm dm km mi ft yd nm um g kg mg ug mcg lb lbs oz t l ml
    cl dl gal c f k hz khz mhz ghz w kw mw gw wh kwh v kv mv a ma pa hpa kpa mpa psi bar n kn j kj
    cal kcal deg rad b kb mb gb tb kib mib gib px pt em pct bps kph kmh mph ha mol mmol usd eur gbp
    aud cad nzd hkd sgd jpy cny chf""".split()
)


def distance(one: str, other: str, most: int) -> int:
    """Return how many letters are missing, extra, wrong or swapped; `most` stands for more.

    A swap of two neighbours counts as one slip (optimal string alignment).
    """
    if abs(len(one) - len(other)) >= most or len(set(one) ^ set(other)) >= 2 * most:
        return most
    one, other = _without_ends(one, other)
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        earlier, before, row = before, row, [at] + [0] * len(other)
        for to, wanted in enumerate(other, start=1):
            cost = min(before[to] + 1, row[to - 1] + 1, before[to - 1] + (letter != wanted))
            swapped = at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted
            row[to] = min(cost, earlier[to - 2] + 1) if swapped else cost
        if min(row) >= most and min(before) >= most:
            return most
    return min(row[-1], most)


def _without_ends(one: str, other: str) -> tuple[str, str]:
    """Cut off what both begin and end with: slips lie in between."""
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    one, other = one[start:], other[start:]
    end = 0
    while end < min(len(one), len(other)) and one[-1 - end] == other[-1 - end]:
        end += 1
    return (one[:-end], other[:-end]) if end else (one, other)


@cache
def _ranks() -> dict[str, int]:
    vocabulary: dict[str, int] = orjson.loads(_FILE.read_bytes())["model"]["vocab"]
    return dict.fromkeys(_TERMS, 0) | {
        word: number
        for word, number in vocabulary.items()
        if number <= (_WORDS_MAX if len(word) > _SHORT_CHARS else _SHORT_WORDS_MAX)
        and len(word) >= _SHORT_CHARS
        and word.isalpha()
    }


def is_word(word: str) -> bool:
    """Tell whether a word, in lower case, is a real one."""
    return word in _ranks()


def is_common(word: str) -> bool:
    """Tell whether a word, in lower case, is one that others are made of."""
    return _ranks().get(word, _WORDS_MAX) <= _COMMON_MAX
