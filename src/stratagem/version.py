"""The version of this package."""

from __future__ import annotations

from functools import cache

__all__ = ["package_version"]


@cache
def package_version() -> str:
    """Return the version that is installed; 0.0.0 where the package was never installed."""
    # Reading the metadata takes longer than most commands do, so only who asks waits for it.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("stratagem")
    except PackageNotFoundError:
        return "0.0.0"
