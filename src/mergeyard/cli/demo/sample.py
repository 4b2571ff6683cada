"""The twelve pull requests of the demo: what each changes, what becomes of it meanwhile, and how it must end."""

from enum import StrEnum, auto

from msgspec import Struct

from mergeyard.cli.demo.teahouse import BRANCH, PRICE, README, TOTAL, feature
from mergeyard.domain.reasons import Reason
from mergeyard.domain.states import PrState


class Ending(Struct, frozen=True):
    state: PrState
    reason: Reason

    def __str__(self) -> str:
        return str(self.state) if self.state is PrState.MERGED else f"{self.state}: {self.reason}"


MERGED = Ending(PrState.MERGED, Reason.MERGED_BY_QUEUE)
RED = Ending(PrState.FAILED, Reason.TEST_RUN_FAILED)
IN_CONFLICT = Ending(PrState.FAILED, Reason.MERGE_CONFLICT)
TAKEN_BACK = Ending(PrState.CANCELLED, Reason.CANCELLED_BY_USER)


class Part(StrEnum):
    """What its author does besides submitting it with the others."""

    NONE = auto()
    SUBMIT_URGENTLY = auto()
    MARK_READY = auto()
    TAKE_BACK = auto()


class Pull(Struct, frozen=True, kw_only=True):
    branch: str
    title: str
    author: str
    files: dict[str, str]
    expected: Ending = MERGED
    about: str = ""
    part: Part = Part.NONE
    upon: str = BRANCH
    rival: int | None = None
    """Who may end like this one instead: only one of the two can merge, and it matters little which."""

    @property
    def draft(self) -> bool:
        return self.part is Part.MARK_READY


PULLS = (
    Pull(
        branch="honey",
        title="Put honey tea on the menu",
        author="Ada",
        files={"menu/honey": "5\n"},
    ),
    Pull(
        branch="cups",
        title="Count the cups",
        author="Ben",
        files=feature("cups", 'echo "$#"', '[ "$(cups mint mint green)" = 3 ]'),
    ),
    Pull(
        branch="change",
        title="Give change",
        author="Chi",
        files=feature("change", 'echo "$(($1 - $2))"', '[ "$(change 10 7)" = 3 ]'),
    ),
    Pull(
        branch="rename",
        title="Call price_of cost_of",
        author="Dov",
        files={
            "till/price.sh": PRICE.format(price_of="cost_of"),
            "till/total.sh": TOTAL.format(price_of="cost_of"),
            "tests/test_price.sh": '[ "$(cost_of black)" = 4 ]\n',
        },
        about="green alone, red together with #6",
        rival=6,
    ),
    Pull(
        branch="gift",
        title="Give green tea away",
        author="Eve",
        files={"menu/green": "0\n"},
        expected=RED,
        about="breaks a test",
    ),
    Pull(
        branch="dearer",
        title="Tell which of two teas is dearer",
        author="Fay",
        files=feature(
            "dearer",
            '[ "$(price_of "$1")" -gt "$(price_of "$2")" ] && echo "$1" || echo "$2"',
            '[ "$(dearer black mint)" = black ]',
        ),
        expected=RED,
        about="green alone, red together with #4, which takes price_of away",
        rival=4,
    ),
    Pull(
        branch="early",
        title="Open an hour earlier",
        author="Gil",
        files={"README.md": README.format(opens=7, closes=18)},
        about="changes the same line as #8",
        rival=8,
    ),
    Pull(
        branch="late",
        title="Close two hours later",
        author="Hal",
        files={"README.md": README.format(opens=8, closes=20)},
        expected=IN_CONFLICT,
        about="changes the same line as #7",
        rival=7,
    ),
    Pull(
        branch="kettle",
        title="Wait until the kettle boils",
        author="Ivy",
        files=feature("kettle", 'while [ ! -e "$1" ]; do sleep 1; done', "kettle boiling"),
        expected=TAKEN_BACK,
        about="its test never ends, so its author takes it back",
        part=Part.TAKE_BACK,
    ),
    Pull(
        branch="stamps",
        title="Every tenth cup is free",
        author="Jun",
        files=feature("stamps", 'echo "$(($1 / 10))"', '[ "$(stamps 20)" = 2 ]'),
        about="a draft at first, then marked as ready",
        part=Part.MARK_READY,
    ),
    Pull(
        branch="bill",
        title="Print the change on the bill",
        author="Chi",
        files=feature("bill", 'echo "change: $(change "$1" "$2")"', '[ "$(bill 10 7)" = "change: 3" ]'),
        about="stands upon #3 and lands after it",
        upon="change",
    ),
    Pull(
        branch="known",
        title="Refuse teas that are not on the menu",
        author="Kim",
        files=feature("known", '[ -e "menu/$1" ]', "known mint && ! known coffee"),
        about="urgent: passes everybody",
        part=Part.SUBMIT_URGENTLY,
    ),
)
"""In the order of their numbers, from 1."""
