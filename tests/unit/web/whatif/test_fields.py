"""The fields of the what-if page: what is offered, what somebody changed, and how far the sliders reach."""

import pytest

from mergeyard.domain.config import Config, Mode, Speculation
from mergeyard.sim.replaying.replayable import REPLAYABLE
from mergeyard.web.setting_fields import Kind
from mergeyard.web.whatif.fields import OFFERED, REACH, asked, farthest

NOW = Config(concurrency=8, batch=True)
UNTOUCHED = {
    "concurrency": "8", "batch": "on", "batching_min_size": "4", "batching_max_wait_time_minutes": "5",
    "speculation": "chain", "mode": "single",
}  # fmt: skip


def test_only_what_can_be_replayed_is_offered_and_every_number_has_a_slider():
    assert set(OFFERED) <= set(REPLAYABLE)
    fields = asked({}, NOW).fields
    assert {field.setting.name for field in fields if field.setting.kind is Kind.NUMBER} == REACH.keys()


def test_nothing_is_wished_for_before_something_is_sent():
    assert asked({"period": "7d"}, NOW).wishes is None


def test_what_is_left_as_it_is_is_no_wish():
    assert asked(UNTOUCHED, NOW).wishes == {}


@pytest.mark.parametrize(
    ("sent", "wishes"),
    [
        ({"concurrency": "20"}, {"concurrency": 20}),
        ({"batch": ""}, {"batch": False}),
        ({"mode": "parallel"}, {"mode": Mode.PARALLEL}),
        ({"speculation": "best_first"}, {"speculation": Speculation.BEST_FIRST}),
        ({"can_optimistically_merge": "on"}, {"can_optimistically_merge": True}),
        ({"enqueueing_label": "x"}, {}),
    ],
)
def test_what_is_changed_is_wished_for(sent: dict[str, str], wishes: dict[str, object]):
    assert asked(UNTOUCHED | sent, NOW).wishes == wishes


def test_what_does_not_fit_is_no_wish():
    found = asked(UNTOUCHED | {"concurrency": "0"}, NOW)
    assert found.wishes is None
    assert [field.setting.name for field in found.troubles] == ["concurrency"]


@pytest.mark.parametrize(("typed", "reach"), [("20", 50), ("200", 200), ("1000", 1000), ("many", 50), ("9999", 50)])
def test_a_slider_reaches_as_far_as_what_is_chosen(typed: str, reach: int):
    (field,) = [
        each for each in asked(UNTOUCHED | {"concurrency": typed}, NOW).fields if each.setting.name == "concurrency"
    ]
    assert farthest(field) == reach
