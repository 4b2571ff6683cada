"""The merge audit: compares the target branch with what was recorded when commits merged, later and repeatedly.

- `records`: what was recorded of each landing, and what the Git host shows now (first-parent history, trees)
- `compare`: a pure comparison that returns mismatches: a tree that differs from the tested one, a commit that was
  removed or merged twice, a merge without a passed run
- `wholeness`: whether each merge brought the whole change of its pull request: merges its head once more
- `auditor`: runs the comparison at intervals for each queue whose lease this replica holds, and reports mismatches to
  the queue, which pauses for some kinds
"""
