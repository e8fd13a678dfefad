"""Rules of work, as users give them to an agent: "run the linter before every commit".

`standing` recognises what lasts by its words ("always", "from now on", "I prefer"). A rule has none
of them: it is told by its form. It says when to do what of something that comes again ("before each
commit, …"), what all things of a kind need ("every PR needs …"), what to prefer or avoid, or how
answers and code are written. What is said of the moment ("don't change the tests in this PR") is a
task, and none.

A sentence is only compared with the rules that begin with its first word. Before that it is looked
up whether a text has such a word and what belongs to it: most texts have not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from stratagem.deferred_patterns import deferred_pattern
from stratagem.deferred_tuples import NamedTuple

__all__ = ["FIRST_WORDS", "TEXT_CHARS_MAX", "match_rule", "may_have_rule"]

# Rules are short: a longer text with one is a document, or a task.
TEXT_CHARS_MAX: Final = 600

# The rest of a sentence; a point within a word ends none.
_REST: Final = r"(?:[^.!?\n]|\.(?=\w))*?"
_END: Final = r"(?=[.!;\n]|,? please(?:[.!\n]|$)|$)"
# Where the things end that are named, and what of them may follow.
_THINGS_END: Final = (
    r"(?=[.!;\n]|,? please(?:[.!\n]|$)|$| (?:as|at|by|for|from|in|inside|on|outside|to|unless|when|"
    r"with|without) )"
)
# No certain thing: "the" one, "my" one.
_ANY: Final = rf"(?!{_REST}\b(?:the|my|his|her|their)\b)"
_BARE: Final = (
    r"(?!(?:an?|all|her|him|his|it|me|my|that|the|their|them|these|this|those|us|your)\b)"
)
# What comes again in the work on a program, or with an agent.
_TIMES: Final = (
    r"(?:answer|bug ?fix|build|change|commit|deploy(?:ment)?|edit|feature|merge(?: request)?|"
    r"migration|pr|pull request|push|rebase|refactor(?:ing)?|release|reply|response|review|session|"
    r"task|upgrade)s?\b(?! of\b)"
)
_AGAIN: Final = (
    r"(?:before|after|with|prior to|at the (?:start|beginning|end) of) (?:each|every|any) "
    rf"(?:[a-z-]+ ){{0,2}}?{_TIMES}"
)
# Of what there are many in such work.
_MANY: Final = (
    r"(?:answers|branch(?:es| names)|classes|comments|commits|commit messages|components|dates|"
    r"dependencies|docstrings|endpoints|explanations|features|file names|fixtures|functions|"
    r"helpers|imports|lines|methods|migrations|modules|names|prs|pull requests|queries|replies|"
    r"responses|secrets|summaries|tests|timestamps|variable names)"
)
_WORKS: Final = (
    rf"(?:{_MANY}|answer|apis?|branch(?: name)?|bug ?fix(?:es)?|changes?|class(?: name)?|"
    r"commit(?: message)?|code|comment|component|constants?|credentials|dependency|docs|docstring|"
    r"endpoint|errors|exceptions?|explanation|feature|files?|file name|fix(?:es)?|function|import|"
    r"logs|method|migration|module|money|packages|pr|pull request|query|reply|response|scripts?|"
    r"services|strings|summary|test|variables?|variable name)"
)
# What is done again and again; what is made ("add a hook that …") is a task.
_DOES_WORDS: Final = (
    "ask bump check clean commit confirm document execute fetch format lint list log mention note "
    "pull push read rebase record regenerate rerun restart review run save search show squash "
    "start store summarise summarize sync tag tell test update use verify wait"
)
_DOES: Final = rf"(?:double-check|{_DOES_WORDS.replace(' ', '|')})"
_WHAT_TO_DO: Final = (
    rf"(?:please |always |also )*(?:{_DOES}|add|do not|don['’]t|explain|give|include|keep|"
    r"make sure|never|prefer|stop|write)\b"
)
_CONTRAST: Final = r"(?:,? (?:and )?(?:not|never) |,? instead of | rather than )[a-z\d]"
_APPROVAL: Final = r"(?:approval|confirmation|consent|go-ahead|ok|permission)"
# How code is written.
_STYLE: Final = (
    r"(?:(?:\d|two|three|four|eight) spaces|spaces|conventional commits|semantic versioning|"
    r"strict (?:mode|typing)|(?:single|double) quotes|trailing commas|semicolons|"
    r"(?:absolute|relative) imports|named exports|f-strings|(?:camel|kebab|pascal|snake)[-_ ]?case|"
    r"utc|iso 8601|type (?:annotations|hints)|guard clauses|early returns|unix line endings)\b"
)
# Of what one is used everywhere.
_TOOLS: Final = (
    r"(?:black|bun|docker|eslint|flake8|git|grep|jest|just|logging|make|mocha|npm|pip|pipenv|pnpm|"
    r"podman|poetry|prettier|print|pytest|rg|ruff|spaces|tabs|unittest|uv|vitest|yarn|zsh)"
)
# How an answer is.
_TERSE: Final = r"(?:blunt|brief|concise|direct|formal|succinct|terse)"
_SMALL: Final = (
    r"(?:brief|clean|concise|consistent|fast|focuss?ed|minimal|plain|short|simple|small|stateless|"
    r"terse|tidy|tiny|(?:at most|below|less than|shorter than|to|under|within) \w)"
)
_FEW: Final = (
    r"(?:at most |under |no more than )?(?:a single|a few|one|two|three|four|five|\d+) "
    r"(?:short )?(?:lines?|paragraphs?|sentences?|words?|bullets?|bullet points)"
)

# When something that comes again is done: "run the linter before every commit".
# At most 300 characters, as of all rules: no more is read of a sentence.
_DONE_AGAIN: Final = deferred_pattern(
    rf"{_DOES} {_REST}\b(?:{_AGAIN}|(?:whenever|every time|each time) (?:you|i|we) \w)",
    re.IGNORECASE,
)
# The same, the other way round.
# At most 300 characters.
_EACH_TIME: Final = deferred_pattern(
    rf"(?:{_AGAIN}|(?:for|on) (?:each|every) {_TIMES})[^,.!?\n]*, {_WHAT_TO_DO}", re.IGNORECASE
)
# What is asked first: "ask before deleting files".
# At most 300 characters.
_ASKED_FIRST: Final = deferred_pattern(
    rf"(?:ask(?: me)?(?: first)?|check with me|confirm(?: with me)?|consult me|let me know|tell me|"
    rf"warn me|get my {_APPROVAL}) before {_ANY}"
    r"(?:you (?!arrive|come|go|leave)|[a-z]{2,}ing\b)",
    re.IGNORECASE,
)
# What all things of a kind need: "every PR needs a changelog entry".
# At most 300 characters.
_NEEDED: Final = deferred_pattern(
    rf"(?:every|each|all|any|new)(?: new)?(?: [a-z-]+)? {_WORKS} "
    r"(?:needs?|requires?|must|should|shall|ha(?:s|ve) to|is to|are to)\b"
    r"(?! (?:all |now |still |not )*(?:exist|fail|go|have \w+ed|pass|run|succeed|work|"
    # What is done once.
    r"be (?:back|changed|converted|deleted|done|fine|fixed|gone|green|merged|migrated|moved|ok|"
    r"present|ready|removed|renamed|replaced|rewritten|running|there|up|updated))\b)",
    re.IGNORECASE,
)
# The same of many: "tests must not touch the network".
# At most 300 characters.
_NEEDED_OF_MANY: Final = deferred_pattern(
    rf"(?:(?:integration|public|unit) )?{_MANY} (?:"
    r"(?:must|should) (?:never \w|(?:not |always )?(?:be (?:in|kept|named|stored|written)|end|"
    r"follow|have (?!been\b|\w+ed\b)|start|touch|use) ?)"
    r"|(?:always |never )?(?:begin|end|start) with [a-z]"
    r"|(?:belong|go) (?:in|inside|into|under|next to) (?!circles|detail|production)"
    rf"|live (?:in|inside|under|next to) {_REST}, not )",
    re.IGNORECASE,
)
# What is preferred: "prefer composition over inheritance".
# At most 300 characters.
_PREFERRED: Final = deferred_pattern(
    rf"prefer (?!an?\b|not\b|option\b|the (?!standard)|to\b){_REST}"
    rf"\b(?:(?:over|to|rather than|instead of|whenever|where|unless) \w|\w\ws{_END})",
    re.IGNORECASE,
)
# What is to be avoided: "avoid global variables".
# At most 300 characters.
_AVOIDED: Final = deferred_pattern(
    rf"avoid (?:{_ANY}(?:[a-z]+ing \w|{_BARE}(?:[a-z-]+ ){{0,3}}[a-z-]{{3,}}s\b{_THINGS_END})"
    r"|using the \w+ "
    r"(?:function|keyword|library|method|module|operator|package|pattern|type|word)\b)",
    re.IGNORECASE,
)
# What is not done: "do not add comments to generated code". Of some deeds that says all; others are
# habits where it is said with what kind of thing, or what else is needed.
# At most 300 characters.
_NOT_DONE: Final = deferred_pattern(
    r"(?:do not|don['’]t) (?:"
    r"ever (?!(?:be|change|die|forget|give|go|leave|let|look|say|stop|think|wonder|you)\b)"
    r"[a-z]+(?:-[a-z]+| [a-z`])"
    rf"|{_ANY}(?!{_REST}\b(?:(?:but|first|i|so|too|we)\b|only\b(?!{_END})))(?:"
    r"(?:abbreviate|commit|expose|force-push|hard-?code|mock|nest|shadow|silence|suppress|swallow|use)"
    rf" {_BARE}(?:[a-z-]+ ){{0,3}}[a-z-]{{3,}}s\b{_THINGS_END}"
    rf"|use {_BARE}\w+ (?:for|in) \w|(?:commit|force-push|merge|push)(?: directly)? (?:in)?to "
    r"(?:main|master|prod|production|release branches|shared branches|trunk)\b"
    rf"|[a-z-]+ {_BARE}{_REST}(?:"
    rf"(?:from|in|into|to) (?:[a-z-]+ )?(?:{_MANY}|code|generated files)\b|by hand\b"
    rf"|without (?:(?:first )?asking|permission|(?:my|an?) {_APPROVAL}))"
    r"|[a-z-]+ (?:auto-?)?generated (?:code|files)))",
    re.IGNORECASE,
)
# The same, where a thing is named: "don't push it without asking".
# At most 300 characters.
_NOT_UNASKED: Final = deferred_pattern(
    r"(?:do not|don['’]t) [a-z-]+ (?:to )?[^,.!?\n]{1,60} without "
    rf"(?:(?:first )?asking|(?:my|an?) {_APPROVAL}|permission)\b",
    re.IGNORECASE,
)
# How much of an answer there is: "keep answers short".
# At most 300 characters.
_KEPT: Final = deferred_pattern(
    rf"keep (?:all |your |every )?(?:[a-z]+ )?{_MANY} (?:as )?{_SMALL}", re.IGNORECASE
)
# "Be concise."
# At most 300 characters.
_BEING: Final = deferred_pattern(
    rf"be {_TERSE}(?: and [a-z]+)?(?: in [a-z ]+| with me)?{_END}", re.IGNORECASE
)
# "Answer in one paragraph."
# At most 300 characters.
_ANSWERED: Final = deferred_pattern(
    rf"(?:answer|reply|respond)(?: to)?(?: me)?(?: only)? (?:in|with) {_FEW}"
    rf"(?: at most| or less| or fewer| max(?:imum)?| unless [^.!?\n]*)?{_END}",
    re.IGNORECASE,
)
# "Short answers, please."
# At most 300 characters.
_SHORT: Final = deferred_pattern(
    rf"\w+ (?:answers|replies|responses|summaries)(?: only)?(?:,? please)?{_END}", re.IGNORECASE
)
# How code is written: "use 4 spaces for indentation", "use pnpm instead of npm".
# At most 300 characters.
_USED: Final = deferred_pattern(
    rf"use (?!of\b|case)(?:{_STYLE}{_THINGS_END}{_ANY}"
    rf"|{_BARE}[\w.+#-]+(?: [\w.+#-]+)? (?:for|in) (?:all |every |any |new )?"
    r"(?:(?:class|file|git|integration|python|unit) )?"
    rf"(?:{_MANY}|code|formatting|indentation|linting|logging|money|naming){_END}"
    rf"|(?=[^.!?\n]*\b{_TOOLS}\b){_BARE}{_ANY}[\w+#-]+(?: [\w+#-]+){{0,2}}?"
    rf"(?: for [a-z]+)?{_CONTRAST}[\w+# -]{{0,30}}{_END})",
    re.IGNORECASE,
)
# "Wrap lines at 100 characters", "name tests after what they show".
# At most 300 characters.
_FORMED: Final = deferred_pattern(
    r"indent (?:[a-z]+ )?(?:by|with) (?:tabs|\w+ spaces)"
    rf"|(?:break|limit|wrap) {_ANY}(?:all )?(?:comments|docstrings|lines|text) (?:after|at|to) "
    r"(?:\d|eighty|a hundred)"
    r"|(?:group|order|sort) imports\b|pin (?:all )?(?:[a-z]+ )?(?:dependencies|versions)\b"
    rf"|treat {_ANY}(?:all )?[a-z]+s as (?:bugs|errors|failures)\b"
    rf"|squash {_ANY}(?:[a-z]+ )?(?:commits|fixups) (?:before|when) "
    rf"|name (?:all )?(?:new )?(?:[a-z]+ )?{_MANY} (?:after|by|for|in|like|with) "
    rf"|write (?!{_REST}\bfor (?:my|our|the)\b)(?:all )?(?:[a-z]+ )?{_MANY} "
    r"(?:as|in|like|with) (?!an? |the (?!imperative|present))"
    r"|(?:follow|stick (?:to|with)) (?:conventional|pep|semantic|(?:american|british|uk|us) |"
    r"(?:our|the) (?:[a-z]+ )?(?:conventions?|guidelines|style guide|style)\b(?! of\b))"
    r"|leave (?:all )?(?:[a-z-]+ )?(?:code|comments|files|tests) (?:alone|untouched)",
    re.IGNORECASE,
)
# What there is none of: "no emoji, ever".
# At most 300 characters.
_NONE_OF: Final = deferred_pattern(
    rf"no {_ANY}(?:(?:[a-z-]+ ){{0,3}}?[a-z-]+, ever\b"
    r"|(?:[a-z-]+ )?(?:abbreviations|apologies|disclaimers|emojis?|exclamation marks|"
    rf"jargon|magic numbers|markdown|slang|wildcard imports)(?: in {_BARE}[a-z ]+)?{_END})",
    re.IGNORECASE,
)
# On what condition alone: "only commit when I ask".
# At most 300 characters.
_ONLY: Final = deferred_pattern(
    r"only (?:ever [a-z]+(?:-[a-z]+)? \w"
    r"|(?:commit|deploy|edit|merge|push|release)(?: [a-z]+){0,3} "
    rf"(?:after|if|once|when|with) (?:asked|i|(?:my )?{_APPROVAL}|the (?:build|checks|ci|tests) "
    r"pass|told)\b)",
    re.IGNORECASE,
)
# On which days it is done: "deploy on Tuesdays only", "no releases on Fridays". One day is no rule.
_DAYS: Final = (
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekdays|weekends)"
    r"(?:(?:, | and | or )(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days|weekdays|weekends))*"
)
_FEW_WORDS: Final = r"(?: (?!on\b|only\b)[a-z]+){0,3}"
_RELEASES: Final = r"(?:commit|deploy|merge|publish|push|release|ship)"
# At most 300 characters.
_ON_DAYS: Final = deferred_pattern(
    rf"(?:we )?(?:(?:always|never|only) {_RELEASES}{_FEW_WORDS} on {_DAYS}"
    rf"|{_RELEASES}{_FEW_WORDS} (?:on {_DAYS} only{_END}|only on {_DAYS}))"
    rf"|(?:do not|don['’]t|we (?:do not|don['’]t)) {_RELEASES}{_FEW_WORDS} on {_DAYS}"
    rf"|no (?:commits|deploy(?:ment)?s|merges|pushes|releases){_FEW_WORDS} on {_DAYS}",
    re.IGNORECASE,
)
# What the speaker hates of it: "I hate semicolons, leave them out".
# At most 300 characters.
_HATED: Final = deferred_pattern(
    r"(?:i|we) (?:really |absolutely )?(?:can['’]t stand|cannot stand|dislike|hate) "
    r"[^,;.!?\n]+[,;:] (?:so )?(?:please )?"
    r"(?:avoid|(?:do not|don['’]t) (?:add|give|include|put|send|start|use|write)|drop|keep|leave|"
    r"never|no|skip|stop|use)\b",
    re.IGNORECASE,
)
# "I like short functions", "I want all code to be typed".
# At most 300 characters.
_LIKED: Final = deferred_pattern(
    r"(?:i|we) (?:(?:appreciate|favou?r|like|love) (?:brief|clear|concise|descriptive|detailed|"
    rf"explicit|meaningful|readable|short|simple|small|terse|thorough|tiny) {_MANY}"
    rf"|(?:expect|want) (?:all|any|each|every) (?:new |public |your )?{_WORKS} "
    r"(?:in|to|with|without) )",
    re.IGNORECASE,
)
# What a team does: "we always squash", "we use Decimal, never float".
# At most 300 characters.
_OURS: Final = deferred_pattern(
    rf"we {_ANY}(?:(?:always|never)(?: ever)? (?:amend|commit|deploy|document|force-push|"
    r"format|hardcode|lint|log|merge|mock|name|pin|push|rebase|release|review|squash|tag|test|version)\b"
    rf"|(?:log|name|put|store|use|write) {_BARE}{_REST}{_CONTRAST})",
    re.IGNORECASE,
)
# What it does not: "we don't use globals here".
# At most 300 characters.
_NOT_OURS: Final = deferred_pattern(
    r"we (?:do not|don['’]t) (?:allow|commit|force-push|hardcode|mock|squash|use) "
    r"(?!(?:it|that|the|this)\b)\w",
    re.IGNORECASE,
)
# What holds in a place: "in this repo we use tabs".
# At most 300 characters.
_IN_PLACE: Final = deferred_pattern(
    r"(?:across|for|in|on|within) (?:my|our|this) (?:entire |whole )?"
    r"(?:code ?base|company|library|monorepo|package|project|repo|repository|team|workspace),? "
    r"(?:please )?(?:avoid |do not |don['’]t "
    r"|(?:follow|keep|name|prefer|put|run|stick|use|write) (?!an? |the |this |up )"
    rf"|we (?:(?:(?:always|never|only) (?:{_DOES}|keep|merge|name|pin|put|use|write)|avoid|do not|"
    r"don['’]t|indent|name|prefer|write)\b"
    rf"|(?:keep|put|store|use)\b{_REST}(?:{_CONTRAST}|\b(?:{_STYLE}|tabs\b))))",
    re.IGNORECASE,
)
# What is done where the agent is in doubt.
# At most 300 characters.
_IN_DOUBT: Final = deferred_pattern(
    r"(?:(?:if|when(?:ever)?) (?:you(?:['’]re| are) (?:in doubt|not sure|uncertain|unsure)|"
    rf"in doubt|unsure|(?:any|some)thing is unclear)|unsure)[^,.!?\n]*, {_WHAT_TO_DO}",
    re.IGNORECASE,
)
# What is done in a case that comes again: "when writing tests, …".
# At most 300 characters.
_IN_CASE: Final = deferred_pattern(
    r"(?:if you (?:add|change|delete|introduce|remove|rename|touch) (?:an?|any|new)|"
    r"when(?:ever)? (?:adding|changing|committing|creating|debugging|deleting|editing|fixing|"
    r"merging|naming|refactoring|releasing|renaming|reviewing|testing|using|writing)) "
    rf"[^,.!?\n]+, {_WHAT_TO_DO}",
    re.IGNORECASE,
)
# What is called a rule: "our convention is to …".
# At most 300 characters.
_CALLED_RULE: Final = deferred_pattern(
    r"(?:(?:house|project|team) )?rule: (?!of|if)"
    r"|(?:my|our) (?:coding |house |team )?(?:convention|policy|rule)(?: here)? is "
    r"(?:always|never|no|not to|that|to) \w",
    re.IGNORECASE,
)
# What is to be remembered: "remember: all money is Decimal".
# At most 300 characters.
_REMEMBERED: Final = deferred_pattern(
    r"remember(?::| that) (?:(?:all|each|every) (?:[a-z]+ )?[a-z]+ (?:are|goes|go|has to|"
    r"have to|is|must|needs?|should)|we (?:always|never|only|support|use)) \w",
    re.IGNORECASE,
)
# What may stand before a rule.
# At most 300 characters.
_LEAD: Final = deferred_pattern(
    r"(?:(?:also|and|be sure to|but|important|make sure (?:to|you)|ok(?:ay)?|please|remember to|"
    r"thanks|try to|you (?:must|need to|should)),? )+",
    re.IGNORECASE,
)
# What is said of the moment makes a task of a rule.
# At most 300 characters.
_OF_MOMENT: Final = deferred_pattern(
    r"\b(?:this|these|that|those|it|him|her|them|here|now|today|tonight|tomorrow|yesterday|again|yet|"
    r"above|below|following|attached|currently|moment|meanwhile|until|while|soon|later|earlier|asap|"
    r"lunch|noon|(?:mon|tues|wednes|thurs|fri|satur|sun)day|last|just|line \d|step \d|"
    r"(?:issue|pr|ticket) #?\d|\w++\.(?:cpp|css|go|html|java|js|jsx|py|rb|rs|ts|tsx|txt))\b",
    re.IGNORECASE,
)
# A message of a program: "TypeError: functions must have a name". At most 20 characters.
_PROGRAM_SAYS: Final = deferred_pattern(
    r"(?:error|exception|failed|failure|fixed|warning)\]?: ?$", re.IGNORECASE
)
_PROGRAM_CHARS: Final = 20
# At most 300 characters.
_WORD: Final = deferred_pattern(r"[a-z]+", re.IGNORECASE)
# At most 300 characters.
_SENTENCE_END: Final = deferred_pattern(r"[!?\n]|\.(?!\w)")


class _Rule(NamedTuple):
    """A form of rule, the words that it begins with, and parts of which it has one."""

    pattern: re.Pattern[str]
    words: str
    parts: tuple[str, ...] = ()
    # Where not, it may well say "this repository" or "here".
    is_lasting: bool = True


_RULES: Final = (
    _Rule(_DONE_AGAIN, f"{_DOES_WORDS} double", (" every ", " each ", " any ", " whenever ")),
    _Rule(_EACH_TIME, "after at before for on prior with", (" every ", " each ", " any ")),
    _Rule(_ASKED_FIRST, "ask check confirm consult get let tell warn", (" before ",)),
    _Rule(
        _NEEDED,
        "all any each every new",
        (" must ", " should ", " need", " has to ", " have to ", " require", " is to ", " are to ",
         " shall "),
    ),
    _Rule(
        _NEEDED_OF_MANY,
        "answers branch branches classes comments commit commits components dates dependencies "
        "docstrings endpoints explanations features file fixtures functions helpers imports "
        "integration lines methods migrations modules names prs public pull queries replies "
        "responses secrets summaries tests timestamps unit variable",
        (" must ", " should ", " start with ", " begin with ", " end with ", " belong ", " go ",
         " live "),
    ),
    _Rule(_PREFERRED, "prefer"),
    _Rule(_AVOIDED, "avoid"),
    _Rule(_NOT_DONE, "do don", ("do not ", "don't ", "don’t ")),
    _Rule(_NOT_UNASKED, "do don", (" without ",), is_lasting=False),
    _Rule(_KEPT, "keep"),
    _Rule(_BEING, "be", ("be b", "be c", "be d", "be f", "be s", "be t")),
    _Rule(_ANSWERED, "answer reply respond"),
    _Rule(_SHORT, "brief concise short terse"),
    _Rule(_USED, "use"),
    _Rule(
        _FORMED,
        "break follow group indent leave limit name order pin sort squash stick treat wrap write",
    ),
    _Rule(
        _NONE_OF,
        "no",
        (", ever", "abbrev", "apolog", "comment", "disclaim", "emoji", "exclam", "jargon", "magic ",
         "markdown", "slang", "wildcard"),
    ),
    _Rule(_ONLY, "only"),
    _Rule(
        _ON_DAYS,
        "always commit deploy do don merge never no only publish push release ship we",
        ("days", "weekends"),
    ),
    _Rule(_HATED, "i we", (" hate ", " dislike ", " stand "), is_lasting=False),
    _Rule(
        _LIKED,
        "i we",
        (" like ", " love ", " favo", " appreciate ", " want a", " want e", " expect "),
    ),
    _Rule(_OURS, "we", (" always ", " never ", " only ", " instead of ", " not ", " rather than ")),
    _Rule(_NOT_OURS, "we", ("we don't ", "we don’t ", "we do not "), is_lasting=False),
    _Rule(
        _IN_PLACE,
        "across for in on within",
        (" code", " company", " library", " monorepo", " package", " project", " repo", " team",
         " workspace"),
        is_lasting=False,
    ),
    _Rule(
        _IN_DOUBT,
        "if unsure when whenever",
        ("in doubt", "not sure", "uncertain", "unsure", "unclear"),
        is_lasting=False,
    ),
    _Rule(_IN_CASE, "if when whenever", ("if you ", "ing ")),
    _Rule(
        _CALLED_RULE,
        "house my our project rule team",
        ("rule: ", "rule is ", "rule here ", "convention ", "policy "),
    ),
    _Rule(_REMEMBERED, "remember", ("remember: ", "remember that ")),
)  # fmt: skip


def _by_first_word() -> Mapping[str, list[_Rule]]:
    """Return the rules by the words that they begin with."""
    table: dict[str, list[_Rule]] = {}
    for rule in _RULES:
        for word in rule.words.split():
            table.setdefault(word, []).append(rule)
    return table


def _join_parts(*several: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of which one of several has one; none where one of them names none."""
    return tuple(part for parts in several for part in parts) if all(several) else ()


_BY_FIRST_WORD: Final = _by_first_word()
# What may stand before a rule, by its first word, and the same of a text that has it.
_LEAD_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("also", "and", "but", "important", "ok", "okay", "please", "thanks"), ()),
    "be": ("be sure to ",),
    "make": ("make sure to ", "make sure you "),
    "remember": ("remember to ",),
    "try": ("try to ",),
    "you": ("you must ", "you should ", "you need to "),
}
# By the first word of a sentence, the parts of which a text with a rule has one; none where it may
# be any text.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    word: _join_parts(
        *(rule.parts for rule in _BY_FIRST_WORD.get(word, ())),
        *([_LEAD_PARTS[word]] if word in _LEAD_PARTS else ()),
    )
    for word in {*_BY_FIRST_WORD, *_LEAD_PARTS}
}
# Looked up before a function is called: most texts have none.
FIRST_WORDS: Final = frozenset(_PARTS)


def may_have_rule(small: str, words: Collection[str]) -> bool:
    """Whether a text in small letters, whose sentences begin with some words, may have a rule."""
    return any(_has_any(small, _PARTS[word]) for word in FIRST_WORDS.intersection(words))


def match_rule(text: str, small: str, word: str, start: int, end: int) -> re.Match[str] | None:
    """Return the rule that begins at a place of a text, with some word; None where none does.

    The word, and the text once more, are in small letters.
    """
    if word not in FIRST_WORDS:
        return None
    if found := _match_at(text, small, word, start, end):
        return found
    lead = _LEAD.match(text, start, end) if word in _LEAD_PARTS else None
    first = _WORD.match(text, lead.end(), end) if lead else None
    return _match_at(text, small, first[0].lower(), first.start(), end) if first else None


def _match_at(text: str, small: str, word: str, start: int, end: int) -> re.Match[str] | None:
    for rule in _BY_FIRST_WORD.get(word, ()):
        found = rule.pattern.match(text, start, end) if _has_any(small, rule.parts) else None
        if found and not (rule.is_lasting and _is_of_moment(text, start, end)):
            before = max(start - _PROGRAM_CHARS, 0)
            return None if _PROGRAM_SAYS.search(text, before, start) else found
    return None


def _has_any(small: str, parts: Sequence[str]) -> bool:
    """Whether a text in small letters has any of some parts, or none are named."""
    for part in parts:
        if part in small:
            return True
    return not parts


def _is_of_moment(text: str, start: int, end: int) -> bool:
    """Whether the sentence that begins at a place says something of the moment."""
    last = _SENTENCE_END.search(text, start, end)
    return _OF_MOMENT.search(text, start, last.start() if last else end) is not None
