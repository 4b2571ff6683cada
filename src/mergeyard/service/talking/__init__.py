"""Talks with people where their pull requests are: in comments, by labels and with a status."""
