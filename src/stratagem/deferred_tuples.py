"""Named tuples whose methods are compiled when they are first used.

`typing.NamedTuple` compiles the constructor of each class and every annotation when its module is
imported: a quarter of a millisecond for each class, and a command imports dozens of them. Here a
class gets its fields at once; its methods are taken from a standard named tuple with the same
fields when one of them is first looked up.
"""

from __future__ import annotations

import collections
import sys
from typing import TYPE_CHECKING, Any, Final

__all__ = ["NamedTuple"]

_METHODS: Final = (
    *("__new__", "__repr__", "__getnewargs__", "_make", "_replace", "_asdict"),
    *(("__replace__",) if sys.version_info >= (3, 13) else ()),
)
_FIELDS_MAX: Final = 20
# Type checkers want to know the fields.
_make_standard: Any = collections.namedtuple  # noqa: PYI024
_WIDEST: Any = _make_standard("_WIDEST", [f"field_{place}" for place in range(_FIELDS_MAX)])
# What reads a field by its place; it is the same in every named tuple.
_ACCESSORS: Final = tuple(vars(_WIDEST)[field] for field in _WIDEST._fields)


class _DeferredMethod:
    """Stands for a method of a class until it is looked up."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._kind = owner
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        _complete(self._kind)
        return vars(self._kind)[self._name].__get__(instance, owner)


def _complete(kind: Any) -> None:
    """Give a class its methods. Twice by two threads does no harm."""
    standard = _make_standard(
        kind.__name__,
        kind._fields,
        defaults=tuple(kind._field_defaults.values()),
        module=kind.__module__,
    )
    standard.__new__.__annotations__ = dict(kind.__annotations__)
    for name in _METHODS:
        if isinstance(vars(kind)[name], _DeferredMethod):
            setattr(kind, name, vars(standard)[name])


class _NamedTupleType(type):
    """Makes each class below `NamedTuple` a tuple with named fields."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
        if not bases:
            return super().__new__(mcs, name, bases, body)
        if len(bases) > 1:
            raise TypeError("A named tuple with other bases is one of `typing.NamedTuple`.")
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in fields if field in body}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name} has a field without a default after one with a default.")
        return type(
            name,
            (tuple,),
            {
                **{method: _DeferredMethod() for method in _METHODS},
                "__doc__": f"{name}({', '.join(fields)})",
                **body,
                **dict(zip(fields, _ACCESSORS[: len(fields)], strict=True)),
                "__slots__": (),
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
            },
        )


if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class NamedTuple(metaclass=_NamedTupleType):
        """The base of classes that are tuples with named fields, as `typing.NamedTuple` is."""
