"""`mergeyard webhook`: webhooks, over the API of a server or in the database of this machine."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace

from mergeyard.cli.connection_options import YesOption, parse_repo_name
from mergeyard.cli.local_store import AdminSession, LocalStore, with_admin_session, with_local_store
from mergeyard.cli.output import (
    ExitCode,
    build_table,
    confirm,
    exit_with_message,
    format_time,
    plain_text,
    print_message,
    print_table,
    sanitize,
)
from mergeyard.client import (
    Client,
    QueueName,
    RepoName,
    Webhook,
    WebhookDeleted,
    WebhookDeliveries,
    WebhookDelivery,
    Webhooks,
)
from mergeyard.domain.ids import Repo
from mergeyard.domain.webhooks import EventType, Topic, WebhookKind

if TYPE_CHECKING:
    from mergeyard.service.webhooks.webhooks import WebhookChanges, WebhookClient
    from mergeyard.service.webhooks.webhooks import Webhooks as WebhookService

app = typer.Typer(
    name="webhook", no_args_is_help=True, help="Create and manage webhooks, which send events to programs and to Slack."
)

Result = TypeVar("Result")
Model = TypeVar("Model", bound=Struct)
Topics = Iterable[QueueName | RepoName]

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="As `mergeyard webhook list` shows it.")]
EventOption = Annotated[
    list[EventType] | None,
    typer.Option("--event", help="Send only events of this type. Repeat it for several. Default: all."),
]
QueueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        metavar="QUEUE",
        help="Send only events of this repository, host/owner/name, or of one branch, host/owner/name:main. Repeat it "
        "for several. Default: all.",
    ),
]
DescriptionOption = Annotated[str | None, typer.Option("--description", help="What the webhook is for.")]


@app.command()
@with_admin_session
def create(
    session: AdminSession,
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The URL that events are sent to, over https.")],
    slack: Annotated[bool, typer.Option("--slack", help="The address is an incoming webhook of Slack.")] = False,
    event: EventOption = None,
    queue: QueueOption = None,
    description: DescriptionOption = None,
) -> None:
    """Create a webhook and print its signing secret. The secret is not shown again.

    Standard output has the secret alone. A webhook of Slack has none.

    Examples:
        mergeyard webhook create https://ci.example.com/hook --event queue.updated
        mergeyard webhook create https://hooks.slack.com/services/PATH --slack
    """
    created = _open(session).create_webhook(
        address,
        kind=WebhookKind.SLACK if slack else WebhookKind.WEBHOOK,
        events=event,
        queues=_parse_topics(queue),
        description=description,
    )
    show_created(session, created)


def show_created(session: AdminSession, created: Webhook) -> None:
    """The response to a repeated request has no secret: the first response was lost on the way."""
    if created.secret is None and created.kind != WebhookKind.SLACK:
        message = f"Webhook {created.id} was created, but the response that contains its secret was lost."
        exit_with_message(message, hint=f"Delete it with `mergeyard webhook delete {created.id}`, then create another.")
    print_message(f"Created webhook {created.id}.")
    session.show(created, lambda: typer.echo(sanitize(created.secret)) if created.secret else None)


@app.command("list")
@with_admin_session
def show(session: AdminSession) -> None:
    """List all webhooks, without their secrets.

    Examples:
        mergeyard webhook list
        mergeyard webhook list --json
    """
    webhooks = _open(session).list_webhooks()
    table = build_table("id", "kind", "address", "events", "queues", "description", "state")
    table.columns[0].no_wrap = True
    for webhook in webhooks.webhooks:
        table.add_row(*map(plain_text, _to_row(webhook)))
    session.show(webhooks, lambda: print_table(table, "No webhooks. Create one with `mergeyard webhook create`."))


@app.command()
@with_admin_session
def update(
    session: AdminSession,
    webhook: IdArgument,
    address: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The new URL that events are sent to.")] = None,
    event: EventOption = None,
    queue: QueueOption = None,
    description: DescriptionOption = None,
    enabled: Annotated[
        bool | None,
        typer.Option("--enable/--disable", help="Send events again, from the first one not delivered; or stop."),
    ] = None,
) -> None:
    """Change a webhook. What is not given stays as it is.

    Examples:
        mergeyard webhook update 52ddb7875b4b --disable
        mergeyard webhook update 52ddb7875b4b --queue github.com/acme/app:main
    """
    changed = _open(session).update_webhook(
        webhook, url=address, events=event, queues=_parse_topics(queue), description=description, enabled=enabled
    )
    session.show(changed, lambda: print_message(f"Changed webhook {changed.id}."))


@app.command()
@with_admin_session
def delete(session: AdminSession, webhook: IdArgument, yes: YesOption = False) -> None:
    """Delete a webhook. Nothing is sent to it any longer.

    Examples:
        mergeyard webhook delete 52ddb7875b4b
        mergeyard webhook delete 52ddb7875b4b --yes
    """
    webhooks = _open(session)
    confirm(f"Delete webhook {webhook}? Its secret and its deliveries are deleted too.", yes)
    deleted = webhooks.delete_webhook(webhook)
    session.show(deleted, lambda: print_message(f"Deleted webhook {deleted.id}."))


@app.command("test")
@with_admin_session
def send_test(session: AdminSession, webhook: IdArgument) -> None:
    """Send a test event now and report the result.

    Examples:
        mergeyard webhook test 52ddb7875b4b
    """
    _report_delivery(session, _open(session).test_webhook(webhook))


@app.command()
@with_admin_session
def resend(
    session: AdminSession,
    webhook: IdArgument,
    event: Annotated[str, typer.Argument(metavar="EVENT", help="As `mergeyard webhook deliveries` shows it.")],
) -> None:
    """Send an event again, now, and report the result.

    Examples:
        mergeyard webhook resend 52ddb7875b4b msg_019c07d8b6c51f90da3a666eec13ab35
    """
    _report_delivery(session, _open(session).resend_event(webhook, event))


@app.command()
@with_admin_session
def deliveries(
    session: AdminSession,
    webhook: IdArgument,
    limit: Annotated[int, typer.Option("--limit", "-L", min=1, max=100, help="How many to list at most.")] = 50,
) -> None:
    """List the last delivery attempts, newest first.

    Examples:
        mergeyard webhook deliveries 52ddb7875b4b
        mergeyard webhook deliveries 52ddb7875b4b --limit 10 --json
    """
    attempts = _open(session).list_deliveries(webhook, take=limit)
    table = build_table("event", "type", "time", "attempt", "response")
    table.columns[0].no_wrap = True
    for each in attempts.deliveries:
        cells = (each.event_id, each.type, format_time(each.at), each.attempt, f"{each.status or '–'} {each.message}")
        table.add_row(*map(plain_text, cells))
    empty = f"No deliveries yet. `mergeyard webhook test {webhook}` sends a test event."
    session.show(attempts, lambda: print_table(table, empty))


@app.command()
@with_local_store
def reseal(store: LocalStore) -> None:
    """Encrypt all webhooks again with the newest key, which is the first line of the sealing key file.

    The command needs the database and the key file, so run it on the machine of the server.

    Examples:
        mergeyard webhook reseal --config /etc/mergeyard/mergeyard.toml
    """
    count = LocalWebhooks(store).run(lambda webhooks, _: webhooks.reencrypt_all())
    print_message(f"Encrypted {count} webhooks with the newest key. Older lines of the key file can be removed now.")


def _parse_topics(queues: list[str] | None) -> list[QueueName | RepoName] | None:
    return None if queues is None else list(map(_parse_topic, queues))


def _parse_topic(text: str) -> QueueName | RepoName:
    """The host can contain a port, so the branch starts at the first colon after the first slash."""
    host, _, path = text.partition("/")
    repo, _, branch = path.partition(":")
    name = parse_repo_name(f"{host}/{repo}")
    return QueueName(name, branch) if branch else name


def _report_delivery(session: AdminSession, delivery: WebhookDelivery) -> None:
    detail = f"{delivery.status or ''} {delivery.message}".strip()
    if delivery.delivered:
        session.show(delivery, lambda: print_message(f"Delivered {delivery.event_id}: {detail}"))
        return
    session.show(delivery, lambda: None)
    exit_with_message(f"Not delivered: {detail}", ExitCode.FAILED, hint="Check the address and its receiver.")


def _to_row(webhook: Webhook) -> tuple[str, ...]:
    queues = [f"{topic.repo}{f':{topic.target_branch}' if topic.target_branch else ''}" for topic in webhook.queues]
    state = "enabled" if webhook.disabled is None else f"disabled ({webhook.disabled.reason})"
    return (
        webhook.id,
        webhook.kind,
        webhook.url,
        " ".join(webhook.events) or "all",
        " ".join(queues) or "all",
        webhook.description or "–",
        state,
    )


class LocalWebhooks:
    """The webhooks in the database of this machine, with the methods of the client. A running server notices a change
    within seconds."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store

    def create_webhook(
        self,
        url: str,
        *,
        kind: str,
        events: Iterable[str] | None,
        queues: Topics | None,
        description: str | None,
    ) -> Webhook:
        from mergeyard.api.webhooks import present_webhook

        changes = _build_changes(events, queues, description=description)
        created, secret = self.run(
            lambda webhooks, client: webhooks.create(client, WebhookKind(kind), url, changes, lambda _: b"")
        )
        return replace(_to_model(present_webhook(created), Webhook), secret=secret)

    def list_webhooks(self) -> Webhooks:
        from mergeyard.api.webhooks import present_webhook

        found = self.run(lambda webhooks, client: webhooks.list_visible(client))
        return Webhooks(webhooks=tuple(_to_model(present_webhook(webhook), Webhook) for webhook in found))

    def update_webhook(
        self,
        webhook_id: str,
        *,
        url: str | None,
        events: Iterable[str] | None,
        queues: Topics | None,
        description: str | None,
        enabled: bool | None,
    ) -> Webhook:
        from mergeyard.api.webhooks import encode_webhook

        changes = _build_changes(events, queues, description=description, url=url, enabled=enabled)
        response = self.run(lambda webhooks, client: webhooks.update(client, webhook_id, changes, encode_webhook))
        return msgspec.json.decode(response, type=Webhook)

    def delete_webhook(self, webhook_id: str) -> WebhookDeleted:
        self.run(lambda webhooks, client: webhooks.delete(client, webhook_id, b""))
        return WebhookDeleted(deleted=True, id=webhook_id)

    def test_webhook(self, webhook_id: str) -> WebhookDelivery:
        from mergeyard.api.webhooks import encode_delivery

        response = self.run(lambda webhooks, client: webhooks.send_test(client, webhook_id, encode_delivery))
        return msgspec.json.decode(response, type=WebhookDelivery)

    def resend_event(self, webhook_id: str, event_id: str) -> WebhookDelivery:
        from mergeyard.api.webhooks import encode_delivery

        response = self.run(
            lambda webhooks, client: webhooks.resend_event(client, webhook_id, event_id, encode_delivery)
        )
        return msgspec.json.decode(response, type=WebhookDelivery)

    def list_deliveries(self, webhook_id: str, *, take: int) -> WebhookDeliveries:
        from mergeyard.api.webhooks import present_delivery

        found = self.run(lambda webhooks, client: webhooks.list_deliveries(client, webhook_id, take))
        listed = (_to_model(present_delivery(delivery), WebhookDelivery) for delivery in found)
        return WebhookDeliveries(deliveries=tuple(listed))

    def run(self, use: "Callable[[WebhookService, WebhookClient], Awaitable[Result]]") -> Result:
        """Passes the operator as the client, who has access to all webhooks."""
        from mergeyard.service.webhooks.webhooks import OPERATOR
        from mergeyard.wiring import open_webhooks

        return self._store.run(open_webhooks, lambda webhooks: use(webhooks, OPERATOR))


def _open(session: AdminSession) -> Client | LocalWebhooks:
    return session.client if session.local_store is None else LocalWebhooks(session.local_store)


def _build_changes(events: Iterable[str] | None, queues: Topics | None, **others: Any) -> "WebhookChanges":
    """Changes what is not None."""
    from mergeyard.service.webhooks.webhooks import WebhookChanges

    lists: dict[str, Any] = {
        "events": None if events is None else tuple(map(EventType, events)),
        "topics": None if queues is None else tuple(map(_to_topic, queues)),
    }
    return WebhookChanges(**{name: value for name, value in (lists | others).items() if value is not None})


def _to_topic(name: QueueName | RepoName) -> Topic:
    repo, branch = (name, None) if isinstance(name, RepoName) else (name.repo, name.target_branch)
    return Topic(Repo(repo.host, repo.owner, repo.name), branch)


def _to_model(presented: Struct, model: type[Model]) -> Model:
    """In the form of the API, so that `--json` prints the same in both cases."""
    return msgspec.convert(msgspec.to_builtins(presented), model)
