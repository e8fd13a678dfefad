"""Links, lists and groups: what a store finds records by, in every view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stratagem.engine.events import Draft, Space
from stratagem.engine.lineage import OPEN_END
from stratagem.engine.records import EventKind, Kinds, Link, Projection, RecordKind
from stratagem.storage.catalogue import ListedVersion
from stratagem.storage.contract import Reader, Store
from tests.contracts.conftest import Opener
from tests.contracts.samples import append, examine, fork, rebuild, view

PLACES = Space("place", "n")
ROADS = Space("road", "n")
ANY = (0.0, 1e9)


def _place(content: Mapping[str, Any], key: str | None) -> Projection:
    return Projection(
        facets=(f"called={key}",), numbers=(("size", content["size"]),), group=content["in"]
    )


def _road(content: Mapping[str, Any], _key: str | None) -> Projection:
    link = Link(PLACES, content["from"], content["to"], content["by"], content["width"])
    return Projection(links=(link,))


def _gone(_content: Mapping[str, Any], _key: str | None) -> Projection:
    return Projection(deleted=True)


KINDS = Kinds(
    (
        RecordKind(
            "place",
            (EventKind("Placed", _place), EventKind("Unplaced", _gone, deletes=True)),
            writes="Placed",
            deletes="Unplaced",
            grouped=True,
        ),
        RecordKind(
            "road",
            (EventKind("Built", _road), EventKind("Torn", _gone, deletes=True)),
            writes="Built",
            deletes="Torn",
        ),
    )
)


@pytest.fixture
def store(opened: Opener) -> Store:
    return opened(kinds=KINDS)


def a_place(key: str, size: float = 1.0, inside: str = "land") -> Draft:
    return Draft("Placed", {"size": size, "in": inside}, PLACES, key)


def no_place(key: str) -> Draft:
    return Draft("Unplaced", {}, PLACES, key)


def a_road(ends: str, by: str = "foot", width: float = 1.0) -> Draft:
    content = {"from": ends[0], "to": ends[1], "by": by, "width": width}
    return Draft("Built", content, ROADS, f"{ends}{by}")


def no_road(ends: str, by: str = "foot") -> Draft:
    return Draft("Torn", {}, ROADS, f"{ends}{by}")


def names(reader: Reader, numbers: list[int]) -> list[str]:
    known = reader.records.names(numbers)
    return [known[number][1] for number in numbers]


def linked(store: Store, start: str, branch: str = "default", limit: int = OPEN_END) -> set[str]:
    with store.snapshot() as reader:
        nodes = list(reader.records.subjects(PLACES, list(start)).values())
        found = reader.catalogue.links(view(reader, branch, limit=limit), nodes)
        ends = [
            (name, link.outgoing, link.label)
            for link, name in zip(found, names(reader, [each.other for each in found]), strict=True)
        ]
    return {f"{'→' if outgoing else '←'}{name} {label}" for name, outgoing, label in ends}


def strongest(store: Store, start: str, branch: str = "default", *, limit: int = 10) -> list[str]:
    with store.snapshot() as reader:
        node = reader.records.subjects(PLACES, [start])[start]
        found = reader.catalogue.strongest_links(
            view(reader, branch), node, outgoing=True, label="foot", limit=limit
        )
        return names(reader, [each.other for each in found])


def listed(store: Store, branch: str = "default", limit: int = OPEN_END, **how: Any) -> list[str]:
    how = {"between": ANY, "limit": 100, **how}
    with store.snapshot() as reader:
        found = reader.catalogue.sorted_by(view(reader, branch, limit=limit), PLACES, "size", **how)
        hits = reader.log.contents([each.sequence for each in found])
        return [hits[each.sequence].key or "" for each in found]


def groups(store: Store, branch: str = "default", limit: int = OPEN_END) -> dict[str, int]:
    with store.snapshot() as reader:
        return reader.catalogue.group_counts(view(reader, branch, limit=limit).lineage, "place")


def test_a_link_is_seen_from_both_ends(store: Store) -> None:
    append(store, a_place("a"), a_place("b"), a_place("c"), a_road("ab"), a_road("ca", "rail"))

    assert linked(store, "a") == {"→b foot", "←c rail"}
    assert linked(store, "b") == {"←a foot"}
    assert linked(store, "bc") == {"←a foot", "→a rail"}
    assert linked(store, "") == set()


def test_a_link_is_gone_with_its_record_and_another_version_replaces_it(store: Store) -> None:
    append(store, a_place("a"), a_place("b"), a_place("c"))
    first = append(store, a_road("ab"), a_road("ac"))
    second = append(store, no_road("ab"), a_road("ac", width=0.5))
    append(store, a_road("ab"))

    assert linked(store, "a") == {"→b foot", "→c foot"}
    assert linked(store, "a", limit=second) == {"→c foot"}
    assert linked(store, "a", limit=first) == {"→b foot", "→c foot"}
    assert strongest(store, "a") == ["b", "c"]


def test_a_branch_borrows_links_and_hides_them(store: Store) -> None:
    append(store, a_place("a"), a_place("b"), a_place("c"), a_road("ab"))
    fork(store, "trial")
    append(store, no_road("ab"), a_road("bc"), branch="trial")
    append(store, a_road("ac"))

    assert linked(store, "ab", "trial") == {"→c foot"}
    assert linked(store, "a") == {"→b foot", "→c foot"}


def test_the_strongest_links_lead_to_live_records(store: Store) -> None:
    append(store, *(a_place(key) for key in "abcde"))
    append(store, a_road("ab", width=0.1), a_road("ac", width=0.9), a_road("ad", width=0.5))
    append(store, a_road("ae", "rail"))
    fork(store, "trial")
    append(store, no_place("c"), branch="trial")

    assert strongest(store, "a") == ["c", "d", "b"]
    assert strongest(store, "a", limit=1) == ["c"]
    assert strongest(store, "a", "trial", limit=2) == ["d", "b"]


@pytest.mark.parametrize("by", [None, (True, "foot")])
def test_links_come_in_the_order_of_their_records_the_strongest_first(
    store: Store, by: tuple[bool, str] | None
) -> None:
    append(store, *(a_place(key) for key in "abcde"))
    append(store, a_road("ac", width=0.1), a_road("bd"), a_road("ad", width=0.9), a_road("be"))

    with store.snapshot() as reader:
        numbers = reader.records.subjects(PLACES, ["a", "b"])
        asked = [numbers["b"], numbers["a"]]
        found = reader.catalogue.links(view(reader), asked, by=by)
        assert names(reader, [each.other for each in found]) == ["d", "e", "d", "c"]


@pytest.mark.parametrize("by", [None, (True, "foot")])
def test_a_limit_takes_the_strongest_links_of_the_first_records(
    store: Store, by: tuple[bool, str] | None
) -> None:
    keys = "cdefghij"
    append(store, *(a_place(key) for key in f"ab{keys}"))
    append(store, a_road("ac", width=0.5), *(a_road(f"a{key}", width=0.1) for key in keys[1:]))
    append(store, *(a_road(f"b{key}", width=at / 10) for at, key in enumerate(keys, 1)))

    with store.snapshot() as reader:
        numbers = reader.records.subjects(PLACES, ["a", "b"])
        asked = [numbers["b"], numbers["a"]]
        found = {
            limit: reader.catalogue.links(view(reader), asked, by=by, limit=limit)
            for limit in (3, 9)
        }
        assert names(reader, [each.other for each in found[3]]) == ["j", "i", "h"]
        assert names(reader, [each.other for each in found[9]]) == [*keys[::-1], "c"]


def test_links_can_be_narrowed_bounded_and_counted(store: Store) -> None:
    append(store, *(a_place(key) for key in "abc"))
    append(store, a_road("ab"), a_road("ac"), a_road("ca", "rail"))

    with store.snapshot() as reader:
        here = view(reader)
        node = [reader.records.subjects(PLACES, ["a"])["a"]]
        assert len(reader.catalogue.links(here, node)) == 3
        assert len(reader.catalogue.links(here, node, limit=2)) == 2
        assert len(reader.catalogue.links(here, node, by=(True, "foot"))) == 2
        assert len(reader.catalogue.links(here, node, by=(False, "rail"))) == 1
        assert len(reader.catalogue.links(here, node, by=(False, "foot"))) == 0
        assert reader.catalogue.link_count(node, 10) == 3
        assert reader.catalogue.link_count(node, 2) == 2


def test_what_is_not_there_when_it_is_linked_is_not_linked_later(store: Store) -> None:
    append(store, a_place("a"), a_road("ab"))
    append(store, a_place("b"))

    assert linked(store, "a") == linked(store, "b") == set()
    assert examine(store) == []


def test_records_are_listed_in_the_order_of_a_number(store: Store) -> None:
    first = append(store, a_place("a", 3), a_place("b", 1), a_place("c", 2), a_place("d", 2))
    append(store, a_place("a", 0.5), no_place("c"))

    assert listed(store) == ["a", "b", "d"]
    assert listed(store, descending=True) == ["d", "b", "a"]
    assert listed(store, limit=first) == ["b", "c", "d", "a"]
    assert listed(store, between=(1, 2)) == ["b", "d"]
    assert listed(store, between=(1, 2), descending=True) == ["d", "b"]


def test_a_list_is_read_page_by_page(store: Store) -> None:
    append(store, *(a_place(f"p{number}", number // 2) for number in range(7)))

    for descending in (False, True):
        seen: list[int] = []
        after: ListedVersion | None = None
        with store.snapshot() as reader:
            while page := reader.catalogue.sorted_by(
                view(reader),
                PLACES,
                "size",
                between=ANY,
                after=after,
                descending=descending,
                limit=2,
            ):
                seen += [each.sequence for each in page]
                after = page[-1]
        assert seen == sorted(seen, reverse=descending)
        assert len(seen) == 7


def test_groups_are_counted_in_every_view(store: Store) -> None:
    first = append(store, a_place("a"), a_place("b"), a_place("c", inside="sea"))
    fork(store, "trial")
    append(store, a_place("a", inside="sea"), no_place("b"), branch="trial")
    append(store, a_place("d", inside="air"))

    assert groups(store) == {"land": 2, "sea": 1, "air": 1}
    assert groups(store, limit=first) == {"land": 2, "sea": 1}
    assert groups(store, "trial") == {"sea": 2}
    append(store, a_place("b"), a_place("a", 9, inside="sea"), branch="trial")
    assert groups(store, "trial") == {"land": 1, "sea": 2}


def test_a_record_written_twice_in_one_transaction_is_counted_once(store: Store) -> None:
    append(store, a_place("a"), a_place("a", inside="sea"), a_place("b"), no_place("b"))

    assert groups(store) == {"sea": 1}
    assert listed(store) == ["a"]


def test_a_part_of_a_facet_is_found(store: Store) -> None:
    append(store, a_place("harbour"), a_place("arbour"), a_place("hill"))
    append(store, no_place("arbour"))

    with store.snapshot() as reader:
        here = view(reader)

        def found(part: str, limit: int = 10) -> int:
            return len(reader.catalogue.with_facet_containing(here, "called=", part, limit=limit))

        assert [found(part) for part in ("arbour", "h", "called", "=", "x")] == [1, 2, 0, 0, 0]
        assert found("h", limit=1) == 1


def test_events_of_a_kind_are_counted_on_all_branches(store: Store) -> None:
    append(store, a_place("a"), a_place("b"), a_road("ab"))
    fork(store, "trial")
    append(store, no_place("a"), branch="trial")

    with store.snapshot() as reader:
        assert (
            reader.catalogue.version_count("place"),
            reader.catalogue.version_count("road"),
        ) == (3, 1)


def test_a_rebuild_changes_nothing(store: Store) -> None:
    append(store, a_place("a"), a_place("b", inside="sea"), a_road("ab"))
    fork(store, "trial")
    append(store, a_place("a", 5, "sea"), no_road("ab"), a_road("ba"), branch="trial")

    def seen() -> list[object]:
        return [
            each(store, branch)
            for branch in ("default", "trial")
            for each in (groups, listed, lambda of, name: linked(of, "a", name))
        ]

    before = seen()
    assert examine(store) == []
    rebuild(store)

    assert seen() == before
    assert examine(store) == []
