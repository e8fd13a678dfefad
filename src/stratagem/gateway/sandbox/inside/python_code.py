"""Runs Python code in this process and returns its result.

The result is the variable `result` where the code sets one at its top level, else the value of
its last expression. A coroutine is awaited. What is not JSON is given as its text.
"""

from __future__ import annotations

import _ast
import builtins
import json
import math
import sys
import types
from collections.abc import Callable
from typing import Any

_NAME = "<code>"
_ONLY_AST = 0x400


def run(work: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    """Run the code and report its result and exit status."""
    # The module `site` would define these; it is not loaded because it reads hidden folders.
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [_NAME]
    sys.path.remove(__file__.rpartition("/")[0])
    space = vars(module)
    space["inputs"] = work["inputs"]
    report: dict[str, Any] = {"exit": 0}
    try:
        value = _evaluate(work["code"], space)
        report["result"] = as_json(value)
    except SystemExit as error:
        report["exit"] = _status(error)
    except MemoryError:
        # The frames hold what filled the memory; they are gone here.
        report.update(exit=1, killed="memory")
        sys.stderr.write("MemoryError\n")
    except BaseException as error:  # noqa: BLE001 - whatever the code raises is its outcome
        report["exit"] = 1
        _print_error(error, work["code"])
    for stream in (sys.stdout, sys.stderr):
        _flush(stream)
    answer(report)


def _evaluate(code: str, space: dict[str, Any]) -> Any:
    tree: Any = compile(code, _NAME, "exec", flags=_ONLY_AST, dont_inherit=True)
    last: Any = None
    if tree.body and isinstance(tree.body[-1], _ast.Expr):
        last = _ast.Expression(body=tree.body.pop().value)
    exec(compile(tree, _NAME, "exec", dont_inherit=True), space)  # noqa: S102 - this is the place
    value = None
    if last is not None:
        value = eval(compile(last, _NAME, "eval", dont_inherit=True), space)  # noqa: S307
    value = space.get("result", value)
    if isinstance(value, types.CoroutineType):
        import asyncio

        value = asyncio.run(value)
    return value


def as_json(value: Any) -> Any:
    """Return the value as JSON, with text for what JSON cannot express."""
    text = json.dumps(_convert(value), default=str, skipkeys=True)
    return json.loads(text)


def _convert(value: Any) -> Any:
    """Convert what `json` refuses or writes wrongly: sets, keys that are no text, infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _convert(value[key]) for key in value}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_convert(item) for item in value]
    return value


def _status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    sys.stderr.write(f"{error.code}\n")
    return 1


def _print_error(error: BaseException, code: str) -> None:
    import linecache
    import traceback

    linecache.cache[_NAME] = (len(code), None, code.splitlines(keepends=True), _NAME)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != _NAME:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except (OSError, ValueError):
        return
