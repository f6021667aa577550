package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"example.com/your/module/api"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(digest, bundled string) error {
	configuration := api.NewConfiguration()
	configuration.Servers = api.ServerConfigurations{{URL: os.Getenv("ATTEST_URL")}}
	configuration.AddDefaultHeader("authorization", "Bearer "+os.Getenv("ATTEST_API_KEY"))
	attestations := api.NewAPIClient(configuration).AttestationAPI
	ctx := context.Background()
	page, _, err := attestations.ListAttestations(ctx).Execute()
	if err != nil {
		return err
	}
	metadata := api.NewCreateAttestationRequestMetadata("purl")
	metadata.AdditionalProperties = map[string]any{"purl": "pkg:golang/example.com/a@v1.0.0"}
	request := api.NewCreateAttestationRequest(*api.NewArtifactInput(digest), *metadata)
	made, _, err := attestations.CreateAttestation(ctx).CreateAttestationRequest(*request).IdempotencyKey(digest).Execute()
	if err != nil {
		return err
	}
	receipt, _, err := attestations.DownloadBundleCose(ctx, bundled).Execute()
	if err != nil {
		return err
	}
	defer receipt.Close()
	bytes, err := io.ReadAll(receipt)
	if err != nil {
		return err
	}
	fmt.Println("listed", page.Data[0].Id)
	fmt.Println("created", made.Id)
	return os.WriteFile("bundle.cose", bytes, 0o644)
}
