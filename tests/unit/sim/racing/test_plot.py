"""The picture: one row for each policy, readable as what it is, and drawn for light and dark."""

from xml.etree import ElementTree

from mergeyard.sim.racing.figures import Figures
from mergeyard.sim.racing.plot import Scale, draw_svg
from mergeyard.sim.racing.ranges import Range

SVG = "{http://www.w3.org/2000/svg}"
RESULTS = {
    policy: dict.fromkeys(Figures.__struct_fields__, Range(mean, mean / 2, mean * 2))
    for policy, mean in (("oracle", 1.0), ("a<b & c", 40.0))
}


def drawn() -> ElementTree.Element:
    return ElementTree.fromstring(draw_svg(RESULTS, "a workload"))


def test_every_policy_has_its_name_and_four_marks():
    words = [text.text for text in drawn().iter(f"{SVG}text")]
    assert {"oracle", "a<b & c", "a workload", "P50", "P95", "P99"} <= set(words)
    legend = 3
    assert len(list(drawn().iter(f"{SVG}circle"))) == legend + 4 * len(RESULTS)


def test_it_says_what_it_is_and_follows_the_colours_of_the_reader():
    assert drawn().get("role") == "img"
    assert [drawn().findtext(f"{SVG}{name}") for name in ("title", "desc")] == [
        "How policies compare",
        "Turnaround divided by Oracle's, and runs per merge, of 2 policies.",
    ]
    assert "prefers-color-scheme: dark" in draw_svg(RESULTS, "")


def test_ten_times_as_much_is_one_step_further():
    scale = Scale([1, 100], start=50, length=200)
    assert [scale.place(value) for value in (1, 10, 100)] == [50, 150, 250]
    assert scale.marks == [1, 10, 100]


def test_nothing_at_all_can_be_drawn():
    assert Scale([0, 0], start=0, length=10).place(0) == 0
