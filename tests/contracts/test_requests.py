"""A write that carries a request id happens once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from stratagem.errors import RequestReused
from stratagem.storage.contract import Store, Transaction, WriteRequest
from tests.contracts.samples import MAIN, TESTER, a_note, append, live, text_of

SAME = WriteRequest("ada", "r1", b"fingerprint")


def storing(key: str, text: str) -> Any:
    def work(transaction: Transaction) -> dict[str, Any]:
        appended = transaction.append(live(transaction, MAIN), [a_note(key, text)])[0]
        return {"sequence": appended.sequence, "before": appended.before}

    return work


def test_a_repeat_returns_the_first_result_and_writes_nothing(store: Store) -> None:
    first = store.write(storing("a", "one"), SAME)
    append(store, a_note("a", "two"))
    head = store.reader().log.head()

    again = store.write(storing("a", "one"), SAME)

    assert again == first
    assert store.reader().log.head() == head
    assert text_of(store, "a") == "two"


def test_other_arguments_under_the_same_id_are_refused(store: Store) -> None:
    store.write(storing("a", "one"), SAME)
    head = store.reader().log.head()

    with pytest.raises(RequestReused) as refused:
        store.write(storing("a", "two"), WriteRequest("ada", "r1", b"another"))

    assert refused.value.details["request_id"] == "r1"
    assert store.reader().log.head() == head


def test_request_ids_belong_to_their_actor(store: Store) -> None:
    store.write(storing("a", "one"), SAME)

    store.write(storing("a", "two"), WriteRequest("bob", "r1", b"another"))

    assert text_of(store, "a") == "two"


def test_writes_without_an_id_are_never_repeats(store: Store) -> None:
    first = store.write(storing("a", "one"), TESTER)
    second = store.write(storing("a", "one"), TESTER)

    assert second["sequence"] == first["sequence"] + 1


def test_failed_work_is_not_remembered(store: Store) -> None:
    def failing(_transaction: Transaction) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        store.write(failing, SAME)
    store.write(storing("a", "one"), SAME)

    assert text_of(store, "a") == "one"


@pytest.mark.parametrize("result", [None, 0, "", [], {}, False], ids=repr)
def test_any_json_is_remembered_as_a_result(store: Store, result: Any) -> None:
    runs: list[int] = []

    def work(_transaction: Transaction) -> Any:
        runs.append(1)
        return result

    answers = [store.write(work, SAME) for _ in range(2)]

    assert answers == [result, result]
    assert runs == [1]


def test_a_repeat_within_one_group_of_writers_happens_once(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: store.write(storing("a", "one"), SAME), range(40)))

    assert all(answer == answers[0] for answer in answers)
    assert store.reader().log.head().sequence == 2
