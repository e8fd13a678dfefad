"""The embedder that comes with Stratagem."""

import hashlib
import re
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from tokenizers import Tokenizer

from stratagem.errors import ValidationFailed
from stratagem.search import embedding
from stratagem.search.embedding import EMBEDDERS, Embedder, StaticEmbedder, choose

MODEL = Path(embedding.__file__).parent / "model"
STATIC = StaticEmbedder()


# Read where it is needed: every worker of a test run imports this file.
@cache
def the_book() -> tuple[Tokenizer, NDArray[np.float32]]:
    """Return the tokenizer of the library, and the vector of each token."""
    with np.load(MODEL / "model.npz") as arrays:
        table: NDArray[np.float32] = arrays["table"] * arrays["scale"][:, np.newaxis]
    return Tokenizer.from_file(str(MODEL / "tokenizer.json")), table


def by_the_book(text: str) -> NDArray[np.float32]:
    """Embed a text as the model's README says, step by step."""
    text = re.sub(r"([a-z])(?=[A-Z])|([A-Za-z])(?=[0-9])|([0-9])(?=[A-Za-z])", r"\g<0> ", text)
    tokenizer, table = the_book()
    ids = tokenizer.encode(text.replace("_", " "), add_special_tokens=False).ids[:256]
    total = np.zeros(256, np.float32)
    for id_ in set(ids) - {tokenizer.token_to_id("[UNK]")}:
        total += np.sqrt(ids.count(id_)) * table[id_]
    length = float(np.linalg.norm(total))
    return total / length if length else total


@pytest.mark.parametrize(
    "text",
    [
        "Caroline went to a support group yesterday.",
        "the the the cat",
        "getUserName snake_case HTTP2 v1beta",
        "word " * 400,
        "naïve café 東京 😀",
        "https://github.com/apache/hadoop/blob/release-2.7.3/hadoop-yarn-project/pom.xml#L100",
    ],
)
def test_it_embeds_by_the_book(text: str) -> None:
    assert STATIC.embed([text])[0] == pytest.approx(by_the_book(text), abs=1e-5)


@given(st.text(alphabet="abcdeABC019_-.^[`~@\x7f\x01\t é", max_size=80))
def test_it_embeds_any_text_by_the_book(text: str) -> None:
    assert STATIC.embed([text])[0] == pytest.approx(by_the_book(text), abs=1e-5)


@given(st.lists(st.text(max_size=40), max_size=6))
def test_rows_have_length_one_or_are_zero(texts: list[str]) -> None:
    rows = STATIC.embed(texts)

    lengths = np.linalg.norm(rows, axis=1)
    assert rows.shape == (len(texts), STATIC.dimensions)
    assert rows.dtype == np.float32
    assert all(length == 0 or length == pytest.approx(1, abs=1e-5) for length in lengths)


@pytest.mark.parametrize("text", ["", "  \n", "東京都", "Ωμέγα", "\x00"])
def test_a_text_without_known_tokens_has_no_opinion(text: str) -> None:
    assert not STATIC.embed([text]).any()


def test_a_text_has_the_same_vector_alone_and_among_others() -> None:
    texts = ["a red car", "", "the weather is lovely today", "a red car"]

    together = STATIC.embed(texts)

    assert all(
        (STATIC.embed([text])[0] == row).all() for text, row in zip(texts, together, strict=True)
    )


def test_many_texts_have_the_same_vectors_as_one_at_a_time() -> None:
    texts = [f"note {number} about {word}" for number in range(20) for word in ("cars", "", "東京")]

    together = STATIC.embed(texts)

    assert np.array_equal(together, np.concatenate([STATIC.embed([text]) for text in texts]))


@given(
    st.lists(
        st.tuples(st.text(alphabet="ab0-_A .é\n", max_size=9), st.text(max_size=30)), max_size=4
    )
)
def test_a_title_counts_as_the_first_line_of_its_text(pairs: list[tuple[str, str]]) -> None:
    titles, texts = [title for title, _ in pairs], [text for _, text in pairs]
    lines = [f"{title}\n{text}" if title else text for title, text in pairs]

    assert np.array_equal(STATIC.embed(texts, titles), STATIC.embed(lines))


@pytest.mark.parametrize("length", [10, 8_170, 8_180, 8_192, 9_000])
def test_a_title_and_its_text_are_read_as_far_as_one_text_is(length: int) -> None:
    title, text = "x" * length, "a red car " * 3

    assert np.array_equal(STATIC.embed([text], [title]), STATIC.embed([f"{title}\n{text}"]))


def test_a_word_of_very_many_tokens_is_read_as_far_as_a_text_is() -> None:
    han = "".join(chr(0x4E00 + number) for number in range(300))
    blob = "qxzj" * 200

    rows = STATIC.embed_words([han, blob, "car"])

    assert not rows[0].any()
    assert rows[1] == pytest.approx(STATIC.embed([blob])[0], abs=1e-5)


def test_keys_do_not_push_words_out_of_the_cache() -> None:
    embedder = StaticEmbedder()
    embedder.embed(["a red car"])
    model = embedder._model  # noqa: SLF001 -- what it remembers
    assert model is not None
    before = dict(model.chunks)

    embedder.embed(["a red car"] * 3, ["note-1", "note-2", "note-3"])

    assert model.chunks == before


def test_texts_that_mean_alike_are_nearer() -> None:
    query, near, far = STATIC.embed(
        ["How do I fix a flat tyre?", "repairing a punctured bicycle wheel", "a recipe for soup"]
    )

    assert query @ near > query @ far + 0.1


def test_its_name_says_which_files_it_was_made_of() -> None:
    hashes = [
        hashlib.sha256((MODEL / name).read_bytes()).hexdigest()[:8]
        for name in ("model.npz", "tokenizer.json")
    ]

    assert STATIC.name.endswith(":" + "+".join(hashes))


def test_the_map_array_table_is_the_stored_one() -> None:
    with np.load(MODEL / "model.npz") as arrays:
        for name in ("table", "scale"):
            mapped = embedding._map_array(MODEL / "model.npz", name)  # noqa: SLF001 -- format reader

            assert mapped.dtype == arrays[name].dtype
            assert not mapped.flags.writeable
            assert np.array_equal(mapped, arrays[name])


def test_nothing_is_read_before_it_is_needed() -> None:
    embedder = StaticEmbedder()
    assert not embedder.is_loaded

    embedder.load()

    assert embedder.is_loaded


def test_databases_of_a_process_share_what_was_read() -> None:
    one, other = StaticEmbedder(), StaticEmbedder()
    one.load()
    other.load()

    assert one._model is other._model  # noqa: SLF001 -- read once
    assert one.usual_vectors() is other.usual_vectors()


def test_threads_may_start_it_at_once() -> None:
    embedder = StaticEmbedder()
    barrier = threading.Barrier(4)
    rows: list[NDArray[np.float32]] = []

    def work() -> None:
        barrier.wait()
        rows.append(embedder.embed(["a red car"]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(np.array_equal(each, STATIC.embed(["a red car"])) for each in rows)
    assert len(rows) == 4


def test_an_embedder_is_chosen_by_name() -> None:
    static: Embedder | None = choose("static")

    assert static is not None
    assert static.name == STATIC.name
    assert not static.is_loaded
    assert choose("none") is None


def test_an_unknown_embedder_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValidationFailed) as caught:
        choose("word2vec")

    assert all(name in caught.value.hint for name in EMBEDDERS)
