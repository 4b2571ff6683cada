"""What somebody filled in about a webhook, and what the service is to make of it."""

from msgspec import Struct

from mergeyard.domain.webhooks import EventType, Topic, Webhook, WebhookKind
from mergeyard.service.errors import Code, Refused
from mergeyard.service.site import Sites
from mergeyard.service.telling.webhooks import Wishes
from mergeyard.web.administration.naming import topics_typed, typed
from mergeyard.web.forms import Form
from mergeyard.web.visiting import Visitor

LONGEST_ADDRESS = 2048
LONGEST_DESCRIPTION = 200
EVERYTHING = "Your token is limited to some repositories: name those of which to tell."


class WebhookWishes(Struct, frozen=True):
    """As it was typed, so that nobody need type it again."""

    url: str = ""
    kind: str = WebhookKind.WEBHOOK
    events: frozenset[str] = frozenset()
    topics: str = ""
    description: str = ""

    @classmethod
    def in_form(cls, form: Form) -> "WebhookWishes":
        return cls(
            url=form.get("url"),
            kind=form.get("kind"),
            events=frozenset(form.all("event")),
            topics=form.get("topics"),
            description=form.get("description"),
        )

    @classmethod
    def of(cls, webhook: Webhook) -> "WebhookWishes":
        """Its address is not known here, and stays as it is when none is given."""
        return cls(
            kind=webhook.kind,
            events=frozenset(webhook.events),
            topics="\n".join(map(typed, webhook.topics)),
            description=webhook.description,
        )

    def understood(self, visitor: Visitor, sites: Sites) -> Wishes:
        """All but the address."""
        if len(self.description) > LONGEST_DESCRIPTION:
            words = f"The description is longer than {LONGEST_DESCRIPTION} characters: shorten it."
            raise Refused(Code.INVALID_REQUEST, words)
        return Wishes(
            events=tuple(event for event in EventType if event in self.events),
            topics=self._topics(visitor, sites),
            description=self.description,
        )

    def address(self) -> str:
        if not 0 < len(self.url) <= LONGEST_ADDRESS:
            words = f"Give an address of at most {LONGEST_ADDRESS} characters, such as https://example.org/hooks."
            raise Refused(Code.INVALID_REQUEST, words)
        return self.url

    def of_kind(self) -> WebhookKind:
        if self.kind not in tuple(WebhookKind):
            raise Refused(Code.INVALID_REQUEST, "Choose what receives the events: a program or Slack.")
        return WebhookKind(self.kind)

    def _topics(self, visitor: Visitor, sites: Sites) -> tuple[Topic, ...]:
        topics = topics_typed(self.topics, visitor, sites)
        if visitor.token.repos and not topics:
            raise Refused(Code.INVALID_REQUEST, EVERYTHING)
        return topics
