"""Steps about reviews: requested changes, a withdrawn approval, a conversation, and a code owner."""

from collections.abc import Iterator

from tests.live.stage import Observation, Stage, Step

DECIDES = "Mergeyard decides by it"
SUBMISSION = "getSubmittedPullRequest"


def withhold_approval(stage: Stage) -> Iterator[Observation]:
    """An approved pull request leaves its test run when a reviewer requests changes, or when the approval is gone."""
    host = stage.host
    host.need_approvals("a review")
    number = stage.open("review")
    stage.submit(number)
    stage.find_run(number)
    reply = host.request_changes(number).must_succeed()
    yield stage.saw("a request for changes", reply, "changes", DECIDES)
    _read_now(stage, number)
    found = stage.wait_for_reason(number, "changes_requested")
    yield stage.saw("its submission, changes requested", found, asked=SUBMISSION, matters=DECIDES)
    yield stage.saw("the pull request, changes requested", stage.read_settled(number), "blocked", DECIDES)
    approval = host.approve(number).must_succeed()
    yield stage.saw("an approval by the same person", approval, "review", DECIDES)
    _read_now(stage, number)
    stage.find_run(number)
    reply = host.withdraw_approval(number, approval).must_succeed()
    yield stage.saw("the dismissal of the approval", reply, "review", DECIDES)
    _read_now(stage, number)
    found = stage.wait_for_reason(number, "waiting_for_review")
    yield stage.saw("its submission, approval dismissed", found, asked=SUBMISSION, matters=DECIDES)
    host.approve(number).must_succeed()
    _read_now(stage, number)
    yield from _merge(stage, number, "approved again")


def hold_conversation(stage: Stage) -> Iterator[Observation]:
    host = stage.host
    host.require_conversations()
    number = stage.open("talk")
    started = host.start_conversation(number, "talk.txt").must_succeed()
    yield stage.saw("a conversation", started, "conversation", DECIDES)
    stage.submit(number)
    found = stage.wait_for_reason(number, "waiting_for_conversations")
    yield stage.saw("its submission, conversation open", found, asked=SUBMISSION, matters=DECIDES)
    yield stage.saw("the pull request, conversation open", stage.read_settled(number), "blocked", DECIDES)
    resolved = host.resolve_conversation(number, started).must_succeed()
    yield stage.saw("the resolved conversation", {"status": resolved.status}, asked=resolved.asked, matters=DECIDES)
    _read_now(stage, number)
    yield from _merge(stage, number, "conversation resolved")
    host.restore_rules()


def ask_code_owner(stage: Stage) -> Iterator[Observation]:
    host = stage.host
    host.require_code_owner("owned.txt")
    number = stage.open("owned", is_approved=False)
    host.report(host.origin.tip(stage.branch("owned")), "success").must_succeed()
    stage.submit(number)
    stage.wait(lambda: "code owner" in stage.state_of(number)["message"], "a message about the code owner")
    found = stage.state_of(number)
    yield stage.saw("its submission, code owner asked", found, asked=SUBMISSION, matters=DECIDES)
    yield stage.saw("the pull request, code owner asked", stage.read_settled(number), "blocked", DECIDES)
    yield stage.saw("the approval of the code owner", host.approve(number).must_succeed(), "review", DECIDES)
    yield from _merge(stage, number, "approved by the code owner")
    host.restore_rules()


def _read_now(stage: Stage, number: int) -> None:
    """A list of pull requests does not show every such change at once, and without webhooks Mergeyard only polls. A
    submission reads the pull request itself."""
    stage.submit(number)


def _merge(stage: Stage, number: int, case: str) -> Iterator[Observation]:
    stage.test(number)
    merged = stage.wait_for_state(number, "merged")
    yield stage.saw(f"its submission, {case}", {"state": merged["state"]}, asked=SUBMISSION, matters=DECIDES)


REVIEWS: dict[str, tuple[str, Step]] = {
    "reviews": ("Requested changes and a dismissed approval", withhold_approval),
    "conversations": ("An open conversation", hold_conversation),
    "owners": ("A code owner", ask_code_owner),
}
