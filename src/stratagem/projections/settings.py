"""Which services outside of the database are used, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal

from stratagem.deferred_dataclasses import dataclass
from stratagem.errors import ValidationFailed

__all__ = ["ExternalSettings"]

_NEO4J_URI: Final = "bolt://127.0.0.1:7687"
_NEO4J_USER: Final = "neo4j"
_MINILM: Final = frozenset({"minilm", "all-minilm-l6-v2", "sentence-transformers/all-minilm-l6-v2"})


@dataclass(frozen=True, slots=True)
class ExternalSettings:
    """The services that answer for graph and vectors, and how they are reached.

    `chroma` is the address of a server, or a folder; without one, a folder beside the database.
    `embedder` is what EMBEDDING_MODEL asks for, where it names one that we know; any other name is
    kept as `unknown_embedder`, so that whoever meant us is told.
    """

    graph: Literal["built-in", "neo4j"] = "built-in"
    vectors: Literal["built-in", "chroma"] = "built-in"
    neo4j_uri: str = _NEO4J_URI
    neo4j_user: str = _NEO4J_USER
    neo4j_password: str = field(default="", repr=False)
    neo4j_database: str | None = None
    chroma: str | None = None
    embedder: str | None = None
    unknown_embedder: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> ExternalSettings:
        """Read the settings; only STRATAGEM_GRAPH and STRATAGEM_VECTORS choose anything.

        Raises:
            ValidationFailed: There is no service of that name.
        """
        graph = _is_chosen(environment, "STRATAGEM_GRAPH", "neo4j")
        vectors = _is_chosen(environment, "STRATAGEM_VECTORS", "chroma")
        return cls(
            "neo4j" if graph else "built-in",
            "chroma" if vectors else "built-in",
            environment.get("NEO4J_URI") or _NEO4J_URI,
            # Neo4j's own tools and Aura say NEO4J_USERNAME.
            environment.get("NEO4J_USER") or environment.get("NEO4J_USERNAME") or _NEO4J_USER,
            environment.get("NEO4J_PASSWORD", ""),
            environment.get("NEO4J_DATABASE") or None,
            environment.get("CHROMA_URL") or environment.get("CHROMA_PERSIST_DIRECTORY") or None,
            embedder := _embedder(model := environment.get("EMBEDDING_MODEL", "").strip()),
            None if embedder or not model else model,
        )


def _is_chosen(environment: Mapping[str, str], name: str, service: str) -> bool:
    value = environment.get(name, "").strip().lower()
    if value not in {"", "built-in", "builtin", service}:
        raise ValidationFailed(
            f"There is no service {value!r} for {name}.",
            field=name,
            allowed=["built-in", service],
            hint=f"Set {name} to {service}, or leave it out.",
        )
    return value == service


def _embedder(model: str) -> str | None:
    """Return our name of a model. Other programs use the variable too: theirs are left alone."""
    folded = model.strip().lower()
    if folded in _MINILM:
        return "minilm"
    return folded if folded in {"static", "none"} else None
