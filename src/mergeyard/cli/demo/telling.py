"""Tells at the end what became of everybody, whether it was right, and where to look around."""

import json
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mergeyard.cli.demo.asking import QUEUE
from mergeyard.cli.demo.drawing import state
from mergeyard.cli.demo.sample import PULLS, Pull
from mergeyard.cli.demo.scene import Scene
from mergeyard.cli.demo.stage import Stage, log_in
from mergeyard.cli.demo.verdict import Finding, ended_well

INTRODUCTION = """\
Twelve pull requests meet a queue that tests them in batches of three, four batches at once.
The server, its repository and the checks are real; they live in {folder}
"""


def introduce(console: Console, folder: Path) -> None:
    console.print(INTRODUCTION.format(folder=folder), highlight=False, markup=False, soft_wrap=True)


def show_ends(console: Console, scene: Scene) -> None:
    rows = Table("PR", "what it does", "expected", "state", "why")
    for number, pull in enumerate(PULLS, start=1):
        stay = scene.stays.get(number)
        mark = "" if ended_well(scene, number, pull) else "✗ "
        why = stay.reason.message if stay else ""
        rows.add_row(f"{mark}#{number}", what(pull), expected(pull), state(stay), why)
    console.print()
    console.print(rows)


def what(pull: Pull) -> str:
    return f"{pull.title} ({pull.about})" if pull.about else pull.title


def expected(pull: Pull) -> str:
    return str(pull.expected) + (f" (or #{pull.rival} instead)" if pull.rival else "")


def show_finding(console: Console, finding: Finding) -> None:
    true = not finding.differences
    line = Text.assemble(("✓ ", "green") if true else ("✗ It is not so: ", "red"), finding.sentence)
    console.print(line, soft_wrap=True)
    for difference in finding.differences:
        console.print(Text(f"    {difference}"), soft_wrap=True)


def show_the_way(console: Console, stage: Stage) -> None:
    post = f"-H \"x-api-token: $(cat {stage.token_file})\" -H 'content-type: application/json' -d"
    timeline = json.dumps(QUEUE | {"pr": {"number": 6}, "includeTimeline": True})
    lines = (
        f"\nThe server is still up: {stage.url}/docs describes its API, and {log_in(stage.folder)} is its log.",
        "Look around, with the token of the demo:\n",
        f"  curl {stage.url}/v1/getQueue {post} '{json.dumps(QUEUE)}'",
        f"  curl {stage.url}/v1/getSubmittedPullRequest {post} '{timeline}'",
        f'  curl {stage.url}/v1/getMergeQueueMetrics -H "x-api-token: $(cat {stage.token_file})"',
        f"  git --git-dir {stage.repository} log --graph --oneline main",
        "\nCtrl-C ends it.",
    )
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
