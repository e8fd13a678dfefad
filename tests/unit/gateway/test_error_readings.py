"""Errors are named by their kind, in words of ours: what they say of others stays with these."""

from __future__ import annotations

import pytest

from stratagem.gateway.calls.error_readings import error_title


@pytest.mark.parametrize(
    ("code", "message", "title"),
    [
        (
            "execution_error",
            "ENOENT: no such file or directory, open '/home/ann/x'",
            "File not found",
        ),
        ("execution_error", "The customer 4711 was not found", "Not found"),
        ("execution_error", "EACCES: permission denied, open '/x'", "Permission denied"),
        ("execution_error", "connect ECONNREFUSED 127.0.0.1:9", "Connection failed"),
        (
            "validation_error",
            "The arguments do not fit: $.a: 1 is not of type 'string'",
            "Wrong type",
        ),
        ("timeout", "slow took longer than 20 ms", "Timeout"),
        ("execution_error", "boom", "Execution error"),
    ],
)
def test_an_error_is_named_by_its_kind(code: str, message: str, title: str) -> None:
    assert error_title(code, message) == title
