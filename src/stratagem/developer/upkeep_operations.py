"""The rows of bundles, retention, the database, embedding and generation."""

from __future__ import annotations

from functools import partial
from typing import Any

from stratagem.developer.bundles import Bundles
from stratagem.developer.database import DatabaseTools
from stratagem.developer.embeddings import Embeddings
from stratagem.developer.generation import Generation, Models
from stratagem.developer.retention import RetentionTools
from stratagem.developer.rows import TRANSACTION, row
from stratagem.operation import CommandHint, PersonNeeded

__all__ = ["UPKEEP_OPERATIONS"]

_bundle = partial(row, service=Bundles, group="bundle", answer_options=())
_database = partial(row, service=DatabaseTools, group="database")
_embed = partial(row, service=Embeddings, group="embed", answer_options=(), read_only=True)
_models = partial(row, service=Models, group="models", answer_options=())
_generation: Any = partial(
    row, service=Generation, group="models", answer_options=(), part="gateway"
)


def _configure_command(given: Any) -> list[str]:
    key = ["--api-key", given["api_key"]] if given.get("api_key") else []
    return [
        "configure-model", "--endpoint", given["endpoint"], "--model", given["model"], *key,
    ]  # fmt: skip


UPKEEP_OPERATIONS = (
    _bundle(
        "strata_bundle_export",
        Bundles.export,
        "Export a bundle",
        "Write a branch into a bundle: a file in the folder that the operator has configured.",
        positional=("name",),
        right="write",
    ),
    _bundle(
        "strata_bundle_import",
        Bundles.import_,
        "Import a bundle",
        "Read a bundle into a branch. It can be repeated: nothing is written twice.",
        positional=("name",),
        idempotent=True,
    ),
    _bundle(
        "strata_bundle_validate",
        Bundles.validate,
        "Validate a bundle",
        "Check that a bundle is complete, and show what it holds.",
        positional=("name",),
        read_only=True,
    ),
    row(
        "strata_retention_apply",
        RetentionTools.apply,
        "Apply retention",
        "Erase superseded versions for good: those replaced longer ago than `older_than`, or "
        "beyond the newest `keep`. Only a preview with `preview`, or where no person confirms it.",
        service=RetentionTools,
        group="retention",
        answer_options=(),
        right="write",
        destructive=True,
        example={"keep": 10, "preview": True},
    ),
    _database(
        "strata_db_ping",
        DatabaseTools.ping,
        "Ping",
        "Check that the database answers.",
        read_only=True,
        example={},
    ),
    _database(
        "strata_db_info",
        DatabaseTools.info,
        "About the database",
        "What the database is, and how much the current branch shows.",
        read_only=True,
        example={},
    ),
    _database(
        "strata_db_flush",
        DatabaseTools.flush,
        "Flush",
        "Write everything that was acknowledged to the disk.",
        answer_options=(),
        idempotent=True,
        example={},
    ),
    _database(
        "strata_db_compact",
        DatabaseTools.compact,
        "Compact",
        "Give unused disk space back. No visible data changes.",
        answer_options=(),
        idempotent=True,
        # Nobody else writes meanwhile.
        right="admin",
        example={},
    ),
    _database(
        "strata_db_time_range",
        DatabaseTools.time_range,
        "Time range",
        "The moments that `as_of` can name on a branch.",
        answer_options=(TRANSACTION,),
        read_only=True,
        example={},
    ),
    _database(
        "strata_durability_counters",
        DatabaseTools.durability_counters,
        "Durability counters",
        "How many writes and commits this process has made since it opened the database.",
        answer_options=(),
        read_only=True,
        example={},
    ),
    _embed(
        "strata_embed",
        Embeddings.text,
        "Embed a text",
        "Return the vector of a text, by the embedder in use.",
        positional=("text",),
        example={"text": "a red fox"},
        # `embed` alone is the command that embeds what waits.
        commands=(CommandHint(("embed-text",), positional=("text",)),),
    ),
    _embed(
        "strata_embed_batch",
        Embeddings.batch,
        "Embed several texts",
        "Return the vectors of several texts, in their order.",
        positional=("texts",),
        example={"texts": ["a red fox", "a grey wolf"]},
    ),
    _embed(
        "strata_embed_status",
        Embeddings.status,
        "Status of embedding",
        "The embedder in use, and how many texts have a vector or wait for one.",
        example={},
    ),
    _embed(
        "strata_tokenize",
        Embeddings.tokenize,
        "Tokenize",
        "Return the tokens of a text, as the embedder of Stratagem reads them.",
        positional=("text",),
        example={"text": "a red fox"},
    ),
    _embed(
        "strata_detokenize",
        Embeddings.detokenize,
        "Detokenize",
        "Return tokens as text.",
        positional=("tokens",),
        example={"tokens": [2000]},
    ),
    _models(
        "strata_configure_model",
        Models.configure,
        "Configure a model",
        "Set the model that generates text: an OpenAI-compatible endpoint.",
        positional=("endpoint", "model", "api_key"),
        right="admin",
        person=PersonNeeded(
            "decides where prompts are sent",
            _configure_command,
            # The variable is of the server's environment, which is of every workspace.
            of_host=lambda given: given.get("api_key") is not None,
        ),
    ),
    _generation(
        "strata_generate",
        Generation.generate,
        "Generate",
        "Have the configured model write a text. Without one, it explains how to configure it.",
        positional=("prompt",),
        right="write",
    ),
    _generation(
        "strata_generate_unload",
        Generation.unload,
        "Unload",
        "Nothing has to be unloaded: models that generate text run elsewhere.",
        read_only=True,
        example={},
    ),
    _models(
        "strata_models_list",
        Models.list,
        "List models",
        "The embedders, and the model that generates text.",
        read_only=True,
        example={},
    ),
    _models(
        "strata_models_pull",
        Models.pull,
        "Pull a model",
        "Nothing is downloaded: explains how to configure a local model.",
        positional=("name",),
        read_only=True,
        example={"name": "minilm"},
    ),
    _models(
        "strata_models_local",
        Models.local,
        "Local models",
        "The installed models that run in this process.",
        read_only=True,
        example={},
    ),
)
