"""Outgoing webhooks: `sender` posts one delivery over HTTP; `ssrf_guard` refuses private and local addresses.

The guard connects to the address that it checked, so a name that resolves to another address the next time (DNS
rebinding) cannot reach the internal network.
"""
