"""One entry as text, without what a terminal needs: importing that takes longer than a recall."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stratagem.surfaces.cli.output import printable, when

__all__ = ["entry_facts", "entry_text", "origin_facts", "printable_value"]

Answer = Mapping[str, Any]


def entry_text(answer: Answer) -> str:
    """Return what is known about an entry that was found, and below that its value, whole."""
    return (
        f"{printable(answer['key'])}  {entry_facts(answer)}\n{printable_value(answer['value'])}\n"
    )


def entry_facts(answer: Answer) -> str:
    """Return what is known about an entry, in one line."""
    facts = [f"version {answer['version']}", when(answer["timestamp"])]
    if answer.get("occurred"):
        facts.append(f"occurred {when(answer['occurred'])}")
    if answer["namespace"] != "default":
        facts.insert(0, answer["namespace"])
    if answer.get("tags"):
        facts.append(f"tags: {', '.join(answer['tags'])}")
    if answer.get("expires"):
        facts.append(f"expires {when(answer['expires'])}")
    return printable(" · ".join([*facts, *origin_facts(answer)]))


def origin_facts(each: Answer) -> list[str]:
    """Return where something came from and whose memory has it, where that is told."""
    said = [f"{each['trust']}: from {each.get('source', 'elsewhere')}"] if each.get("trust") else []
    # The namespace of the person's own memory says it already.
    told = each.get("owner") in {None, each.get("namespace", "").partition("/")[0]}
    return said if told else [*said, f"{each['owner']} memory"]


def printable_value(value: Any) -> str:
    """Return a value whole: text as it is, anything else as indented JSON."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return printable(text)
