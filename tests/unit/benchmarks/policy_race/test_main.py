"""The command that compares policies: its table, its JSON, and the options it refuses."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from benchmarks.policy_race.__main__ import simulate
from benchmarks.policy_race.policies import POLICIES
from benchmarks.policy_race.report import RaceMetrics
from mergeyard.cli.output import ExitCode

pytestmark = pytest.mark.long

SMALL = ("--rate", "10", "--hours", "1", "--workers", "20", "--seeds", "2")
INVALID_VALUE_EXIT_CODE = 2
"""Click checks the ranges of options itself."""


def invoke_simulate(*options: str) -> Result:
    app = typer.Typer()
    app.command()(simulate)
    return CliRunner().invoke(app, [*SMALL, *options])


def run_simulate(*options: str) -> str:
    result = invoke_simulate(*options)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_has_the_workload_and_every_metric_of_every_policy_with_its_range():
    printed = json.loads(run_simulate("--json", "--seed", "5"))
    assert printed.keys() == {"workload", "policies"}
    assert printed["workload"] == {
        "rate": 10, "hours": 1, "workers": 20, "success": 0.9, "conflict": 0.01, "flakes": 0, "parts": 100, "wide": 0,
        "seeds": 2, "seed": 5,
    }  # fmt: skip
    assert list(printed["policies"]) == list(POLICIES)
    expected = {f"{name}{edge}" for name in RaceMetrics.__struct_fields__ for edge in ("", "_min", "_max")}
    for metrics in printed["policies"].values():
        assert metrics.keys() == expected
        assert metrics["runs_min"] <= metrics["runs"] <= metrics["runs_max"]
    assert printed["policies"]["oracle"]["p50_over_oracle"] == 1


def test_the_same_seeds_print_the_same_result():
    assert run_simulate("--json", "--policies", "serial,oracle") == run_simulate(
        "--json", "--policies", "oracle, serial"
    )


def test_the_table_has_a_row_for_each_policy():
    title, heading, *rows = run_simulate("--policies", "zuul,serial").splitlines()
    assert title.startswith("10 changes per hour for 1 h, 20 workers, success 0.9")
    assert heading.split("  ")[0] == "policy"
    assert [row.split()[0] for row in rows] == ["serial", "zuul"]


def test_a_plot_is_written_to_the_given_file(tmp_path: Path):
    run_simulate("--policies", "serial", "--plot", str(tmp_path / "race.svg"))
    assert (tmp_path / "race.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize(
    ("options", "exit_code", "advice"),
    [
        (("--policies", "serial,luck"), ExitCode.USAGE_ERROR, "luck is not a policy: choose from oracle, serial"),
        (("--plot", "race.png"), ExitCode.USAGE_ERROR, "choose a file name that ends in .svg"),
        (("--plot", "/nowhere/race.svg"), ExitCode.USAGE_ERROR, "The folder /nowhere does not exist"),
        (("--rate", "5000", "--hours", "100"), ExitCode.USAGE_ERROR, "reduce them to 100,000 at most"),
        (("--success", "90"), INVALID_VALUE_EXIT_CODE, "90"),
        (("--workers", "0"), INVALID_VALUE_EXIT_CODE, "0"),
    ],
    ids=str,
)
def test_invalid_options_are_refused_with_advice(options: tuple[str, ...], exit_code: int, advice: str):
    result = invoke_simulate(*options)
    assert (result.exit_code, result.stdout) == (exit_code, "")
    assert advice in result.stderr
