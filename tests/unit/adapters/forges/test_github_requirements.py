"""How the queue judges the review rules of GitHub: from facts that are the same for every account."""

from typing import Any

import msgspec
import pytest

from mergeyard.adapters.forges.github.requirements import ReviewFacts, Team, judge_reviews
from mergeyard.adapters.forges.github.rules import BranchRules, Parameters, Protection, Rule
from mergeyard.adapters.forges.github.wire import Review, ReviewRequest
from mergeyard.domain.pull_requests import Requirement
from mergeyard.domain.states import Reason

HEAD, OLD = "a" * 40, "b" * 40
DB_TEAM = 17


def rules_with(**parameters: Any) -> BranchRules:
    rule = Rule("pull_request", msgspec.convert(parameters, Parameters))
    return BranchRules((rule,), Protection(), frozenset())


def review(login: str, state: str = "APPROVED", commit: str = HEAD) -> Review:
    return msgspec.convert({"state": state, "author": {"login": login}, "commit": {"oid": commit}}, Review)


def request(login: str = "", team: str = "", *, as_code_owner: bool = False) -> ReviewRequest:
    reviewer = {"login": login} if login else {"combinedSlug": team}
    return msgspec.convert({"asCodeOwner": as_code_owner, "requestedReviewer": reviewer}, ReviewRequest)


def judge(rules: BranchRules, *reviews: Review, **facts: Any) -> list[Requirement]:
    return judge_reviews(rules, ReviewFacts(head=HEAD, reviews=reviews, **facts))


def unmet(requirements: list[Requirement]) -> list[tuple[Reason, tuple[str, ...]]]:
    return [(each.reason, each.names) for each in requirements if not each.is_met]


TWO_APPROVALS = rules_with(required_approving_review_count=2)


def test_approvals_are_counted_and_the_requested_reviewers_are_named():
    (found,) = judge(TWO_APPROVALS, review("ada"), requests=(request(team="acme/db"), request("bob")))
    assert (found.reason, found.given, found.needed) == (Reason.WAITING_FOR_REVIEW, 1, 2)
    assert found.names == ("@acme/db", "@bob")
    assert not found.is_met


def test_enough_approvals_are_met_whether_or_not_github_reports_a_decision():
    for decision in (None, "APPROVED"):
        assert unmet(judge(TWO_APPROVALS, review("ada"), review("bob"), decision=decision)) == []


@pytest.mark.parametrize("state", ["DISMISSED", "COMMENTED", "PENDING"])
def test_only_approvals_count(state: str):
    assert unmet(judge(TWO_APPROVALS, review("ada"), review("bob", state))) == [(Reason.WAITING_FOR_REVIEW, ())]


def test_the_review_of_a_deleted_account_does_not_count():
    deleted = msgspec.structs.replace(review("bob"), author=None)
    assert unmet(judge(TWO_APPROVALS, review("ada"), deleted)) == [(Reason.WAITING_FOR_REVIEW, ())]


def test_the_largest_number_of_approvals_counts_also_from_classic_protection():
    classic = msgspec.convert({"required_pull_request_reviews": {"required_approving_review_count": 3}}, Protection)
    rules = msgspec.structs.replace(TWO_APPROVALS, classic=classic)
    (found,) = judge(rules, review("ada"), review("bob"))
    assert (found.given, found.needed) == (2, 3)


def test_requested_changes_block_although_others_approve():
    reviews = (review("ada"), review("bob"), review("eve", "CHANGES_REQUESTED"))
    assert unmet(judge(TWO_APPROVALS, *reviews)) == [(Reason.CHANGES_REQUESTED, ("@eve",))]


def test_requested_changes_that_only_github_knows_block_too():
    found = judge(TWO_APPROVALS, review("ada"), review("bob"), decision="CHANGES_REQUESTED")
    assert unmet(found) == [(Reason.CHANGES_REQUESTED, ())]


def test_a_review_that_github_still_requires_blocks_although_the_queue_counts_enough():
    found = judge(TWO_APPROVALS, review("ada"), review("bob"), decision="REVIEW_REQUIRED")
    assert unmet(found) == [(Reason.BLOCKED_BY_HOST_RULE, ("GitHub still requires a review",))]


@pytest.mark.parametrize("decision", [None, "REVIEW_REQUIRED"])
def test_code_owners_approve_only_when_github_says_so(decision: str | None):
    rules = rules_with(require_code_owner_review=True)
    requests = (request("bob"), request(team="acme/db", as_code_owner=True))
    found = judge(rules, review("ada"), decision=decision, requests=requests)
    assert unmet(found) == [(Reason.WAITING_FOR_CODE_OWNER, ("@acme/db",))]
    assert unmet(judge(rules, review("ada"), decision="APPROVED")) == []


LAST_PUSH = rules_with(require_last_push_approval=True)
WAITS_FOR_LAST_PUSH = [(Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ("@ada",))]


def test_the_last_push_needs_an_approval_of_its_commit_by_another_person():
    assert unmet(judge(LAST_PUSH, review("ada"), pusher="ada")) == WAITS_FOR_LAST_PUSH
    assert unmet(judge(LAST_PUSH, review("bob", commit=OLD), pusher="ada")) == WAITS_FOR_LAST_PUSH
    assert unmet(judge(LAST_PUSH, review("bob"), pusher="ada")) == []


def test_an_older_approval_of_the_last_push_counts_only_if_github_accepts_it():
    older = review("bob", commit=OLD)
    assert unmet(judge(LAST_PUSH, older, pusher="ada", decision="APPROVED")) == []
    assert unmet(judge(LAST_PUSH, older, pusher="ada", decision="REVIEW_REQUIRED")) == WAITS_FOR_LAST_PUSH
    assert unmet(judge(LAST_PUSH, review("bob"), pusher="ada", decision="REVIEW_REQUIRED")) == WAITS_FOR_LAST_PUSH


def test_an_app_that_pushed_last_is_recognized_by_its_other_name():
    assert unmet(judge(LAST_PUSH, review("Fixer"), pusher="fixer[bot]", decision="APPROVED"))


def test_without_knowing_who_pushed_last_only_github_can_tell():
    assert unmet(judge(LAST_PUSH, review("bob"))) == [(Reason.WAITING_FOR_LAST_PUSH_APPROVAL, ())]
    assert unmet(judge(LAST_PUSH, review("bob"), decision="APPROVED")) == []


def team_rule(*patterns: str, minimum: int = 1) -> BranchRules:
    required = {"reviewer": {"id": DB_TEAM, "type": "Team"}, "file_patterns": patterns, "minimum_approvals": minimum}
    return rules_with(required_reviewers=[required])


TEAMS = {DB_TEAM: Team("@acme/db", frozenset({"linus", "grace"}))}


def test_a_team_must_approve_changes_of_its_files():
    rules, facts = team_rule("db/**", minimum=2), {"files": ("db/a.sql",), "teams": TEAMS}
    waits = [(Reason.WAITING_FOR_REVIEW, ("@acme/db",))]
    assert unmet(judge(rules, review("ada"), review("bob"), **facts)) == waits
    assert unmet(judge(rules, review("ada"), review("linus"), **facts)) == waits
    assert unmet(judge(rules, review("grace"), review("linus"), **facts)) == []
    assert judge(rules, **facts | {"files": ("web/a.js",)}) == []


def test_a_team_whose_name_is_not_known_is_named_by_its_id():
    found = judge(team_rule("*"), files=("a",), teams={DB_TEAM: Team("", frozenset({"linus"}))})
    assert unmet(found) == [(Reason.WAITING_FOR_REVIEW, ("the team with the id 17",))]


def test_a_team_with_no_minimum_need_not_approve():
    assert judge(team_rule("*", minimum=0), files=("a",)) == []


def test_teams_that_cannot_be_read_are_unknown_not_approved():
    (found,) = judge(team_rule("*"), review("linus"), files=("a",))
    assert found.reason is Reason.HOST_RULE_UNREADABLE
    assert found.given is None
    assert not found.is_met


@pytest.mark.parametrize(
    ("pattern", "file"),
    [
        ("*.sql", "db/a.sql"), ("**/*.sql", "a.sql"), ("/db/*", "db/a.sql"), ("db/**/*.sql", "db/a.sql"), ("*", "x/y"),
        ("db/", "db/a.sql"), ("db", "db/a.sql"), ("/db", "db/a.sql"), ("Makefile", "x/Makefile"), ("db", "x/db/a.sql"),
        ("*.{sql,py}", "a.sql"), ("[^a].py", "b.py"), ("a/**/b/**/c", "a/x/b/c"), ("**/**/a", "a"),
        ("\\*x", "*x"), ("/", "a"), ("", "a"), (".", "a"), ("./db/*", "db/a.sql"), ("**/./db", "db"), ("db//a", "db/a"),
    ],
)  # fmt: skip
def test_file_patterns_match_at_least_what_github_matches(pattern: str, file: str):
    assert unmet(judge(team_rule(pattern), files=(file,)))


def test_patterns_that_exclude_files_do_not_spare_an_approval():
    assert unmet(judge(team_rule("*.sql", "!db/*"), files=("db/a.sql",)))


@pytest.mark.parametrize("patterns", [(), ("!a",), ("!a", "!b")])
def test_a_rule_without_a_pattern_that_includes_files_matches_every_file(patterns: tuple[str, ...]):
    assert unmet(judge(team_rule(*patterns), files=("a",), teams=TEAMS))
    assert judge(team_rule(*patterns), files=(), teams=TEAMS) == []


def test_a_team_without_members_can_give_no_approval():
    (found,) = judge(team_rule("*"), review("linus"), files=("a",), teams={DB_TEAM: Team("@acme/db", frozenset())})
    assert (found.reason, found.given, found.needed) == (Reason.WAITING_FOR_REVIEW, 0, 1)


def test_more_files_than_github_lists_count_as_matching():
    assert unmet(judge(team_rule("db/**"), files=None))
