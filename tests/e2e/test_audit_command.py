"""`mergeyard audit` against a real server: what it prints, how it ends, and what becomes of the queue."""

from pathlib import Path

from tests.support.premises import Premises, new_token
from tests.support.terminal import Terminal


def test_an_audit_finds_nothing_until_somebody_plants_something(tmp_path: Path):
    premises = Premises.prepared(tmp_path)
    try:
        premises.create_queue()
        terminal = Terminal(premises.server.url, new_token(premises.server.config))
        assert terminal.done("audit") == "Nothing has landed yet.\n"
        number = premises.open_pr({"a.txt": "1"})
        premises.submit(number)
        premises.wait_for("merged", number)
        assert terminal.done("audit").endswith("1 landing compared with the target, and nothing differs.\n")
        (landing,) = terminal.answered("audit", "--last", "5")["landings"]
        assert (landing["prNumber"], landing["verdict"]) == (number, "as_tested")
        planted = plant_a_landing_of(1234, premises)
        assert f"unrecorded: {planted[:12]} calls itself a landing of #1234" in differs(terminal)
        assert premises.api.post("getQueue")["state"] == "PAUSED"
        assert terminal.answered("queue", "resume")["state"] == "RUNNING"
        assert "unrecorded" in differs(terminal)
        assert premises.api.post("getQueue")["state"] == "RUNNING"
        (complaint,) = premises.server.complaints()
        assert complaint["doubt"] == "unrecorded"
    finally:
        premises.close()


def plant_a_landing_of(number: int, premises: Premises) -> str:
    words = f"Merge pull request #{number}: Planted\n\nMergeyard-Pull-Request: {number}\n"
    return premises.origin.commit("main", {"planted": "1"}, message=words)


def differs(terminal: Terminal) -> str:
    answer = terminal.run("audit")
    assert answer.exit_code == 5, answer.output
    return answer.stdout
