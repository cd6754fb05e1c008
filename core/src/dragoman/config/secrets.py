"""Secrets that a configuration refers to or holds encrypted: `${file:PATH}`, `${SCHEME:REFERENCE}`, `ENC:v1:...`."""

from __future__ import annotations

import base64
import os
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

KEY_VARIABLE = "DRAGOMAN_KEY"
GROUP = "dragoman.secrets"
"""The entry-point group of secret stores. The name is the scheme; the value is a function from reference to secret."""

PREFIX = "ENC:v1:"
_ENCRYPTED = re.compile(r"ENC:v[0-9]+:", re.IGNORECASE)
_KEY_BYTES = 32
_NONCE_BYTES = 12
_MAX_FILE = 64 * 1024

Store = Callable[[str], str]


class SecretError(Exception):
    """A secret cannot be read. Holds the reason, without any part of the secret, and the remedy."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class Secrets:
    """Reads secrets during one loading. `folder`: the base of relative paths.

    `key_file`: used if `DRAGOMAN_KEY` is not set.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path, key_file: Path) -> None:
        self._environ = environ
        self._folder = folder
        self._key_file = key_file

    def look_up(self, scheme: str, reference: str) -> str:
        """Return the value of `${scheme:reference}`. Raises `SecretError`."""
        if scheme == "file":
            return self._file(reference)
        store = _store(scheme)
        try:
            secret = store(reference)
        except Exception as error:  # a store's own errors may repeat the reference
            raise SecretError(f"the secret store {scheme} failed ({type(error).__name__})") from None
        if not isinstance(secret, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SecretError(f"the secret store {scheme} did not return text")
        return secret

    def _file(self, reference: str) -> str:
        if "\0" in reference:
            raise SecretError("no file has a NUL in its name")
        path = self._folder / os.path.expanduser(reference)
        try:
            if stat.S_ISFIFO(path.stat().st_mode):  # a reload would wait for its writer
                raise SecretError(f"{reference} is a pipe", "Name a file.")
            with path.open(encoding="utf-8") as file:
                content = file.read(_MAX_FILE + 1)
        except OSError as error:
            raise SecretError(f"the file {reference} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SecretError(f"the file {reference} is not UTF-8 text") from None
        if len(content) > _MAX_FILE:
            raise SecretError(f"the file {reference} is too large for a secret")
        return content.removesuffix("\n").removesuffix("\r")

    def decrypt(self, text: str, setting: str) -> str:
        """Return the decrypted value of a setting. Raises `SecretError`."""
        return decrypt(text, setting, read_key(self._environ, self._key_file))


def _store(scheme: str) -> Store:
    from importlib.metadata import entry_points

    found = [each for each in entry_points(group=GROUP) if each.name == scheme]
    if len(found) != 1:
        why = "more than one distribution has" if found else "no installed distribution has"
        raise SecretError(f"{why} the secret store {scheme}", "Known without one: ${NAME}, ${file:PATH}.")
    try:
        store: Store = found[0].load()
    except Exception as error:
        raise SecretError(f"the secret store {scheme} cannot be loaded ({type(error).__name__})") from None
    return store


# Keys


def make_key(path: Path) -> None:
    """Write a new key, readable only by its owner. Raises `SecretError` if there is one: it is never replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SecretError(
            f"there is a key at {path}", "Values encrypted with it could not be read with a new key."
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(base64.b64encode(os.urandom(_KEY_BYTES)).decode() + "\n")


def read_key(environ: Mapping[str, str], path: Path) -> bytes:
    """Return the key: from `DRAGOMAN_KEY`, else from the file. Raises `SecretError`."""
    given = environ.get(KEY_VARIABLE)
    where = KEY_VARIABLE if given else f"the key file {path}"
    try:
        if not given:
            if path.stat().st_mode & 0o077:
                raise SecretError(f"{where} can be read by others", f"chmod 600 {path}")
            given = path.read_text(encoding="ascii")
        key = base64.b64decode(given.strip(), validate=True)
    except OSError:
        remedy = f"`dragoman secrets init` writes one; or set {KEY_VARIABLE}."
        raise SecretError(f"{where} cannot be read", remedy) from None
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise SecretError(f"{where} holds no key", "A key is 32 bytes in base64; `dragoman secrets init` writes one.")
    return key


# Encryption


def is_encrypted(value: str) -> bool:
    """Return whether a value is meant as an encrypted one. One of a later version must not pass for the secret."""
    return _ENCRYPTED.match(value) is not None


def encrypt(secret: str, setting: str, key: bytes) -> str:
    """Return a secret as `ENC:v1:...`. Only this key decrypts it, and only as the value of this setting."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, secret.encode(), setting.encode())
    return PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode()


def decrypt(text: str, setting: str, key: bytes) -> str:
    """Return the secret in `ENC:v1:...`. Raises `SecretError` if it belongs to another key or another setting."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        data = base64.b64decode(text.removeprefix(PREFIX), b"-_", validate=True)
        return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], setting.encode()).decode()
    except (InvalidTag, ValueError):
        remedy = f"Encrypt it again with `dragoman secrets encrypt {setting}`."
        raise SecretError("it was encrypted with another key, or for another setting", remedy) from None
