"""Submits an artifact, waits until it is witnessed and prints its bundle, by generated code and grpcio alone.

Arguments: host:port, API key, hex SHA-256, output file. Prints what it found as JSON; the bundle goes to the file.
"""

import base64
import json
import sys
import time

import grpc
from attestation.v1 import attestations_pb2 as attestations
from attestation.v1.attestations_pb2_grpc import AttestationServiceStub

TARGET, KEY, SHA256, OUT = sys.argv[1:]
METADATA = (("authorization", f"Bearer {KEY}"), ("idempotency-key", f"python-{SHA256}"))
DEADLINE_SECONDS = 60


def creation(**metadata):
    request = attestations.CreateAttestationRequest(artifact=attestations.Artifact(sha256=SHA256))
    request.metadata.update(metadata)
    return request


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        trailers = dict(error.trailing_metadata())
        details = trailers.get("grpc-status-details-bin", b"")
        return {"code": error.code().name, "message": error.details(), "details": base64.b64encode(details).decode()}
    raise AssertionError("the call did not fail")


with grpc.insecure_channel(TARGET) as channel:
    client = AttestationServiceStub(channel)
    create = creation(schema="purl", purl="pkg:pypi/sdk@1.0.0")
    made = client.CreateAttestation(create, metadata=METADATA, timeout=DEADLINE_SECONDS)
    again = client.CreateAttestation(create, metadata=METADATA, timeout=DEADLINE_SECONDS)
    request = attestations.GetAttestationRequest(id=made.id)
    end = time.monotonic() + DEADLINE_SECONDS
    while True:
        submission = client.GetAttestation(request, metadata=METADATA, timeout=DEADLINE_SECONDS)
        if submission.status == attestations.SUBMISSION_STATUS_WITNESSED or time.monotonic() > end:
            break
        time.sleep(0.05)
    bundle_request = attestations.GetBundleRequest(id=made.id)
    bundle = client.GetBundle(bundle_request, metadata=METADATA, timeout=DEADLINE_SECONDS, compression=grpc.Compression.Gzip)
    with open(OUT, "wb") as out:
        out.write(bundle.SerializeToString())
    missing = attestations.GetAttestationRequest(id="sub_none")
    wrong = creation(schema="intoto.test_result.v0.1", **{f"{n:03}" + "x" * 300: n for n in range(150)})
    print(
        json.dumps(
            {
                "id": made.id,
                "again": again.id,
                "leaf_sha256": submission.leaf_sha256,
                "status": attestations.SubmissionStatus.Name(submission.status),
                "missing": failure(lambda: client.GetAttestation(missing, metadata=METADATA)),
                "wrong": failure(lambda: client.CreateAttestation(wrong, metadata=METADATA[:1])),
            }
        )
    )
