"""An agent that answers from the web, remembers what it learnt, and shows the evidence.

What it reads becomes concepts, each with the address it was learnt from. A page that says what is
known already is no new concept but one more confirmation of it, so that certainty grows with
independent sources. The second time the same is asked, the answer is known before any search.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import stratagem

# From this share of common words on two explanations say the same.
SAME = 0.7
# From here on a concept is about the question.
ABOUT = 0.35


@dataclass
class Evidence:
    """A concept that an answer rests on."""

    name: str
    explanation: str
    certainty: float
    source: str
    confirmed: int


@dataclass
class Answer:
    """An answer, what it rests on, and whether the web had to be asked."""

    text: str
    evidence: list[Evidence] = field(default_factory=list)
    from_web: bool = False


def call(db: stratagem.Stratagem, tool: str, **arguments: Any) -> Any:
    """Call a tool in the name of the agent."""
    given = {"toolName": tool, "arguments": arguments, "context": {"agentId": "learning-agent"}}
    return db.call("tool_execute", given)["result"]


def answer(db: stratagem.Stratagem, question: str, *, limit: int = 5) -> Answer:
    """Answer a question from what is known, or learn it from the web first."""
    known = recall(db, question)
    if known:
        return compose(db, known, from_web=False)
    for page in call(db, "web_search", query=question, limit=limit, includeContent=True)["results"]:
        if page["content"]:
            learn(db, question, page)
    return compose(db, recall(db, question), from_web=True)


def learn(db: stratagem.Stratagem, question: str, page: dict[str, Any]) -> None:
    """Store what a page says as a concept, or as a confirmation of one that says the same."""
    said = call(db, "summarization", text=page["content"], sentences=2)["summary"]
    for each in db.call("search_concepts_semantic", {"query": said, "limit": 3})["results"]:
        known = db.call("get_concept", {"concept_id": each["concept_id"]})["concept"]
        if is_same(said, known["explanation"]):
            given = {"concept_id": each["concept_id"], "source": page["url"], "note": said[:500]}
            db.call("confirm_concept", given)
            return
    concept = {
        "name": page["title"][:200] or question,
        "explanation": said,
        "area": "Web",
        "topic": question.strip(" ?")[:100],
        "source": page["url"],
    }
    db.call("create_concept", concept)


def is_same(one: str, other: str) -> bool:
    """Whether two explanations say the same, by the words they have in common."""
    first, second = set(one.casefold().split()), set(other.casefold().split())
    return len(first & second) >= SAME * len(first | second)


def recall(db: stratagem.Stratagem, question: str) -> list[Evidence]:
    """Return what is known about a question, with its evidence."""
    found = db.call("search_concepts_semantic", {"query": question, "limit": 5})["results"]
    known = []
    for each in found:
        if each["similarity"] >= ABOUT:
            concept = db.call("get_concept", {"concept_id": each["concept_id"]})["concept"]
            known.append(
                Evidence(
                    concept["name"],
                    concept["explanation"],
                    concept["certainty_score"],
                    concept["source"] or "",
                    concept.get("evidence", {}).get("confirmed", 0),
                )
            )
    return known


def compose(db: stratagem.Stratagem, known: list[Evidence], *, from_web: bool) -> Answer:
    """Return an answer of the sentences that say most of what is known."""
    if not known:
        return Answer("Nothing was found.", [], from_web)
    text = " ".join(each.explanation for each in known)
    summary = call(db, "summarization", text=text, sentences=2)["summary"]
    return Answer(summary, known, from_web)


def main(arguments: list[str] | None = None) -> None:
    """Answer a question and print what the answer rests on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("question")
    parser.add_argument("--searxng", default="http://localhost:8888")
    parser.add_argument("--db", default="learning.db")
    given = parser.parse_args(arguments)
    with stratagem.open(given.db, allow_hosts=[urlsplit(given.searxng).netloc]) as db:
        settings = {"provider": "searxng", "url": given.searxng}
        db.call("connection_set", {"name": "web", "kind": "search", "settings": settings})
        told = answer(db, given.question)
    print(told.text)
    print("\nFrom the web." if told.from_web else "\nKnown already.")
    for each in told.evidence:
        print(f"- {each.name} (certainty {each.certainty:g}, confirmed {each.confirmed} times)")
        print(f"  {each.source}")


if __name__ == "__main__":
    main()
