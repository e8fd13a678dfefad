"""`data_synthesis`: made-up rows by Faker, from a list of fields, several tables, or a JSON Schema.

The same seed gives the same rows. A unique column has no value twice; a related column is put
together from others of its row (`template`), or taken from another table (`reference`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from stratagem import limits
from stratagem.errors import ValidationFailed
from stratagem.gateway.builtin.tables import csv_text
from stratagem.gateway.catalogue.standard_tool import StandardTool, ToolRun, define
from stratagem.gateway.catalogue.synthetic_values import sample_schema
from stratagem.gateway.definitions.schemas import Schema

__all__ = ["TOOLS"]

Row = dict[str, Any]

_TEMPLATE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]{0,99})\}")
_LOCALE: Final = "en_US"
# How often another value is tried before a column counts as having no more of them.
_ATTEMPTS: Final = 200


def _day(fake: Any, field: Mapping[str, Any]) -> Any:
    from datetime import date

    try:
        least = date.fromisoformat(field.get("from", "2020-01-01"))
        most = date.fromisoformat(field.get("to", "2025-12-31"))
    except ValueError as error:
        raise ValidationFailed(f"`{field['name']}`: {error}.", field="from") from error
    return fake.date_between_dates(least, most)


def _moment(fake: Any, field: Mapping[str, Any]) -> str:
    seconds = fake.random.randint(0, 86_399)
    hours, rest = divmod(seconds, 3_600)
    return f"{_day(fake, field).isoformat()}T{hours:02}:{rest // 60:02}:{rest % 60:02}Z"


# What makes a value, by the name of a field's type.
_MAKERS: Final[Mapping[str, Callable[[Any, Mapping[str, Any]], Any]]] = {
    "name": lambda fake, _field: fake.name(),
    "first_name": lambda fake, _field: fake.first_name(),
    "last_name": lambda fake, _field: fake.last_name(),
    # Addresses that lead nowhere: example.com and the like belong to nobody.
    "email": lambda fake, _field: fake.safe_email(),
    "phone": lambda fake, _field: fake.phone_number(),
    "username": lambda fake, _field: fake.user_name(),
    "address": lambda fake, _field: fake.address().replace("\n", ", "),
    "street": lambda fake, _field: fake.street_address(),
    "city": lambda fake, _field: fake.city(),
    "postcode": lambda fake, _field: fake.postcode(),
    "country": lambda fake, _field: fake.country(),
    "company": lambda fake, _field: fake.company(),
    "job": lambda fake, _field: fake.job(),
    "url": lambda fake, _field: f"https://example.com/{fake.slug()}",
    "ipv4": lambda fake, _field: fake.ipv4_private(),
    "uuid": lambda fake, _field: fake.uuid4(),
    "color": lambda fake, _field: fake.hex_color(),
    "word": lambda fake, _field: fake.word(),
    "sentence": lambda fake, _field: fake.sentence(),
    "text": lambda fake, _field: fake.text(max_nb_chars=200).replace("\n", " "),
    "boolean": lambda fake, _field: fake.random.random() < 0.5,  # noqa: PLR2004 -- a coin
    "integer": lambda fake, field: fake.random.randint(*_bounds(field, 0, 1_000)),
    "float": lambda fake, field: round(fake.random.uniform(*_range(field)), field.get("places", 2)),
    "date": lambda fake, field: _day(fake, field).isoformat(),
    "datetime": _moment,
    "choice": lambda fake, field: fake.random.choice(field["values"]),
}
_TYPES: Final = (*_MAKERS, "sequence", "template", "reference")


async def _synthesize(run: ToolRun) -> dict[str, Any]:
    given = run.arguments
    answer: dict[str, Any] = await run.in_thread(lambda: _make(given))
    return answer


def _make(given: Mapping[str, Any]) -> dict[str, Any]:
    named = [name for name in ("fields", "tables", "schema") if given.get(name)]
    if len(named) != 1:
        raise ValidationFailed(
            "Give one of `fields`, `tables` and `schema`.", field=named[1] if named else "fields"
        )
    fake = _faker(given)
    count = given.get("count", 10)
    if "schema" in named:
        rows = _from_schema(fake, given["schema"], count)
        return _answer(given, {"rows": rows, "count": len(rows)}, rows)
    if "fields" in named:
        rows = _rows(fake, given["fields"], count, {}, "fields")
        return _answer(given, {"rows": rows, "count": len(rows)}, rows)
    made: dict[str, list[Row]] = {}
    for at, table in enumerate(given["tables"]):
        rows = _rows(fake, table["fields"], table.get("count", count), made, f"tables[{at}].fields")
        made[table["name"]] = rows
    counts = {name: len(rows) for name, rows in made.items()}
    return _answer(given, {"tables": made, "counts": counts}, made)


def _answer(given: Mapping[str, Any], answer: dict[str, Any], made: Any) -> dict[str, Any]:
    answer["seed"] = given.get("seed", 0)
    if given.get("format") != "csv":
        return answer
    try:
        if isinstance(made, list):
            return {
                "csv": csv_text(made, delimiter=","),
                "count": len(made),
                "seed": answer["seed"],
            }
        texts = {name: csv_text(rows, delimiter=",") for name, rows in made.items()}
    except ValueError as error:
        raise ValidationFailed(
            f"The rows cannot be written as CSV: {error}.", field="format", hint="Ask for json."
        ) from error
    return {"csvs": texts, "counts": answer["counts"], "seed": answer["seed"]}


def _faker(given: Mapping[str, Any]) -> Any:
    from faker import Faker

    locale = given.get("locale", _LOCALE)
    try:
        fake = Faker(locale)
    except AttributeError as error:
        raise ValidationFailed(
            f"There is no locale {locale!r}.", field="locale", hint="Write it as en_US or de_DE."
        ) from error
    fake.seed_instance(given.get("seed", 0))
    return fake


def _rows(
    fake: Any,
    fields: Sequence[Mapping[str, Any]],
    count: int,
    tables: Mapping[str, list[Row]],
    place: str,
) -> list[Row]:
    names = [field["name"] for field in fields]
    if len(set(names)) < len(names):
        raise ValidationFailed("Two fields have the same name.", field=place)
    _check(fields, place, tables)
    seen: dict[str, set[Any]] = {field["name"]: set() for field in fields if field.get("unique")}
    rows: list[Row] = []
    for number in range(count):
        row: Row = {}
        for at, field in enumerate(fields):
            value = _value(fake, field, number, row, tables)
            if field["name"] in seen:
                tries = 0
                while value in seen[field["name"]]:
                    tries += 1
                    if tries > _ATTEMPTS:
                        raise _no_more(field, len(seen[field["name"]]), f"{place}[{at}]")
                    value = _value(fake, field, number, row, tables)
                seen[field["name"]].add(value)
            row[field["name"]] = value
        rows.append(row)
    return rows


def _no_more(field: Mapping[str, Any], found: int, place: str) -> ValidationFailed:
    return ValidationFailed(
        f"`{field['name']}` has only about {found} different values, and more rows are wanted.",
        field=place,
        hint="Widen its range, use the type uuid or sequence, or ask for fewer rows.",
    )


def _check(
    fields: Sequence[Mapping[str, Any]], place: str, tables: Mapping[str, list[Row]]
) -> None:
    earlier: set[str] = set()
    for at, field in enumerate(fields):
        kind, where = field["type"], f"{place}[{at}]"
        if kind == "choice" and not field.get("values"):
            raise ValidationFailed("A choice needs `values`.", field=f"{where}.values")
        if kind == "template":
            used = set(_TEMPLATE.findall(field.get("template", "")))
            if not used or used - earlier:
                raise ValidationFailed(
                    "A template refers to earlier fields, as in {first_name}.{last_name}.",
                    field=f"{where}.template",
                    allowed=sorted(earlier),
                )
        if kind == "reference":
            table, _, column = str(field.get("reference", "")).partition(".")
            if table not in tables or not tables[table] or column not in tables[table][0]:
                raise ValidationFailed(
                    "A reference names a column of an earlier table, as in users.id.",
                    field=f"{where}.reference",
                    allowed=sorted(tables),
                )
        earlier.add(field["name"])


def _value(
    fake: Any,
    field: Mapping[str, Any],
    number: int,
    row: Row,
    tables: Mapping[str, list[Row]],
) -> Any:
    if field.get("nullShare") and fake.random.random() < field["nullShare"]:
        return None
    kind = field["type"]
    if kind == "sequence":
        return field.get("minimum", 1) + number
    if kind == "template":
        filled = _TEMPLATE.sub(lambda found: str(row[found[1]]), field["template"])
        return filled.casefold().replace(" ", ".") if "@" in filled else filled
    if kind == "reference":
        table, _, column = field["reference"].partition(".")
        return fake.random.choice(tables[table])[column]
    return _MAKERS[kind](fake, field)


def _bounds(field: Mapping[str, Any], low: int, high: int) -> tuple[int, int]:
    least = int(field.get("minimum", low))
    most = int(field.get("maximum", max(high, least)))
    if least > most:
        raise ValidationFailed(f"`{field['name']}`: minimum is above maximum.", field="minimum")
    return least, most


def _range(field: Mapping[str, Any]) -> tuple[float, float]:
    least = float(field.get("minimum", 0))
    return least, float(field.get("maximum", max(1_000.0, least)))


def _from_schema(fake: Any, schema: Mapping[str, Any], count: int) -> list[Any]:
    checked = Schema(schema, field="schema")
    rows = []
    for _ in range(count):
        row = sample_schema(fake, schema)
        if not checked.accepts(row):
            fault = checked.violations(row)[0]
            raise ValidationFailed(
                f"No value could be made for `{fault['path']}`: it {fault['message']}.",
                field="schema",
                hint="Leave out pattern, not and if, or describe the rows with `fields`.",
            )
        rows.append(row)
    return rows


_FIELD: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "type": {"type": "string", "enum": list(_TYPES)},
        "unique": {"type": "boolean", "description": "No duplicate values"},
        "nullShare": {"type": "number", "minimum": 0, "maximum": 1},
        "minimum": {"type": "number"},
        "maximum": {"type": "number"},
        "places": {"type": "integer", "minimum": 0, "maximum": 10, "description": "Of a float"},
        "from": {"type": "string", "description": "Of a date: YYYY-MM-DD"},
        "to": {"type": "string"},
        "values": {"type": "array", "minItems": 1, "maxItems": 1_000},
        "template": {"type": "string", "maxLength": 500, "description": "{first_name}@example.com"},
        "reference": {"type": "string", "description": "table.column of an earlier table"},
    },
    "required": ["name", "type"],
    "additionalProperties": False,
}
_COUNT: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": limits.SYNTHETIC_ROWS_MAX,
    "default": 10,
}
_FIELDS: Final = {"type": "array", "items": _FIELD, "minItems": 1, "maxItems": 50}

TOOLS: Final = (
    StandardTool(
        define(
            "data_synthesis",
            "Generate realistic rows for tests and demos: names, addresses, numbers, dates, "
            "several "
            "related tables, or values of a JSON Schema.",
            category="generation",
            details=(
                "Runs locally, without a model. Describe rows by `fields` (name and type each), "
                "several tables by `tables` (a `reference` such as users.id takes values "
                "from an earlier table), or give a JSON Schema. The same `seed` gives the "
                "same rows. "
                "`unique` columns have no duplicate values, a `template` combines other "
                "fields of the row. E-mail addresses are of example.com and the like. Rows "
                "come as JSON or "
                "CSV."
            ),
            takes={
                "fields": {**_FIELDS, "description": "The columns of one table"},
                "tables": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 10,
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string", "minLength": 1, "maxLength": 100},
                            "count": _COUNT,
                            "fields": _FIELDS,
                        },
                        "required": ["name", "fields"],
                        "additionalProperties": False,
                    },
                },
                "schema": {"type": "object", "description": "A JSON Schema of one row"},
                "count": {**_COUNT, "description": "How many rows"},
                "seed": {"type": "integer", "default": 0},
                "locale": {"type": "string", "maxLength": 10, "default": _LOCALE},
                "format": {"type": "string", "enum": ["json", "csv"], "default": "json"},
            },
            gives={
                "rows": {"type": "array"},
                "tables": {"type": "object"},
                "csv": {"type": "string"},
                "csvs": {"type": "object"},
                "count": {"type": "integer"},
                "counts": {"type": "object"},
                "seed": {"type": "integer"},
            },
            gives_always=("seed",),
            tags=("data", "fake", "test", "sample", "synthetic"),
            shown=[
                {
                    "description": "Three people",
                    "input": {
                        "fields": [
                            {"name": "id", "type": "sequence"},
                            {"name": "name", "type": "name"},
                            {"name": "email", "type": "email", "unique": True},
                        ],
                        "count": 3,
                        "seed": 7,
                    },
                },
                {
                    "description": "Orders of users",
                    "input": {
                        "tables": [
                            {
                                "name": "users",
                                "count": 2,
                                "fields": [{"name": "id", "type": "uuid"}],
                            },
                            {
                                "name": "orders",
                                "count": 3,
                                "fields": [
                                    {"name": "user", "type": "reference", "reference": "users.id"},
                                    {"name": "total", "type": "float", "maximum": 100},
                                ],
                            },
                        ]
                    },
                },
            ],
            cache=True,
            output_bytes=limits.CODE_RESULT_BYTES_MAX,
        ),
        _synthesize,
        packages=("faker",),
    ),
)
