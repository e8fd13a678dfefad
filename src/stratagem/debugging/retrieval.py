"""Find the incidents that are similar to a problem, and estimate how likely each is the same.

The same normalised signature is the same problem: relevance 1. The same headline (the message
without its frames) is nearly as certain, unless both have frames in different places.
All others are found by words and meaning, with title, summary and signature as separate fields,
and judged by `engine.relevance`: incidents that have an error by its head, the others by their
titles, and where a code is asked about, those that have it by that. A search always finds
something, so an incident is recommended only from a minimum relevance on, which is a setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem import limits
from stratagem.debugging.kinds import INCIDENTS, facet_headline, facet_signature
from stratagem.debugging.signatures import (
    agreement,
    are_other_particulars,
    asked_by_code,
    code_parts,
    find_codes,
    find_error,
    find_headlines,
    fingerprint_and_headlines,
    headline,
    is_bare_status,
    kept_headlines,
    stand_in_one_place,
    stated_particulars,
    states_error,
    title_headlines,
)
from stratagem.debugging.signatures.hosts import hosts
from stratagem.deferred_dataclasses import dataclass
from stratagem.engine import relevance
from stratagem.engine.lineage import View
from stratagem.engine.relevance import CheckedWord, Description, HeadWord, ProblemComparison
from stratagem.function_cache import cache_texts
from stratagem.search import analysis
from stratagem.search.foundation import Foundation
from stratagem.search.index import Ranked
from stratagem.storage.contract import Reader

if TYPE_CHECKING:
    from stratagem.debugging.signatures.headlines import Headline

__all__ = ["Problem", "SimilarIncident", "find_exact", "find_incidents", "parse_problem"]

# Title, summary, signature.
_WEIGHTS: Final = (3.0, 1.0, 1.0)
# What a trace or a log begins with; a report begins with its title.
_HOST_PART: Final = re.compile(r"[^\W_]+")
_OPENS_A_TRACE: Final = re.compile(r"Traceback|Stack trace|[\[\d]|at |File ")
# So many are compared: search puts the right one among them, not always first.
_COMPARED: Final = 20
# What is half as near as the nearest is listed beside it.
_LISTED_SHARE: Final = 0.5
# So many incidents with one headline are looked at; most are one problem in many places.
_SAME_HEADLINE_MAX: Final = 50
# What reports of all kinds have in their titles.
_ANY_FAILURE: Final = (
    "fail fails failed failing failure error errors break breaks broken crash crashes problem"
    " issue bug wrong work works working stop stops exception"
)
# The same words in another place of the program, or with another cause, are another problem until
# somebody says otherwise; `database is locked` is said of many a problem, `HTTP 500` of nearly all.
# Of the errors that state other particulars, none that we know is the same.
_MOST: Final = {
    "ELSEWHERE": 0.35,
    "OF_OTHERS": 0.35,
    "OF_STATUS": 0.35,
    "STATES_OTHERS": 0.15,
    "UNTELLING": 0.8,
}


@dataclass(frozen=True, slots=True)
class Problem:
    """What is asked about: the error, its exact signature if it has one, and a line for it."""

    text: str
    title: str
    fingerprint: str
    headlines: Sequence[Headline] = ()


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """An incident that may be the problem at hand; `comparison` says how likely, and by what.

    `asked_hosts` and `known_hosts` are the servers that either names, where they are all others.
    """

    incident_id: str
    content: Mapping[str, Any]
    comparison: ProblemComparison
    exact: bool = False
    cosine: float = field(default=0.0, compare=False)
    asked_hosts: tuple[str, ...] = ()
    known_hosts: tuple[str, ...] = ()

    @property
    def asked_only(self) -> tuple[str, ...]:
        """Hosts and words that only the question has."""
        return _after_hosts(self.asked_hosts, self.comparison.asked_only)

    @property
    def known_only(self) -> tuple[str, ...]:
        """Hosts and words that only the incident has."""
        return _after_hosts(self.known_hosts, self.comparison.known_only)

    @property
    def relevance(self) -> float:
        """How likely it is the problem at hand."""
        return self.comparison.relevance


def _after_hosts(names: Sequence[str], words: Sequence[str]) -> tuple[str, ...]:
    """Return hosts, then the words that are no part of one."""
    parts = {part for name in names for part in (name, *_HOST_PART.findall(name))}
    return (*names, *(word for word in words if word.lower() not in parts))


@dataclass(frozen=True, slots=True)
class _Found:
    ranked: Ranked
    content: Mapping[str, Any]
    headlines: Sequence[Headline]


def parse_problem(text: str) -> Problem:
    """Find the error in a text of any length."""
    error = text if len(text) <= limits.QUERY_CHARS_MAX else find_error(text)
    error = error[: limits.QUERY_CHARS_MAX]
    return Problem(error, _title(error), *fingerprint_and_headlines(error))


def _title(error: str) -> str:
    """Return the line that says what a problem is: the first, unless it only opens a trace."""
    first = next((line for line in error.splitlines() if line.strip()), "").strip()
    if _OPENS_A_TRACE.match(first):
        return headline(error)
    return first[: limits.TITLE_CHARS_MAX]


def find_incidents(
    foundation: Foundation, reader: Reader, view: View, problem: Problem, *, limit: int
) -> tuple[list[SimilarIncident], str]:
    """Return the incidents like a problem, most relevant first, and how it was searched."""
    same = find_exact(reader, view, problem)
    known = {match.incident_id for match in same}
    spaces = [number for number, space in reader.records.spaces().items() if space == INCIDENTS]
    if not spaces:
        return same, "lexical"
    ranking = foundation.index.search(
        reader,
        view,
        problem.text,
        spaces=spaces,
        tags=(),
        limit=max(_COMPARED, limit) + len(known),
        title=problem.title,
        weights=_WEIGHTS,
    )
    found = [
        each for each in _read(reader, ranking.found) if each.content["incident_id"] not in known
    ]
    judged = [*_judge_errors(problem, found), *_judge_prose(foundation, reader, problem, found)]
    similar = sorted(_raise_by_code(problem, found, judged), key=lambda match: -match.relevance)
    listed = _worth_listing(same + similar)[:limit]
    return [_name_hosts(problem, match) for match in listed], ranking.mode


def _name_hosts(problem: Problem, match: SimilarIncident) -> SimilarIncident:
    """Name the servers that either problem is with, where none is the same."""
    asked = hosts(problem.text)
    known = hosts(_text(match.content)) if asked else []
    if not known or set(asked) & set(known):
        return match
    return replace(match, asked_hosts=tuple(asked), known_hosts=tuple(known))


def _worth_listing(matches: list[SimilarIncident]) -> list[SimilarIncident]:
    """Return what may be the problem, and what is about as near as the nearest."""
    least = _listed_min(matches[0].relevance) if matches else 0.0
    return [match for match in matches if match.relevance >= least]


def _listed_min(nearest: float) -> float:
    """Return how likely an incident must be to be listed beside the nearest one."""
    return min(relevance.LISTED_MIN, _LISTED_SHARE * nearest)


def find_exact(reader: Reader, view: View, problem: Problem) -> list[SimilarIncident]:
    """Return the incidents with the same signature, oldest first, then those of one headline."""
    found: dict[str, SimilarIncident] = {}
    if problem.fingerprint:
        for content in _contents(reader, view, facet_signature(problem.fingerprint)):
            agreed = agreement(problem.headlines, kept_headlines(content))
            if agreed.name == "OF_OTHERS" or _states_others(problem, content):
                continue
            comparison = _compare(problem, content)._replace(relevance=1.0)
            match = SimilarIncident(content["incident_id"], content, comparison, exact=True)
            found[match.incident_id] = match
    for digest in dict.fromkeys(each.digest for each in problem.headlines if each.digest):
        for content in _contents(reader, view, facet_headline(digest), limit=_SAME_HEADLINE_MAX):
            agreed = agreement(problem.headlines, kept_headlines(content))
            is_same = agreed.name == "SAME" and not _states_others(problem, content)
            if content["incident_id"] not in found and is_same:
                comparison = _compare(problem, content)
                comparison = comparison._replace(relevance=relevance.SAME_HEADLINE_MIN)
                match = SimilarIncident(content["incident_id"], content, comparison, exact=True)
                found[match.incident_id] = match
    return list(found.values())


def _states_others(problem: Problem, content: Mapping[str, Any]) -> bool:
    """Whether what the two state tells them apart; normalisation takes it for values."""
    stated = stated_particulars(problem.text)
    return bool(stated) and are_other_particulars(
        stated,
        stated_particulars(content.get("error_signature") or ""),
        in_one_place=stand_in_one_place(problem.headlines, kept_headlines(content)),
    )


def _contents(
    reader: Reader, view: View, facet: str, limit: int = -1
) -> Iterator[Mapping[str, Any]]:
    sequences = reader.catalogue.with_facet(view, facet, limit=limit)
    hits = reader.log.contents(sequences)
    for sequence in sequences:
        yield orjson.loads(hits[sequence].payload)


def _read(reader: Reader, found: Sequence[Ranked]) -> list[_Found]:
    hits = reader.log.contents([ranked.sequence for ranked in found])
    contents = [orjson.loads(hits[ranked.sequence].payload) for ranked in found]
    return [
        _Found(ranked, content, kept_headlines(content))
        for ranked, content in zip(found, contents, strict=True)
    ]


def _judge_errors(problem: Problem, found: Sequence[_Found]) -> Iterator[SimilarIncident]:
    """Judge the incidents that have an error, but for those that would not be listed."""
    asked = _describe_asked(problem)
    any_most = _MOST["OF_STATUS"] if is_bare_status(problem.text) else 1.0
    # What is unlike the question by its words may have its code.
    is_pruned = asked_by_code(problem.text) is None
    nearest = 0.0
    for each in found:
        if each.headlines:
            known = _describe(_text(each.content), each.headlines)
            cosine = each.ranked.cosine
            least = _listed_min(nearest) if is_pruned else 0.0
            if not relevance.may_reach(least, asked, known, cosine):
                continue
            comparison = relevance.compare(asked, known, cosine)
            most = _MOST.get(agreement(problem.headlines, each.headlines).name, 1.0)
            most = min(most, any_most, comparison.relevance)
            if most > _MOST["STATES_OTHERS"] and _states_others(problem, each.content):
                most = _MOST["STATES_OTHERS"]
            comparison = comparison._replace(relevance=most)
            nearest = max(nearest, comparison.relevance)
            yield SimilarIncident(each.content["incident_id"], each.content, comparison)


def _judge_prose(
    foundation: Foundation, reader: Reader, problem: Problem, found: Sequence[_Found]
) -> Iterator[SimilarIncident]:
    """Judge the best of the incidents without an error; the order of the others is the search's."""
    prose = [each for each in found if not each.headlines]
    if not prose:
        return
    first = prose[0]
    next_best = max((each.ranked.score for each in found if each is not first), default=0.0)
    gap = first.ranked.score - next_best if len(found) > 1 else 0.0
    asked = frozenset(analysis.terms(problem.text))
    title = dict.fromkeys(analysis.content_terms(first.content["title"]))
    share = relevance.title_share(title, asked, foundation.index.rarity(reader, list(title)))
    line = frozenset(analysis.content_terms(problem.title))
    share *= relevance.title_weight(title, line, _any_failure())
    best = relevance.prose_relevance(share, gap)
    described = _describe(problem.text, problem.headlines)
    for each in prose:
        ratio = each.ranked.score / first.ranked.score if first.ranked.score else 0.0
        comparison = ProblemComparison(best * ratio, known=_compare_titles(asked, each.content))
        comparison = _judge_title(problem, described, each, comparison)
        yield SimilarIncident(each.content["incident_id"], each.content, comparison)


# Made with the first report, because the stemmer takes a while to load.
@cache
def _any_failure() -> frozenset[str]:
    return frozenset(analysis.content_terms(_ANY_FAILURE))


def _judge_title(
    problem: Problem, asked: Description, found: _Found, by_words: ProblemComparison
) -> ProblemComparison:
    """Judge an incident whose title may be its error: what holds for messages holds for it."""
    # Most have too little in common with what is asked about to be looked at closely.
    if sum(said for _, said in by_words.known) * 2 < len(by_words.known):
        return by_words
    # Of a task (`Upgrade it to 3.4`) the numbers are what it is about, not values.
    is_error = states_error(problem.text)
    if not is_error and by_words.relevance <= _MOST["STATES_OTHERS"]:
        return by_words
    title = found.content["title"]
    headlines = title_headlines(title)
    stated = stated_particulars(problem.text)
    if stated and are_other_particulars(stated, stated_particulars(title)):
        return _at_most(_MOST["STATES_OTHERS"], by_words)
    by_head = relevance.compare(asked, _describe(title, headlines), found.ranked.cosine)
    if by_head.differs_in_names:
        return _at_most(_MOST["OF_OTHERS"], by_words)
    is_same = is_error and agreement(problem.headlines, headlines).name == "SAME"
    return by_head if is_same and by_head.relevance > by_words.relevance else by_words


def _at_most(most: float, comparison: ProblemComparison) -> ProblemComparison:
    return comparison._replace(relevance=min(most, comparison.relevance))


def _raise_by_code(
    problem: Problem, found: Sequence[_Found], judged: Sequence[SimilarIncident]
) -> Iterator[SimilarIncident]:
    """Judge incidents by the code that is asked about, where that makes them likelier."""
    rest = asked_by_code(problem.text)
    if rest is None:
        yield from judged
        return
    codes = find_codes(problem.text)
    sharing = [each for each in found if codes & find_codes(_text_with_code(each))]
    different = len({_identity(each) for each in sharing})
    asked = _describe_question(problem, codes, rest)
    compared = {
        each.content["incident_id"]: _compare_by_code(codes, asked, each, different)
        for each in sharing
        if agreement(problem.headlines, each.headlines).name not in _MOST
    }
    for match in judged:
        by_code = compared.get(match.incident_id)
        # What is recommended by its words needs no code.
        if by_code and match.relevance < min(relevance.TRY_MIN, by_code.relevance):
            yield replace(match, comparison=by_code)
        else:
            yield match


def _compare_by_code(
    codes: frozenset[str], asked: Description, found: _Found, different: int
) -> ProblemComparison:
    known = _describe_without(codes, found)
    comparison = relevance.compare_by_code(asked, known, found.ranked.cosine, different)
    shared = sorted(codes & find_codes(known.told))
    named = [(_head_word(code, is_name=True), True) for code in shared]
    return comparison._replace(asked=[*named, *comparison.asked])


def _identity(found: _Found) -> str:
    """Return what incidents that are one problem in several places have in common."""
    return found.headlines[0].key if found.headlines else str(found.content["title"])


def _describe_question(problem: Problem, codes: frozenset[str], rest: str) -> Description:
    """Return what a question says beside some codes; a port is a name only where the code is."""
    asked = _describe(rest, find_headlines(rest))
    names = [word for head in _without(codes, problem.headlines) for word in head if word.is_name]
    asked.heads = [[*names, *head] for head in asked.heads or [[]]]
    return asked


def _describe_without(codes: frozenset[str], found: _Found) -> Description:
    """Return what an incident says beside some codes: with its error, or else in its title."""
    text = _text_with_code(found)
    known = _describe(text, found.headlines)
    known.heads = _without(codes, found.headlines or find_headlines(text))
    return known


def _text_with_code(found: _Found) -> str:
    """Return where an incident has its code: a report without an error mentions many a one."""
    return _text(found.content) if found.headlines else str(found.content["title"])


def _without(codes: frozenset[str], found: Sequence[Headline]) -> list[list[HeadWord]]:
    """Return the heads of headlines without what they have of some codes."""
    parts = {part for code in codes for part in code_parts(code)}
    return [[word for word in _head(each) if word.text not in parts] for each in found]


def _compare(problem: Problem, content: Mapping[str, Any]) -> ProblemComparison:
    asked = _describe(problem.text, problem.headlines)
    return relevance.compare(asked, _describe(_text(content), kept_headlines(content)), 1.0)


def _compare_titles(asked: frozenset[str], content: Mapping[str, Any]) -> list[CheckedWord]:
    """Return the words of an incident's title, and whether each was asked about."""
    words = [
        word for word in dict.fromkeys(content["title"].split()) if analysis.content_terms(word)
    ]
    heads = [_head_word(word, is_name=False) for word in words]
    return [(word, word.terms <= asked) for word in heads]


def _describe_asked(problem: Problem) -> Description:
    """Describe a problem that many others are compared with."""
    described = _describe(problem.text, problem.headlines)
    described.heads = [
        [
            word._replace(beginnings=analysis.AskedTerms(word.terms).heads)
            if word.is_name
            else word
            for word in head
        ]
        for head in described.heads
    ]
    return described


def _describe(text: str, found: Sequence[Headline]) -> Description:
    ends = [found[0], found[-1]] if len(found) > 1 else found
    return Description([_head(each) for each in ends], text, analysis.terms)


def _head(found: Headline) -> list[HeadWord]:
    head = [_head_word(word, is_name=True) for word in found.names]
    head += [_head_word(word, is_name=False) for word in found.words]
    if not found.versions:
        return head
    versions: dict[str, set[str]] = {}
    for name, major in found.versions:
        versions.setdefault(name, set()).add(major)
    return [word._replace(versions=frozenset(versions.get(word.text, ()))) for word in head]


# Errors are made of few words, and twenty known ones are compared with each that is asked about.
@cache_texts(8192)
def _head_word(word: str, *, is_name: bool) -> HeadWord:
    return HeadWord(word, frozenset(analysis.terms(word)), is_name)


def _text(content: Mapping[str, Any]) -> str:
    fields = ("title", "error_signature", "summary")
    return "\n".join((content.get(name) or "")[: limits.QUERY_CHARS_MAX] for name in fields)
