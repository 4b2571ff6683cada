"""Runs the checks of a repository on this machine, for hosts where the service is its own CI."""
