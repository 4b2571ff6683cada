"""What is known of heads and targets is never more than somebody has looked at."""

from mergeyard.domain.ids import PrNumber, Sha
from mergeyard.service.landscape import Held, Landscape

MAIN = "refs/heads/main"
TIP, OTHER_TIP = Sha("tip"), Sha("other tip")
HEAD, OTHER_HEAD = Sha("head"), Sha("other head")
ONE, TWO = PrNumber(1), PrNumber(2)


def surveyed(**heads: Sha) -> Landscape:
    """Of which the target holds the first."""
    land = Landscape()
    found = {PrNumber(number): head for number, head in enumerate(heads.values(), start=1)}
    land.take_in(found, {MAIN: Held(TIP, frozenset([HEAD]))})
    return land


def test_a_target_holds_what_was_found_there_and_nothing_else():
    land = surveyed(one=HEAD, two=OTHER_HEAD)
    assert land.holds(MAIN, TIP, ONE, HEAD) is True
    assert land.holds(MAIN, TIP, TWO, OTHER_HEAD) is False


def test_nobody_knows_what_another_target_or_tip_holds():
    land = surveyed(one=HEAD)
    assert land.holds(MAIN, OTHER_TIP, ONE, HEAD) is None
    assert land.holds("refs/heads/other", TIP, ONE, HEAD) is None
    assert land.holds(MAIN, TIP, ONE, OTHER_HEAD) is None
    assert land.holds(MAIN, TIP, TWO, OTHER_HEAD) is None


def test_a_head_that_was_only_glimpsed_is_compared_by_the_next_survey():
    land = surveyed(one=HEAD)
    land.glimpse(TWO, OTHER_HEAD)
    assert list(land.numbers_of(OTHER_HEAD)) == [TWO]
    assert land.holds(MAIN, TIP, TWO, OTHER_HEAD) is None
    assert land.unseen({ONE: HEAD, TWO: OTHER_HEAD}) == [TWO]
    land.take_in({TWO: OTHER_HEAD}, {})
    assert land.holds(MAIN, TIP, TWO, OTHER_HEAD) is False
    assert land.unseen({ONE: HEAD, TWO: OTHER_HEAD}) == []


def test_whoever_is_pushed_to_has_the_new_head_alone():
    land = surveyed(one=HEAD, two=HEAD)
    land.glimpse(ONE, OTHER_HEAD)
    assert list(land.numbers_of(HEAD)) == [TWO]
    assert list(land.numbers_of(OTHER_HEAD)) == [ONE]
    assert land.among([HEAD, OTHER_HEAD, TIP]) == {HEAD, OTHER_HEAD}


def test_who_is_gone_is_forgotten_but_not_who_just_came():
    land = surveyed(one=HEAD, two=OTHER_HEAD)
    land.glimpse(PrNumber(3), TIP)
    land.forget_all_but([TWO])
    assert land.among([HEAD, OTHER_HEAD, TIP]) == {OTHER_HEAD, TIP}
    assert land.holds(MAIN, TIP, ONE, HEAD) is None
