"""Encryption of what must be kept and never shown: values of secrets, and users' credentials.

AES-256-GCM, with a key that is not in the database: a copied database reveals nothing. Each
ciphertext is bound to the place it is kept in, so that none can be moved to another.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypedDict

import orjson

from stratagem.errors import SecretUnavailable

__all__ = ["KEY_FILE_VARIABLE", "KEY_VARIABLE", "EncryptedDocument", "SecretCipher"]

KEY_VARIABLE: Final = "STRATAGEM_SECRET_KEY"
KEY_FILE_VARIABLE: Final = "STRATAGEM_SECRET_KEY_FILE"
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_INSTALL: Final = "Run: pip install 'stratagem[secrets]'"
_MAKE: Final = "openssl rand -base64 32"


class EncryptedDocument(TypedDict):
    """A ciphertext, and by which key it was made: `key` is a hash that reveals nothing of it."""

    key: str
    data: str


class SecretCipher:
    """Encrypts and decrypts. The key is read when it is first needed.

    It is taken from the environment, from the file that the environment names, or from a file
    in the user's own settings folder, which is made when something is first encrypted.
    """

    def __init__(self, environment: Mapping[str, str], random: Callable[[int], bytes]) -> None:
        self._environment = environment
        self._random = random
        self._key: bytes | None = None

    def encrypt(
        self, document: Any, place: str, known_keys: Collection[str] = ()
    ) -> EncryptedDocument:
        """Encrypt a document for one place.

        `known_keys` are those by which the database's other secrets were encrypted: another one
        would leave half of them unreadable to every server.

        Raises:
            SecretUnavailable: There is no usable key.
        """
        key = self._read_key(make=not known_keys)
        if known_keys and _id_of(key) not in known_keys:
            raise _other_key(self.key_place())
        nonce = self._random(_NONCE_BYTES)
        sealed = _aes(key).encrypt(nonce, orjson.dumps(document), place.encode())
        return {"key": _id_of(key), "data": base64.b64encode(nonce + sealed).decode()}

    def decrypt(self, encrypted: EncryptedDocument, place: str) -> Any:
        """Return a document that was encrypted for a place.

        Raises:
            SecretUnavailable: There is no usable key, or it is another one.
        """
        key = self._read_key(make=False)
        if encrypted["key"] != _id_of(key):
            raise _other_key(self.key_place())
        from cryptography.exceptions import InvalidTag

        data = base64.b64decode(encrypted["data"])
        try:
            opened = _aes(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
        except InvalidTag:
            raise SecretUnavailable(
                "What is kept here was altered, or moved from elsewhere.",
                reason="altered",
                hint="Set it again.",
            ) from None
        return orjson.loads(opened)

    def key_place(self) -> str:
        """Return where the key is, or would be."""
        if self._environment.get(KEY_VARIABLE):
            return KEY_VARIABLE
        return str(self._key_file())

    def _key_file(self) -> Path:
        named = self._environment.get(KEY_FILE_VARIABLE)
        if named:
            return Path(named).expanduser()
        from platformdirs import user_config_path

        return user_config_path("stratagem") / "secret.key"

    def _read_key(self, *, make: bool) -> bytes:
        if self._key is None:
            _require_library()
            given = self._environment.get(KEY_VARIABLE)
            if given:
                self._key = _parse_key(given, KEY_VARIABLE)
            else:
                self._key = self._key_from_file(make=make)
        return self._key

    def _key_from_file(self, *, make: bool) -> bytes:
        path = self._key_file()
        try:
            if make and not path.exists():
                self._make_key(path)
            with path.open("rb") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise SecretUnavailable(
                        f"Others can read the key file {path}.",
                        reason="key_readable",
                        hint=f"Run: chmod 600 {path}",
                    )
                return _parse_key(file.read(1024).decode("ascii", "replace"), str(path))
        except OSError as error:
            raise SecretUnavailable(
                f"The key file {path} cannot be read: {error.strerror or error}.",
                reason="no_key",
                hint=f"Set {KEY_VARIABLE} (made by: {_MAKE}), or {KEY_FILE_VARIABLE}.",
            ) from None

    def _make_key(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another process may do the same at this moment: the first one's key is everybody's.
        making = path.with_name(f".{path.name}.{self._random(6).hex()}")
        descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(base64.b64encode(self._random(_KEY_BYTES)) + b"\n")
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(making, path)
            except FileExistsError:
                return
        finally:
            making.unlink()


def _id_of(key: bytes) -> str:
    return sha256(b"stratagem secret key\0" + key).hexdigest()[:12]


def _parse_key(text: str, place: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != _KEY_BYTES:
        raise SecretUnavailable(
            f"{place} holds no key: it is {_KEY_BYTES} random bytes in base64.",
            reason="no_key",
            hint=f"Make one: {_MAKE}",
        )
    return key


def _other_key(place: str) -> SecretUnavailable:
    return SecretUnavailable(
        f"The secrets of this database were encrypted with another key than that of {place}.",
        reason="other_key",
        hint=f"Give that key by {KEY_VARIABLE} or {KEY_FILE_VARIABLE}; without it they have to be "
        "removed, and set again.",
    )


def _require_library() -> None:
    try:
        import cryptography  # noqa: F401 -- looked for, not used
    except ImportError:
        raise SecretUnavailable(
            "Secrets can only be kept where the package `cryptography` is installed.",
            reason="not_installed",
            hint=_INSTALL,
        ) from None


def _aes(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
