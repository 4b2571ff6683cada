"""Encrypts secrets with AES-GCM. The key is in a file next to the database, never in it."""

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mergeyard.ports.external import EncryptionError

KEY_BYTES = 32
NONCE_BYTES = 12


class FileSecretBox:
    def __init__(self, path: Path) -> None:
        """The file is created when a key is first needed."""
        self._path = path

    def encrypt(self, plain: bytes, purpose: str) -> bytes:
        nonce = token_bytes(NONCE_BYTES)
        return nonce + AESGCM(self._read_keys()[0]).encrypt(nonce, plain, purpose.encode())

    def decrypt(self, sealed: bytes, purpose: str) -> bytes:
        nonce, ciphertext = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for key in self._read_keys():
            with suppress(InvalidTag, ValueError):
                return AESGCM(key).decrypt(nonce, ciphertext, purpose.encode())
        raise EncryptionError(
            f"This secret was encrypted with another key than the one in {self._path}. Restore that key, or create the "
            "webhook again."
        )

    def _read_keys(self) -> list[bytes]:
        """One key per line, newest first. The first encrypts; all of them are tried to decrypt."""
        try:
            keys = [bytes.fromhex(line) for line in self._path.read_text().split()]
        except FileNotFoundError:
            return self._create_key()
        except (OSError, ValueError) as error:
            raise EncryptionError(f"The key in {self._path} cannot be read: {error}.") from error
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise EncryptionError(
                f"{self._path} has no valid key. Each line must have {2 * KEY_BYTES} hexadecimal digits."
            )
        return keys

    def _create_key(self) -> list[bytes]:
        """Atomic: the link fails when another process has created the file first, and then that key is used."""
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.touch(mode=0o600)
            draft.write_text(token_bytes(KEY_BYTES).hex() + "\n")
            os.link(draft, self._path)
        except FileExistsError:
            pass
        except OSError as error:
            raise EncryptionError(f"The key {self._path} cannot be created: {error}.") from error
        finally:
            draft.unlink(missing_ok=True)
        return self._read_keys()


class UnconfiguredSecretBox:
    """For replicas that share a database: a replica must not create a key that the others do not have."""

    def encrypt(self, _: bytes, __: str) -> bytes:
        raise EncryptionError(NO_KEY_MESSAGE)

    def decrypt(self, _: bytes, __: str) -> bytes:
        raise EncryptionError(NO_KEY_MESSAGE)


NO_KEY_MESSAGE = (
    "Webhook secrets are encrypted with a key that all replicas share, and none is configured. "
    "Set sealing_key_file to a file that each replica has, with 64 hexadecimal digits."
)
