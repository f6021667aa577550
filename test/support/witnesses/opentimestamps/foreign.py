"""Debian's OpenTimestamps library over JSON: a list of commands in a file, a list of results on standard output."""
import json
import sys

from bitcoin.core import CBlockHeader
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation, UnknownAttestation
from opentimestamps.core.serialize import BytesDeserializationContext, BytesSerializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile, Timestamp


def describe(message, attestation):
    found = {"message": message.hex()}
    if isinstance(attestation, BitcoinBlockHeaderAttestation):
        return {**found, "kind": "bitcoin", "height": attestation.height}
    if isinstance(attestation, PendingAttestation):
        return {**found, "kind": "pending", "uri": attestation.uri}
    if isinstance(attestation, UnknownAttestation):
        return {**found, "kind": "unknown", "tag": attestation.TAG.hex(), "payload": attestation.payload.hex()}
    return {**found, "kind": type(attestation).__name__}


def encoded(value):
    ctx = BytesSerializationContext()
    value.serialize(ctx)
    return ctx.getbytes().hex()


def parse(file):
    return DetachedTimestampFile.deserialize(BytesDeserializationContext(bytes.fromhex(file)))


def attestations(timestamp):
    found = [describe(message, attestation) for message, attestation in timestamp.all_attestations()]
    return sorted(found, key=lambda one: json.dumps(one, sort_keys=True))


def read(file):
    """Parses an .ots file and writes it again."""
    detached = parse(file)
    return {"file": encoded(detached), "attestations": attestations(detached.timestamp)}


def read_answer(message, answer):
    """Parses a calendar's answer and writes it again."""
    ctx = BytesDeserializationContext(bytes.fromhex(answer))
    timestamp = Timestamp.deserialize(ctx, bytes.fromhex(message))
    ctx.assert_eof()
    return {"answer": encoded(timestamp), "attestations": attestations(timestamp)}


def merge(files):
    """Merges .ots files of one digest."""
    first, *others = [parse(file) for file in files]
    for other in others:
        first.timestamp.merge(other.timestamp)
    return {"file": encoded(first)}


def verify(file, header):
    """The time of each Bitcoin attestation of an .ots file against a block header."""
    block = CBlockHeader.deserialize(bytes.fromhex(header))
    return {
        "times": [
            attestation.verify_against_blockheader(message, block)
            for message, attestation in parse(file).timestamp.all_attestations()
            if isinstance(attestation, BitcoinBlockHeaderAttestation)
        ]
    }


COMMANDS = {"read": read, "read_answer": read_answer, "merge": merge, "verify": verify}


def run(command, args):
    try:
        return COMMANDS[command](*args)
    except Exception as error:  # The error is the result.
        return {"error": type(error).__name__}


with open(sys.argv[1]) as commands:
    print(json.dumps([run(command, args) for command, args in json.load(commands)]))
