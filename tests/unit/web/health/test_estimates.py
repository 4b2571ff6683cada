"""How often estimates held, in words."""

from mergeyard.service.foretelling.calibration import Held
from mergeyard.web.health.estimates import TOO_FEW, judged


def test_of_many_the_finding_says_how_often_p90_held_and_the_note_what_share_that_is():
    found = judged(Held(merged=1200, by_middle=612, by_late=1119))
    assert found.finding == "p90 held for 1,119 of 1,200 merged"
    assert found.note == "That is 93 %, and p50 held for 51 %. Wished for are 90 % and 50 %."


def test_of_too_few_no_share_is_told():
    found = judged(Held(merged=TOO_FEW - 1, by_middle=8, by_late=17))
    assert found.finding == "Too few merges to judge the estimates"
    assert found.note == "So far p90 held for 17 of 19 merged, p50 for 8."


def test_before_anything_merged_there_is_nothing_to_tell():
    assert judged(Held()).finding == "No estimate has been put to the test"
