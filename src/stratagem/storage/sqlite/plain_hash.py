"""SHA-256 without `hashlib`, which reads all of OpenSSL."""

from __future__ import annotations

__all__ = ["sha256"]

try:
    # Python's own, from 3.12 on.
    from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
except ImportError:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found,no-redef,unused-ignore]
    except ImportError:
        from hashlib import sha256  # type: ignore[assignment,unused-ignore]
