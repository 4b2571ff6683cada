"""Knows which addresses belong to the public internet; all others are somebody's own network, or no place at all."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

NOT_PUBLIC = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of a provider, and by some clouds' metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata of a cloud, at an address that looks public
            "169.254.0.0/16",  # link-local, and most clouds' metadata
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved and broadcast
            "::/96",  # unspecified, loopback, and IPv4 in an old form
            "::ffff:0:0/96",  # IPv4 in the form of IPv6, which would reach any of the above
            "::ffff:0:0:0/96",
            "64:ff9b::/96",  # IPv4 behind a translator
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",  # tunnels and tests
            "2001:db8::/32",
            "2002::/16",  # IPv4 in a tunnel
            "3fff::/20",
            "5f00::/16",
            "fc00::/7",
            "fe80::/9",  # link-local and site-local
            "ff00::/8",
        ),
    )
)


def is_public(address: str) -> bool:
    """What is no address at all, or bound to one interface, is not public."""
    try:
        known = ip_address(address)
    except ValueError:
        return False
    if isinstance(known, IPv6Address) and (known.scope_id is not None or _hides_ipv4(known)):
        return False
    return known.is_global and not _among(known)


def _among(address: IPv4Address | IPv6Address) -> bool:
    return any(address.version == network.version and address in network for network in NOT_PUBLIC)


def _hides_ipv4(address: IPv6Address) -> bool:
    """Behind any prefix, this mark of a tunnel says that the last four bytes are an address of the old kind."""
    return address.packed[8:12] in (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")
