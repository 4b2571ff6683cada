"""A landing knows whom it brings, and whether it can still be dropped."""

import pytest

from mergeyard.domain.config import LandingMethod
from mergeyard.domain.landing import Landing, Phase
from tests.support.builders import ROOT, a_member, a_step


def a_landing(phase: Phase) -> Landing:
    return Landing(
        number=1,
        phase=phase,
        run=None,
        members=(a_member(4), a_member(7)),
        expected=ROOT,
        base=ROOT,
        tested=(a_step("4"), a_step("4+7")),
        method=LandingMethod.TESTED_COMMIT,
    )


def test_its_tickets_are_those_of_its_members():
    assert a_landing(Phase.READING).tickets == (4, 7)


@pytest.mark.parametrize("phase", [Phase.COMPOSING, Phase.READING])
def test_until_the_intent_is_saved_it_is_not_intended(phase: Phase):
    assert not a_landing(phase).intended


def test_it_is_intended_once_the_intent_is_saved():
    assert a_landing(Phase.INTENDED).intended
