"""A curriculum of 500 concepts and 1,200 links: learning paths, search and speed.

Prints how many learning paths are topologically right, how fast it is loaded, how well paraphrased
questions find their concept, how well similarity tells answerable questions from others, and the
median time of each tool: `python -m benchmarks.curriculum [CONCEPTS]`.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import stratagem
from stratagem.errors import PathNotFound
from stratagem.sdk.embedded import Stratagem

CONCEPTS = 500
LINKS_PER_CONCEPT = 2.4
BATCH = 500

# Concepts, each with a question in other words that it answers.
ASKED = [
    tuple(line.split("\t"))
    for line in Path(__file__).with_suffix(".tsv").read_text("utf-8").splitlines()
]
UNANSWERABLE = (
    "zebra migrations in the serengeti", "who won the chess olympiad in Manila",
    "recipe for sourdough with rye", "cheap flights from Lyon to Porto",
    "how tall is the Burj Khalifa", "lyrics of a sea shanty about whales",
    "best trail shoes for muddy ground", "why is my sourdough starter pink",
    "opening hours of the town library", "how to fold a fitted sheet",
    "which guitar strings last longest", "ferry timetable to Gotland in May",
    "train a puppy to sit", "replace the brake pads of a bicycle",
    "who painted the ceiling of the opera", "how many calories has an avocado",
    "wedding speech for my brother", "visa for a stay in Bhutan",
    "dye wool with onion skins", "what did my grandmother say about Oslo",
    "rules of curling for beginners", "fix a dripping tap in the kitchen",
    "names for a black kitten", "tide tables of Saint-Malo", "knit a jumper without seams",
)  # fmt: skip
WORDS = [
    "lattice",
    "ledger",
    "magnet",
    "harbour",
    "kernel",
    "prairie",
    "beacon",
    "mortar",
    "saddle",
    "quartz",
    "vector",
    "pigment",
    "turbine",
    "orchard",
    "cipher",
    "glacier",
    "spindle",
    "canyon",
    "ratchet",
    "plume",
    "tariff",
    "meadow",
    "piston",
    "fresco",
]


def main(count: int) -> None:
    """Make the curriculum, and print every figure."""
    dice = random.Random(7)
    with (
        tempfile.TemporaryDirectory() as folder,
        stratagem.open(str(Path(folder) / "curriculum.db"), durability="fast") as db,
    ):
        needs = load(db, count, dice)
        check_paths(db, count, needs)
        ask(db)
        measure(db, count, dice)


def load(db: Stratagem, count: int, dice: random.Random) -> set[tuple[str, str]]:
    """Create the concepts in batches, each a prerequisite only of later ones."""
    items = [{"name": name, "explanation": text} for name, text, _ in ASKED]
    for number in range(len(items), count):
        told = " ".join(dice.sample(WORDS, 8))
        items.append({"name": f"Unit {number}", "explanation": f"On {told}."})
    names = [each["name"] for each in items]
    needs: set[tuple[str, str]] = set()
    while len(needs) < count * LINKS_PER_CONCEPT:
        low, high = sorted(dice.sample(range(count), 2))
        needs.add((names[low], names[high]))
    links = [{"source": low, "target": high, "type": "prerequisite"} for low, high in sorted(needs)]
    began = time.perf_counter()
    for begin in range(0, count, BATCH):
        db.knowledge.create_concepts(items[begin : begin + BATCH])
    for begin in range(0, len(links), BATCH):
        db.knowledge.create_concepts([], relationships=links[begin : begin + BATCH])
    seconds = time.perf_counter() - began
    print(f"load: {count} concepts, {len(links)} links, {(count + len(links)) / seconds:,.0f}/s")
    return needs


def check_paths(db: Stratagem, count: int, needs: set[tuple[str, str]]) -> None:
    """Check the learning path of every target (of every twentieth in a large one)."""
    right = wrong = 0
    listed = db.knowledge.search_concepts_exact(limit=100)
    names = []
    while True:
        names += [each.name for each in listed]
        if listed.next is None:
            break
        listed = db.knowledge.search_concepts_exact(limit=100, cursor=listed.next)
    sources: dict[str, set[str]] = {}
    for low, high in needs:
        sources.setdefault(high, set()).add(low)
    for name in names[:: max(count // CONCEPTS, 1)]:
        learnt: set[str] = set()
        good = True
        for step in db.knowledge.get_learning_path(name):
            here = {each.name for each in step.concepts}
            good &= all(sources.get(each, set()) <= learnt for each in here)
            learnt |= here
        good &= name in learnt
        right, wrong = right + good, wrong + (not good)
    print(f"learning paths: {right} right, {wrong} wrong")


def ask(db: Stratagem) -> None:
    """Ask paraphrased questions, and others that nothing answers."""
    places: list[int] = []
    best: list[float] = []
    for name, _, question in ASKED:
        found = db.knowledge.search_concepts_semantic(question, limit=10).results
        names = [each.name for each in found]
        places.append(names.index(name) if name in names else 99)
        best.append(max((each.similarity for each in found), default=0.0))
    silent, rest = 0, []
    for question in UNANSWERABLE:
        found = db.knowledge.search_concepts_semantic(question, limit=10).results
        silent += not found
        rest.append(max((each.similarity for each in found), default=0.0))
    first, five = (sum(place < most for place in places) for most in (1, 5))
    pairs = [(good > bad) + 0.5 * (good == bad) for good in best for bad in rest]
    print(f"paraphrased questions: hit@1 {first}, hit@5 {five} of {len(ASKED)}")
    print(f"similarity: AUC {statistics.mean(pairs):.3f}; {silent} of {len(rest)} find nothing")


def measure(db: Stratagem, count: int, dice: random.Random) -> None:
    """Print the median time of each tool."""
    knowledge = db.knowledge
    units = dice.sample(range(len(ASKED), count), 50)
    names = [f"Unit {number}" for number in units[:25]]
    others = {name: f"Unit {number}" for name, number in zip(names, units[25:], strict=True)}
    numbers = iter(range(10**6))

    def relate(name: str) -> None:
        knowledge.create_relationship(f"New {name}", name, "confirms")

    def unrelate(name: str) -> None:
        knowledge.delete_relationship(f"New {name}", name, "confirms")

    def chain(name: str) -> None:
        with suppress(PathNotFound):
            knowledge.get_concept_chain(name, others[name], max_depth=10)

    def capture(name: str) -> None:
        item = {"name": f"{name} again {next(numbers)}", "explanation": "Something new."}
        link = {"source": item["name"], "target": name, "type": "includes"}
        knowledge.create_concepts([item], relationships=[link])

    tools: dict[str, Callable[[str], Any]] = {
        "ping": lambda _: knowledge.ping(),
        "get_server_stats": lambda _: knowledge.get_server_stats(),
        "get_tool_availability": lambda _: knowledge.get_tool_availability(),
        "get_concept": knowledge.get_concept,
        "search_concepts_semantic": knowledge.search_concepts_semantic,
        "search_concepts_exact": lambda name: knowledge.search_concepts_exact(name=name),
        "get_recent_concepts": lambda _: knowledge.get_recent_concepts(),
        "get_concepts_by_certainty": lambda _: knowledge.get_concepts_by_certainty(),
        "list_hierarchy": lambda _: knowledge.list_hierarchy(),
        "get_related_concepts": knowledge.get_related_concepts,
        "get_prerequisites": knowledge.get_prerequisites,
        "get_concept_chain": chain,
        "get_learning_path": knowledge.get_learning_path,
        "get_context": knowledge.get_context,
        "get_graph": lambda name: knowledge.get_graph(concept=name, limit=200),
        "list_known": lambda _: knowledge.list_known(),
        "create_concept": lambda name: knowledge.create_concept(f"New {name}", "Something new."),
        "create_relationship": relate,
        "delete_relationship": unrelate,
        "create_concepts": capture,
        "update_concept": lambda name: knowledge.update_concept(name, area=f"{next(numbers)}"),
        "confirm_concept": knowledge.confirm_concept,
        "refute_concept": knowledge.refute_concept,
        "mark_known": lambda name: knowledge.mark_known([name]),
        "declare_relationship_type": lambda _: knowledge.declare_relationship_type(
            "follows", description=f"{next(numbers)}"
        ),
        "merge_concepts": lambda name: knowledge.merge_concepts(name, f"New {name}"),
        "restore_concept": lambda name: knowledge.restore_concept(f"New {name}"),
        "delete_concept": lambda name: knowledge.delete_concept(f"New {name}"),
    }
    for tool, run in tools.items():
        times, cpu = [], []
        for name in names:
            began, began_cpu = time.perf_counter(), time.process_time()
            run(name)
            times.append(1_000 * (time.perf_counter() - began))
            cpu.append(1_000 * (time.process_time() - began_cpu))
        by_clock, by_cpu = statistics.median(times), statistics.median(cpu)
        print(f"p50 at {count}: {tool} {by_clock:.1f} ms, {by_cpu:.1f} of the processor")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CONCEPTS)
