import hashlib
import os
import sys
import time
import uuid

import grpc
from attestation.v1 import attestations_pb2 as attestations
from attestation.v1.attestations_pb2_grpc import AttestationServiceStub
from google.protobuf.json_format import MessageToJson

path = sys.argv[1]
target = os.environ.get("ATTEST_TARGET", "localhost:8080")
key = (("authorization", "Bearer " + os.environ["ATTEST_API_KEY"]),)

with open(path, "rb") as file:
    artifact = attestations.Artifact(sha256=hashlib.sha256(file.read()).hexdigest())
creation = attestations.CreateAttestationRequest(artifact=artifact)
creation.metadata.update({"schema": "purl", "purl": "pkg:pypi/example@1.0.0"})
keyed = key + (("idempotency-key", str(uuid.uuid4())),)

# Where the service has TLS: grpc.secure_channel(target, grpc.ssl_channel_credentials()).
with grpc.insecure_channel(target) as channel:
    client = AttestationServiceStub(channel)
    submission = client.CreateAttestation(creation, metadata=keyed, timeout=30)
    request = attestations.GetAttestationRequest(id=submission.id)
    while submission.status == attestations.SUBMISSION_STATUS_QUEUED:
        time.sleep(0.25)
        submission = client.GetAttestation(request, metadata=key, timeout=30)
    bundle = client.GetBundle(attestations.GetBundleRequest(id=submission.id), metadata=key, timeout=30)
with open(path + ".bundle", "w") as out:
    out.write(MessageToJson(bundle))
print(submission.id)
