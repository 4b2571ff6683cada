"""Sends the webhooks of a repository, signed like GitHub's."""

import hashlib
import hmac
import json
from itertools import count
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.deliveries import Deliveries, Delivery
from tests.support.forges.github.description import check_described, fill_defaults, models
from tests.support.forges.github.world import CheckRun, CheckSuite, Comment, CommitStatus, Hook, PullRequest

ZERO_SHA = "0" * 40


class Webhooks:
    def __init__(self, repository: str, hooks: list[Hook], deliveries: Deliveries) -> None:
        self.repository = repository
        self._hooks = hooks
        self._deliveries = deliveries
        self._ids = count(1)

    def send_pull_request(self, change: PullRequest, action: str) -> None:
        kind = getattr(models, "WebhookPullRequest" + "".join(map(str.capitalize, action.split("_"))))
        pull = {"number": change.number, "head": {"sha": change.head, "ref": change.branch}, "draft": change.draft}
        pull |= {"merged": change.merged is not None}
        self._send("pull_request", kind, {"action": action, "number": change.number, "pull_request": pull})

    def send_review(self, change: PullRequest, person: str, action: str) -> None:
        kind = getattr(models, f"WebhookPullRequestReview{action.capitalize()}")
        facts = {"action": action, "pull_request": {"number": change.number}, "review": {"user": {"login": person}}}
        self._send("pull_request_review", kind, facts)

    def send_thread(self, change: PullRequest, *, resolved: bool) -> None:
        action = "resolved" if resolved else "unresolved"
        kind = getattr(models, f"WebhookPullRequestReviewThread{action.capitalize()}")
        self._send("pull_request_review_thread", kind, {"action": action, "pull_request": {"number": change.number}})

    def send_comment(self, said: Comment, action: str) -> None:
        kind = getattr(models, f"WebhookIssueComment{action.capitalize()}")
        issue = {"number": said.number, "pull_request": {"url": "-"}}
        facts = {"action": action, "issue": issue, "comment": {"id": said.id, "body": said.body}}
        self._send("issue_comment", kind, facts)

    def send_status(self, sha: str, status: CommitStatus) -> None:
        facts = {"sha": sha, "context": status.context, "state": status.state}
        self._send("status", models.WebhookStatus, facts)

    def send_check_run(self, sha: Sha, run: CheckRun) -> None:
        done = run.status == "completed"
        kind = models.WebhookCheckRunCompleted if done else models.WebhookCheckRunCreated
        facts = {"action": "completed" if done else "created", "check_run": {"head_sha": sha, "name": run.name}}
        self._send("check_run", kind, facts)

    def send_check_suite(self, sha: Sha, suite: CheckSuite) -> None:
        done = suite.status == "completed"
        kind = models.WebhookCheckSuiteCompleted if done else models.WebhookCheckSuiteRequested
        facts = {"head_sha": sha, "status": suite.status, "conclusion": suite.conclusion}
        self._send("check_suite", kind, {"action": "completed" if done else "requested", "check_suite": facts})

    def send_push(self, ref: str, before: Sha | None, after: Sha | None) -> None:
        facts = {"ref": ref, "before": before or ZERO_SHA, "after": after or ZERO_SHA, "deleted": after is None}
        self._send("push", models.WebhookPush, facts)

    def _send(self, event: str, kind: Any, facts: dict[str, Any]) -> None:
        owner, _, name = self.repository.partition("/")
        repository = {"name": name, "full_name": self.repository, "owner": {"login": owner}}
        payload = check_described(kind, fill_defaults(kind, facts | {"repository": repository}))
        body = json.dumps(payload).encode()
        for hook in self._hooks:
            if hook.active and event in hook.events:
                self._deliveries.enqueue(self._sign(hook, event, body))

    def _sign(self, hook: Hook, event: str, body: bytes) -> Delivery:
        signature = hmac.new(hook.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json",
            "x-github-delivery": str(next(self._ids)),
            "x-github-event": event,
            "x-hub-signature-256": f"sha256={signature}",
        }
        return Delivery(hook.url, headers, body)
