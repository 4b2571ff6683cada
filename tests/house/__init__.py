"""The house itself: storeys, locks, the Makefile, and docs that do not lie."""
