"""A made-up value for a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

__all__ = ["sample_schema"]

_DEPTH_MAX: Final = 12
_ITEMS_MAX: Final = 20

_FORMATS: Final[Mapping[str, Callable[[Any], str]]] = {
    "email": lambda fake: fake.safe_email(),
    "date": lambda fake: fake.date_between("-5y").isoformat(),
    "date-time": lambda fake: fake.date_time_between("-5y").strftime("%Y-%m-%dT%H:%M:%SZ"),
    "time": lambda fake: fake.time() + "Z",
    "uuid": lambda fake: fake.uuid4(),
    "uri": lambda fake: f"https://example.com/{fake.slug()}",
    "hostname": lambda fake: f"{fake.slug()[:20].strip('-')}.example.com",
    "ipv4": lambda fake: fake.ipv4_private(),
    "ipv6": lambda fake: fake.ipv6(),
}
# What a text of this name usually is.
_BY_NAME: Final[Mapping[str, Callable[[Any], str]]] = {
    "email": _FORMATS["email"],
    "firstname": lambda fake: fake.first_name(),
    "lastname": lambda fake: fake.last_name(),
    "name": lambda fake: fake.name(),
    "city": lambda fake: fake.city(),
    "country": lambda fake: fake.country(),
    "street": lambda fake: fake.street_address(),
    "address": lambda fake: fake.street_address(),
    "phone": lambda fake: fake.phone_number(),
    "company": lambda fake: fake.company(),
    "title": lambda fake: fake.sentence(nb_words=4).rstrip("."),
    "description": lambda fake: fake.sentence(),
    "url": _FORMATS["uri"],
    "id": _FORMATS["uuid"],
}


def sample_schema(fake: Any, schema: Any, name: str = "", depth: int = 0) -> Any:
    """Return a value that fits a schema, as far as its usual words go."""
    if not isinstance(schema, Mapping) or depth > _DEPTH_MAX:
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return fake.random.choice(schema["enum"])
    for word in ("oneOf", "anyOf"):
        if schema.get(word):
            return sample_schema(fake, fake.random.choice(schema[word]), name, depth + 1)
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = fake.random.choice(kinds) if isinstance(kinds, list) else kinds
    return _KINDS[kind](fake, schema, name, depth)


def _object(fake: Any, schema: Mapping[str, Any], _name: str, depth: int) -> dict[str, Any]:
    required = set(schema.get("required") or ())
    return {
        name: sample_schema(fake, child, name, depth + 1)
        for name, child in (schema.get("properties") or {}).items()
        # What need not be there is there more often than not.
        if name in required or fake.random.random() < 0.8  # noqa: PLR2004 -- most often
    }


def _array(fake: Any, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
    least = int(schema.get("minItems", 1))
    most = min(int(schema.get("maxItems", max(least, 3))), max(least, _ITEMS_MAX))
    made: list[Any] = []
    for _ in range(fake.random.randint(least, max(least, most)) * 3):
        value = sample_schema(fake, schema.get("items") or {}, name, depth + 1)
        if not schema.get("uniqueItems") or value not in made:
            made.append(value)
        if len(made) >= most:
            break
    return made[: max(least, most)]


def _string(fake: Any, schema: Mapping[str, Any], name: str, _depth: int) -> str:
    plain = name.casefold().replace("_", "").replace("-", "")
    maker = _FORMATS.get(schema.get("format", "")) or _BY_NAME.get(plain)
    text = maker(fake) if maker else " ".join(fake.words(3))
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    while len(text) < least:
        text += f" {fake.word()}"
    return text[:most].strip().ljust(least, "x") if most is not None else text


def _integer(fake: Any, schema: Mapping[str, Any], _name: str, _depth: int) -> int:
    step = max(int(schema.get("multipleOf", 1)), 1)
    least, most = _limits(schema, 1)
    return int(fake.random.randint(-(-int(least) // step), int(most) // step) * step)


def _number(fake: Any, schema: Mapping[str, Any], _name: str, _depth: int) -> float:
    least, most = _limits(schema, 0.01)
    value = round(float(fake.random.uniform(least, most)), 2)
    step = float(schema.get("multipleOf", 0))
    return round(value // step * step, 10) if step else min(max(value, least), most)


def _limits(schema: Mapping[str, Any], gap: float) -> tuple[float, float]:
    least = schema.get("minimum")
    if "exclusiveMinimum" in schema:
        least = schema["exclusiveMinimum"] + gap
    most = schema.get("maximum")
    if "exclusiveMaximum" in schema:
        most = schema["exclusiveMaximum"] - gap
    if least is None:
        least = 0 if most is None else min(0, most)
    return least, most if most is not None else max(least + 1_000, 1_000)


_KINDS: Final[Mapping[str, Callable[[Any, Mapping[str, Any], str, int], Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": lambda fake, _schema, _name, _depth: bool(fake.random.getrandbits(1)),
    "null": lambda _fake, _schema, _name, _depth: None,
}
