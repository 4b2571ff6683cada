"""Malicious input: requests, names, addresses and load that an attacker could send."""
