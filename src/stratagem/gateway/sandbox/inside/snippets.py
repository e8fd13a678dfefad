"""Runs snippets in interpreters that provide no files, network or processes.

Python runs in Monty, a subset of Python in a worker process of its own; JavaScript runs in
QuickJS, in this process. The result is found as in `python_code.py` and `node_code.js`.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import json
import os
import re
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

from python_code import as_json  # type: ignore[import-not-found]

Answer = Callable[[dict[str, Any]], None]

# Output is buffered for this long, so that code which turns out to need the full interpreter can
# run there from its start without printing anything twice.
_HELD_SECONDS = 0.25
_OUTPUT_HELD_MAX = 1 << 16

_SETS_RESULT = re.compile(r"^result\b[^=!<>\n]*=[^=]", re.MULTILINE)
# Monty gives its text in place of a coroutine, and awaits it only where the code does.
_COROUTINE = re.compile(r"<coroutine object \w+>")
_SETS_RESULT_JS = re.compile(r"^(?:(?:let|const|var)\s+)?result\b[^=!<>\n]*=[^=]", re.MULTILINE)

_CONSOLE = """
(() => {
  const write = __write;
  delete globalThis.__write;
  const text = (item) => {
    if (typeof item === "string") return item;
    if (item instanceof Error) return String(item.stack ? `${item}\\n${item.stack}` : item);
    if (typeof item === "object" && item !== null) {
      try { return JSON.stringify(item); } catch { return String(item); }
    }
    return typeof item === "symbol" ? item.toString() : String(item);
  };
  const to = (stream) => (...items) => {
    const line = items.map(text).join(" ") + "\\n";
    for (let at = 0; at < line.length; at += 8192) write(stream, line.slice(at, at + 8192));
  };
  const out = to(1), err = to(2);
  globalThis.console = { log: out, info: out, debug: out, warn: err, error: err };
  globalThis.print = out;
})();
"""
# Code that waits at its top is the body of an asynchronous function; no other code is.
_WAITING = """
(code, last) => {
  const Async = Object.getPrototypeOf(async function () {}).constructor;
  const parses = (kind) => { try { new kind(code); return true; } catch { return false; } };
  if (parses(Function) || !parses(Async)) return last ? `${code}\\n;${last}` : code;
  return `(async () => {${code}\\n${last ? `return ${last}` : ""}})()`;
}
"""
_ENCODE = """
(value) => {
  const encode = (item) => {
    const text = JSON.stringify(item, (_, part) => typeof part === "bigint" ? String(part) : part);
    return text === undefined ? "null" : text;
  };
  const state = { text: null, failed: null };
  const settle = (item) => { try { state.text = encode(item); } catch (e) { fail(e); } };
  const fail = (error) => { state.failed = String(error && error.stack
    ? `${error}\\n${error.stack}` : error); };
  if (value !== null && typeof value === "object" && typeof value.then === "function") {
    value.then(settle, fail);
  } else { settle(value); }
  return () => JSON.stringify(state);
}
"""


def prepare(mode: str) -> Any:
    """Load the interpreter, while files can still be read."""
    if mode == "quickjs":
        return importlib.import_module("_quickjs")
    return _load_monty()


def _load_monty() -> Any:
    """Load the interpreter's own module, without the rest of its package.

    The package imports asyncio and more for embedders; that takes longer than most snippets do.
    """
    spec = importlib.util.find_spec("pydantic_monty")
    assert spec is not None, "looked for before anything is run"
    package = types.ModuleType(spec.name)
    package.__path__ = list(spec.submodule_search_locations or ())
    package.__spec__ = spec
    sys.modules[spec.name] = package
    return importlib.import_module("pydantic_monty._monty")


def run(engine: Any, mode: str, work: dict[str, Any], answer: Answer) -> None:
    """Run a snippet and say how it went."""
    if mode == "quickjs":
        _quickjs(engine, work, answer)
    else:
        _monty(engine, work, answer)


def _quickjs(quickjs: Any, work: dict[str, Any], answer: Answer) -> None:
    context = quickjs.Context()
    context.set_memory_limit(work["memory_bytes"])
    context.add_callable("__write", _write)
    context.eval(_CONSOLE)
    context.set("inputs", context.parse_json(json.dumps(work["inputs"])))
    # Handed over within JavaScript: the bindings cannot convert every value that is no object.
    context.set("__code", work["code"])
    last = "result" if _SETS_RESULT_JS.search(work["code"]) else ""
    try:
        state = context.eval(f"({_ENCODE})((0, eval)(({_WAITING})(__code, '{last}')))")
        while context.execute_pending_job():
            pass
        settled = json.loads(state())
    except (quickjs.JSException, quickjs.StackOverflow) as error:
        settled = {"failed": str(error), "text": None}
    if settled["failed"] is None:
        # A promise that is never settled gives nothing.
        answer({"exit": 0, "result": json.loads(settled["text"] or "null")})
        return
    _write(2, settled["failed"].rstrip() + "\n")
    report: dict[str, Any] = {"exit": 1}
    if "out of memory" in settled["failed"]:
        report["killed"] = "memory"
    answer(report)


class _Output:
    """Standard output and error, held back at first."""

    def __init__(self) -> None:
        self.held: list[tuple[int, str]] | None = []
        self._size = 0
        self._lock = threading.Lock()
        self._timer = threading.Timer(_HELD_SECONDS, self.release)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, stream: str, text: str) -> None:
        """Take what the snippet prints."""
        number = 2 if stream == "stderr" else 1
        with self._lock:
            if self.held is None:
                _write(number, text)
                return
            self.held.append((number, text))
            self._size += len(text)
        if self._size > _OUTPUT_HELD_MAX:
            self.release()

    def release(self) -> None:
        """Give out what is held, and hold back no more."""
        with self._lock:
            for number, text in self.held or ():
                _write(number, text)
            self.held = None
        self._timer.cancel()


def _monty(monty: Any, work: dict[str, Any], answer: Answer) -> None:
    output = _Output()
    code = work["code"] + ("\nresult" if _SETS_RESULT.search(work["code"]) else "")
    limits = {"max_memory": work["memory_bytes"], "max_feed_duration_secs": work["seconds"] + 1}
    try:
        with (
            monty.Monty(binary_path=work["binary"], max_processes=1) as pool,
            pool.checkout(script_name="<code>", limits=limits) as session,
        ):
            given = {"inputs": work["inputs"]}
            value = session.feed_run(code, inputs=given, print_callback=output)
            report: dict[str, Any] = {"exit": 0, "result": as_json(value)}
        if _COROUTINE.fullmatch(str(value)) and work["hand_on"] and output.held is not None:
            answer({"unsupported": "a coroutine as the result"})
            return
    except monty.MontyError as error:
        report = _failure(monty, error, hand_on=work["hand_on"] and output.held is not None)
        if "unsupported" in report:
            answer(report)
            return
        output.release()
        _write(2, _format_error(error))
    output.release()
    answer(report)


def _failure(monty: Any, error: Any, *, hand_on: bool) -> dict[str, Any]:
    inner = error.exception() if hasattr(error, "exception") else error
    if isinstance(error, monty.MontyCrashedError):
        return {"exit": 1, "killed": "signal"}
    if isinstance(inner, MemoryError):
        return {"exit": 1, "killed": "memory"}
    if hand_on and (reason := _unsupported_feature(inner)):
        return {"unsupported": reason}
    return {"exit": 1}


def _unsupported_feature(error: BaseException) -> str | None:
    """Return the feature in the error that only the full interpreter has, or None."""
    text = str(error)
    if isinstance(error, (NotImplementedError, ImportError)) or "not supported" in text:
        return text
    if isinstance(error, SyntaxError):
        # Its parser is not CPython's; whether the code is wrong is for CPython to say.
        return text
    if isinstance(error, AttributeError) and "has no attribute" in text:
        return text
    if isinstance(error, NameError):
        name = re.search(r"'(\w+)'", text)
        return text if name and hasattr(builtins, name[1]) else None
    return None


def _format_error(error: Any) -> str:
    text = error.display("traceback") if hasattr(error, "traceback") else str(error)
    return str(text).rstrip() + "\n"


def _write(number: int, text: str) -> None:
    data = text.encode("utf-8", "replace")
    while data:
        data = data[os.write(number, data) :]


if __name__ == "__main__":
    sys.exit("This is started by start.py.")
