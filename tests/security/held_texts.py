"""A process that purges a text and prints what of its memory still refers to that text.

Run as a program: caches are looked for by the references of every object of the process, and a
process of tests is full of texts of its own.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import Any

import stratagem


def use(db: stratagem.Stratagem, text: str) -> tuple[int, str, str]:
    """Have a text stored, logged, indexed, searched for and read as an error and a name."""
    db.memory.store(f"key-{text}", f"The place is {text}.")
    logged = db.memory.log("said", f"Tell nobody about {text}", session="s")
    db.memory.log("said", "I will not.", session="s")
    db.memory.search(f"where is {text}")
    error = f'  File "/srv/{text}.py", line 3, in {text}\nTypeError: no {text} in module'
    env = {"os": "linux", text: f"{text} 1.2"}
    incident = db.debugging.add_incident(
        f"{text} broke", [f"Rename {text}."], env, worked=True, error_signature=error
    )
    db.debugging.ranked_solutions(error, env)
    concept = db.knowledge.create_concept(f"the {text}", f"It says where {text} is.")
    db.knowledge.search_concepts_semantic(text)
    db.call("tool_execute", {"toolName": "strata_recall", "arguments": {"key": f"key-{text}"}})
    db.call("tools_recommend", {"intent": f"find {text}"})
    return logged.sequence, incident.incident_id, concept.concept_id


def purge(db: stratagem.Stratagem, text: str, made: tuple[int, str, str]) -> None:
    """Purge all that was written."""
    sequence, incident, concept = made
    db.memory.purge(f"key-{text}")
    db.memory.purge(sequence=sequence)
    db.debugging.purge_record(incident, confirm=True)
    db.knowledge.purge_knowledge(concept, confirm=True)


def holders(text: str) -> list[str]:
    """Return the objects that refer to a text which contains the given one."""
    gc.collect()
    return [
        f"{type(holder).__name__}: {str(each)[:80]}"
        for holder in gc.get_objects()
        for each in gc.get_referents(holder)
        if each is not text and _contains(each, text)
    ]


def _contains(value: Any, text: str) -> bool:
    if isinstance(value, dict | tuple) and not gc.is_tracked(value):
        # One that holds nothing but plain values is not among the objects of the collector.
        return any(_contains(each, text) for each in gc.get_referents(value))
    if type(value) is str:
        return text in value.casefold()
    return type(value) is bytes and text.encode() in value.lower()


def main() -> None:
    """Print what holds the text before the purge, a line of dashes, and what holds it after."""
    text = "hjkvwxqz"[::-1]
    with stratagem.open(Path(sys.argv[1])) as db:
        made = use(db, text)
        sys.stdout.write("\n".join(holders(text)) + "\n---\n")
        sys.stdout.flush()  # What is not written yet is held by the stream.
        purge(db, text, made)
        sys.stdout.write("\n".join(holders(text)))


if __name__ == "__main__":
    main()
