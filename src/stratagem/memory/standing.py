"""Standing instructions and preferences: what a user wants from now on.

"Always show the units when I ask for a measure", "I prefer trains to planes", "call me Jo". Queries
rarely contain their words, because they apply to everything that follows. So they are recognised
when they are written, ranked higher than other texts, and listed separately.

They are recognised by how English says such things, also what ends an earlier one, in the first
lines of what was said by anybody but an assistant. A bare imperative ("use metric units") is one
where it is about how something is written, and not about what is at hand. After "always" or
"never" any verb with an object is one, unless its form tells or it is about what one feels. What is
asked, or what somebody else said, is none. What is missed is found like any other text.

`evals/data/standing.jsonl` has 160 labelled sentences. On the half that the patterns were not
chosen by, precision was .71 and recall .25 before bare imperatives were recognised; they were 1.0
and .88 when that half was first asked, and 1.0 and .93 after a mistake that it showed.

Rules of work have none of these words; `rules` tells them by their form. On the other half of the
275 sentences in `evals/data/standing_rules.jsonl` precision was 1.0 and recall .04 without it. With
forms for all that could be a rule they were .98 and .80, but of 132 tasks, specifications and
pasted lines in similar words 115 were taken for rules. With few forms they are 1.0 and .55, and
none of the lines is taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from stratagem import limits
from stratagem.deferred_modules import defer
from stratagem.deferred_patterns import deferred_pattern
from stratagem.function_cache import cache_texts
from stratagem.memory.messages import ANSWERING, MACHINES

if TYPE_CHECKING:
    from stratagem.memory import rules
else:
    rules = defer("stratagem.memory.rules")

__all__ = ["STANDING", "find_standing", "is_standing"]

# The facet that standing instructions and preferences are found by.
STANDING: Final = "standing"

# A text that goes on for longer is a document, and speaks to everybody.
_CHARS_MAX: Final = 2_000
# Longer texts are rarer, and much to keep.
_CACHED_CHARS_MAX: Final = 400
# Whose texts are no instructions. What is recognised is stored as a facet: to change this, or the
# pattern, is to change what the read models mean, which are then to be rebuilt.
_NOT_INSTRUCTING: Final = ANSWERING | MACHINES

# What an assistant is told to do; "always here to help" is no instruction.
_DEEDS: Final = (
    "add|address|answer|apply|ask|assume|avoid|be|begin|book|call|check|cite|combine|commit|confirm|"
    "convert|create|delete|deploy|do|double-check|emphasise|emphasize|end|ensure|explain|focus|"
    "follow|format|give|highlight|include|keep|let|list|log|maintain|make|mark|mention|merge|name|"
    "offer|order|output|prefer|present|prioritise|prioritize|provide|push|put|quote|read|recommend|"
    "refer|remember|remind|reply|report|respond|return|review|round|run|save|say|schedule|send|set|"
    "share|show|sign|skip|sort|speak|spell|start|state|stop|store|structure|suggest|summarise|"
    "summarize|talk|tell|test|translate|treat|update|use|verify|write"
)
# What it may do too much of.
_HABITS: Final = (
    "using|adding|answering|apologi[sz]ing|asking|assuming|beginning|being|calling|ending|explaining|giving|"
    "guessing|hedging|including|making|offering|praising|quoting|reminding|repeating|replying|"
    "responding|saying|sending|(?:speaking|talking)(?= (?:to me )?in )|"
    "starting|suggesting|summari[sz]ing|telling|thanking|translating|writing"
)
# What says that something holds for all that follows.
_LASTING: Final = (
    r"from (?:now|here|today|this point) on(?:wards?)?|going forward|henceforth|in (?:the )?future"
)
_LANGUAGES: Final = (
    "english|french|german|spanish|italian|dutch|norwegian|swedish|danish|finnish|portuguese|polish|"
    "russian|ukrainian|chinese|japanese|korean"
)
# How one writes: a bare imperative about these applies to whatever is written next.
_MANNER: Final = (
    r"metric|imperial|celsius|fahrenheit|kilomet(?:re|er)s|miles|units|(?:24|12)-hour|decimals?|"
    r"decimal places|currenc\w+|dates? as|time zones?|british|american|"
    rf"{_LANGUAGES}|"
    r"bullets?|bullet points|bulleted lists|headings|tables|prose|markdown|plain text|emojis?|"
    r"exclamation marks|sentences|paragraphs|rhymes|lower ?case|upper ?case|capital letters|"
    r"oxford comma|passive voice|active voice|first person|second person|present tense|jargon|"
    r"slang|acronyms|abbreviations|contractions|inclusive language|plain language|simple words|"
    r"tone|disclaimers|footnotes|citations|sources|examples(?! (?:from|of)\b)|"
    r"code (?:samples|examples|blocks)|type hints|docstrings|tabs|snake_case|camelcase|"
    r"your (?:answers?|replies|responses?|explanations?|messages|texts?|summaries|emails|code)|"
    r"(?:under|within|at most) (?:a |an )?\w+ words|so much|"
    r"when(?:ever)? you (?:answer|explain|quote|reply|respond|show|speak|summari[sz]e|talk|write)|"
    r"my (?:surname|name|first name|question)"
)
_MADE: Final = (
    r"(?:me |us |some |more |your )?(?:acronyms|bullets|code(?! (?:blocks|examples|samples))|"
    r"citations|docstrings|examples|footnotes|"
    r"headings|paragraphs|rhymes|sentences|sources|tables|tabs|type hints|units)"
)
# What is said of one thing at hand.
_AT_HAND: Final = (
    r"this|these|that|those|it|(?<!under )an?|here|now|today|tonight|tomorrow|again|above|below|"
    r"following|attached|him|her|them|they"
)
_THE: Final = r"the (?!oxford|metric|imperial|passive|active|first|second|present|past)"
# What a speaker says first: it asks for nothing.
_LEAD: Final = (
    r"(?:(?:please|and|so|also|but|ok(?:ay)?|thanks|thank you|you (?:should|must|need to)"
    r"|by the way|btw|oh|hey|hi|hello|well|actually|in general|as a rule|one more thing"
    r"|(?:additionally|alright|cool|generally|great|no(?:pe)?|perfect|seriously|sure|yeah|yes)(?=,)"
    r"|just so you know|fyi|reminder|note|remember to|be sure to"
    r"|as (?:i|we)(?:['’]ve)?(?: already)? (?:mentioned|said|told you|wrote)(?: before| earlier)?"
    r"),? ){0,3}"
)
# Where it holds: "in this repository, always …".
_PLACE: Final = r"(?:(?:for|in|on|with|at|across|within|as for) \w[^,.!?;:\n]{0,60}, )?"
# What follows "always" or "never" and is no order: another kind of word ("always a pleasure",
# "never again"), a form of a verb that tells ("always has been", "never tried"), what one feels or
# what befalls one ("always love your posts", "never get a reply").
_NO_DEEDS: Final = (
    r"an?|the|my|your|our|his|her|their|its|i|you|we|he|she|it|they|this|that|these|those|there|here|"
    r"some\w*|any\w*|no|none|nothing|nobody|nowhere|not|now|one|two|more|most|less|least|enough|much|many|few|too|so|very|quite|rather|"
    r"almost|just|only|even|ever|never|always|again|before|after|since|until|when\w*|where\w*|what\w*|"
    r"why|how|who|which|if|as|and|or|but|than|then|in|on|at|to|of|for|from|with|without|by|about|over|"
    r"under|up|down|out|off|mind|am|is|are|was|were|been|being|have|had|did|done|would|could|should|"
    r"will|shall|can|may|might|must|ought|good|better|best|bad|worse|nice|great|fun|happy|glad|sad|"
    r"sorry|ready|late|early|new|old|big|small|slow|fast|quick|right|wrong|true|false|sure|fair|"
    r"free|full|easy|hard|high|low|hot|cold|wise|smart|safe|polite|lovely|cool|fine|welcome|worth|"
    r"trouble|love|like|enjoy|hate|wonder|want|need|feel|think|know|understand|hear|see|get|hope|"
    r"believe|seem|forget|fail|fall|happen|lose|win|find|go|come|appear|look|remain|stay|mean|matter|"
    r"knew|thought|saw|seen|got|gotten|gone|went|made|took|taken|came|found|felt|heard|kept|left|lost|"
    r"met|paid|said|sat|sold|sent|stood|told|understood|wore|won|written|wrote|grew|grown|held|known|"
    r"spoke|spoken|broke|broken|ate|eaten|drove|driven|fell|fallen|gave|given|ran|slept|spent|"
    r"same|other|null|random|stable|chaos|gonna|gotta|wanna|"
    r"\w+(?<!e)(?<!emb)ed|\w+ing|\w+ly|\w+(?<!s)s|\w+ful|\w+ous|\w+less|\w+[ai](?<!ena)(?<!disa)ble|"
    r"\w+(?<!cop)(?<!if)(?<!pl)(?<!tr)(?<!quer)(?<!carr)(?<!tid)(?<!den)(?<!var)(?<!stud)"
    r"(?<=[bcdfgklmnprstvz])y|\w+[tn]ic(?:al)?|\w+(?:ff|sist|qu|rec|mitt)er?ent"
)
# What somebody resolves for a life of their own: "never quit smoking", "never give up hope".
_RESOLVED: Final = (
    rf"(?:stop|quit) (?!(?:{_HABITS})\b)\w+ing\b|give (?:up|in)\b|say never\b|"
    r"(?:drink|marry|meet|smoke|wear) "
)
# What is about one thing at hand, although it is said for always: "never log it in auth.py".
_ONE_THING: Final = (
    r"(?![^.!?\n]*(?:\bthe (?:new|old)\b|\b(?:from|in|on|to) (?:this|that|these|those)\b"
    r"|\w\.(?:c|cpp|css|go|html|java|js|jsx|py|rb|rs|ts|tsx)\b))"
)
# An order has an object, or says before or after what, or in what way.
_ORDER: Final = (
    rf"(?!(?:{_NO_DEEDS})\b)[a-z][a-z-]+ "
    r"(?!(?:to|of|for|when|that|and|or|but|at|in|on|if|as|than|enough|though|is|are|was|were)\b)\w"
)
# What ends an earlier instruction, or returns to what was before: "English is fine again".
_CHANGE: Final = (
    rf"(?:{_LANGUAGES}) (?:is|would be) (?:better|enough|fine|good|ok(?:ay)?|preferred)"
    r"(?:,? (?:again|from now on|now|once more|please|too)){0,3}(?=[.,;!\n]|$)"
    r"|(?:answer|reply|respond|speak|talk|write)(?: (?:to|with) me)?(?: in)? "
    rf"(?:{_LANGUAGES}) again\b"
    r"|use (?:metric|imperial|celsius|fahrenheit|tabs|spaces|(?:british|american) spelling)"
    r"(?: units)? again\b"
    rf"|(?:(?:go |switch )?back|switch) to (?:{_LANGUAGES})"
    r"(?:,? (?:again|from now on|now|please)){0,3}"
    r"(?=[.,;!\n]|$)"
    rf"|you (?:don['’]t|do not|needn['’]t|no longer)(?: have to| need to)? (?:{_DEEDS})\b[^.!?\n]*"
    r"\bany(?: ?more| longer)\b"
    rf"|you no longer (?:have|need) to (?:{_DEEDS})\b"
    r"|forget (?:about )?(?:my|our|the) (?:\w+ )?(?:convention|instruction|preference|rule)s?\b"
)
_LASTING_INSTRUCTION: Final = (
    rf"{_PLACE}(?:always|never) (?!{_RESOLVED}){_ONE_THING}(?:(?:{_DEEDS})\b|{_ORDER})"
    r"|i(?:['’]d like| would like| want| need| ask| expect) you to \w[^.!?\n]*"
    rf"\b(?:{_LASTING})\b"
    rf"|(?:{_LASTING})\b(?!,? ?(?:it|there|he|she|they|the|this|that|things|is|are|was|were|"
    rf"with|clients|customers|"
    r"everybody|everyone|people|tests|users|visitors"
    r"|i['’]ll|i (?:can|could|may|might|plan|want to|will)|we['’]ll"
    r"|we (?:can|could|may|might|plan|want|will))\b)"
    rf"|(?:{_DEEDS}|don['’]t|do not|no)\b[^.!?\n]*\b(?:{_LASTING})\b"
    r"|whenever i (?:ask|say|want|need)\b[^,.!?\n]*, (?!(?:an?|he|i|it|my|she|the|there|they|this|"
    r"that|we|you|your)\b)\w"
    r"|(?:when(?:ever)?|every time|each time|any time) (?:i|you) "
    # What is done on a screen, as a specification has it, or what is said of a moment.
    r"(?!(?:are|click|close|double-click|drag|drop|enter|finish|get|have|hit|hover|log|navigate|press|"
    r"refresh|reload|resize|save|scroll|select|start|submit|swipe|tap|toggle|type)\b)\w[^,.!?\n]*, "
    rf"(?:please |always |never |do not |don['’]t )*(?:{_DEEDS})\b"
    rf"|next time,? (?:you \w[^,.!?\n]*, )?(?:please |always |never |do not |don['’]t )*"
    rf"(?:{_DEEDS})\b"
    rf"|(?:do not|don['’]t) ever (?:{_DEEDS})\b"
    r"|unless (?:i (?:say|tell|ask)|told|stated|specified)\b[^,.!?\n]*,"
    rf"|for (?:all |any )?future (?!dates?\b)\w[^,.!?\n]*, (?:please )?(?:{_DEEDS})\b"
    r"|(?:you (?:can|may|should) )?call me (?!when|if|back|later|at |on |now|again|before|after|"
    r"once|as soon|to(?:day|night|morrow)|any ?time|anything|maybe|an? |the |"
    # What one may be called for an opinion: "call me crazy, but …".
    r"(?:what(?:ever)?|up|out|over|crazy|mad|naive|paranoid|old[- ]fashioned)\b|"
    r"[^,.!?\n]{1,40},? but\b)[a-z]"
    r"|address me as\b|(?:remember|keep in mind) that i\b"
    r"(?! (?:\w+ed|had|have \w+ed|did|left|made|put|ran|said|sent|told|was|went|will|wrote)\b)"
    r"|(?:i want you to|i need you to|you should|you must|make sure (?:to|you)) (?:always|never)\b"
    rf"(?! (?:{_RESOLVED}))"
    rf"|(?:you (?:can|may|could|should) )?(?:stop|quit|enough of) (?:{_HABITS})\b{_ONE_THING}"
    r"|no more \w+(?: \w+)?,? please\b"
    r"|you (?:don['’]t|do not|needn['’]t|no longer)(?: need to| have to)? "
    r"(?:apologi[sz]e|ask|define|explain|remind|repeat|summari[sz]e)\b"
)
# About what is at hand it is said once: "use metric units in this table".
_MANNER_INSTRUCTION: Final = (
    r"(?=(?:answer|avoid|cite|explain|format|give|i|keep|make|quote|reply|respond|round|show|spell|speak|"
    r"talk|use|write|do not|don['’]t|no more)\b)"
    rf"(?![^.!?\n]*\b(?:{_AT_HAND})\b)(?![^.!?\n]*\b{_THE})"
    # What one person is told, and what is explained once.
    r"(?!(?:answer|reply|respond)\b[^.!?\n]* to (?-i:[A-Z][a-z])"
    r"|explain\b[^.!?\n]*\b(?:how|what|where|why)\b)"
    # What is made once: "show tables", "write docstrings".
    rf"(?!(?:explain|format|give|make|show|write) (?:{_MADE})\b)"
    r"(?:(?:give|quote|show|use|write)\b[^.!?\n]*, not \w"
    r"|(?:do not|don['’]t) call me\b"
    r"|i(?:['’]d like| would like| want| need) you to "
    r"(?:answer|ask|assume|be|call|check|cite|keep|remember|reply|respond|speak|stop|talk|treat|use)\b"
    rf"|(?!i\b)[^.!?\n]*?\b(?:{_MANNER})\b)"
)
# Who wants this does not want to answer.
_SILENCE: Final = r"(?:say|talk|discuss|answer|think|go into|tell|comment|disclose)\b"
_PREFERENCE: Final = (
    r"(?<!do )(?<!did )(?<!would )(?<!should )(?<!could )(?<!might )"
    r"\b(?:i|we)(?: (?:really|much|usually|generally|strongly|always|still|would))? prefer\b"
    rf"(?! not to {_SILENCE})(?![^.!?\n]*\b(?:for|in) this (?:case|file|one|pr)\b)"
    rf"|\bi['’]d (?:much )?prefer\b(?! not to {_SILENCE})"
    rf"|\bi['’]d (?:much )?rather (?!not {_SILENCE}|have \w+ed\b|be\b)"
    r"|\b(?:i|we) (?:hate|dislike|can['’]t stand|cannot stand) (?:it when|when|being)\b"
    r"|\bi (?:don['’]t|do not) (?:like it when|want you to(?! \w+ (?:it|that|this|yet)\b))\b"
    r"|\bi (?:like|love|appreciate) "
    r"(?:it when you|(?:my|your) (?:answers|replies|responses|code|texts)\b)"
    r"|\buser (?:prefers|likes|dislikes|hates|wants|(?:does not|doesn['’]t) (?:like|want))\b"
    r"|\bmy (?:stated )?preference\b"
)
# At most 2,000 characters: longer texts are documents.
_INSTRUCTION_PATTERN: Final = deferred_pattern(
    rf"{_LEAD}(?:{_LASTING_INSTRUCTION}|{_CHANGE}|{_MANNER_INSTRUCTION})", re.IGNORECASE
)
_PREFERENCE_PATTERN: Final = deferred_pattern(_PREFERENCE, re.IGNORECASE)
# The letters that an instruction begins with.
_FIRST_WORDS: Final = frozenset({
    *(deed.partition("-")[0] for deed in _DEEDS.split("|")), *_LANGUAGES.split("|"),
    "across", "actually", "additionally", "alright", "also", "always", "and", "any", "as", "at",
    "back", "btw", "but", "by", "cool", "don", "each", "enough", "every", "for", "forget", "from",
    "fyi", "generally", "go", "going", "great", "hello", "henceforth", "hey", "hi", "i", "in",
    "just", "never", "next", "no", "nope", "note", "oh", "ok", "okay", "on", "one", "perfect",
    "please", "quit", "reminder", "seriously", "so", "sure", "switch", "thank", "thanks", "unless",
    "well", "when", "whenever", "with", "within", "yeah", "yes", "you",
})  # fmt: skip
# One of each list is in whatever the patterns find, in small letters. Looking for them takes a
# tenth of the time, for every text that is written; most texts have none of the hints.
_PREFERENCE_HINTS: Final = (
    "prefer", "rather", "hate", "stand ", "like", "want", "user does", "love ", "appreciate ",
)  # fmt: skip
_PREFERENCE_SIGNS: Final = (
    "prefer", "rather", "hate", "dislike", "stand ", "like it when", "want you to", "user likes",
    "user wants", "user does", "like my ", "like your ", "love my ", "love your ", "love it when",
    "appreciate ",
)  # fmt: skip
_INSTRUCTION_SIGNS: Final = (
    "always", "never", "now on", "here on", "today on", "point on", "going forward", "henceforth",
    "future", "ever ", "call me ", "address me as", "remember that i", "keep in mind that i",
    "you to ", "when i ", "when you ", "y time ", "h time ", "unless ", "stop ", "quit ",
    "enough of", "no more ", "n't ", "do not ", "longer ", "answer ", "avoid ", "cite ",
    "explain ", "format ", "give ", "keep ", "make ", "quote ", "reply ", "respond ",
    "round ", "show ", "spell ", "speak ", "talk ", "use ", "write ", "sh is ", "ch is ",
    "an is ", "ese is ", " would be ", "back to ", "switch to ", "next time", "forget ",
)  # fmt: skip
# Where an instruction may begin, in how many places it is looked for, and how far it is read from
# each: a text of marks and half instructions must not take long to write.
_STARTS_MAX: Final = 40
_INSTRUCTION_CHARS_MAX: Final = 300
_STARTS: Final = deferred_pattern(r"[.!?;:\n]\s?")
# What a colon stands behind where what follows is the speaker's: "note: always …".
# At most 100 characters.
_INTRODUCING: Final = deferred_pattern(
    r"\s?(?:(?:and|so|also|hey|hi|ok(?:ay)?|please|by the way|btw|fyi|one more thing|as a rule|"
    r"in general|going forward|from now on|important|remember|reminder|note|please note|"
    r"(?:house |project |team |my )?(?:preference|rule)|one rule|"
    r"(?:for|in) (?:all|any|every|my|our|this) (?:code ?base|code|project|repo|repository|replies|"
    r"answers)),? ?){1,3}",
    re.IGNORECASE,
)
_FIRST_LETTERS: Final = deferred_pattern(r"[.!?;:\n]\s?([a-z]*)")
_ENDS: Final = (".", "!", "?", ":", ";", ",", "…")
_SENTENCE_ENDS: Final = deferred_pattern(r"[.!?](?=\s|$)|\n")
# Texts that tell anybody what to do: what they say is no wish of who quotes them.
_TEXTS: Final = (
    r"(?:article|book|changelog|comment|compiler|console|docs?|documentation|error|guide|handbook|"
    r"hint|linter|log|logs|manual|message|output|page|readme|runbook|spec|test|tests|tutorial|"
    r"warning|wiki)(?:\.md)?"
)
# What somebody else said: a verb of saying, and a mark that parts it from what was said.
_SAYING: Final = deferred_pattern(
    r"(?<!\bi )(?<!\bwe )(?<!\bi already )(?<!\bi['’]ve )"
    r"\b(?:said|says|(?<!unless )told|wrote|writes|replied|joked|reported|read)\b|\breports[.!]?$"
    rf"|\b{_TEXTS} (?:advises?|claims?|complains?|prints?|reads?|recommends?|say|shows?|states?|"
    r"suggests?|tells?|warns?)\b"
    rf"|\b(?:according to|as per|from) (?:the|its|their) (?:\w+ )?{_TEXTS}\b",
    re.IGNORECASE,
)
_QUOTING: Final = (":", ",", '"', "“", "”")
# What asks for no more than agreement: "call me Jo, ok?".
_TAGGED: Final = deferred_pattern(
    r", (?:ok|okay|please|right|alright|will you|would you|can you|could you) ?\?$", re.IGNORECASE
)
_INVERTED: Final = deferred_pattern(
    r"(?:do|did|would|should|could|have) (?:i|we|you|they)\b", re.IGNORECASE
)


def is_standing(text: str, role: str | None = None) -> bool:
    """Whether a text says what its author wants from now on."""
    if role in _NOT_INSTRUCTING:
        return False
    find = _has_short_sentence if len(text) <= _CACHED_CHARS_MAX else _has_sentence
    return find(text)


def find_standing(text: str, role: str | None = None) -> str | None:
    """Return the sentences that say what their author wants from now on; None if none does."""
    if role in _NOT_INSTRUCTING:
        return None
    found = sorted(set(_find_sentences(text)))
    sentences = [text[begin:end].strip() for begin, end in found]
    # Lines of a list may end without a mark.
    ended = (each if each.endswith(_ENDS) else f"{each};" for each in sentences[:-1])
    return " ".join([*ended, *sentences[-1:]]) or None


def _has_sentence(text: str) -> bool:
    return next(_find_sentences(text), None) is not None


def _find_sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the sentences are that say what lasts, some of them several times."""
    if len(text) > _CHARS_MAX:
        return
    for found in _find_candidates(text):
        begin, end = _sentence_around(text, found.start(), found.end())
        if not _is_reported(text, begin, end):
            yield begin, end


def _find_candidates(text: str) -> Iterator[re.Match[str]]:
    """Yield what reads like a preference, an instruction or a rule."""
    # A pattern knows more pairs of small and capital letters than `lower` does.
    is_plain, small = text.isascii(), text.lower()
    if not is_plain or _may_have_preference(small):
        yield from _PREFERENCE_PATTERN.finditer(text)
    # With a mark and its space before the text: a pattern that allows for the beginning takes three
    # times as long.
    words = _FIRST_LETTERS.findall(". " + small)
    if not is_plain or _may_have_instruction(small, words):
        for start in _starts_of(text):
            found = _INSTRUCTION_PATTERN.match(text, start, start + _INSTRUCTION_CHARS_MAX)
            if found and not _is_asked(text, found):
                yield found
    if not rules.FIRST_WORDS.isdisjoint(words):
        yield from _find_rules(text)


def _find_rules(text: str) -> list[re.Match[str]]:
    """Return the rules of a text."""
    if len(text) > rules.TEXT_CHARS_MAX:
        return []
    return [
        match
        for start in _starts_of(text)
        if (match := rules.match_rule(text, start, start + _INSTRUCTION_CHARS_MAX))
        and not _is_asked(text, match)
    ]


def _starts_of(text: str) -> Sequence[int]:
    """Return where an instruction may begin: not behind a title, or the number of a list's item."""
    starts, before = [0], 0
    for found in islice(_STARTS.finditer(text), _STARTS_MAX):
        begin, mark = found.start(), found[0][0]
        if mark == ":":
            is_start = _INTRODUCING.fullmatch(text, before, begin) is not None
        else:
            is_start = mark != "." or not text[before:begin].isdecimal()
        if is_start:
            starts.append(found.end())
        before = found.end()
    return starts


def _may_have_preference(small: str) -> bool:
    return _has_any(small, _PREFERENCE_HINTS) and _has_any(small, _PREFERENCE_SIGNS)


def _may_have_instruction(small: str, words: Sequence[str]) -> bool:
    """Whether a sentence begins as instructions do, and the text has a word that they have."""
    return not _FIRST_WORDS.isdisjoint(words) and _has_any(small, _INSTRUCTION_SIGNS)


def _is_asked(text: str, found: re.Match[str]) -> bool:
    begin, end = _sentence_around(text, found.start(), found.end())
    sentence = text[begin:end].strip()
    if sentence.endswith("?") and not _TAGGED.search(sentence):
        return True
    return _INVERTED.match(sentence) is not None


def _is_reported(text: str, begin: int, end: int) -> bool:
    """Whether a sentence says what somebody else wants, as it or the line above it tells."""
    sentence = text[begin:end]
    above = text[:begin].rstrip()
    if above.endswith(":"):
        sentence = f"{above[above.rfind(chr(10)) + 1 :]} {sentence}"
    return any(mark in sentence for mark in _QUOTING) and _SAYING.search(sentence) is not None


def _sentence_around(text: str, begin: int, end: int) -> tuple[int, int]:
    """Return where the sentence is that a part of a text stands in."""
    ends = (each.end() for each in _SENTENCE_ENDS.finditer(text, 0, begin + 1))
    first = max(ends, default=0)
    last = _SENTENCE_ENDS.search(text, max(end - 1, first))
    return first, last.end() if last else len(text)


# What was written on a branch, or in a transaction, is written again when it is merged. As many as
# have their terms cached.
_has_short_sentence = cache_texts(2 * limits.ITEMS_MAX)(_has_sentence)


def _has_any(small: str, signs: Sequence[str]) -> bool:
    """Whether a text in small letters has any of some signs."""
    for sign in signs:  # noqa: SIM110 -- a generator takes twice as long, for every text written
        if sign in small:
            return True
    return False
