"""A wrong keyword of a method is a TypeError, as everywhere in Python; here it says what was meant.

`tgas=` is similar to `tags=`, and `limit=` is the name that other libraries use for `k=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import iscoroutinefunction, signature
from typing import Any, Final, TypeVar, cast

from stratagem.deferred_modules import difflib
from stratagem.parameters import ALIASES
from stratagem.schemas import SYSTEMS, method_schema

__all__ = ["suggest_keywords"]

MethodT = TypeVar("MethodT", bound=Callable[..., Any])

# What opens a database has to be told which one: a program that works in another folder tomorrow
# must not have another memory then.
_FILE: Final = (
    "Give the path of a file, or ':memory:'; `stratagem status` names the database that commands "
    "use here."
)
_SERVER: Final = "Give the address of a server, such as 'http://127.0.0.1:7437'."
_PLACES: Final = {
    "open_database": _FILE,
    "open_async": _FILE,
    "connect": _SERVER,
    "connect_async": _SERVER,
}


def suggest_keywords(method: MethodT) -> MethodT:
    """Return a method that says which keyword was meant where it does not have one."""
    if iscoroutinefunction(method):

        @wraps(method)
        async def run_async(*arguments: Any, **named: Any) -> Any:
            try:
                running = method(*arguments, **named)
            except TypeError as error:
                raise _explain(error, method, named) from None
            return await running

        return cast("MethodT", run_async)

    @wraps(method)
    def run(*arguments: Any, **named: Any) -> Any:
        try:
            return method(*arguments, **named)
        except TypeError as error:
            # One that was raised inside of the method has that frame below this one.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise _explain(error, method, named) from None

    return cast("MethodT", run)


def _explain(error: TypeError, method: Callable[..., Any], named: Mapping[str, Any]) -> TypeError:
    """Return the error of a call that does not fit a method, with what was meant."""
    declared = [name for name in signature(method).parameters if name != "self"]
    unknown = next((name for name in named if name not in declared), None)
    if unknown is None:
        return _name_missing_place(error, method)
    meant = _parameters_known_as(method, unknown) or difflib.get_close_matches(
        unknown, declared, n=1
    )
    advice = (
        f"Did you mean {meant[0]!r}?" if meant else f"It takes: {', '.join(declared) or 'none'}."
    )
    return TypeError(f"{error}. {advice}")


def _name_missing_place(error: TypeError, method: Callable[..., Any]) -> TypeError:
    """Return the error of opening nothing in particular, with what can be opened."""
    advice = _PLACES.get(method.__name__)
    if advice is None or "missing" not in str(error):
        return error
    called = str(error).replace("open_database()", "open()")
    return TypeError(f"{called}. {advice}")


def _parameters_known_as(method: Callable[..., Any], name: str) -> list[str]:
    """Return the parameters that others know by a name."""
    system = method.__module__.rpartition(".")[2]
    if system not in SYSTEMS:
        return []
    try:
        declared = method_schema(system, method.__name__)["properties"]
    except KeyError:
        # The methods of the gateway name operations.
        return []
    return [each for each, said in declared.items() if name in said.get(ALIASES, ())]
