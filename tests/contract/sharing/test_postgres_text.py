"""Text is stored so that it comes back exactly, and so that nobody mistakes one for another."""

from hypothesis import given
from hypothesis import strategies as st

from mergeyard.adapters.store_postgres.text import restored, stored

texts = st.text(st.sampled_from("\0\1\2\3aZ試")) | st.text()


@given(texts)
def test_text_comes_back_exactly(text: str):
    assert restored(stored(text)) == text


@given(texts)
def test_stored_text_holds_no_nul(text: str):
    assert "\0" not in stored(text)


@given(texts, texts)
def test_the_order_of_texts_stays_what_it_was(one: str, other: str):
    assert (stored(one) < stored(other)) == (one < other)
