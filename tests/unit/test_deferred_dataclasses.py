"""Dataclasses whose methods come later are like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Generic, TypeVar

import pytest

import stratagem
from stratagem.deferred_dataclasses import dataclass

T = TypeVar("T")
METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__dataclass_fields__", "__match_args__")


class Body:
    """The fields of the classes below; each is decorated in both ways."""

    name: str
    count: int = 3
    marks: list[str] = dataclasses.field(default_factory=list, compare=False)
    secret: str = dataclasses.field(default="x", repr=False)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A value."""

    name: str
    count: int = 3


@dataclass(slots=True)
class Open:
    """A record."""

    name: str
    marks: list[str] = dataclasses.field(default_factory=list)


@dataclass(frozen=True)
class Parent:
    """One with an heir."""

    name: str


@dataclass(frozen=True)
class Heir(Parent):
    """One that inherits fields."""

    age: int = 1


def body() -> dict[str, Any]:
    own = {name: each for name, each in vars(Body).items() if name in Body.__annotations__}
    return {**own, "__annotations__": dict(Body.__annotations__), "__module__": __name__}


def both(**options: bool) -> tuple[Any, Any]:
    """Return one class made by our decorator, and one made by the standard one."""
    ours, standard = dataclass(**options), dataclasses.dataclass(**options)
    return ours(type("Made", (), body())), standard(type("Made", (), body()))


CASES = [
    {"frozen": frozen, "slots": slots, "eq": eq, "repr": shown, "kw_only": named}
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
    for shown in (False, True)
    for named in (False, True)
]


@pytest.mark.parametrize("options", CASES, ids=str)
def test_a_class_is_like_one_of_the_standard_library(options: dict[str, bool]) -> None:
    ours, standard = both(**options)

    for kind in (ours, standard):
        made = kind(name="a", count=4)
        assert (made.name, made.count, made.marks, made.secret) == ("a", 4, [], "x")
    assert str(inspect.signature(ours)) == str(inspect.signature(standard))
    assert ours.__match_args__ == standard.__match_args__
    assert repr(ours.__dataclass_params__) == repr(standard.__dataclass_params__)
    assert [(each.name, each.default) for each in dataclasses.fields(ours)] == [
        (each.name, each.default) for each in dataclasses.fields(standard)
    ]
    assert getattr(ours, "__slots__", None) == getattr(standard, "__slots__", None)
    assert (ours.__hash__ is None) == (standard.__hash__ is None)
    assert (ours(name="a") == ours(name="a")) == (standard(name="a") == standard(name="a"))
    if options["repr"]:
        assert repr(ours(name="a")) == repr(standard(name="a"))
    if ours.__hash__ is not None and options["eq"]:
        assert hash(ours(name="a")) == hash(ours(name="a", marks=["other"]))


def test_methods_are_made_when_one_is_used() -> None:
    ours, _ = both(frozen=True, slots=True)
    compiled = type(Body.__init__), type(lambda: None)

    assert not any(isinstance(vars(ours)[name], compiled) for name in METHODS)

    ours(name="a")

    assert inspect.isfunction(vars(ours)["__init__"])
    assert vars(ours)["__match_args__"] == ("name", "count", "marks", "secret")
    assert not inspect.isfunction(vars(ours)["__eq__"])

    assert ours(name="a") == ours(name="a")

    assert inspect.isfunction(vars(ours)["__eq__"])
    assert ours.__dataclass_params__.eq


def test_a_frozen_one_cannot_be_changed() -> None:
    frozen = Frozen("a")

    with pytest.raises(dataclasses.FrozenInstanceError):
        frozen.count = 4  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del frozen.count
    assert dataclasses.replace(frozen, count=4) == Frozen("a", 4)
    assert dataclasses.asdict(frozen) == {"name": "a", "count": 3}


class HeirWithout(Parent):
    """One that inherits fields, and has an attribute that is none."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.nickname = name[:1]


def test_what_is_no_field_can_be_changed_where_a_frozen_one_is_inherited() -> None:
    heir = HeirWithout("ann")
    heir.nickname = "b"

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'name'"):
        heir.name = "bob"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'name'"):
        del heir.name
    assert (heir.name, heir.nickname) == ("ann", "b")
    del heir.nickname
    assert not hasattr(heir, "nickname")


def test_options_that_add_other_methods_are_the_standard_ones() -> None:
    @dataclass(order=True, unsafe_hash=True, match_args=False, slots=True, weakref_slot=True)
    class Ordered:
        """One with all that is rarely wanted."""

        name: str
        count: int = dataclasses.field(default=3, init=False)

    ordered = Ordered("a")

    assert ordered < Ordered("b")
    assert hash(ordered) == hash(Ordered("a"))
    assert not hasattr(Ordered, "__match_args__")
    assert weakref.ref(ordered)() is ordered
    assert ordered.count == 3


def test_a_field_that_callers_do_not_give_has_its_default() -> None:
    @dataclass(slots=True)
    class Counted:
        """One that begins at a number."""

        name: str
        count: int = dataclasses.field(default=3, init=False)

    assert Counted("a").count == 3


def test_a_frozen_one_that_says_itself_what_is_pickled_is_as_the_standard_makes_it() -> None:
    def copied_name(decorator: Any) -> Any:
        """Return what a copy holds: early releases of Python 3.11 do not heed the class."""

        class Masked:
            """One whose state is its own."""

            name: str

            def __getstate__(self) -> list[str]:
                return ["masked"]

        return copy.copy(decorator(frozen=True, slots=True)(Masked)("secret")).name

    assert copied_name(dataclass) == copied_name(dataclasses.dataclass)


@pytest.mark.parametrize("value", [Frozen("a", 9), Open("b", ["c"]), Heir("d", 2)])
def test_values_are_copied_and_pickled(value: Any) -> None:
    restored = pickle.loads(pickle.dumps(value))  # noqa: S301 -- made here

    assert copy.copy(value) == copy.deepcopy(value) == restored == value


def test_a_class_that_inherits_fields_has_them_all() -> None:
    assert [each.name for each in dataclasses.fields(Heir)] == ["name", "age"]
    assert repr(Heir("a")) == "Heir(name='a', age=1)"


def test_what_a_class_says_itself_stays() -> None:
    @dataclass(slots=True)
    class Own(Generic[T]):
        """One with methods of its own."""

        value: T
        doubled: Any = None

        def __post_init__(self) -> None:
            self.doubled = [self.value, self.value]

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __repr__(self) -> str:
            return "own"

    own = Own(1)

    assert (own.doubled, own == object(), hash(own), repr(own)) == ([1, 1], True, 7, "own")


def every_dataclass() -> Iterator[Any]:
    apart = ("stratagem.gateway.sandbox.inside", "stratagem.gateway.sandbox.attacks")
    names = (each.name for each in pkgutil.walk_packages(stratagem.__path__, "stratagem."))
    for name in names:
        if name.startswith(apart) or "__main__" in name:
            continue
        for each in vars(importlib.import_module(name)).values():
            if isinstance(each, type) and each.__module__ == name and is_dataclass(each):
                yield each


def test_every_dataclass_of_the_package_can_be_completed() -> None:
    kinds = list(every_dataclass())

    assert len(kinds) > 300
    for kind in kinds:
        names = [each.name for each in dataclasses.fields(kind) if each.init]
        assert list(inspect.signature(kind).parameters) == names, kind


def test_few_methods_are_compiled_at_a_start() -> None:
    watched = """
import dataclasses
made = []
inner = dataclasses._process_class
def watch(kind, *options):
    made.append(kind.__name__)
    return inner(kind, *options)
dataclasses._process_class = watch
import stratagem
stratagem.open(":memory:").close()
print(*made)
"""
    done = subprocess.run(
        [sys.executable, "-c", watched], capture_output=True, text=True, check=True
    )

    assert len(done.stdout.split()) < 30, done.stdout
