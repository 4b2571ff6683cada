"""Encrypted secrets can be read only with the key, which is stored separately."""

import stat
from pathlib import Path

import pytest

from mergeyard.adapters.encryption import FileSecretBox, UnconfiguredSecretBox
from mergeyard.ports.external import EncryptionError


def test_another_process_can_decrypt_a_secret(tmp_path: Path):
    encrypted = FileSecretBox(tmp_path / "data" / "key").encrypt(b"a secret", "w1")
    assert FileSecretBox(tmp_path / "data" / "key").decrypt(encrypted, "w1") == b"a secret"
    assert b"secret" not in encrypted


def test_the_same_secret_is_never_encrypted_to_the_same_bytes(tmp_path: Path):
    secret_box = FileSecretBox(tmp_path / "key")
    assert secret_box.encrypt(b"a secret", "w1") != secret_box.encrypt(b"a secret", "w1")


def test_a_secret_is_decrypted_only_for_its_purpose(tmp_path: Path):
    secret_box = FileSecretBox(tmp_path / "key")
    with pytest.raises(EncryptionError, match="another key"):
        secret_box.decrypt(secret_box.encrypt(b"a secret", "w1"), "w2")


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(100)])
def test_damaged_data_is_not_decrypted(damaged: bytes, tmp_path: Path):
    with pytest.raises(EncryptionError):
        FileSecretBox(tmp_path / "key").decrypt(damaged, "w1")


def test_another_key_does_not_decrypt_a_secret(tmp_path: Path):
    encrypted = FileSecretBox(tmp_path / "one").encrypt(b"a secret", "w1")
    with pytest.raises(EncryptionError, match="Restore that key"):
        FileSecretBox(tmp_path / "other").decrypt(encrypted, "w1")


def test_the_first_key_of_a_file_encrypts_and_every_key_decrypts(tmp_path: Path):
    old, new = "11" * 32, "22" * 32
    path = tmp_path / "key"
    path.write_text(f"{old}\n")
    encrypted_before = FileSecretBox(path).encrypt(b"a secret", "w1")
    path.write_text(f"{new}\n{old}\n")
    assert FileSecretBox(path).decrypt(encrypted_before, "w1") == b"a secret"
    encrypted_after = FileSecretBox(path).encrypt(b"a secret", "w1")
    path.write_text(f"{new}\n")
    assert FileSecretBox(path).decrypt(encrypted_after, "w1") == b"a secret"
    with pytest.raises(EncryptionError, match="another key"):
        FileSecretBox(path).decrypt(encrypted_before, "w1")


def test_the_key_file_is_created_once_and_only_the_owner_can_read_it(tmp_path: Path):
    FileSecretBox(tmp_path / "key").encrypt(b"a secret", "w1")
    key = (tmp_path / "key").read_text()
    FileSecretBox(tmp_path / "key").encrypt(b"a secret", "w1")
    assert (tmp_path / "key").read_text() == key
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("content", ["", "nonsense", "00" * 31, "00" * 33, "00" * 32 + "\nff"])
def test_a_file_that_holds_no_key_is_named(content: str, tmp_path: Path):
    (tmp_path / "key").write_text(content)
    with pytest.raises(EncryptionError, match="key"):
        FileSecretBox(tmp_path / "key").encrypt(b"a secret", "w1")


def test_a_key_that_cannot_be_created_is_reported_with_a_message(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EncryptionError, match="cannot be"):
        FileSecretBox(tmp_path / "file" / "key").encrypt(b"a secret", "w1")


def test_replicas_that_share_a_database_need_a_configured_key():
    with pytest.raises(EncryptionError, match="sealing_key_file"):
        UnconfiguredSecretBox().encrypt(b"a secret", "w1")
    with pytest.raises(EncryptionError, match="sealing_key_file"):
        UnconfiguredSecretBox().decrypt(b"encrypted", "w1")
