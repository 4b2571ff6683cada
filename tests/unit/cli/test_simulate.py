"""The command that races policies: what it prints for people and for programs, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mergeyard.cli import app
from mergeyard.sim.racing.figures import Figures
from mergeyard.sim.racing.policies import POLICIES

SMALL = ("--rate", "10", "--hours", "1", "--workers", "20", "--seeds", "2")


def simulated(*options: str) -> str:
    answer = CliRunner().invoke(app, ["simulate", *SMALL, *options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_programs_get_the_workload_and_every_figure_of_every_policy_with_its_range():
    printed = json.loads(simulated("--json", "--seed", "5"))
    assert printed.keys() == {"workload", "policies"}
    assert printed["workload"] == {
        "rate": 10, "hours": 1, "workers": 20, "success": 0.9, "conflict": 0.01, "flakes": 0, "parts": 100, "wide": 0,
        "seeds": 2, "seed": 5,
    }  # fmt: skip
    assert list(printed["policies"]) == list(POLICIES)
    expected = {f"{name}{edge}" for name in Figures.__struct_fields__ for edge in ("", "_min", "_max")}
    for figures in printed["policies"].values():
        assert figures.keys() == expected
        assert figures["runs_min"] <= figures["runs"] <= figures["runs_max"]
    assert printed["policies"]["oracle"]["p50_over_oracle"] == 1


def test_the_same_seeds_print_the_same():
    assert simulated("--json", "--policies", "serial,oracle") == simulated("--json", "--policies", "oracle, serial")


def test_people_get_a_table_with_a_row_for_each():
    title, heading, *rows = simulated("--policies", "zuul,serial").splitlines()
    assert title.startswith("10 changes per hour for 1 h, 20 workers, success 0.9")
    assert heading.split("  ")[0] == "policy"
    assert [row.split()[0] for row in rows] == ["serial", "zuul"]


def test_a_picture_is_drawn_where_it_is_wished(tmp_path: Path):
    simulated("--policies", "serial", "--plot", str(tmp_path / "race.svg"))
    assert (tmp_path / "race.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--policies", "serial,luck"), "luck is no policy: write some of oracle, serial"),
        (("--plot", "race.png"), "name a file that ends in .svg"),
        (("--plot", "/nowhere/race.svg"), "There is no folder /nowhere"),
        (("--rate", "5000", "--hours", "100"), "choose --rate and --hours for 100,000 at most"),
        (("--success", "90"), "90"),
        (("--workers", "0"), "0"),
    ],
    ids=str,
)
def test_what_cannot_be_raced_is_told_at_once(options: tuple[str, ...], advice: str):
    answer = CliRunner().invoke(app, ["simulate", *SMALL, *options])
    assert (answer.exit_code, answer.stdout) == (64, "")
    assert advice in answer.stderr
