import os
import sys

from attestation_service_client import AuthenticatedClient
from attestation_service_client.api.attestation import create_attestation, download_bundle_cose, list_attestations
from attestation_service_client.models import CreateAttestationRequest

digest, bundled = sys.argv[1:]
client = AuthenticatedClient(
    base_url=os.environ["ATTEST_URL"], token=os.environ["ATTEST_API_KEY"], raise_on_unexpected_status=True
)
page = list_attestations.sync(client=client)
request = CreateAttestationRequest.from_dict(
    {"artifact": {"sha256": digest}, "metadata": {"schema": "purl", "purl": "pkg:pypi/example@1.0.0"}}
)
made = create_attestation.sync(client=client, body=request, idempotency_key=digest)
receipt = download_bundle_cose.sync(bundled, client=client)
print("listed", page.data[0].id)
print("created", made.id)
with open("bundle.cose", "wb") as file:
    file.write(receipt.payload.read())
