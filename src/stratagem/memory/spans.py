"""Spans of memory operations, in the words of OpenTelemetry (`gen_ai.memory.*`).

The memory store of the conventions is a namespace of a branch here: `branch/namespace`. Keys are
the ids of records. Values and queries are left out unless somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import orjson

from stratagem import limits
from stratagem.deferred_modules import defer
from stratagem.errors import InternalFault, StratagemError
from stratagem.operation import Caller
from stratagem.spans import captures_content, fail_span, is_tracing, start_span

if TYPE_CHECKING:
    from stratagem import redaction
else:
    # Only a process that traces contents masks them.
    redaction = defer("stratagem.redaction")

__all__ = ["memory_span"]

_SCOPE: Final = "stratagem.memory"
_OPERATIONS: Final = {
    "strata_store": "upsert_memory",
    "strata_log": "create_memory",
    "strata_recall": "search_memory",
    "strata_search": "search_memory",
    "strata_forget": "delete_memory",
    "strata_purge": "delete_memory",
}
_ACTIONS: Final = {"fork": "create_memory_store", "delete": "delete_memory_store"}

NoteAnswer = Callable[[Mapping[str, Any]], None]


def _ignore(_answer: Mapping[str, Any]) -> None:
    """Nobody traces."""


_UNTRACED: Final[AbstractContextManager[NoteAnswer]] = nullcontext(_ignore)


def memory_span(
    operation: str, arguments: Mapping[str, Any], caller: Caller
) -> AbstractContextManager[NoteAnswer]:
    """Trace an operation, if it is one of memory's and somebody traces; give a note-taker."""
    if not is_tracing():
        return _UNTRACED
    name = _OPERATIONS.get(operation)
    if operation == "strata_branch":
        name = _ACTIONS.get(str(arguments.get("action")))
    return _UNTRACED if name is None else _trace(name, arguments, caller)


@contextmanager
def _trace(name: str, arguments: Mapping[str, Any], caller: Caller) -> Iterator[NoteAnswer]:
    branch = arguments.get("branch") or caller.shown_branch
    if name in _ACTIONS.values():
        store = str(arguments.get("name"))
    else:
        store = f"{branch}/{arguments.get('namespace') or caller.namespace}"
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": name,
        "gen_ai.memory.store.id": store[: limits.KEY_CHARS_MAX],
    }
    if isinstance(key := arguments.get("key"), str):
        attributes["gen_ai.memory.record.id"] = key[: limits.KEY_CHARS_MAX]
    if captures_content() and isinstance(query := arguments.get("query"), str):
        attributes["gen_ai.memory.query.text"] = redaction.mask(query)
    with start_span(_SCOPE, name, attributes) as span:
        try:
            yield lambda answer: _note(span, arguments, answer)
        except StratagemError as error:
            fail_span(span, error.code)
            raise
        except Exception:
            fail_span(span, InternalFault.code)
            raise


def _note(span: Any, arguments: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
    """Say in a span how many records an operation was about; with leave, which ones."""
    if span is None or not span.is_recording():
        return
    several = next(
        (answer[name] for name in ("results", "keys") if isinstance(answer.get(name), list)), None
    )
    found = answer.get("found", answer.get("deleted", True))
    count = len(several) if several is not None else int(found is not False)
    span.set_attribute("gen_ai.memory.record.count", count)
    if captures_content():
        records = [
            {"id": each.get("key"), "content": each.get("value"), "score": each.get("score")}
            for each in (several if several is not None else [{**arguments, **answer}])
            if isinstance(each, Mapping)
        ]
        text = orjson.dumps(records).decode()[: limits.SPAN_CONTENT_CHARS_MAX]
        span.set_attribute("gen_ai.memory.records", redaction.mask(text))
