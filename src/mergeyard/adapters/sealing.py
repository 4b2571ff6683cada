"""Seals with a key that lies in a file beside the database, never in it."""

import os
from contextlib import suppress
from pathlib import Path
from secrets import token_bytes

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from mergeyard.ports.sealing import SealTrouble

KEY_BYTES = 32
NONCE_BYTES = 12


class FileSeals:
    def __init__(self, path: Path) -> None:
        """The file is made when it is first needed."""
        self._path = path

    def seal(self, plain: bytes, purpose: str) -> bytes:
        nonce = token_bytes(NONCE_BYTES)
        return nonce + AESGCM(self._keys()[0]).encrypt(nonce, plain, purpose.encode())

    def open(self, sealed: bytes, purpose: str) -> bytes:
        nonce, rest = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        for key in self._keys():
            with suppress(InvalidTag, ValueError):
                return AESGCM(key).decrypt(nonce, rest, purpose.encode())
        raise SealTrouble(
            f"This was sealed with another key than the one in {self._path}: restore that key, or create the webhook "
            "again."
        )

    def _keys(self) -> list[bytes]:
        """One per line, the newest first: it seals, and all of them open."""
        try:
            keys = [bytes.fromhex(line) for line in self._path.read_text().split()]
        except FileNotFoundError:
            return self._new_keys()
        except (OSError, ValueError) as error:
            raise SealTrouble(f"The key in {self._path} cannot be read: {error}.") from error
        if not keys or any(len(key) != KEY_BYTES for key in keys):
            raise SealTrouble(f"{self._path} holds no key: each line must have {2 * KEY_BYTES} hexadecimal digits.")
        return keys

    def _new_keys(self) -> list[bytes]:
        """Whole or not at all, and for us alone. Whoever was faster has made the one that counts."""
        draft = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.touch(mode=0o600)
            draft.write_text(token_bytes(KEY_BYTES).hex() + "\n")
            os.link(draft, self._path)
        except FileExistsError:
            pass
        except OSError as error:
            raise SealTrouble(f"The key {self._path} cannot be made: {error}.") from error
        finally:
            draft.unlink(missing_ok=True)
        return self._keys()


class NoSeals:
    """Where several replicas share a database, none may make a key that the others do not have."""

    def seal(self, _: bytes, __: str) -> bytes:
        raise SealTrouble(NO_KEY)

    def open(self, _: bytes, __: str) -> bytes:
        raise SealTrouble(NO_KEY)


NO_KEY = (
    "Secrets of webhooks are sealed with a key that all replicas must share: "
    "set sealing_key_file to a file that each of them has, with 64 hexadecimal digits."
)
