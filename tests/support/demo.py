"""Answers of the server as the demo reads them, built with defaults."""

from msgspec import convert

from mergeyard.api.examples import SUBMITTED
from mergeyard.cli.demo.asking import Stay
from mergeyard.cli.demo.sample import PULLS, Ending
from mergeyard.cli.demo.scene import Scene


def a_stay(number: int, state: str, reason: str = "ready", **more: object) -> Stay:
    why = {"code": reason, "message": f"{reason}."}
    return convert(SUBMITTED | {"prNumber": number, "state": state, "reason": why} | more, type=Stay)


def a_scene(*stays: Stay, bisections: frozenset[str] = frozenset()) -> Scene:
    return Scene({stay.pr_number: stay for stay in stays}, bisections)


def ended(**others: Ending) -> Scene:
    """As the sample expects it, but for those whose branch is named."""
    endings = ((number, others.get(pull.branch, pull.expected)) for number, pull in enumerate(PULLS, start=1))
    return a_scene(*(a_stay(number, ending.state, ending.reason) for number, ending in endings))
