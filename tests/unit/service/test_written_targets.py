"""Names are made of written targets where they are needed, and not anew where the same are known."""

from msgspec.structs import replace

from mergeyard.domain.targets import ALL, NOTHING, Targets, named
from mergeyard.service.long_targets import TOGETHER
from mergeyard.service.written_targets import written
from tests.support.asynchronous import asynchronous


def many(beside: str = "x") -> Targets:
    return Targets(frozenset({beside, *(f"//area/{number}" for number in range(2 * TOGETHER))}))


def test_they_know_how_many_they_are():
    assert [written(targets).count for targets in (ALL, NOTHING, named("a", "b"))] == [None, 0, 2]


@asynchronous
async def test_those_at_hand_are_not_read_again():
    uploaded = written(many())
    assert await uploaded.read(many()) is uploaded


@asynchronous
async def test_others_are_read_from_what_is_written():
    for known in (None, ALL, NOTHING, many("y"), named(*many().names, "y")):
        assert (await replace(written(many()), targets=None).read(known)).targets == many()


@asynchronous
async def test_the_same_that_are_known_are_taken_for_them():
    known = many()
    assert (await replace(written(many()), targets=None).read(known)).targets is known
