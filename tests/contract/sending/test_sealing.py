"""What is sealed can be read with the key that lies elsewhere, and with nothing else."""

import stat
from pathlib import Path

import pytest

from mergeyard.adapters.sealing import FileSeals, NoSeals
from mergeyard.ports.sealing import SealTrouble


def test_what_is_sealed_can_be_opened_also_by_another_process(tmp_path: Path):
    sealed = FileSeals(tmp_path / "data" / "key").seal(b"a secret", "w1")
    assert FileSeals(tmp_path / "data" / "key").open(sealed, "w1") == b"a secret"
    assert b"secret" not in sealed


def test_the_same_is_never_sealed_alike(tmp_path: Path):
    seals = FileSeals(tmp_path / "key")
    assert seals.seal(b"a secret", "w1") != seals.seal(b"a secret", "w1")


def test_it_is_opened_only_for_what_it_was_sealed_for(tmp_path: Path):
    seals = FileSeals(tmp_path / "key")
    with pytest.raises(SealTrouble, match="another key"):
        seals.open(seals.seal(b"a secret", "w1"), "w2")


@pytest.mark.parametrize("damaged", [b"", b"short", bytes(100)])
def test_what_is_damaged_is_not_opened(damaged: bytes, tmp_path: Path):
    with pytest.raises(SealTrouble):
        FileSeals(tmp_path / "key").open(damaged, "w1")


def test_another_key_does_not_open_it(tmp_path: Path):
    sealed = FileSeals(tmp_path / "one").seal(b"a secret", "w1")
    with pytest.raises(SealTrouble, match="restore that key"):
        FileSeals(tmp_path / "other").open(sealed, "w1")


def test_the_first_key_of_a_file_seals_and_every_key_opens(tmp_path: Path):
    old, new = "11" * 32, "22" * 32
    path = tmp_path / "key"
    path.write_text(f"{old}\n")
    sealed_before = FileSeals(path).seal(b"a secret", "w1")
    path.write_text(f"{new}\n{old}\n")
    assert FileSeals(path).open(sealed_before, "w1") == b"a secret"
    sealed_after = FileSeals(path).seal(b"a secret", "w1")
    path.write_text(f"{new}\n")
    assert FileSeals(path).open(sealed_after, "w1") == b"a secret"
    with pytest.raises(SealTrouble, match="another key"):
        FileSeals(path).open(sealed_before, "w1")


def test_the_key_is_for_us_alone_and_made_once(tmp_path: Path):
    FileSeals(tmp_path / "key").seal(b"a secret", "w1")
    key = (tmp_path / "key").read_text()
    FileSeals(tmp_path / "key").seal(b"a secret", "w1")
    assert (tmp_path / "key").read_text() == key
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("content", ["", "nonsense", "00" * 31, "00" * 33, "00" * 32 + "\nff"])
def test_a_file_that_holds_no_key_is_named(content: str, tmp_path: Path):
    (tmp_path / "key").write_text(content)
    with pytest.raises(SealTrouble, match="key"):
        FileSeals(tmp_path / "key").seal(b"a secret", "w1")


def test_a_key_that_cannot_be_made_is_told_in_words(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SealTrouble, match="cannot be"):
        FileSeals(tmp_path / "file" / "key").seal(b"a secret", "w1")


def test_where_replicas_share_a_database_they_must_be_given_a_key():
    with pytest.raises(SealTrouble, match="sealing_key_file"):
        NoSeals().seal(b"a secret", "w1")
    with pytest.raises(SealTrouble, match="sealing_key_file"):
        NoSeals().open(b"sealed", "w1")
