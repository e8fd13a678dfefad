"""The SDK: a database opened in this process, or a server somewhere."""

from stratagem.sdk.embedded import Stratagem, open_database

__all__ = ["Stratagem", "open_database"]
