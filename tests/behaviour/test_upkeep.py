"""Developer mode looks after the database: retention, compacting, embedding and models."""

from __future__ import annotations

from tests.behaviour.conftest import Call, Opener
from tests.contracts.samples import Clock
from tests.manifest import proves


@proves("retention:count")
def test_versions_beyond_a_count_are_erased_and_those_that_a_branch_shows_stay(call: Call) -> None:
    for number in range(5):
        call.kv_put(key="k", value=f"secret {number}")
        call.state_set(cell="c", value=number)
        if number == 1:
            call.branch_fork(name="old")

    planned = call.retention_apply(keep=2, preview=True)
    done = call.retention_apply(keep=2)
    again = call.retention_apply(keep=2)
    values = [each.get("value") for each in call.kv_history(key="k")["results"]]

    assert (planned["versions"], planned["preview"]) == (done["versions"], True)
    assert (done["by_kind"], done["kept_for_branches"]) == ({"entry": 2, "cell": 2}, 2)
    assert done["bytes"] > 0
    assert again["versions"] == 0
    assert values == ["secret 4", "secret 3", None, "secret 1", None]
    assert call.value("k", branch="old") == "secret 1"
    assert call.state_get(cell="c", branch="old")["value"] == 1


@proves("retention:age")
def test_versions_replaced_longer_ago_are_erased(call: Call, clock: Clock) -> None:
    first = call.kv_put(key="k", value="first")["version"]
    call.kv_put(key="other", value="kept, because nothing replaced it")
    clock.advance(86_400 * 40)
    second = call.kv_put(key="k", value="second")["version"]
    kept = call.retention_apply(older_than="30d")
    clock.advance(86_400 * 31)
    call.kv_put(key="k", value="third")

    done = call.retention_apply(older_than="30d")

    assert (kept["versions"], done["versions"]) == (0, 1)
    assert call.value("k", as_of=f"@{first}") is ...
    assert call.value("k", as_of=f"@{second}") == "second"
    assert call.value("other") == "kept, because nothing replaced it"


@proves("retention:honesty")
def test_a_moment_whose_version_was_erased_is_not_said_to_have_been_empty(call: Call) -> None:
    call.vector_create_collection(name="docs", dimension=2)
    written = []
    for number in (1, 2):
        call.kv_put(key="k", value={"n": number})
        call.state_set(cell="c", value=number)
        done = call.vector_upsert(collection="docs", key="v", vector=[1, number])
        written.append({"as_of": f"@{done['version']}"})
    moment, last = written

    call.retention_apply(keep=1)

    for name, given in (
        ("kv_get", {"key": "k"}),
        ("json_get", {"key": "k", "path": "$.n"}),
        ("state_get", {"cell": "c"}),
        ("vector_get", {"collection": "docs", "key": "v"}),
    ):
        refused = call.failure(f"strata_{name}", **given, **moment)
        assert (refused["error"], refused["details"]["field"]) == ("version_erased", "as_of")
        assert call(f"strata_{name}", **given)["found"]
    assert call.recall(key="k", **moment)["reason"] == "erased"
    assert call.kv_get(key="k", **last)["value"] == {"n": 2}
    for history in (
        call.kv_history(key="k"),
        call.state_history(cell="c"),
        call.vector_history(collection="docs", key="v"),
    ):
        assert [each.get("erased", False) for each in history["results"]] == [False, True]
    assert call.vector_search(collection="docs", query=[1, 1], **moment)["results"] == []


@proves("retention:honesty")
def test_what_was_deleted_is_not_said_to_be_erased(call: Call) -> None:
    call.kv_put(key="k", value=1)
    call.state_set(cell="c", value=1)
    call.kv_delete(key="k")
    gone = call.state_delete(cell="c")["version"]

    assert call.kv_get(key="k", as_of=f"@{gone}") == {"found": False}
    assert call.state_get(cell="c", as_of=f"@{gone}") == {"found": False}
    assert "erased" not in call.state_history(cell="c")["results"][0]


@proves("retention:branches")
def test_a_value_that_was_merged_stays_when_its_original_is_erased(call: Call) -> None:
    call.kv_put(key="k", value="old")
    call.vector_create_collection(name="docs", dimension=2)
    call.branch_fork(name="trial")
    call.kv_put(key="k", value="merged", branch="trial")
    call.state_set(cell="c", value="merged", branch="trial")
    call.vector_upsert(collection="docs", key="v", vector=[1, 2], branch="trial")
    call.branch_merge(source="trial")
    call.kv_put(key="k", value="later", branch="trial")
    call.state_set(cell="c", value="later", branch="trial")
    call.vector_upsert(collection="docs", key="v", vector=[2, 1], branch="trial")

    done = call.retention_apply(keep=1)

    assert done["by_kind"] == {"cell": 1, "entry": 2, "vector": 1}
    assert (call.value("k"), call.value("k", branch="trial")) == ("merged", "later")
    assert call.state_get(cell="c")["value"] == "merged"
    assert call.vector_get(collection="docs", key="v")["vector"] == [1, 2]
    found = call.vector_search(collection="docs", query=[1, 2])["results"]
    assert [(each["key"], round(each["score"], 3)) for each in found] == [("v", 1)]


@proves("retention:branches")
def test_a_merge_whose_common_version_was_erased_asks_instead_of_guessing(call: Call) -> None:
    call.json_set(key="doc", value={"a": 1, "b": 1})
    call.branch_fork(name="trial")
    call.json_set(key="doc", path="$.a", value=2, branch="trial")
    call.json_set(key="doc", path="$.b", value=2)

    call.retention_apply(keep=1)

    refused = call.failure("strata_branch_merge", source="trial")
    assert (refused["error"], refused["details"]["conflict_count"]) == ("merge_conflict", 2)


@proves("retention:transactions")
def test_what_transactions_wrote_that_are_over_goes(call: Call) -> None:
    kept, ended = (call.txn_begin()["transaction"] for _ in range(2))
    for name in (kept, ended):
        call.kv_put(key="k", value=name, transaction=name)
        call.event_append(event_type="e", payload=name, transaction=name)
    call.txn_commit(transaction=kept)
    call.txn_rollback(transaction=ended)
    still = call.txn_begin()["transaction"]
    call.kv_put(key="open", value=1, transaction=still)

    done = call.retention_apply(keep=1)

    assert done["by_kind"] == {"entry": 2, "event": 2}
    assert call.value("k") == kept
    assert [each["data"] for each in call.event_list()["results"]] == [kept]
    assert call.kv_get(key="open", transaction=still)["value"] == 1
    assert call.txn_commit(transaction=still)["records"] == 1
    assert call.retention_apply(keep=1)["by_kind"] == {"entry": 1}


@proves("retention:refusal")
def test_retention_needs_to_know_what_goes(call: Call) -> None:
    assert call.refusal("strata_retention_apply")["details"]["field"] == "older_than"


@proves("developer:database")
def test_the_database_tells_about_itself_and_gives_space_back(call: Call) -> None:
    call.kv_put(key="k", value="x" * 10_000)
    call.state_set(cell="c", value=1)

    info = call.db_info()
    compacted = call.db_compact()

    assert (info["keys"], info["cells"], info["open_transactions"]) == (1, 1, 0)
    # PostgreSQL writes maps of the free space, of a few pages each, for tables that had none.
    assert compacted["bytes_after"] <= compacted["bytes_before"] + 2**19
    assert call.db_flush()["flushed"]
    assert call.db_ping()["pong"]
    assert call.durability_counters()["events"] == int(info["head"].partition(":")[0])
    assert call.db_time_range()["branch"] == "default"


@proves("developer:models")
def test_texts_are_embedded_and_models_are_named_not_pulled(opened: Opener) -> None:
    call = opened(embedder="static")
    one = call.embed(text="a red fox")
    several = call.embed_batch(texts=["a red fox", "a grey wolf"])
    tokens = call.tokenize(text="Red foxes")

    assert one["vector"] == several["vectors"][0]
    assert len(one["vector"]) == one["dimension"] == 256
    assert call.embed_status()["enabled"]
    assert call.detokenize(tokens=tokens["tokens"])["text"] == "red foxes"
    assert call.models_local()["results"][0]["name"] == "static"
    pulled = call.models_pull(name="llama")
    assert (pulled["pulled"], "Nothing is downloaded" in pulled["note"]) == (False, True)
    assert not call.generate_unload()["unloaded"]


@proves("developer:models")
def test_more_than_others_would_wait_for_is_not_embedded_at_once(opened: Opener) -> None:
    refused = opened(embedder="static").failure("strata_embed_batch", texts=["fox " * 20_000] * 3)

    assert (refused["error"], refused["details"]["limit"]) == ("validation_error", 200_000)
    assert "several calls" in refused["hint"]


@proves("developer:models")
def test_without_an_embedder_or_a_model_the_answer_says_what_to_do(call: Call) -> None:
    assert "--embedder" in call.failure("strata_embed", text="a")["hint"]
    assert not call.embed_status()["enabled"]
