"""Every property of the parsers, on a few examples; `python -m tests.fuzz` checks many."""

import pytest

from tests.fuzz.properties import ParserProperty, all_properties


@pytest.mark.parametrize("law", all_properties(), ids=lambda law: law.name)
def test_parser_accepts_or_refuses_any_input(law: ParserProperty):
    assert law.check_examples(5, seed=7)


@pytest.mark.long
@pytest.mark.parametrize("law", all_properties(), ids=lambda law: law.name)
def test_parser_accepts_or_refuses_many_inputs(law: ParserProperty):
    assert law.check_examples(500, seed=8)
