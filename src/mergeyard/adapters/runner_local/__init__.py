"""Runs the checks of a repository on this machine, for plain Git hosts that have no CI of their own.

Per check: `runner` waits for a slot and checks out the commit into an empty folder, a supervisor process runs the
command (in a sandbox where bubblewrap is available), and an output limiter process writes its output to a file.
"""
