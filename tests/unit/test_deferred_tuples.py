"""Named tuples whose methods come later are like those of the standard library."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import typing
from collections.abc import Iterator
from typing import Any, get_type_hints

import pytest

import stratagem
from stratagem.deferred_tuples import NamedTuple

METHODS = ("__new__", "__repr__", "__getnewargs__", "_make", "_replace", "_asdict")


class Point(NamedTuple):
    """A place."""

    x: int
    y: int | None = None
    label: str = ""

    @property
    def is_labelled(self) -> bool:
        """Whether it has a label."""
        return bool(self.label)

    def __str__(self) -> str:
        return f"at {self.x}: {super().__repr__()}"


class StandardPoint(typing.NamedTuple):
    """A place."""

    x: int
    y: int | None = None
    label: str = ""


class Undescribed(NamedTuple):
    a: int


class Empty(NamedTuple):
    """Nothing."""


class Labelled(Point):
    """A class below one."""


def renamed(text: str) -> str:
    """Return a text about the standard class as one about ours."""
    return text.replace("StandardPoint", "Point")


@pytest.mark.parametrize("arguments", [(1,), (1, 2), (1, None, "a")])
def test_instances_are_equal_to_those_of_the_standard_library(arguments: tuple[Any, ...]) -> None:
    ours: Any = Point(*arguments)
    standard: Any = StandardPoint(*arguments)

    assert ours == standard == tuple(ours)
    assert hash(ours) == hash(standard)
    assert repr(ours) == renamed(repr(standard))
    assert ours._asdict() == standard._asdict()
    assert ours._replace(y=7) == standard._replace(y=7)
    assert tuple(Point._make([4, 5, "b"])) == StandardPoint._make([4, 5, "b"])
    assert (ours.x, ours.y, ours.label) == (standard.x, standard.y, standard.label)
    assert (type(ours), type(ours._replace(x=2))) == (Point, Point)


def test_classes_are_described_as_those_of_the_standard_library() -> None:
    assert Point._fields == StandardPoint._fields
    assert Point._field_defaults == StandardPoint._field_defaults
    assert Point.__match_args__ == StandardPoint.__match_args__
    assert Point.__doc__ == StandardPoint.__doc__
    assert Undescribed.__doc__ == "Undescribed(a)"
    assert (Point.__bases__, Point.__module__) == ((tuple,), __name__)
    assert type(Point) is type
    assert get_type_hints(Point) == get_type_hints(StandardPoint)
    assert list(inspect.signature(Point).parameters) == ["x", "y", "label"]
    assert inspect.signature(Point).parameters["label"].default == ""
    assert [vars(Point)[name].__doc__ for name in Point._fields] == [
        vars(StandardPoint)[name].__doc__ for name in Point._fields
    ]


@pytest.mark.parametrize(
    "call", [lambda kind: kind(), lambda kind: kind(1, z=2), lambda kind: kind(1)._replace(z=2)]
)
def test_wrong_calls_are_refused_as_by_the_standard_library(call: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as ours:
        call(Point)
    with pytest.raises(type(ours.value)) as standard:
        call(StandardPoint)

    assert str(ours.value) == renamed(str(standard.value))


def test_fields_cannot_be_changed_and_instances_have_no_others() -> None:
    point: Any = Point(1)

    for name in ("x", "other"):
        with pytest.raises(AttributeError):
            setattr(point, name, 2)
    assert not hasattr(point, "__dict__")


def test_instances_are_matched_copied_and_pickled() -> None:
    point = Point(1, 2, "a")

    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
    assert copy.copy(point) == copy.deepcopy(point) == point
    again = pickle.loads(pickle.dumps(point))  # noqa: S301 -- what was just written
    assert (again, type(again)) == (point, Point)


def test_methods_of_the_class_itself_stay() -> None:
    assert Point(1, label="a").is_labelled
    assert str(Point(1)) == "at 1: (1, None, '')"


def test_a_class_below_one_has_its_fields() -> None:
    labelled = Labelled(1, label="a")

    assert (labelled.x, labelled.label, type(labelled)) == (1, "a", Labelled)
    assert repr(labelled) == "Labelled(x=1, y=None, label='a')"


def test_a_tuple_may_have_no_fields() -> None:
    assert Empty() == ()


def test_a_field_without_a_default_after_one_with_a_default_is_refused() -> None:
    body = {"__annotations__": {"a": "int", "b": "int"}, "a": 1}

    with pytest.raises(TypeError, match="default"):
        type.__call__(type(NamedTuple), "Wrong", (NamedTuple,), body)


@pytest.mark.parametrize("method", METHODS)
def test_any_method_may_be_the_first_that_is_used(method: str) -> None:
    class Fresh(NamedTuple):
        a: int

    instance = tuple.__new__(Fresh, (1,))

    assert callable(getattr(instance, method))
    assert not [name for name in METHODS if type(vars(Fresh)[name]).__module__ != "builtins"]
    assert instance == Fresh(1)


def named_tuples() -> Iterator[type]:
    """Yield the named tuples of the package that import nothing that may not be installed."""
    for module in pkgutil.walk_packages(stratagem.__path__, "stratagem."):
        if ".workers." in module.name or ".attacks" in module.name or ".inside" in module.name:
            continue
        try:
            imported = importlib.import_module(module.name)
        except ImportError:
            continue
        for kind in vars(imported).values():
            if isinstance(kind, type) and hasattr(kind, "_field_defaults"):
                yield kind


def test_every_named_tuple_of_the_package_can_be_completed() -> None:
    code = (
        "from tests.unit.test_deferred_tuples import METHODS, named_tuples\n"
        "kinds = set(named_tuples())\n"
        "assert len(kinds) > 150, len(kinds)\n"
        "for kind in kinds:\n"
        "    for name in METHODS:\n"
        "        getattr(kind, name)\n"
        "    assert list(kind.__new__.__annotations__) == list(kind._fields), kind\n"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
