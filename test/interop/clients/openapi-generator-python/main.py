import os
import sys

import openapi_client
from openapi_client.models import CreateAttestationRequest

digest, bundled = sys.argv[1:]
configuration = openapi_client.Configuration(
    host=os.environ["ATTEST_URL"], access_token=os.environ["ATTEST_API_KEY"]
)
with openapi_client.ApiClient(configuration) as client:
    attestations = openapi_client.AttestationApi(client)
    page = attestations.list_attestations()
    request = CreateAttestationRequest.from_dict(
        {"artifact": {"sha256": digest}, "metadata": {"schema": "purl", "purl": "pkg:pypi/example@1.0.0"}}
    )
    made = attestations.create_attestation(request, idempotency_key=digest)
    receipt = attestations.download_bundle_cose(bundled)
print("listed", page.data[0].id)
print("created", made.id)
with open("bundle.cose", "wb") as file:
    file.write(receipt)
