"""Encryption of stored secrets and users' credentials, which are never shown.

AES-256-GCM, with a key that is not in the database: a copied database reveals nothing. Each
ciphertext is bound to the place it is kept in, so that none can be moved to another.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
# The present key, and earlier ones that other databases may still be encrypted with.
_KEYS_MAX: Final = 8
_KEY_FILE_BYTES: Final = 4096
_INSTALL: Final = "Run: pip install 'stratagem[secrets]'"
_MAKE: Final = "openssl rand -base64 32"


class EncryptedDocument(TypedDict):
    """A ciphertext, and by which key it was made: `key` is a hash that reveals nothing of it."""

    key: str
    data: str


class SecretCipher:
    """Encrypts and decrypts. Keys are read when they are first needed.

    They are taken from the environment, from the file that the environment names, or from a file
    in the user's own settings folder, which is made when something is first encrypted. The first
    key encrypts; what others of the same place have encrypted can still be read.
    """

    def __init__(self, environment: Mapping[str, str], random: Callable[[int], bytes]) -> None:
        self._environment = environment
        self._random = random
        self._keys: list[bytes] = []

    def encrypt(
        self, document: Any, place: str, known_keys: Collection[str] = ()
    ) -> EncryptedDocument:
        """Encrypt a document for one place.

        `known_keys` are those that encrypted the database's other secrets: with a different key,
        some secrets would be unreadable to every server.

        Raises:
            SecretUnavailable: There is no usable key.
        """
        self._find_keys(known_keys)
        key = self._read_keys(make=not known_keys)[0]
        nonce = self._random(_NONCE_BYTES)
        sealed = _aes(key).encrypt(nonce, orjson.dumps(document), place.encode())
        return {"key": _id_of(key), "data": base64.b64encode(nonce + sealed).decode()}

    def decrypt(self, encrypted: EncryptedDocument, place: str) -> Any:
        """Return a document that was encrypted for a place.

        Raises:
            SecretUnavailable: There is no usable key, or it is another one.
        """
        key = self._find_keys([encrypted["key"]])[encrypted["key"]]
        from cryptography.exceptions import InvalidTag

        data = base64.b64decode(encrypted["data"])
        try:
            opened = _aes(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], place.encode())
        except InvalidTag:
            raise SecretUnavailable(
                "The stored value was altered or moved here from another place.",
                reason="altered",
                hint="Set it again.",
            ) from None
        return orjson.loads(opened)

    def key_place(self) -> str:
        """Return where the keys are, or would be."""
        if self._environment.get(KEY_VARIABLE):
            return KEY_VARIABLE
        return str(self._key_file())

    def key_ids(self) -> list[str]:
        """Return what tells the keys apart that there are now, the one that encrypts first.

        Raises:
            SecretUnavailable: There is no usable key.
        """
        self._keys = []
        return [_id_of(key) for key in self._read_keys(make=False)]

    def add_key(self) -> None:
        """Make a new key, which encrypts from now on; the others stay behind it.

        Raises:
            SecretUnavailable: Keys are not kept in a file that can be written.
        """
        if self._environment.get(KEY_VARIABLE):
            raise SecretUnavailable(
                f"The key is in {KEY_VARIABLE}, which only the operator of the server can change.",
                reason="key_given",
                hint=f"Make a new one ({_MAKE}), start all servers with it before the old one "
                f'({KEY_VARIABLE}="NEW OLD"), and run this again with the same variable.',
            )
        keys = self._key_list(make=False)
        if len(keys) >= _KEYS_MAX:
            raise SecretUnavailable(
                f"{self.key_place()} holds {len(keys)} keys already.",
                reason="too_many_keys",
                limit=_KEYS_MAX,
                hint="Drop the old ones, once no database needs them: "
                "stratagem secrets rotate-key --drop-old",
            )
        self._write_keys([self._random(_KEY_BYTES), *keys])

    def drop_old_keys(self) -> int:
        """Forget all keys but the one that encrypts, where they are in a file; return how many."""
        keys = self._key_list(make=False)
        if self._environment.get(KEY_VARIABLE):
            return 0
        if len(keys) > 1:
            self._write_keys(keys[:1])
        return len(keys) - 1

    @contextlib.contextmanager
    def sole_change(self) -> Iterator[None]:
        """Keep other processes from changing the keys meanwhile: they would undo each other's."""
        if self._environment.get(KEY_VARIABLE):
            yield
            return
        import fcntl

        path = self._key_file().resolve()
        try:
            descriptor = os.open(
                path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600
            )
        except OSError as error:
            raise _unusable_file(path, "written", error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _find_keys(self, ids: Collection[str]) -> dict[str, bytes]:
        """Return the keys by their ids; they are read again where one of those asked for is new."""
        found = {_id_of(key): key for key in self._read_keys(make=not ids)}
        if not found.keys() >= set(ids):
            self._keys = []
            found = {_id_of(key): key for key in self._read_keys(make=False)}
        if not found.keys() >= set(ids):
            raise _other_key(self.key_place())
        return found

    def _key_file(self) -> Path:
        named = self._environment.get(KEY_FILE_VARIABLE)
        if named:
            return Path(named).expanduser()
        from platformdirs import user_config_path

        return user_config_path("stratagem") / "secret.key"

    def _read_keys(self, *, make: bool) -> list[bytes]:
        if not self._keys:
            self._keys = self._key_list(make=make)
        return self._keys

    def _key_list(self, *, make: bool) -> list[bytes]:
        """Read the keys from where they are."""
        _require_library()
        given = self._environment.get(KEY_VARIABLE)
        return _parse_keys(given, KEY_VARIABLE) if given else self._keys_from_file(make=make)

    def _keys_from_file(self, *, make: bool) -> list[bytes]:
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
                return _parse_keys(file.read(_KEY_FILE_BYTES).decode("ascii", "replace"), str(path))
        except OSError as error:
            raise _unusable_file(path, "read", error) from None

    def _make_key(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Another process may do the same at this moment: the first one's key is everybody's.
        made = self._new_file(path, [self._random(_KEY_BYTES)])
        with made as file, contextlib.suppress(FileExistsError):
            os.link(file, path)

    def _write_keys(self, keys: Sequence[bytes]) -> None:
        """Put keys in place of those in the file: all of them, or none where that fails."""
        # A mounted secret is a link.
        path = self._key_file().resolve()
        try:
            with self._new_file(path, keys) as made:
                made.replace(path)
        except OSError as error:
            raise _unusable_file(path, "written", error) from None
        self._keys = []

    @contextlib.contextmanager
    def _new_file(self, path: Path, keys: Sequence[bytes]) -> Iterator[Path]:
        """Give a file with some keys beside another, on the disk before it takes its place."""
        making = path.with_name(f".{path.name}.{self._random(6).hex()}")
        descriptor = os.open(making, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(base64.b64encode(key) + b"\n" for key in keys)
                file.flush()
                os.fsync(file.fileno())
            yield making
        finally:
            making.unlink(missing_ok=True)
        _sync_folder(path.parent)


def _id_of(key: bytes) -> str:
    return sha256(b"stratagem secret key\0" + key).hexdigest()[:12]


def _parse_keys(text: str, place: str) -> list[bytes]:
    """Return the keys of a text, in their order: one, or several while they are changed."""
    try:
        keys = [base64.b64decode(each, validate=True) for each in text.split()]
    except (binascii.Error, ValueError):
        keys = []
    if not 1 <= len(keys) <= _KEYS_MAX or any(len(key) != _KEY_BYTES for key in keys):
        raise SecretUnavailable(
            f"{place} holds no valid key: a key is {_KEY_BYTES} random bytes in base64; up "
            f"to {_KEYS_MAX} are allowed, the one that encrypts first.",
            reason="no_key",
            hint=f"Make one: {_MAKE}",
        )
    return keys


def _sync_folder(path: Path) -> None:
    """Have the names in a folder on the disk, where the system can do that."""
    with contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _unusable_file(path: Path, what: str, error: OSError) -> SecretUnavailable:
    return SecretUnavailable(
        f"The key file {path} cannot be {what}: {error.strerror or error}.",
        reason="no_key",
        hint=f"Set {KEY_VARIABLE} (made by: {_MAKE}), or {KEY_FILE_VARIABLE}.",
    )


def _other_key(place: str) -> SecretUnavailable:
    return SecretUnavailable(
        f"The secrets of this database were encrypted with another key than that of {place}.",
        reason="other_key",
        hint=f"Set that key with {KEY_VARIABLE} or {KEY_FILE_VARIABLE}; without it the secrets "
        "have to be removed and set again.",
    )


def _require_library() -> None:
    try:
        import cryptography  # noqa: F401 -- looked for, not used
    except ImportError:
        raise SecretUnavailable(
            "Secrets can only be stored if the package `cryptography` is installed.",
            reason="not_installed",
            hint=_INSTALL,
        ) from None


def _aes(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)
