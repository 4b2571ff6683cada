"""Parses what an administrator typed: repositories, branches, and the fields of a webhook."""

from collections.abc import Mapping

from msgspec import Struct

from mergeyard.domain.ids import Repo
from mergeyard.domain.webhooks import EventType, Topic, Webhook, WebhookKind
from mergeyard.service.errors import Code, RequestRefused
from mergeyard.service.webhooks.webhooks import WebhookChanges
from mergeyard.web.rendering import PageRequest
from mergeyard.web.user_sessions import Form

MAX_TOPICS = 100


def parse_topics(text: str, page: PageRequest) -> tuple[Topic, ...]:
    """Each `host/owner/name`, or one of its branches: `host/owner/name:main`."""
    lines = text.split()
    if len(lines) > MAX_TOPICS:
        raise RequestRefused(Code.INVALID_REQUEST, f"{len(lines)} lines are too many: name at most {MAX_TOPICS}.")
    return tuple(dict.fromkeys(_resolve_topic(line, page) for line in lines))


def parse_repos(text: str, page: PageRequest) -> tuple[Repo, ...]:
    topics = parse_topics(text, page)
    for topic in topics:
        if topic.branch is not None:
            raise RequestRefused(
                Code.INVALID_REQUEST, f"Name repositories, not branches: remove :{topic.branch[:100]}."
            )
    return tuple(topic.repo for topic in topics)


def parse_topic(text: str) -> Topic:
    """Parses without normalizing. The host can have a port, so only a colon after the first slash starts the branch."""
    host, _, path = text.partition("/")
    path, _, branch = path.partition(":")
    repo = Repo.parse(f"{host}/{path}")
    if repo is None:
        raise RequestRefused(Code.INVALID_REQUEST, f"“{text[:100]}” is not a repository: write host/owner/name.")
    return Topic(repo, branch or None)


def format_topic(topic: Topic) -> str:
    return str(topic.repo) + (f":{topic.branch}" if topic.branch else "")


def _resolve_topic(line: str, page: PageRequest) -> Topic:
    topic = parse_topic(line)
    repo = page.service.repositories.canonical_repo(topic.repo, page.user.token)
    if not page.user.token.can_access(repo):
        raise RequestRefused(Code.INVALID_REQUEST, f"Your token has no access to {str(repo)[:200]}: remove it.")
    return Topic(repo, topic.branch)


MAX_URL_LENGTH = 2048
MAX_DESCRIPTION_LENGTH = 200
NO_EVENT = "Choose at least one event, or all events."
TOPICS_REQUIRED = "Your token is limited to some repositories: name the repositories to report events of."


CHOSEN_EVENTS = "chosen"
EVENT_PRESETS: Mapping[str, tuple[str, frozenset[str]]] = {
    "all": ("All events", frozenset()),
    "ends": ("Merges and failures", frozenset({EventType.PR_MERGED, EventType.PR_FAILED})),
    "failures": ("Failures only", frozenset({EventType.PR_FAILED})),
}
"""Sets of events that an administrator chooses by one name: the label, and the events as a webhook stores them."""


class WebhookForm(Struct, frozen=True):
    """Holds the texts as typed, so that the form can be shown again with an error."""

    url: str = ""
    kind: str = WebhookKind.WEBHOOK
    preset: str = "all"
    events: frozenset[str] = frozenset()
    topics: str = ""
    description: str = ""

    @classmethod
    def from_form(cls, form: Form) -> "WebhookForm":
        return cls(
            url=form.get("url"),
            kind=form.get("kind"),
            preset=form.get("preset"),
            events=frozenset(form.get_all("event")),
            topics=form.get("topics"),
            description=form.get("description"),
        )

    @classmethod
    def from_webhook(cls, webhook: Webhook) -> "WebhookForm":
        """Without the URL, which is stored encrypted; an empty URL in the form keeps the stored one."""
        events = frozenset(webhook.events)
        return cls(
            kind=webhook.kind,
            preset=next((name for name, (_, preset) in EVENT_PRESETS.items() if preset == events), CHOSEN_EVENTS),
            events=events,
            topics="\n".join(map(format_topic, webhook.topics)),
            description=webhook.description,
        )

    def parse_changes(self, page: PageRequest) -> WebhookChanges:
        """All fields except the URL."""
        if len(self.description) > MAX_DESCRIPTION_LENGTH:
            detail = f"The description is longer than {MAX_DESCRIPTION_LENGTH} characters: shorten it."
            raise RequestRefused(Code.INVALID_REQUEST, detail)
        topics = parse_topics(self.topics, page)
        if page.user.token.repos and not topics:
            raise RequestRefused(Code.INVALID_REQUEST, TOPICS_REQUIRED)
        return WebhookChanges(
            events=self._parse_events(),
            topics=topics,
            description=self.description,
        )

    def _parse_events(self) -> tuple[EventType, ...]:
        if self.preset == CHOSEN_EVENTS and not self.events:
            raise RequestRefused(Code.INVALID_REQUEST, NO_EVENT)
        _, events = EVENT_PRESETS.get(self.preset, ("", self.events))
        return tuple(event for event in EventType if event in events)

    def parse_url(self) -> str:
        if not 0 < len(self.url) <= MAX_URL_LENGTH:
            detail = f"Enter a URL of at most {MAX_URL_LENGTH} characters, for example https://example.org/hooks."
            raise RequestRefused(Code.INVALID_REQUEST, detail)
        return self.url

    def parse_kind(self) -> WebhookKind:
        if self.kind not in tuple(WebhookKind):
            raise RequestRefused(Code.INVALID_REQUEST, "Choose the type: JSON or Slack.")
        return WebhookKind(self.kind)
