"""Tasks: what the worker does outside for each kind of pending task, reported to the engine as events.

- `observe`: reads pull requests, the target branch, or the checks of a run
- `commit_builder`: creates the commit of one pull request by merge method (merge commit, squash, rebase), and refuses
  contents that must not come back or cannot be tested
- `build_run`: builds the chain of a run with it, pushes the test branch, and reads the checks of a head with the same
  tree
- `test_branches`: deletes test branches, and opens or closes the draft pull requests that some CI systems need
- `land`: rebases a landing onto a moved tip, recovers lost commits, and pushes the target branch by compare-and-swap
- `provider_merge`: lets the Git host merge, one pull request at a time

Every task can run twice: it reads the remote state first, and finding the result already there is a success.
"""
