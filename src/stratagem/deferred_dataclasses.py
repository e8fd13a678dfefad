"""Dataclasses whose methods are compiled when they are first used.

The standard decorator compiles up to six methods for each class when its module is imported. That
was a quarter of the processor time of a command, and most commands use a tenth of the classes. Here
a class gets its slots at once; its methods are taken from a standard dataclass with the same fields
when one of them is first looked up. Classes that cannot be deferred (a dataclass among the bases,
pseudo-fields or fields without a parameter, options that add other methods) are left to the
standard decorator.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

__all__ = ["dataclass"]

_FIELDS: Final = "__dataclass_fields__"
_OF_INSTANCES: Final = frozenset({"__init__", "__match_args__", _FIELDS})
_DESCRIPTIONS: Final = (_FIELDS, "__dataclass_params__", "__match_args__")
_REPLACE: Final = ("__replace__",) if sys.version_info >= (3, 13) else ()
# Annotations of what is no field, or changes those that follow.
_SPECIAL: Final = ("ClassVar", "InitVar", "KW_ONLY")
# Options whose methods are put off; each other one adds more, or changes what is added.
_OPTIONS: Final = frozenset({"init", "repr", "eq", "frozen", "kw_only"})
# What a frozen class gets at once.
_FREEZING: Final = frozenset({"__setattr__", "__delattr__", "__getstate__", "__setstate__"})


class _Twin:
    """A standard dataclass with the fields of a class, made when it is needed."""

    def __init__(self, annotations: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        self._annotations = annotations
        self._body = body
        self.kind: type = object
        self.options: dict[str, bool] = {}

    def defer(self, names: tuple[str, ...]) -> dict[str, _Deferred]:
        """Return what stands for attributes of the class until one of them is looked up."""
        return {name: _Deferred(self, name) for name in names}

    def complete(self, wanted: str) -> None:
        """Give the class an attribute that it was to have, and those that are made with it.

        Twice by two threads does no harm.
        """
        kind, options = self.kind, self.options
        if wanted in _OF_INSTANCES:
            # Most are made and read, and neither compared nor shown.
            options = {**options, "slots": False, "repr": False, "eq": False}
        body = {
            "__module__": kind.__module__,
            "__qualname__": kind.__qualname__,
            "__doc__": kind.__doc__,
            "__annotations__": dict(self._annotations),
            **self._body,
        }
        decorate: Any = dataclasses.dataclass(**options)
        twin: type = decorate(type(kind.__name__, (), body))
        for name, deferred in list(kind.__dict__.items()):
            together = (name in _OF_INSTANCES) == (wanted in _OF_INSTANCES)
            if isinstance(deferred, _Deferred) and together:
                setattr(kind, name, twin.__dict__[name])


class _Deferred:
    """Stands for an attribute of a class until it is looked up."""

    def __init__(self, twin: _Twin, name: str) -> None:
        self._twin = twin
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        self._twin.complete(self._name)
        value = self._twin.kind.__dict__[self._name]
        return value.__get__(instance, owner) if hasattr(value, "__get__") else value


def _decorate(kind: type, *, slots: bool = False, **options: bool) -> type:
    annotations = kind.__annotations__
    if not options.keys() <= _OPTIONS or _is_special(kind, annotations):
        return dataclasses.dataclass(slots=slots, **options)(kind)
    own = kind.__dict__
    # What decides about the methods: defaults, and methods that the class has already.
    telling = {*annotations, "__post_init__", "__eq__", "__hash__"}
    body = {name: own[name] for name in telling if name in own}
    if "__post_init__" not in body and hasattr(kind, "__post_init__"):
        body["__post_init__"] = kind.__post_init__
    twin = _Twin(annotations, body)
    twin.options = {**options, "slots": slots}
    added = {
        **twin.defer(_method_names(own, options)),
        **_freeze(twin, tuple(annotations)),
    }
    if options.get("eq", True) and not options.get("frozen") and not _hashes(own):
        added["__hash__"] = None
    twin.kind = _with_slots(kind, annotations, added) if slots else _with_defaults(kind, added)
    return twin.kind


def _is_special(kind: type, annotations: Mapping[str, Any]) -> bool:
    """Whether only the standard decorator can make a class a dataclass."""
    own = kind.__dict__
    inherits = any(hasattr(base, _FIELDS) for base in kind.__bases__)
    texts = [each if isinstance(each, str) else repr(each) for each in annotations.values()]
    return (
        inherits
        or not _FREEZING.isdisjoint(own)
        or any(isinstance(each, dataclasses.Field) and not each.init for each in own.values())
        or any(word in text for text in texts for word in _SPECIAL)
    )


def _method_names(own: Mapping[str, Any], options: Mapping[str, bool]) -> tuple[str, ...]:
    """Return what the standard decorator would add to a class, besides its slots."""
    names = [*_DESCRIPTIONS, *_REPLACE, *(["__init__"] if options.get("init", True) else [])]
    names += ["__repr__"] if options.get("repr", True) else []
    if options.get("eq", True):
        names += ["__eq__"]
        names += ["__hash__"] if options.get("frozen") and not _hashes(own) else []
    return tuple(name for name in names if name not in own or name == "__hash__")


def _hashes(own: Mapping[str, Any]) -> bool:
    """Whether a class says itself how it is hashed; one with `__eq__` alone has None there."""
    hashing = own.get("__hash__")
    return hashing is not None or ("__hash__" in own and "__eq__" not in own)


def _freeze(twin: _Twin, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the methods that keep the fields of a frozen class as they are."""
    if not twin.options.get("frozen"):
        return {}

    def refuses(instance: object, name: str) -> bool:
        # A class that inherits from it may have attributes of its own.
        return type(instance) is twin.kind or name in names

    def change(self: object, name: str, value: object) -> None:
        if refuses(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        _next_after(twin.kind, self).__setattr__(name, value)

    def delete(self: object, name: str) -> None:
        if refuses(self, name):
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        _next_after(twin.kind, self).__delattr__(name)

    states = _state_methods(names) if twin.options["slots"] else {}
    return {"__setattr__": change, "__delattr__": delete, **states}


def _next_after(kind: Any, instance: object) -> Any:
    """Return the attributes of an instance as the bases of one of its classes have them."""
    return super(kind, instance)


def _state_methods(names: tuple[str, ...]) -> dict[str, Any]:
    """Return what a frozen class with slots is copied and pickled by."""

    def read_state(self: object) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore_state(self: object, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": read_state, "__setstate__": restore_state}


def _with_slots(kind: type, annotations: Mapping[str, Any], added: Mapping[str, Any]) -> type:
    """Return the same class with slots: those of a class that is there cannot be changed."""
    body = {name: each for name, each in kind.__dict__.items() if name not in annotations}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    made = type(kind)(
        kind.__name__, kind.__bases__, {**body, **added, "__slots__": tuple(annotations)}
    )
    made.__qualname__ = kind.__qualname__
    return made


def _with_defaults(kind: type, added: Mapping[str, Any]) -> type:
    """Give a class without slots the defaults of its fields as attributes."""
    for name, each in list(kind.__dict__.items()):
        if isinstance(each, dataclasses.Field):
            if each.default is dataclasses.MISSING:
                delattr(kind, name)
            else:
                setattr(kind, name, each.default)
    for name, each in added.items():
        setattr(kind, name, each)
    return kind


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(kind: type | None = None, /, **options: bool) -> type | Callable[[type], type]:
        """Make a class a dataclass; the options are those of the standard decorator."""
        if kind is not None:
            return _decorate(kind)
        return lambda each: _decorate(each, **options)
