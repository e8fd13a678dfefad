"""The rows of entries, state cells and logged events."""

from __future__ import annotations

from functools import partial
from typing import Any

from stratagem.answers import fit_list
from stratagem.developer.entries import JsonDocuments, KeyValues
from stratagem.developer.events import EventStream
from stratagem.developer.rows import TRANSACTION, Answer, budget, render_optional, row
from stratagem.developer.state import StateCells
from stratagem.memory.listing_operations import (
    fit_events,
    fit_history,
    fit_listed,
    say_events,
    say_history,
    say_listed,
)
from stratagem.operation import CommandHint, PersonNeeded

__all__ = ["ENTRY_OPERATIONS"]

_LIST = (TRANSACTION, "max_chars")
_kv = partial(row, service=KeyValues, group="kv")
_json = partial(row, service=JsonDocuments, group="json")
_state = partial(row, service=StateCells, group="state")
_event = partial(row, service=EventStream, group="events")


def _fit_listed(answer: Answer, given: Any) -> Answer:
    return fit_listed(answer, {**given, "order": "key"})


def _fit_versions(answer: Answer, given: Any) -> Answer:
    if "key" in given:
        return fit_history(answer, given)
    versions = [each["version"] for each in answer["results"]]
    return fit_list(answer, budget(given), lambda kept: str(versions[kept - 1]))


def _fit_cells(answer: Answer, given: Any) -> Answer:
    """Cut cells to the budget; of a page that was cut, the rest begins with the next call."""
    return fit_list(answer, budget(given), None)


def _command(group: str, name: str, words: str, *positional: str) -> tuple[CommandHint, ...]:
    return (CommandHint((f"{group}-{name}",), words, panel="Developer", positional=positional),)


def _purge_command(given: Any) -> list[str]:
    return ["state-purge", "--cell", given["cell"]]


ENTRY_OPERATIONS = (
    _kv(
        "strata_kv_put",
        KeyValues.put,
        "Put a value",
        "Store a value under a key. Not searchable unless `index`.",
        positional=("key", "value"),
        idempotent=True,
        example={"key": "city", "value": "Oslo"},
        commands=_command("kv", "put", "Store a value under a key, unindexed.", "key", "value"),
    ),
    _kv(
        "strata_kv_get",
        KeyValues.get,
        "Get a value",
        "Return what is stored under a key, now or `as_of` a past moment.",
        positional=("key",),
        render=render_optional,
        read_only=True,
        example={"key": "city"},
        commands=_command("kv", "get", "Show what is stored under a key, as JSON.", "key"),
    ),
    _kv(
        "strata_kv_delete",
        KeyValues.delete,
        "Delete a value",
        "Remove what is stored under a key. Past moments still show it.",
        positional=("key",),
        destructive=True,
        idempotent=True,
        commands=_command("kv", "delete", "Remove what is stored under a key.", "key"),
    ),
    _kv(
        "strata_kv_list",
        KeyValues.list,
        "List values",
        "List entries in the order of their keys, by prefix, a page at a time.",
        positional=("prefix",),
        fit=_fit_listed,
        answer_options=_LIST,
        own_cursor=True,
        summarise=say_listed,
        answer_fields=("results", "truncated", "next"),
        read_only=True,
        example={"prefix": "c"},
        commands=_command("kv", "list", "List entries in the order of their keys.", "prefix"),
    ),
    _kv(
        "strata_kv_history",
        KeyValues.history,
        "History of a value",
        "The versions of an entry, newest first.",
        positional=("key",),
        fit=_fit_versions,
        answer_options=_LIST,
        summarise=say_history,
        read_only=True,
        commands=_command("kv", "history", "Show the versions of an entry.", "key"),
    ),
    _kv(
        "strata_kv_put_many",
        KeyValues.put_many,
        "Put several values",
        "Store several entries in one transaction: all of them, or none.",
        positional=("items",),
        idempotent=True,
        example={"items": [{"key": "a", "value": 1}, {"key": "b", "value": 2}]},
    ),
    _kv(
        "strata_kv_get_many",
        KeyValues.get_many,
        "Get several values",
        "Return what is stored under several keys, all of one moment; `missing` are the others.",
        positional=("keys",),
        read_only=True,
        example={"keys": ["a", "b"]},
    ),
    _kv(
        "strata_kv_delete_many",
        KeyValues.delete_many,
        "Delete several values",
        "Remove several entries in one transaction.",
        positional=("keys",),
        destructive=True,
        idempotent=True,
    ),
    _json(
        "strata_json_set",
        JsonDocuments.set,
        "Set in a document",
        "Set a value in a JSON document: `path` is a JSONPath, $ the whole document.",
        positional=("key", "value", "path"),
        idempotent=True,
        example={"key": "profile", "path": "$.name", "value": "Ada"},
        commands=_command("json", "set", "Set a value in a document.", "key", "path", "value"),
    ),
    _json(
        "strata_json_get",
        JsonDocuments.get,
        "Get from a document",
        "Return the value at a path of a JSON document, now or `as_of` a past moment.",
        positional=("key", "path"),
        render=render_optional,
        read_only=True,
        example={"key": "profile", "path": "$.name"},
        commands=_command("json", "get", "Show the value at a path of a document.", "key", "path"),
    ),
    _json(
        "strata_json_delete",
        JsonDocuments.delete,
        "Delete from a document",
        "Remove the value at a path of a JSON document; without a path, or at $, the "
        "whole document.",
        positional=("key", "path"),
        destructive=True,
        idempotent=True,
    ),
    _json(
        "strata_json_append",
        JsonDocuments.append,
        "Append to a document",
        "Append an element to the array at a path of a JSON document, atomically.",
        positional=("key", "value", "path"),
        example={"key": "profile", "path": "$.tags", "value": "new"},
    ),
    _json(
        "strata_json_increment",
        JsonDocuments.increment,
        "Increment in a document",
        "Add to the number at a path of a JSON document, atomically.",
        positional=("key", "path", "by"),
        example={"key": "profile", "path": "$.visits"},
    ),
    _json(
        "strata_json_list",
        JsonDocuments.list,
        "List documents",
        "List documents in the order of their keys, by prefix, a page at a time.",
        positional=("prefix",),
        fit=_fit_listed,
        answer_options=_LIST,
        own_cursor=True,
        summarise=say_listed,
        answer_fields=("results", "truncated", "next"),
        read_only=True,
        example={},
    ),
    _json(
        "strata_json_history",
        JsonDocuments.history,
        "History of a document",
        "The versions of a document, newest first.",
        positional=("key",),
        fit=_fit_versions,
        answer_options=_LIST,
        summarise=say_history,
        read_only=True,
    ),
    _state(
        "strata_state_set",
        StateCells.set,
        "Set a cell",
        "Write a state cell, whatever it held. Cells are separate from entries and not searched.",
        positional=("cell", "value"),
        idempotent=True,
        example={"cell": "leader", "value": "worker-1"},
    ),
    _state(
        "strata_state_get",
        StateCells.get,
        "Get a cell",
        "Return a state cell with its counter, now or `as_of` a past moment.",
        positional=("cell",),
        render=render_optional,
        read_only=True,
        example={"cell": "leader"},
    ),
    _state(
        "strata_state_delete",
        StateCells.delete,
        "Delete a cell",
        "Delete a state cell. Past moments still show it.",
        positional=("cell",),
        destructive=True,
        idempotent=True,
    ),
    _state(
        "strata_state_init",
        StateCells.init,
        "Initialise a cell",
        "Write a state cell only if it does not exist; `written` tells whether it was.",
        positional=("cell", "value"),
        idempotent=True,
        example={"cell": "leader", "value": None},
    ),
    _state(
        "strata_state_cas",
        StateCells.cas,
        "Compare and set a cell",
        "Write a state cell only if its counter is `expected_counter`; 0: only if it "
        "does not exist.",
        positional=("cell", "value", "expected_counter"),
        example={"cell": "lock", "value": "mine", "expected_counter": 0},
    ),
    _state(
        "strata_state_list",
        StateCells.list,
        "List cells",
        "List state cells in the order of their names, by prefix, a page at a time.",
        positional=("prefix",),
        fit=_fit_cells,
        answer_options=_LIST,
        own_cursor=True,
        read_only=True,
        example={},
    ),
    _state(
        "strata_state_history",
        StateCells.history,
        "History of a cell",
        "The versions of a state cell, newest first.",
        positional=("cell",),
        fit=_fit_versions,
        answer_options=_LIST,
        read_only=True,
    ),
    _state(
        "strata_state_purge",
        StateCells.purge,
        "Purge a cell",
        "Erase a state cell for good: every version, on every branch. Cannot be undone.",
        positional=("cell",),
        answer_options=(),
        toolset="admin",
        right="admin",
        destructive=True,
        idempotent=True,
        person=PersonNeeded("erases for good", _purge_command),
        irreversible=True,
    ),
    _event(
        "strata_event_append",
        EventStream.append,
        "Append an event",
        "Append an immutable event to the log.",
        positional=("event_type", "payload"),
        example={"event_type": "user_action", "payload": {"clicked": "save"}},
    ),
    _event(
        "strata_event_get",
        EventStream.get,
        "Get an event",
        "Return the event with this sequence.",
        positional=("sequence",),
        render=render_optional,
        read_only=True,
        example={"sequence": 1},
    ),
    _event(
        "strata_event_list",
        EventStream.list,
        "List events",
        "List events in the order in which they were logged, by type and after a sequence.",
        positional=("event_type",),
        fit=fit_events,
        answer_options=_LIST,
        summarise=say_events,
        read_only=True,
        example={},
    ),
    _event(
        "strata_event_len",
        EventStream.len,
        "Count events",
        "How many events there are, of all types or of one.",
        positional=("event_type",),
        read_only=True,
        example={},
    ),
)
