"""Tells of what happens in a repository by webhook, signed as GitHub signs."""

import hashlib
import hmac
import json
from itertools import count
from typing import Any

from mergeyard.domain.ids import Sha
from tests.support.forges.deliveries import Deliveries, Letter
from tests.support.forges.github.description import checked, filled, models
from tests.support.forges.github.facts import Change, Hook, Ran, Reported, Said

NOWHERE = "0" * 40


class Mail:
    def __init__(self, repository: str, hooks: list[Hook], deliveries: Deliveries) -> None:
        self._repository = repository
        self._hooks = hooks
        self._deliveries = deliveries
        self._ids = count(1)

    def pull_request(self, change: Change, action: str) -> None:
        kind = getattr(models, "WebhookPullRequest" + "".join(map(str.capitalize, action.split("_"))))
        pull = {"number": change.number, "head": {"sha": change.head, "ref": change.branch}, "draft": change.draft}
        self._send("pull_request", kind, {"action": action, "number": change.number, "pull_request": pull})

    def review(self, change: Change, person: str) -> None:
        facts = {
            "action": "submitted",
            "pull_request": {"number": change.number},
            "review": {"user": {"login": person}},
        }
        self._send("pull_request_review", models.WebhookPullRequestReviewSubmitted, facts)

    def comment(self, said: Said) -> None:
        issue = {"number": said.number, "pull_request": {"url": "-"}}
        facts = {"action": "created", "issue": issue, "comment": {"id": said.id, "body": said.text}}
        self._send("issue_comment", models.WebhookIssueCommentCreated, facts)

    def status(self, sha: str, status: Reported) -> None:
        facts = {"sha": sha, "context": status.context, "state": status.state}
        self._send("status", models.WebhookStatus, facts)

    def check_run(self, sha: Sha, run: Ran) -> None:
        done = run.status == "completed"
        kind = models.WebhookCheckRunCompleted if done else models.WebhookCheckRunCreated
        facts = {"action": "completed" if done else "created", "check_run": {"head_sha": sha, "name": run.name}}
        self._send("check_run", kind, facts)

    def push(self, ref: str, before: Sha | None, after: Sha | None) -> None:
        facts = {"ref": ref, "before": before or NOWHERE, "after": after or NOWHERE, "deleted": after is None}
        self._send("push", models.WebhookPush, facts)

    def _send(self, event: str, kind: Any, facts: dict[str, Any]) -> None:
        owner, _, name = self._repository.partition("/")
        place = {"name": name, "full_name": self._repository, "owner": {"login": owner}}
        message = checked(kind, filled(kind, facts | {"repository": place}))
        body = json.dumps(message).encode()
        for hook in self._hooks:
            if hook.active and event in hook.events:
                self._deliveries.post(self._letter(hook, event, body))

    def _letter(self, hook: Hook, event: str, body: bytes) -> Letter:
        signature = hmac.new(hook.secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "content-type": "application/json",
            "x-github-delivery": str(next(self._ids)),
            "x-github-event": event,
            "x-hub-signature-256": f"sha256={signature}",
        }
        return Letter(hook.address, headers, body)
