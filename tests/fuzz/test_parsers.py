"""Every law of reading, tried on a few examples; `python -m tests.fuzz` tries many."""

import pytest

from tests.fuzz.laws import Law, all_laws


@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_whatever_comes_is_read_or_refused(law: Law):
    assert law.try_on(5, seed=7)


@pytest.mark.long
@pytest.mark.parametrize("law", all_laws(), ids=lambda law: law.name)
def test_much_of_whatever_comes_is_read_or_refused(law: Law):
    assert law.try_on(500, seed=8)
