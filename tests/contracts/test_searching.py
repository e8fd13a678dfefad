"""A search sees exactly what its view shows, and filters before it ranks."""

from __future__ import annotations

import pytest

from stratagem.errors import DatabaseCorrupt
from stratagem.storage.contract import Reader, ScoredPassage, Store
from tests.contracts.samples import (
    HAPPENING,
    NOTE,
    SECOND,
    START,
    a_happening,
    a_note,
    an_erasure,
    append,
    create,
    fork,
    happenings,
    matching,
    notes,
    rebuild,
    searching,
    view,
)


def test_a_text_is_found_at_once_by_each_of_its_words(store: Store) -> None:
    note = append(store, a_note("k", "red fish"))
    happening = append(store, a_happening("blue fish"))

    assert matching(store, "red") == [note]
    assert set(matching(store, "fish")) == {note, happening}
    assert matching(store, "green") == []


def test_a_key_is_found_as_a_title(store: Store) -> None:
    note = append(store, a_note("shopping", "red fish"))

    assert matching(store, "shopping") == [note]


def test_only_the_newest_version_is_found(store: Store) -> None:
    append(store, a_note("k", "red"))

    new = append(store, a_note("k", "blue"))

    assert matching(store, "red") == []
    assert matching(store, "blue") == [new]


def test_an_erased_record_is_not_found(store: Store) -> None:
    append(store, a_note("k", "red"))

    append(store, an_erasure("k"))

    assert matching(store, "red") == []


def test_an_expired_record_is_found_in_earlier_views_only(store: Store) -> None:
    note = append(store, a_note("k", "red", expires_at=START + SECOND))
    with store.snapshot() as reader:
        assert reader.records.any_expires()

    assert matching(store, "red", time=START + SECOND - 1) == [note]
    assert matching(store, "red", time=START + SECOND) == []


def test_a_view_of_the_past_finds_what_was_there(store: Store) -> None:
    old = append(store, a_note("k", "red"))
    new = append(store, a_note("k", "red again"))
    gone = append(store, an_erasure("k"))
    append(store, a_happening("red too"))

    found = [matching(store, "red", limit=at) for at in (old - 1, old, new, gone)]

    assert found == [[], [old], [new], []]


def test_a_branch_finds_its_own_and_what_it_borrows(store: Store) -> None:
    kept = append(store, a_note("kept", "red"))
    append(store, a_note("changed", "red"), a_note("hidden", "red"))
    fork(store, "trial")
    later = append(store, a_note("later", "red"))
    own = append(store, a_note("own", "red"), branch="trial")
    changed = append(store, a_note("changed", "red blue"), branch="trial")
    append(store, an_erasure("hidden"), branch="trial")

    assert set(matching(store, "red", "trial")) == {kept, own, changed}
    assert set(matching(store, "red")) == {kept, kept + 1, kept + 2, later}


def test_a_branch_does_not_find_what_it_replaced_by_other_words(store: Store) -> None:
    append(store, a_note("k", "red"))
    fork(store, "trial")
    fork(store, "deeper", parent="trial")

    append(store, a_note("k", "blue"), branch="trial")
    append(store, a_note("k", "green"), branch="deeper")

    assert matching(store, "red", "trial") == matching(store, "red", "deeper") == []
    assert matching(store, "blue", "deeper") == []


def test_an_empty_branch_finds_nothing_of_others(store: Store) -> None:
    append(store, a_note("k", "red"), a_happening("red"))

    create(store, "fresh")

    assert matching(store, "red", "fresh") == []


def test_spaces_filter_by_kind_and_namespace(store: Store) -> None:
    here = append(store, a_note("k", "red"))
    there = append(store, a_note("k", "red", namespace="m"))
    happening = append(store, a_happening("red"))

    assert matching(store, "red", spaces=[notes()]) == [here]
    assert matching(store, "red", spaces=[happenings()]) == [happening]
    assert set(matching(store, "red", spaces=[notes(), notes("m")])) == {here, there}
    assert matching(store, "red", spaces=[]) == []


def test_several_tags_mean_all_of_them(store: Store) -> None:
    one = append(store, a_note("a", "red", tags=["x"]))
    both = append(store, a_note("b", "red", tags=["x", "y"]))
    append(store, a_note("c", "red"))

    assert set(matching(store, "red", tags=["x"])) == {one, both}
    assert matching(store, "red", tags=["x", "y"]) == [both]
    assert matching(store, "red", tags=["x", "x", "y"]) == [both]
    assert matching(store, "red", tags=["z"]) == []


def test_tags_are_those_of_the_version_that_is_seen(store: Store) -> None:
    old = append(store, a_note("a", "red", tags=["x"]))
    new = append(store, a_note("a", "red", tags=["y"]))

    assert matching(store, "red", tags=["x"]) == []
    assert matching(store, "red", tags=["y"]) == [new]
    assert matching(store, "red", tags=["x"], limit=old) == [old]


def test_tagged_versions_are_listed_whatever_is_seen_of_them(store: Store) -> None:
    one = append(store, a_note("a", "red", tags=["x", "y"]))
    two = append(store, a_happening("blue", tags=["x"]))

    reader = store.reader()

    assert sorted(reader.search.tagged_versions(["x"]).tolist()) == [one, two]
    assert reader.search.tagged_versions(["x", "y"]).tolist() == [one]
    assert reader.search.tagged_versions(["z"]).tolist() == []


def test_facets_list_what_a_view_shows_oldest_first(store: Store) -> None:
    old = append(store, a_note("a", "one", facets=["f"]))
    other = append(store, a_note("b", "two", facets=["f", "g"]))
    fork(store, "trial")
    new = append(store, a_note("a", "three", facets=["f"]))
    append(store, an_erasure("b"), branch="trial")

    def faceted(branch: str, facet: str, **options: int) -> list[int]:
        with store.snapshot() as reader:
            return reader.catalogue.with_facet(view(reader, branch), facet, **options)

    assert faceted("default", "f") == [other, new]
    assert faceted("default", "f", limit=1) == [new]
    assert faceted("default", "f", limit=1, before=new) == [other]
    assert faceted("trial", "f") == [old]
    assert (faceted("default", "g"), faceted("trial", "g")) == ([other], [])


def test_a_facet_is_no_tag_and_a_tag_no_facet(store: Store) -> None:
    append(store, a_note("a", "red", facets=["f"], tags=["t"]))

    with store.snapshot() as reader:
        tagged = [
            reader.catalogue.with_facet(view(reader), "t"),
            reader.search.tagged_versions(["f"]).tolist(),
        ]

    assert tagged == [[], []]
    assert matching(store, "red", tags=["f"]) == []


def test_filters_apply_before_the_best_are_taken(store: Store) -> None:
    wanted = append(store, a_note("w", "red " + "padding " * 50, tags=["x"]))
    append(store, *(a_note(f"k{number}", "red") for number in range(30)))

    assert matching(store, "red", tags=["x"], most=1) == [wanted]
    assert wanted not in matching(store, "red", most=1)


def test_hidden_versions_take_no_place_among_the_best(store: Store) -> None:
    seen = append(store, a_note("seen", "red " + "padding " * 50))
    for number in range(30):
        append(store, a_note(f"k{number}", "red"))
        append(store, an_erasure(f"k{number}"))

    assert matching(store, "red", most=1) == [seen]


def test_of_equals_the_newer_comes_first(store: Store) -> None:
    written = [append(store, a_note(f"k{number}", "red fish")) for number in range(5)]

    assert matching(store, "fish") == written[::-1]
    assert matching(store, "fish", most=2) == written[:2:-1]


def test_scores_are_higher_for_better_matches(store: Store) -> None:
    append(store, *(a_note(f"k{number}", "something else") for number in range(5)))
    weak = append(store, a_note("weak", "red " + "padding " * 30))
    strong = append(store, a_note("strong", "red"))

    with searching(store) as reader:
        found = reader.search.matches(
            view(reader), '"red"', weights=(1, 1, 0.5), spaces=None, tags=(), limit=9
        )

    assert [sequence for sequence, _, _ in found] == [strong, weak]
    assert found[0][2] > found[1][2] > 0


def test_a_text_is_found_by_its_best_passage_first(store: Store) -> None:
    note = append(store, a_note("k", "blue fish\nred\nred red fish"))
    other = append(store, a_note("other", "red and a lot of words besides, of many kinds"))

    with searching(store) as reader:
        found = reader.search.matches(
            view(reader), '"red"', weights=(1, 1, 0.5), spaces=None, tags=(), limit=9
        )

        every = reader.search.matches(
            view(reader), '"red"', weights=(1, 1, 0.5), spaces=None, tags=(), limit=None
        )

    assert sorted(each[:2] for each in found) == [
        (note, 1), (note, 2), (other, 0)
    ]  # fmt: skip
    assert found[0][0] == note
    assert sorted(every) == sorted(found)


def test_traits_of_a_text_are_its_length_and_whether_it_has_a_facet(store: Store) -> None:
    note = append(store, a_note("k", "four"))

    with store.snapshot() as reader:
        traits = reader.search.shown_traits(
            view(reader), [note, note + 1], "none", spaces=None, tags=()
        )

    assert traits == {note: (4, False)}


def test_only_texts_that_a_search_may_find_have_traits(store: Store) -> None:
    replaced = append(store, a_note("k", "red"))
    newest = append(store, a_note("k", "blue"))
    tagged = append(store, a_note("tagged", "red", tags=["here"]))
    fork(store, "trial")
    own = append(store, a_note("k", "green"), branch="trial")
    every = [replaced, newest, tagged, own]

    def shown(branch: str, *tags: str, spaces: list[int] | None = None) -> set[int]:
        with store.snapshot() as reader:
            seen = view(reader, branch)
            return set(reader.search.shown_traits(seen, every, "x", spaces=spaces, tags=tags))

    assert shown("default") == {newest, tagged}
    assert shown("trial") == {own, tagged}
    assert shown("default", "here") == {tagged}
    assert shown("default", spaces=[]) == set()


def _passages(reader: Reader, expression: str, limit: int | None) -> list[ScoredPassage]:
    found = reader.search.passages(expression, weights=(1, 1, 0.5), limit=limit)
    return list(zip(*(column.tolist() for column in found), strict=True))


def test_passages_are_found_whichever_view_shows_them(store: Store) -> None:
    replaced = append(store, a_note("k", "red " + "padding " * 30))
    append(store, a_note("k", "blue"))
    fork(store, "trial")
    own = append(store, a_note("other", "red"), branch="trial")

    with searching(store) as reader:
        found = _passages(reader, '"red"', limit=9)
        every = _passages(reader, '"red"', limit=None)
        best = _passages(reader, '"red"', limit=1)
        none = _passages(reader, '"green"', limit=9)
        matching_here = reader.search.matches(
            view(reader, "trial"), '"red"', weights=(1, 1, 0.5), spaces=None, tags=(), limit=9
        )

    assert [sequence for sequence, _, _ in found] == [own, replaced]
    assert sorted(every) == sorted(found)
    assert best == found[:1] == matching_here
    assert none == []


def test_versions_with_a_facet_are_listed_up_to_a_number(store: Store) -> None:
    written = [append(store, a_note(f"k{number}", "red", facets=["seen"])) for number in range(3)]
    append(store, a_note("tagged", "red", tags=["seen"]))

    with store.snapshot() as reader:
        assert sorted(reader.search.versions_with_facet("seen", 9)) == written
        assert len(reader.search.versions_with_facet("seen", 2)) == 2
        assert reader.search.versions_with_facet("none", 9) == []


def test_the_messages_around_one_are_those_that_its_view_shows(store: Store) -> None:
    first, second, third = (
        append(store, a_happening(word, session="s")) for word in ("one", "two", "three")
    )
    fork(store, "trial")
    fourth = append(store, a_happening("four", session="s"), branch="trial")
    append(store, a_happening("five", session="s"))
    append(store, a_happening("six", session="other"), branch="trial")

    with store.snapshot() as reader:
        lineage = view(reader, "trial").lineage
        around = reader.search.turns(lineage, happenings(), "s", second, before=5, after=5)
        nearest = reader.search.turns(lineage, happenings(), "s", third, before=1, after=1)

    assert around == [first, third, fourth]
    assert nearest == [second, fourth]


def test_which_of_some_versions_are_seen(store: Store) -> None:
    old = append(store, a_note("k", "one"))
    new = append(store, a_note("k", "two"))
    happening = append(store, a_happening("x"))
    erasure = append(store, an_erasure("gone"))
    fork(store, "trial")
    child = append(store, a_note("k", "three"), branch="trial")
    given = [old, new, happening, erasure, child, 1, 999]

    with store.snapshot() as reader:
        main = reader.records.visible_among(view(reader), given)
        trial = reader.records.visible_among(view(reader, "trial"), given)
        past = reader.records.visible_among(view(reader, limit=old), given)
        assert not reader.records.any_expires()

    assert main == {new, happening}
    assert trial == {child, happening}
    assert past == {old}


def test_a_hit_tells_what_its_event_was_about(store: Store) -> None:
    note = append(store, a_note("k", "red"))
    happening = append(store, a_happening("blue"))

    hits = store.reader().log.contents([note, happening])

    assert set(hits) == {note, happening}
    assert (hits[note].space, hits[note].key) == (notes(), "k")
    assert (hits[happening].space.kind, hits[happening].key) == (HAPPENING, None)
    assert hits[happening].payload == b'{"text":"blue"}'
    with pytest.raises(DatabaseCorrupt, match="no event 999"):
        store.reader().log.contents([note, 999])


def test_the_index_knows_how_many_texts_it_holds_and_how_common_a_word_is(store: Store) -> None:
    append(store, a_note("a", "red fish"), a_note("b", "blue fish"), a_note("empty"))

    reader = store.reader()

    assert reader.search.text_count() == 2
    frequencies = reader.search.document_frequencies(["fish", "red", "green"])
    assert frequencies == {"fish": 2, "red": 1, "green": 0}


def test_spaces_in_use_are_listed_by_kind(store: Store) -> None:
    append(store, a_note("a"), a_note("b", namespace="m"), a_happening("x"))

    reader = store.reader()

    assert set(reader.records.spaces(NOTE).values()) == {notes(), notes("m")}
    assert set(reader.records.spaces().values()) == {notes(), notes("m"), happenings()}


@pytest.mark.parametrize("again", [False, True], ids=["as it grew", "rebuilt"])
def test_the_last_messages_of_a_session_are_indexed_with_the_next(
    store: Store, again: bool
) -> None:
    append(store, a_happening("alpha", session="s"))
    beta = append(store, a_happening("beta", session="s"))
    gamma = append(store, a_happening("gamma", session="s"))
    delta = append(store, a_happening("delta", session="s"))
    if again:
        rebuild(store)

    assert set(matching(store, "beta")) == {beta, gamma, delta}
    assert delta not in matching(store, "alpha")
    assert matching(store, "delta") == [delta]


@pytest.mark.parametrize("again", [False, True], ids=["as it grew", "rebuilt"])
def test_context_comes_from_the_same_session_namespace_and_branch_only(
    store: Store, again: bool
) -> None:
    append(store, a_happening("alpha", session="other"))
    append(store, a_happening("alpha", session="s", namespace="other"))
    append(store, a_happening("alpha"))
    create(store, "fresh")
    append(store, a_happening("alpha", session="s"), branch="fresh")
    last = append(store, a_happening("omega", session="s"))
    if again:
        rebuild(store)

    assert last not in matching(store, "alpha")


def test_messages_that_arrive_together_give_each_other_context_within_their_namespace(
    store: Store,
) -> None:
    last = append(
        store,
        a_happening("alpha", session="s", namespace="m"),
        a_happening("beta", session="s"),
        a_happening("gamma", session="s"),
    )

    grown = [matching(store, word) for word in ("alpha", "beta")]
    rebuild(store)
    rebuilt = [matching(store, word) for word in ("alpha", "beta")]

    assert [set(found) for found in grown] == [{last - 2}, {last - 1, last}]
    assert rebuilt == grown


def test_a_branch_gives_what_it_borrows_as_context(store: Store) -> None:
    append(store, a_happening("alpha", session="s"))
    fork(store, "trial")
    append(store, a_happening("beta", session="s"))

    own = append(store, a_happening("gamma", session="s"), branch="trial")

    assert own in matching(store, "alpha", "trial")
    assert own not in matching(store, "beta", "trial")


def test_a_note_takes_context_from_happenings_and_gives_none(store: Store) -> None:
    append(store, a_happening("alpha", session="s"))
    note = append(store, a_note("k", "beta", session="s"))
    happening = append(store, a_happening("gamma", session="s"))

    assert note in matching(store, "alpha")
    assert happening not in matching(store, "beta")
