"""Signs git in at a forge, at one repository and nowhere else."""

from base64 import b64encode

from mergeyard.ports.git import Remote


def signed_in(url: str, user: str, password: str) -> Remote:
    proof = b64encode(f"{user}:{password}".encode()).decode()
    environment = {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{url}.extraHeader",
        "GIT_CONFIG_VALUE_0": f"Authorization: Basic {proof}",
    }
    return Remote(url, environment)
