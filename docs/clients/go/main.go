package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"time"

	attestation "example.com/your/module/gen/go/attestation/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

func main() {
	if err := run(os.Args[1], os.Getenv("ATTEST_TARGET"), os.Getenv("ATTEST_API_KEY")); err != nil {
		log.Fatal(err)
	}
}

func run(path, target, key string) error {
	// Where the service has TLS: credentials.NewTLS(nil).
	connection, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	client := attestation.NewAttestationServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+key)

	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(file)
	about, err := structpb.NewStruct(map[string]any{"schema": "purl", "purl": "pkg:golang/example.com/a@v1.0.0"})
	if err != nil {
		return err
	}
	submission, err := client.CreateAttestation(
		metadata.AppendToOutgoingContext(ctx, "idempotency-key", rand.Text()),
		&attestation.CreateAttestationRequest{
			Artifact: &attestation.Artifact{Sha256: hex.EncodeToString(digest[:])},
			Metadata: about,
		})
	if err != nil {
		return err
	}
	id := submission.GetId()
	for submission.GetStatus() == attestation.SubmissionStatus_SUBMISSION_STATUS_QUEUED {
		time.Sleep(250 * time.Millisecond)
		if submission, err = client.GetAttestation(ctx, &attestation.GetAttestationRequest{Id: id}); err != nil {
			return err
		}
	}
	bundle, err := client.GetBundle(ctx, &attestation.GetBundleRequest{Id: id})
	if err != nil {
		return err
	}
	text, err := protojson.Marshal(bundle)
	if err != nil {
		return err
	}
	fmt.Println(id)
	return os.WriteFile(path+".bundle", text, 0o644)
}
