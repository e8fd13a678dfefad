"""Rules of work, as users give them to an agent: "run the linter before every commit".

`standing` recognises what lasts by its words ("always", "from now on", "I prefer"). A rule has none
of them: it is told by its form. What is wrongly taken for one is shown when every session begins,
what is missed is found like any other text. So the forms are few, and name the things that they are
about: "every PR needs a test" is a rule, "every query should hit the index" the aim of a task. What
is said of the moment ("don't push to main until Friday") is a task.

A sentence is only compared with the rules that begin with its first word: most begin with none.
"""

from __future__ import annotations

import re
from typing import Final

from stratagem.deferred_patterns import deferred_pattern

__all__ = ["FIRST_WORDS", "TEXT_CHARS_MAX", "match_rule"]

# Rules are short: a longer text with one is a document, or a task.
TEXT_CHARS_MAX: Final = 600
# How much else may stand in a text with a rule that could be meant for one answer.
_REST_CHARS_MAX: Final = 20

# The rest of a sentence; a point within a word ends none.
_REST: Final = r"(?:[^.!?\n]|\.(?=\w))*?"
_END: Final = r"(?=[.!;\n]|,? please(?:[.!\n]|$)|$)"
# No certain thing: "the" one, "my" one.
_ANY: Final = rf"(?!{_REST}\b(?:the|my|his|her|their)\b)"
_BARE: Final = (
    r"(?!(?:an?|all|her|him|his|it|me|my|that|the|their|them|these|this|those|us|your|approach|"
    r"candidate|not|option|plan|variant|version)\b)"
)
# What comes again in the work on a program, or with an agent.
_TIMES: Final = (
    r"(?:bug ?fix|commit|deploy(?:ment)?|merge(?: request)?|pr|pull request|push|refactor(?:ing)?|"
    r"release|(?:code|schema) change|task)s?(?=[.,;!\n]|$| (?:and|as|by|please|to|unless|using|"
    r"with)\b)"
)
_AGAIN: Final = (
    rf"(?:(?:after|before|prior to) (?:any|each|every) (?:[a-z-]+ )?{_TIMES}"
    rf"|with (?:each|every) (?=commit|release){_TIMES})"
)
# What is done then. Of a log or a preview it would be what a program is to do.
_HABIT: Final = (
    r"(?:ask|bump|check|commit|confirm|double-check|format|lint|pull|push|rebase|regenerate|rerun|"
    r"review|run|squash|summari[sz]e|verify|update (?:the |your )?(?:changelog|docs|"
    r"documentation|lock ?file|notes|plan|readme|release notes|to-?dos?|version))\b"
)
# What is asked or told: "check if the worker restarts", "lint fails".
_TOLD: Final = (
    r"(?:if|whether|why|what|which|how|who|where|breaks?|broke|crash(?:es|ed)?|did|does|"
    r"fail(?:s|ed)?|"
    r"gets|hangs?|happens|has|is|are|kills|keeps|stops|takes|took|was|were)\b"
)
_TOOLS: Final = (
    r"(?:bun|jest|mocha|npm|pip|pipenv|pnpm|poetry|pytest|rg|grep|spaces|tabs|unittest|"
    r"uv|vitest|yarn)"
)
_CONTRAST: Final = r"(?:,? (?:and )?(?:not|never)|,? instead of| rather than)"
_APPROVAL: Final = r"(?:approval|confirmation|consent|go-ahead|ok|permission)"
# How code is written.
_STYLE: Final = (
    r"(?:(?:\d|two|three|four|eight) spaces|conventional commits|semantic versioning|"
    r"strict typing|(?:single|double) quotes|trailing commas|semicolons|(?:absolute|relative) "
    r"imports|"
    r"named exports|f-strings|(?:camel|kebab|pascal|snake)[-_ ]?case|utc|iso 8601|"
    r"type (?:annotations|hints)|guard clauses|early returns|unix line endings)\b"
)
# How it is not.
_FAULTS: Final = (
    r"(?:abbreviations|bare excepts?|(?:default|wildcard|star) (?:exports|imports)|global "
    r"variables|"
    r"globals|magic numbers|(?:mutable|mutating) (?:function |default )*arguments|"
    r"nested (?:conditionals|ifs|loops|ternaries)|(?:one|single)-letter (?:variable )?names|"
    r"regular expressions for html|the any type(?: in typescript)?)"
)
_UNWANTED: Final = (
    r"(?:apologies|disclaimers|emojis?|exclamation marks|force[- ]pushes|jargon|markdown|"
    r"merge commits|print statements|semicolons|slang|tabs|trailing whitespace)"
)
_WRITTEN: Final = r"(?:comments|commit messages|docs|docstrings|documentation|pr descriptions)"
_ANSWERS: Final = r"(?:answers|explanations|replies|responses|summaries)"
_SMALL_PARTS: Final = r"(?:commits|commit messages|functions|methods|prs|pull requests)"
_SMALL: Final = r"(?:brief|concise|focuss?ed|minimal|plain|short|simple|small|succinct|terse|tiny)"
_FEW: Final = (
    r"(?:a single|a few|one|two|three|four|five|\d+) (?:short )?"
    r"(?:bullets?|bullet points|characters|lines?|paragraphs?|sentences?|words?)"
)
_SECRETS: Final = r"(?:api keys|credentials|passwords|secrets|tokens)"
_RISKY: Final = (
    r"(?:add|chang|committ|creat|delet|deploy|dropp|edit|execut|force-push|install|merg|modify|mov|"
    r"overwrit|publish|push|refactor|releas|remov|renam|rewrit|runn|spend|touch|updat|upgrad)ing\b"
)

# When something that comes again is done: "run the linter before every commit".
_DONE_AGAIN: Final = (
    rf"{_HABIT}(?!{_REST}\b{_TOLD}){_REST} (?:{_AGAIN}"
    r"|(?:whenever|every time|each time) you (?:add|change|edit|introduce|modify|remove|rename)\b)"
)
# The same, the other way round.
_EACH_TIME: Final = rf"{_AGAIN}, (?:please |always )*(?:{_HABIT}|do not|don['’]t|make sure|never)"
# What is asked first: "ask before deleting files".
_ASKED_FIRST: Final = (
    r"(?:ask(?: me)?(?: first)?|(?:check|confirm) with me|let me know|tell me|warn me) before "
    rf"{_ANY}(?:{_RISKY}|you (?:add|change|commit|delete|deploy|drop|edit|install|merge|push|"
    r"remove|rename) (?:any|some)?(?:thing)?\b)"
)
# What all of a kind need: "every PR needs a changelog entry".
_NEEDED: Final = (
    r"(?:all|each|every) (?:bug ?fix(?:es)?|commits?|features?|merges?|migrations?|prs?|"
    r"pull requests?|releases?|public (?:class(?:es)?|functions?|methods?)) "
    r"(?:(?:needs|requires|must have) (?:an? |at least \w+ |its own |one |two )?(?:[a-z-]+ )?"
    r"(?:approvals?|changelog|description|docs|docstrings?|entry|reviews?|reviewers?|sign-off|"
    rf"tests?|ticket number|type (?:annotations|hints)){_END}"
    r"|must be (?:approved|documented|reversible|reviewed|signed|tested)\b)"
)
# What is preferred: "prefer composition over inheritance".
_PREFERRED: Final = (
    rf"prefer (?:(?:the standard library|{_BARE}[a-z+#-]{{2,}}(?: [a-z+#-]{{2,}}){{0,2}}?) "
    rf"(?:over|to|instead of|rather than) {_BARE}[a-z+#-]{{2,}}(?: [a-z+#-]{{2,}}){{0,2}}"
    rf"|(?:{_SMALL},? )+(?:and {_SMALL} )?(?:{_SMALL_PARTS}|{_ANSWERS})){_END}"
)
# What is to be avoided: "avoid global variables".
_AVOIDED: Final = rf"avoid (?:using )?{_FAULTS}{_END}"
# What is not done: "don't commit secrets".
_NOT_DONE: Final = (
    r"(?:do not|don['’]t) (?:"
    r"ever (?!(?:be|change|die|forget|give|go|leave|let|look|say|stop|think|wonder|you|fail|"
    r"find|get|happen|have|hear|know|recall|remember|see|seem|work)\b)"
    r"[a-z]+(?:-[a-z]+| [a-z`])"
    rf"|use {_FAULTS}{_END}|(?:commit|expose|hard-?code|log) {_SECRETS}\b(?! (?:in|into|to) the)"
    r"|(?:commit|force-push|merge|push)(?: directly)? (?:in)?to (?:main|master|prod|production|"
    rf"release branches|shared branches|trunk){_END}"
    r"|(?:add|change|edit|modify|touch) (?:\w+ to )?(?:auto-?)?generated (?:code|files)\b"
    rf"|(?:silence|suppress|swallow) (?:errors|exceptions|warnings)(?: silently)?{_END}"
    rf"|mock [a-z]+ in (?:[a-z]+ )?tests{_END}|use print for logging(?:, \w+ only)?{_END})"
)
# What is not done unasked: "don't delete a branch without asking me".
_NOT_UNASKED: Final = (
    r"(?:do not|don['’]t) [a-z-]+ (?!(?:it|the|my|them)\b)[^,.!?\n]{1,40} without "
    rf"(?:(?:first )?asking(?: me)?|my {_APPROVAL}){_END}"
)
# How much of something there is: "keep answers short".
_KEPT: Final = (
    rf"keep (?:all |your |every )?(?:{_ANSWERS}|{_SMALL_PARTS}) (?:as )?(?:{_SMALL}"
    rf"(?: and {_SMALL})?|(?:at most|below|to|under|within) {_FEW}|under \d+ lines){_END}"
)
# "Answer in one paragraph", "be concise", "short answers, please".
_SHORT: Final = (
    rf"(?:be (?:brief|concise|succinct|terse)|{_SMALL} {_ANSWERS}(?: only)?|"
    rf"(?:answer|reply|respond)(?: to me)?(?: only)? (?:in|with) {_FEW}"
    rf"(?: at most| or less| or fewer| unless [^.!?\n]*)?){_END}"
)
# How code is written: "use 4 spaces for indentation", "use pnpm instead of npm".
_USED: Final = (
    rf"use (?:{_STYLE}(?: (?:everywhere|for (?:all )?(?:branch names|file names|indentation|"
    r"timestamps|variable names)|in (?:all )?(?:[a-z]+ )?code))?"
    rf"|{_TOOLS}{_CONTRAST} {_TOOLS}){_END}"
    rf"|only use {_STYLE}{_END}"
)
# "Wrap lines at 100 characters", "write comments in English".
_FORMED: Final = (
    r"(?:indent (?:[a-z]+ )?(?:by|with) (?:tabs|\w+ spaces)"
    r"|(?:break|limit|wrap) (?:all )?(?:comments|docstrings|lines) (?:after|at|to) \d+"
    r"(?: characters)?"
    rf"|write (?:all )?{_WRITTEN} in (?:dutch|english|french|german|spanish|(?:google|numpy) style|"
    r"the (?:imperative|present tense))(?: only)?"
    r"|follow (?:conventional commits|pep ?\d+|semantic versioning)"
    r"|leave (?:auto-?)?generated (?:code|files) (?:alone|untouched))" + _END
)
# What there is none of: "no emoji, ever".
_NONE_OF: Final = (
    rf"no (?:{_FAULTS}|{_UNWANTED}), ever{_END}"
    rf"|no (?:{_FAULTS}|{_UNWANTED}) in (?:code|names|variable names|{_WRITTEN}){_END}"
)
# On what condition alone: "only commit when I ask".
_ONLY: Final = (
    r"only (?:ever (?!(?:an?|the|one|two|got|had|saw|happen\w*|fails?|"
    r"\w+ed)\b)[a-z]+(?:-[a-z]+)? \w"
    r"|(?:commit|deploy|merge|push|release) (?:after|if|once|when|with) "
    rf"(?:asked|i (?:approve|ask|say|tell)|my {_APPROVAL}|told)\b)"
)
# On which days it is done: "deploy on Tuesdays only", "no releases on Fridays". One day is no rule.
_DAYS: Final = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekdays|weekends)"
    r"(?:(?:, | and | or )(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekdays|weekends))*"
)
_FEW_WORDS: Final = r"(?: (?!on\b|only\b)[a-z]+){0,3}"
_RELEASES: Final = r"(?:commit|deploy|merge|publish|push|release|ship)"
_ON_DAYS: Final = (
    rf"(?:we )?(?:(?:always|never|only) {_RELEASES}{_FEW_WORDS} on {_DAYS}"
    rf"|{_RELEASES}{_FEW_WORDS} (?:on {_DAYS} only{_END}|only on {_DAYS}))"
    rf"|(?:do not|don['’]t|we (?:do not|don['’]t)) {_RELEASES}{_FEW_WORDS} on {_DAYS}"
    rf"|no (?:commits|deploy(?:ment)?s|merges|pushes|releases){_FEW_WORDS} on {_DAYS}"
)
# What a team does: "we always squash".
_OURS: Final = (
    r"we (?:always|never)(?: ever)? (?:amend|commit|deploy|document|force-push|format|hardcode|"
    r"lint|merge|mock|pin|push|rebase|release|review|squash|tag|test)"
    rf"(?: (?!(?:and|because|but|it|since|so|the|which)\b)[\w'’-]+){{0,6}}{_END}"
)
# "In this repo we use dataclasses, not dicts."
_IN_PLACE: Final = (
    r"in (?:our|this) (?:code ?base|monorepo|project|repo|repository),? we use "
    rf"{_BARE}[\w.+#-]+(?: [\w.+#-]+)?, (?:not|never) [\w.+#-]+(?: [\w.+#-]+)?{_END}"
)
# "If in doubt, ask me."
_IN_DOUBT: Final = (
    r"(?:if|when(?:ever)?) (?:you(?:['’]re| are) (?:in doubt|not sure|unsure)|in doubt), "
    rf"(?:please |always )?ask(?: me)?(?: first| instead of guessing)?{_END}"
)
# At most 300 characters, as of all rules: no more is read of a sentence.
_RULE: Final = deferred_pattern(
    rf"{_DONE_AGAIN}|{_EACH_TIME}|{_ASKED_FIRST}|{_NEEDED}|{_PREFERRED}|{_AVOIDED}|{_NOT_DONE}|"
    rf"{_NOT_UNASKED}|{_USED}|{_FORMED}|{_NONE_OF}|{_ONLY}|{_ON_DAYS}|{_KEPT}|{_OURS}|{_IN_PLACE}",
    re.IGNORECASE,
)
# Beside a question or a task these say how to answer that.
# At most 300 characters.
_RULE_ALONE: Final = deferred_pattern(f"{_SHORT}|{_IN_DOUBT}", re.IGNORECASE)
# Looked up before a function is called: most sentences begin with none.
FIRST_WORDS: Final = frozenset({
    "after", "all", "also", "always", "and", "answer", "ask", "avoid", "be", "before", "break",
    "brief", "bump", "but", "check", "commit", "concise", "confirm", "deploy", "do", "don",
    "double", "each", "every", "follow", "format", "if", "important", "in", "indent", "keep",
    "leave", "let", "limit", "lint", "make", "merge", "minimal", "never", "no", "ok", "okay",
    "only", "plain", "please", "prefer", "prior", "publish", "pull", "push", "rebase",
    "regenerate", "release", "remember", "reply", "rerun", "respond", "review", "run", "ship",
    "short", "simple", "small", "squash", "succinct", "summarise", "summarize", "tell", "terse",
    "thanks", "try", "update", "use", "verify", "warn", "we", "when", "whenever", "with",
    "wrap", "write", "you",
})  # fmt: skip
# What may stand before a rule.
# At most 300 characters.
_LEAD: Final = deferred_pattern(
    r"(?:(?:also|and|be sure to|but|important|make sure (?:to|you)|ok(?:ay)?|please|remember to|"
    r"thanks|try to|you (?:must|need to|should)|"
    r"in (?:our|this) (?:code ?base|monorepo|project|repo|repository)(?:,? we)?),? )+",
    re.IGNORECASE,
)
# What is said of the moment makes a task of a rule.
# At most 300 characters.
_OF_MOMENT: Final = deferred_pattern(
    r"\b(?:this(?! (?:code ?base|monorepo|project|repo|repository)\b)|these|that|those|it|him|her|"
    r"them|here|there|now|today|tonight|tomorrow|yesterday|"
    r"again|yet|above|below|following|attached|currently|moment|meanwhile|since|until|while|soon|"
    r"later|earlier|asap|lunch|noon|(?:mon|tues|wednes|thurs|fri|satur|sun)day|last|just|line \d|"
    r"step \d|(?:issue|pr|ticket) #?\d|"
    r"\w++\.(?:cpp|css|go|html|java|js|jsx|py|rb|rs|ts|tsx|txt))\b",
    re.IGNORECASE,
)
# At most 300 characters.
_WORD: Final = deferred_pattern(r"[a-z]+", re.IGNORECASE)
# At most 300 characters.
_SENTENCE_END: Final = deferred_pattern(r"[!?\n]|\.(?!\w)")


def match_rule(text: str, start: int, end: int) -> re.Match[str] | None:
    """Return the rule that begins at a place of a text, and ends before another; None if none."""
    first = _WORD.match(text, start, end)
    if first is None or first[0].lower() not in FIRST_WORDS:
        return None
    if found := _match_at(text, start, end):
        return found
    lead = _LEAD.match(text, start, end)
    return _match_at(text, lead.end(), end) if lead else None


def _match_at(text: str, start: int, end: int) -> re.Match[str] | None:
    found = _RULE.match(text, start, end)
    if found is None:
        found = _RULE_ALONE.match(text, start, end)
        if found and not _is_alone(text, found):
            return None
    return None if found and _is_of_moment(text, start, end) else found


def _is_alone(text: str, found: re.Match[str]) -> bool:
    """Whether a text says hardly more than a rule: "Thanks! Be concise."."""
    return len(text) - len(found[0]) <= _REST_CHARS_MAX and "?" not in text


def _is_of_moment(text: str, start: int, end: int) -> bool:
    """Whether the sentence that begins at a place says something of the moment."""
    last = _SENTENCE_END.search(text, start, end)
    return _OF_MOMENT.search(text, start, last.start() if last else end) is not None
