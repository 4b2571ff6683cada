"""The API page agrees with the OpenAPI document, and its examples are what a real service returns."""

from mergeyard.api.openapi import EXAMPLES
from mergeyard.api.routes import TABLE
from tests.project.api_examples import record_examples
from tests.project.api_page import GROUPS, PAGE, render_page


def test_examples_are_the_responses_of_the_service():
    recorded = record_examples()
    assert recorded.keys() == EXAMPLES.keys() == TABLE.keys()
    changed = [name for name, example in recorded.items() if example != EXAMPLES[name]]
    assert changed == [], "run `make api-page`"


def test_page_is_up_to_date_with_make_api_page():
    assert PAGE.read_text(encoding="utf-8") == render_page(EXAMPLES), "run `make api-page`"


def test_every_endpoint_is_in_exactly_one_group():
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(TABLE)
