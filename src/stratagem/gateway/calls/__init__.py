"""The path of a call and its parts: limits, cache, breakers, idempotency, records."""
