"""Submits whoever gets the label, and takes out whoever loses it again. Only the change counts."""

from contextlib import suppress
from uuid import uuid4

from mergeyard.domain.pulls import PullRequest
from mergeyard.ports.forge import Forge, Thread
from mergeyard.ports.host import HostTrouble
from mergeyard.service.errors import Refused
from mergeyard.service.talking import words
from mergeyard.service.talking.conversation import Conversation, Kept, Labelled
from mergeyard.service.talking.obeying import Obeying, Order
from mergeyard.service.turn import Keeper

LABEL = "label"
"""As the one who asked, in the journal."""


class Labelling:
    def __init__(self, obeying: Obeying) -> None:
        self._obeying = obeying

    async def mind(self, keeper: Keeper, forge: Forge, pull: PullRequest, thread: Thread, kept: Kept) -> None:
        """Remembered when it was done: what met with trouble is done the next time."""
        conversation, label = kept.so_far, keeper.queue.config.enqueueing_label
        await self._learn_what_was_done(keeper, pull, conversation)
        before, now = conversation.label == label, label in thread.labels
        if now and not before and pull.is_open:
            await self._submit(keeper, forge, pull, kept)
        elif before and not now:
            await self._take_out(keeper, pull, conversation)
        conversation.label, conversation.labelled = label if now else "", None

    async def _learn_what_was_done(self, keeper: Keeper, pull: PullRequest, conversation: Conversation) -> None:
        """The last time may have met with trouble only after it was done, and then even the keeper does not know."""
        labelled = conversation.labelled
        if labelled is None:
            return
        ticket = await self._obeying.submitted(_order(keeper, pull, labelled.word))
        if ticket is not None:
            await keeper.catch_up(keeper.version + 1)
            conversation.label, conversation.submitted_by_label = labelled.label, ticket

    async def _submit(self, keeper: Keeper, forge: Forge, pull: PullRequest, kept: Kept) -> None:
        """One that is here already is here by somebody's word, which the label does not take over. Nobody knows which
        head of a fork was labelled."""
        if keeper.queue.submission_of(pull.number) is not None:
            return
        if pull.fork:
            await _refuse(keeper, forge, pull, words.fork_by_label(pull.head))
            return
        conversation, label = kept.so_far, keeper.queue.config.enqueueing_label
        labelled = conversation.labelled = conversation.labelled or Labelled(label, _new_word())
        await kept.keep()
        try:
            conversation.submitted_by_label = await self._obeying.submit(_order(keeper, pull, labelled.word))
        except Refused as refused:
            await _refuse(keeper, forge, pull, refused.detail)

    async def _take_out(self, keeper: Keeper, pull: PullRequest, conversation: Conversation) -> None:
        stay = keeper.queue.submission_of(pull.number)
        if stay is None or stay.ticket != conversation.submitted_by_label:
            return
        try:
            await self._obeying.cancel(_order(keeper, pull, _new_word()))
        except Refused:
            return  # it left by itself, or is being merged: the comment tells


async def _refuse(keeper: Keeper, forge: Forge, pull: PullRequest, why: str) -> None:
    text = words.answer(f"label on {pull.head}", pull.author, words.refused(why))
    with suppress(HostTrouble):
        await forge.say(keeper.key.repo, pull.number, text, None)


def _order(keeper: Keeper, pull: PullRequest, word: str) -> Order:
    return Order(keeper=keeper, pull=pull, person=LABEL, word=word)


def _new_word() -> str:
    """Each time somebody labels it, it is meant anew."""
    return f"{LABEL} {uuid4()}"
