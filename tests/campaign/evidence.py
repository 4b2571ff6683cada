"""Detailed evidence: which commits every pull request became, and where others moved the files that it changed."""

import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mergeyard.domain.ids import Sha
from tests.support.api_client import ApiClient
from tests.support.ci import Ci
from tests.support.evidence import GitEvidence, Landing, SubmissionJson
from tests.support.host_log import HostLog
from tests.support.repositories import ENVIRONMENT, Origin, to_text


class ChainPart(Struct, frozen=True):
    """The commits that one pull request became in a chain."""

    number: int
    head: Sha
    onto: Sha
    commits: tuple[Sha, ...]
    """Oldest first."""

    @property
    def last(self) -> Sha:
        return self.commits[-1]


class DetailedEvidence(GitEvidence):
    required = frozenset({"unit"})

    def __init__(self, origin: Origin, host_log: HostLog, api: ApiClient, ci: Ci) -> None:
        super().__init__(origin, host_log, api, ci)
        self._checking_ci = ci
        self._commits_cache = dict[tuple[Sha, Sha], list[tuple[Sha, int, str]]]()

    def _read_commits(self, landing: Landing) -> list[tuple[Sha, int, str]]:
        """Cached: what landed does not change."""
        key = (landing.old, landing.new)
        if key not in self._commits_cache:
            self._commits_cache[key] = super()._read_commits(landing)
        return self._commits_cache[key]

    def ref(self, name: str) -> Sha | None:
        return self._git.ref(name)

    def is_last_written_by_others(self, ref: str) -> bool:
        written = [each.by_service for each in self.transactions if each.update_of(ref)]
        return not written[-1]

    def landed_commits(self, landing: Landing) -> list[Sha]:
        return self._commits(landing)

    def wrong_signatures(self, allowed_signers: Path) -> Iterator[str]:
        """What `git verify-commit` finds wrong in the commits that landed."""
        options = ("-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed_signers}")
        for landing in self.landings:
            commits = self.landed_commits(landing)
            command = ["git", "--git-dir", str(self._git.path), *options, "verify-commit", *commits]
            result = subprocess.run(command, capture_output=True, check=False, env=ENVIRONMENT)
            if result.returncode != 0:
                yield f"{landing} is not signed: {to_text(result.stderr)}"

    def landed_parts(self, landing: Landing) -> list[ChainPart]:
        return self._parts(landing)

    def tested_parts(self, landing: Landing) -> list[ChainPart]:
        """All pull requests of the tested stack; some can have landed before, as other commits."""
        assert landing.run
        tip = Sha(landing.run["testBranchSha"])
        return self._parts(replace(landing, old=self._base_of(tip, landing.old), new=tip))

    def target_tips(self) -> list[Sha]:
        """Every tip that the target branch ever had, in order."""
        moves = [move for each in self.transactions if (move := each.update_of(self.target_ref))]
        return list(dict.fromkeys(sha for move in moves for sha in (move.old, move.new) if sha)) or [self.tip]

    def landed_heads_ahead(self, head: Sha, onto: Sha) -> list[Sha]:
        """Heads that it contains, and that the target branch contains only as other commits."""
        landed = [submission for submission in self.submissions.values() if submission["mergedSha"]]
        inside = self.commits_of(head) - {head} - self.commits_of(onto)
        there = [
            submission
            for submission in landed
            if submission["prSha"] in inside and self.contains(onto, Sha(submission["mergedSha"]))
        ]
        return [Sha(submission["prSha"]) for submission in there]

    def commits_of(self, head: Sha) -> set[Sha]:
        return {*map(Sha, self._git.run("rev-list", head).decode().split())}

    def has_refused_names(self, head: Sha) -> bool:
        """One of its commits contains a file that `git fsck` calls an error, such as a file below `.git`."""
        return any(self._is_refused(*entry) for commit in self.commits_of(head) for entry in self._tree_entries(commit))

    def _tree_entries(self, commit: Sha) -> list[tuple[str, str]]:
        """The mode and path of every file and folder."""
        lines = to_text(self._git.run("ls-tree", "-r", "-t", "-z", commit)).split("\0")[:-1]
        return [(line.partition(" ")[0], line.partition("\t")[2]) for line in lines]

    def _is_refused(self, mode: str, path: str) -> bool:
        names = [name.lower().rstrip(". ") or name for name in path.split("/")]
        is_folder = mode in ("040000", "160000")
        return (
            not {".git", "git~1", "..", "."}.isdisjoint(names)
            or (mode == "120000" and names[-1] == ".gitmodules")
            or (is_folder and names[-1] in (".gitmodules", ".gitattributes"))
        )

    def fails_checks(self, commit: Sha) -> bool:
        return self._checking_ci.evaluate(commit) == "failure"

    def parents(self, commit: Sha) -> tuple[Sha, ...]:
        return tuple(map(Sha, self._git.run("rev-parse", f"{commit}^@").decode().split()))

    def paths_changed_by(self, submission: SubmissionJson, onto: Sha) -> set[str]:
        """Also paths that one of its commits changed and another restored, and new paths of files that others moved."""
        own = super().paths_changed_by(submission, onto) | self._touched(Sha(submission["prSha"]), onto)
        fork = Sha(self._merge_base(onto, submission["prSha"]))
        return own | {new for old, new in self._moved(fork, onto) if old in own}

    def brings_only(self, landing: Landing, submission: SubmissionJson) -> bool:
        """For a pull request that contains another one, a merge shows only the sum; see the landing checks."""
        return super().brings_only(landing, submission) or bool(self._others_in(submission))

    def _others_in(self, submission: SubmissionJson) -> set[str]:
        heads = {other["prSha"] for other in self.submissions.values()} - {submission["prSha"]}
        return heads & self.commits_of(Sha(submission["prSha"]))

    def _touched(self, head: Sha, onto: Sha) -> set[str]:
        """Paths that any of its own commits changed."""
        form = ("log", "-m", "--first-parent", "--raw", "--no-renames", "--format=", head, f"^{onto}")
        return {line.rpartition("\t")[2] for line in self._git.run(*form).decode().splitlines() if line}

    def _moved(self, old: Sha, new: Sha) -> list[tuple[str, str]]:
        lines = self._git.run("diff-tree", "-r", "-M", "--diff-filter=R", old, new).decode().splitlines()
        return [(before, after) for _, before, after in (line.split("\t") for line in lines)]

    def _base_of(self, tip: Sha, target: Sha) -> Sha:
        """The last commit on the target branch's first-parent history: heads can be in both through other parents."""
        targets = set(self.first_parent_history(target))
        return next(commit for commit in self.first_parent_history(tip) if commit in targets)

    def first_parent_history(self, tip: Sha) -> list[Sha]:
        """Along first parents, newest first."""
        return [*map(Sha, self._git.run("rev-list", "--first-parent", tip).decode().split())]

    def _parts(self, chain: Landing) -> list[ChainPart]:
        history, onto, pieces = reversed(self._read_commits(chain)), chain.old, list[ChainPart]()
        for number, group in groupby(history, key=lambda each: each[1]):
            commits = tuple(commit for commit, _, _ in group)
            pieces.append(ChainPart(number, self._head_of(number, commits[-1]), onto, commits))
            onto = commits[-1]
        return pieces

    def _head_of(self, number: int, last: Sha) -> Sha:
        """A pull request can be submitted with several heads: the one that its last commit names, or merges."""
        heads = [Sha(each["prSha"]) for each in self.submissions.values() if each["prNumber"] == number]
        used = {self.origin_of(last)[1], *self.parents(last)[1:]}
        return next((head for head in heads if head in used), heads[0] if heads else Sha(""))
