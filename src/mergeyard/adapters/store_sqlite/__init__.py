"""Keeps everything in one SQLite file, through apsw, which brings a SQLite that two processes may safely write with."""
