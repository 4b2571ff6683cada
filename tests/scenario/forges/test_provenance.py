"""The notes with the provenance of merges are pushed to every forge over HTTP."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mergeyard.adapters.signing import SshKey
from mergeyard.cli.provenance import verify_commit
from mergeyard.domain.config import Config, LandingMethod, MergeMethod
from mergeyard.ports.git import Identity
from tests.scenario.forges.conftest import StartScenario
from tests.support.asynchronous import asynchronous
from tests.support.scenario import ScenarioSetup

SIGNER = SshKey(Ed25519PrivateKey.generate())
SIGNED = ScenarioSetup(identity=Identity("Mergeyard", "queue@example.org", SIGNER))


@pytest.mark.long
@asynchronous
@pytest.mark.parametrize(
    "landing", [LandingMethod.TESTED_COMMIT, pytest.param(LandingMethod.PROVIDER_MERGE, marks=pytest.mark.long)]
)
async def test_merges_at_a_forge_have_their_statements(
    forge_scenario: StartScenario, tmp_path: Path, landing: LandingMethod
):
    key_file = tmp_path / "queue.pub"
    key_file.write_text(SIGNER.public_key)
    async with forge_scenario(Config(landing=landing, merge_method=MergeMethod.MERGE_COMMIT), SIGNED) as scenario:
        for number in (1, 2):
            scenario.open(number)
            await scenario.submit(number)
            await scenario.passes(number)
            verified = verify_commit(scenario.origin.path, "main", key_file)
            predicate = verified.statement.predicate
            assert (predicate.pull_request.number, predicate.landing) == (number, landing)
            assert predicate.pull_request.url is not None
            assert predicate.tree == scenario.origin.tree("main")
        verify_commit(scenario.origin.path, "main^", key_file)
