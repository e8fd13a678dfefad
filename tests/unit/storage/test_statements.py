from __future__ import annotations

import re

import pytest

from stratagem.storage.sqlite.statements import SQL, migrations, script, statement


def test_every_query_of_the_file_is_read() -> None:
    names = re.findall(r"^-- name: (\w+)$", script("queries.sql"), re.MULTILINE)

    assert list(SQL) == names
    assert all(SQL.values())


@pytest.mark.parametrize("depth", [1, 2, 7])
def test_a_statement_has_one_probe_for_each_branch_of_the_lineage(depth: int) -> None:
    text = statement("recall", depth, 3, subject="s.id")

    numbers = sorted({int(number) for number in re.findall(r"\?(\d+)", text)})
    assert numbers == list(range(1, 3 + 2 * depth))
    assert "{" not in text


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("spaces", [True, False])
@pytest.mark.parametrize("tags", [True, False])
def test_a_search_has_the_filters_it_is_asked_for(depth: int, spaces: bool, tags: bool) -> None:
    text = statement("matches", depth, 10, spaces=spaces, tags=tags)

    assert ("v.space IN" in text) == spaces
    assert ("FROM tags" in text) == tags
    assert "{" not in text
    assert text.count("WHEN") == depth


def test_migrations_come_in_order() -> None:
    numbers = [number for number, _ in migrations()]

    assert numbers == list(range(1, len(numbers) + 1))
