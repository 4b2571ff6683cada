"""The siding on which the guilty one of a red batch is sought."""

from mergeyard.web.sidings import Role, Siding
from mergeyard.web.track import track
from tests.support.builders import Yard, a_yard


def the_siding(yard: Yard) -> Siding:
    (siding,) = track(yard.queue, yard.now).sidings
    return siding


def a_red_batch() -> Yard:
    yard = a_yard(prs=4, batch=4, bisection_concurrency=1)
    yard.fails(1, 2, 3, 4)
    yard.build()
    return yard


def test_a_red_batch_stands_on_a_siding_and_its_beginning_is_tested():
    siding = the_siding(a_red_batch())
    assert [suspect.number for suspect in siding.suspects] == [1, 2, 3, 4]
    assert {suspect.role for suspect in siding.suspects} == {Role.SUSPECTED}
    assert [(probe.start, probe.length) for probe in siding.probes] == [(0, 2)]
    assert (siding.green, siding.red, siding.searching) == (0, 4, True)


def test_whoever_is_in_a_green_prefix_is_cleared_and_moves_elsewhere():
    yard = a_red_batch()
    yard.passes(1, 2)
    siding = the_siding(yard)
    assert [suspect.role for suspect in siding.suspects] == [Role.CLEARED] * 2 + [Role.SUSPECTED] * 2
    assert [suspect.here for suspect in siding.suspects] == [False, False, True, True]


def test_whoever_is_behind_a_red_prefix_is_asked_no_more():
    yard = a_red_batch()
    yard.fails(1, 2)
    roles = [suspect.role for suspect in the_siding(yard).suspects]
    assert roles == [Role.SUSPECTED] * 2 + [Role.BEHIND] * 2


def test_the_last_of_the_shortest_red_prefix_is_the_suspect_and_waits_for_the_others():
    yard = a_red_batch()
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    siding = the_siding(yard)
    assert (siding.searching, siding.suspect, siding.beneath) == (False, 2, (1,))
    assert [suspect.role for suspect in siding.suspects][1] is Role.SUSPECT


def test_the_suspect_is_tested_once_more_in_its_own_place():
    yard = a_red_batch()
    yard.fails(1, 2)
    yard.build()
    yard.passes(1)
    yard.perform_all()
    for others in ((3, 4), (1,)):
        yard.passes(*others)
        yard.perform_all()
    siding = the_siding(yard)
    assert [(probe.start, probe.length) for probe in siding.probes] == [(1, 1)]
    assert siding.beneath == ()
