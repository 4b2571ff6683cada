"""Who has to act on what git reports of a command that talks to the remote."""

import pytest

from mergeyard.adapters.git_cli.remote import to_remote_error
from mergeyard.ports.git import GitError, MissingObject, RemoteRefused, RemoteUnavailable, RemoteUnsupported

URL = "https://git.example.com/acme/app.git"
FOREIGN = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights"
MESSAGES = {
    f"fatal: unable to access '{URL}/': The requested URL returned error: 403": RemoteRefused,
    f"remote: Permission to acme/app.git denied to bot.\nfatal: unable to access '{URL}/': error: 403": RemoteRefused,
    f"fatal: Authentication failed for '{URL}/'": RemoteRefused,
    f"remote: Repository not found.\nfatal: repository '{URL}/' not found": RemoteRefused,
    "fatal: could not read Username for 'https://git.example.com': terminal prompts disabled": RemoteRefused,
    f"remote: You have exceeded a secondary rate limit.\nfatal: '{URL}/': returned error: 403": RemoteUnavailable,
    f"fatal: unable to access '{URL}/': The requested URL returned error: 429": RemoteUnavailable,
    f"fatal: unable to access '{URL}/': The requested URL returned error: 503": RemoteUnavailable,
    f"fatal: unable to access '{URL}/': Could not resolve host: git.example.com": RemoteUnavailable,
    "git did not finish within 600 seconds and was ended: fetch": RemoteUnavailable,
    "remote: fatal: unable to create temporary file: No space left on device": RemoteUnavailable,
    "fatal: '/srv/git/acme/app.git' does not appear to be a git repository": RemoteUnavailable,
    f"fatal: unable to access '{URL}/': The requested URL returned error: 301": RemoteUnsupported,
    "fatal: unknown object format 'sha512' specified by server": RemoteUnsupported,
    f"fatal: unknown repository extension found:\n\trefstorage\n{FOREIGN}": RemoteUnsupported,
    "fatal: unknown repository extension found:\n\trefstorage": GitError,
    f"fatal: {URL}/info/refs not valid: could not determine hash; is this a git repository?": RemoteUnsupported,
    "fatal: protocol error: bad line length character: <htm": RemoteUnsupported,
    "fatal: the receiving end does not support --atomic push": RemoteUnsupported,
    "git@git.example.com: Permission denied (publickey).": RemoteRefused,
    "error: cannot open './FETCH_HEAD': Permission denied": GitError,
    "fatal: unable to create temporary file: No space left on device": GitError,
    "error: object file ./objects/ab/cd is empty": GitError,
    "git could not be started: [Errno 12] Cannot allocate memory": GitError,
    "fatal: cannot fork: Resource temporarily unavailable": GitError,
    "error: unable to write file ./objects/ab/cd: Read-only file system": GitError,
}


@pytest.mark.parametrize(("message", "kind"), MESSAGES.items(), ids=range(len(MESSAGES)))
def test_a_message_of_git_says_who_has_to_act(message: str, kind: type[GitError]):
    assert type(to_remote_error(GitError(message))) is kind


def test_a_missing_object_stays_one():
    assert type(to_remote_error(MissingObject("the mirror lacks abc"))) is MissingObject
