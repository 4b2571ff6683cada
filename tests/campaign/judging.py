"""Judges what landed, commit by commit, by what plain git makes of the same pull requests."""

import re
from collections import defaultdict
from collections.abc import Iterator

from mergeyard.domain.ids import Sha
from tests.campaign.evidence import DetailedEvidence, Piece
from tests.campaign.oracle import Oracle, Pick, Speechless
from tests.support.evidence import Landing

OURS = re.compile(r"^Mergeyard-[A-Za-z-]+:.*$", re.MULTILINE)
QUOTED = re.compile(r"[\s\[\]()*-]+")
"""What may differ in a message: white space, and the marks by which a CI is told not to run."""

Words = tuple[int, list[tuple[str, str]]]
"""Which pull request, and of each commit who wrote what."""


class Judge:
    def __init__(self, evidence: DetailedEvidence, oracle: Oracle, method: str) -> None:
        self.speechless = 0
        """How often plain git would not touch what it was asked about."""
        self._evidence = evidence
        self._oracle = oracle
        self._method = method
        self._forms = defaultdict[Sha, set[Sha]](set)
        """The commits that each head became, in every chain so far: a rewind may leave some of them."""

    def faults(self) -> Iterator[str]:
        for landing in self._evidence.landings:
            if landing.run is None:
                continue
            try:
                yield from (f"{landing}: {words}" for words in self._landing(landing))
            except Speechless:
                self.speechless += 1

    def _landing(self, landing: Landing) -> Iterator[str]:
        landed = self._evidence.landed_pieces(landing)
        numbers, words = {piece.number for piece in landed}, list[Words]()
        for piece in self._evidence.tested_pieces(landing):
            if piece.number in numbers:
                yield from (f"#{piece.number}: {fault}" for fault in self._piece(piece))
                words.append(self._words(piece))
            self._forms[piece.head].update(piece.commits)
        for piece in landed:
            self._forms[piece.head].update(piece.commits)
        if words != [self._words(piece) for piece in landed]:
            yield "its commits are told otherwise than those that were tested"

    def _piece(self, piece: Piece) -> Iterator[str]:
        match self._method:
            case "rebase":
                yield from self._rebased_or_squashed(piece)
            case "squash":
                yield from self._squashed(piece)
            case _:
                yield from self._merged(piece, (piece.onto, piece.head))

    def _merged(self, piece: Piece, parents: tuple[Sha, ...]) -> Iterator[str]:
        if len(piece.commits) != 1:
            yield f"it became {len(piece.commits)} commits"
        if self._evidence.parents(piece.last) != parents:
            yield "it has other parents than promised"
        whole = self._whole(piece)
        if whole is None:
            yield "git finds a conflict in it"
        elif whole != self._oracle.tree(piece.last):
            yield "git merges it otherwise"

    def _squashed(self, piece: Piece) -> Iterator[str]:
        yield from self._merged(piece, (piece.onto,))
        made, (head,) = self._told(piece.onto, piece.last)[-1], self._alone(piece.head)
        if made.identity != with_a_name(head.identity):
            yield f"its author {head.identity!r} became {made.identity!r}"

    def _rebased_or_squashed(self, piece: Piece) -> Iterator[str]:
        """A rebase leaves merges out: where one of them holds a change of its own, all of it is one commit."""
        expected = self._oracle.rebased(piece.onto, piece.head, self._landed_beneath(piece))
        if self._loses_a_merge(piece, expected):
            yield from self._squashed(piece)
        elif expected is None:
            yield "git finds a conflict in rebasing it"
        else:
            yield from self._rebased(piece, expected)

    def _loses_a_merge(self, piece: Piece, picks: list[Pick] | None) -> bool:
        """Also where none but that merge settles what conflicts."""
        if not self._oracle.has_merges(piece.onto, piece.head):
            return False
        whole = self._whole(piece)
        if whole is None or picks is None:
            return whole is not None
        return whole != (picks[-1].tree if picks else self._oracle.tree(piece.onto))

    def _rebased(self, piece: Piece, expected: list[Pick]) -> Iterator[str]:
        made = self._told(piece.onto, piece.last)
        if any(len(self._evidence.parents(commit)) != 1 for commit in piece.commits):
            yield "a rebased commit has several parents"
        if not expected and len(made) == 1 and made[0].tree == self._oracle.tree(piece.onto):
            return
        if [pick.tree for pick in made] != [pick.tree for pick in expected]:
            yield "git rebases it otherwise"
        for ours, theirs in zip(made, expected, strict=False):
            if ours.identity != with_a_name(theirs.identity):
                yield f"the author {theirs.identity!r} became {ours.identity!r}"
            if plainly(ours.message) != (plainly(theirs.message) or "nomessage"):
                yield f"the message {theirs.message!r} became {ours.message!r}"

    def _whole(self, piece: Piece) -> Sha | None:
        """The tree with all that it brings; of one that was begun upon another which landed in another form, just what
        it changed upon that one."""
        return self._oracle.merged_upon(piece.onto, self._landed_beneath(piece), piece.head)

    def _landed_beneath(self, piece: Piece) -> list[Sha]:
        """Heads that it holds, and that the target holds only in another form: along first parents, for what others
        merged beside them may claim anything."""
        if self._method == "merge_commit":
            return []
        inside = self._evidence.commits_of(piece.head) - {piece.head}
        there = self._evidence.way_to(piece.onto)
        return [head for head, forms in self._forms.items() if head in inside and not forms.isdisjoint(there)]

    def _words(self, piece: Piece) -> Words:
        """Of several runs with the same commits, those of any may land: only the trailers differ."""
        made = self._told(piece.onto, piece.last)
        return piece.number, [(pick.identity.rpartition("\x1f")[0], plainly(pick.message)) for pick in made]

    def _told(self, old: Sha, new: Sha) -> list[Pick]:
        return self._oracle.identities(old, new)

    def _alone(self, commit: Sha) -> list[Pick]:
        return self._oracle.identities(Sha(f"{commit}^"), commit)[-1:]


def with_a_name(identity: str) -> str:
    """Many hosts take no commit without one."""
    return f"unknown{identity}" if identity.startswith("\x1f") else identity


def plainly(message: str) -> str:
    """What a message says, whoever wrote it down."""
    return QUOTED.sub("", OURS.sub("", message))
