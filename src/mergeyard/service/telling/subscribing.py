"""Keeps those who tell webhooks in line with the webhooks that are stored, whoever changed them."""

from mergeyard.domain.webhooks import Webhook
from mergeyard.service.telling.office import Office
from mergeyard.service.telling.reporting import PACE, Reporter
from mergeyard.service.telling.tellers import Tellers


class Subscriptions:
    def __init__(self, office: Office, tellers: Tellers) -> None:
        self._office = office
        self._tellers = tellers
        self._versions: dict[str, int] = {}
        """By the name of the teller."""

    async def refresh(self) -> None:
        """Also what another replica, or a command beside the server, did to them."""
        stored = {row.webhook.teller: row for row in await self._office.webhooks.all()}
        for gone in self._versions.keys() - stored.keys():
            del self._versions[gone]
            self._tellers.drop(gone)
        for name, row in stored.items():
            if self._versions.get(name) != row.version:
                self._versions[name] = row.version
                self._subscribe(row.webhook)

    def _subscribe(self, webhook: Webhook) -> None:
        if webhook.disabled is not None:
            self._tellers.drop(webhook.teller)
            return
        self._tellers.add(Reporter(webhook, self._office), PACE)
