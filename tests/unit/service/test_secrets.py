"""The secrets of tokens: their form, their checksum, and that they are all different."""

import hashlib
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mergeyard.service.secrets import ALPHABET, base62, digest, new_secret, well_formed

KNOWN = b"my_" + b"0" * 43 + b"1N5DL6"


def test_a_secret_has_its_prefix_43_characters_of_chance_and_6_of_checksum():
    secret = new_secret()
    assert secret.startswith("my_")
    assert len(secret) == 3 + 43 + 6
    assert set(secret[3:]) <= set(string.ascii_letters + string.digits)


def test_43_characters_hold_256_bits_and_6_hold_a_checksum():
    assert 62**42 < 2**256 < 62**43
    assert 2**32 < 62**6


def test_every_secret_is_well_formed_and_unlike_the_others():
    secrets = {new_secret() for _ in range(1000)}
    assert len(secrets) == 1000
    assert all(well_formed(secret.encode()) for secret in secrets)


def test_a_secret_made_long_ago_stays_well_formed():
    assert well_formed(KNOWN)


@given(st.integers(3, 51), st.sampled_from(ALPHABET))
def test_one_mistyped_character_is_noticed(place: int, typed: str):
    secret = new_secret()
    mistyped = secret[:place] + typed + secret[place + 1 :]
    assert well_formed(mistyped.encode()) == (mistyped == secret)


@given(st.integers(3, 50))
def test_two_exchanged_neighbours_are_noticed(place: int):
    secret = new_secret()
    exchanged = secret[:place] + secret[place + 1] + secret[place] + secret[place + 2 :]
    assert well_formed(exchanged.encode()) == (exchanged == secret)


@pytest.mark.parametrize("change", [b"%b\n", b" %b", b"%bA", b"MY_%b", b"\xff%b", b"%b%b"])
def test_what_has_another_form_is_refused(change: bytes):
    secret = new_secret().encode()
    assert not well_formed(change.replace(b"%b", secret))


@given(st.binary(max_size=60))
def test_no_bytes_are_trouble(junk: bytes):
    assert not well_formed(junk)


def test_the_digest_is_that_of_the_whole_secret():
    assert digest(b"my_secret") == hashlib.sha256(b"my_secret").digest()


def test_numbers_are_written_in_a_fixed_width():
    assert base62(0, 6) == "000000"
    assert base62(61, 6) == "00000z"
    assert base62(62, 6) == "000010"
    assert len(base62(2**256 - 1, 43)) == 43
