"""Everything about webhooks that needs no queue at hand, put together: for the service, and for commands beside it."""

from mergeyard.ports.clock import Clock
from mergeyard.ports.sealing import Seals
from mergeyard.ports.sending import Sender
from mergeyard.ports.store import Store
from mergeyard.service.telling.courier import Courier
from mergeyard.service.telling.events import Stories
from mergeyard.service.telling.trying import Trying
from mergeyard.service.telling.webhooks import Webhooks


class Office:
    def __init__(self, store: Store, clock: Clock, sender: Sender, seals: Seals, public_url: str) -> None:
        self.store = store
        self.clock = clock
        self.stories = Stories(store, public_url)
        self.courier = Courier(store, clock, sender, seals)
        self.webhooks = Webhooks(store, clock, sender, self.courier)
        self.trying = Trying(store, clock, self.webhooks, self.stories, self.courier)
