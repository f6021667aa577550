package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/your/module/api"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(digest, bundled string) error {
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("authorization", "Bearer "+os.Getenv("ATTEST_API_KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("ATTEST_URL"), api.WithRequestEditorFn(authorize))
	if err != nil {
		return err
	}
	ctx := context.Background()
	page, err := client.ListAttestationsWithResponse(ctx, &api.ListAttestationsParams{})
	if err != nil {
		return err
	}
	made, err := client.CreateAttestationWithResponse(ctx,
		&api.CreateAttestationParams{IdempotencyKey: &digest},
		api.CreateAttestationRequest{
			Artifact: api.ArtifactInput{Sha256: digest},
			Metadata: api.CreateAttestationRequest_Metadata{
				Schema:               "purl",
				AdditionalProperties: map[string]any{"purl": "pkg:golang/example.com/a@v1.0.0"},
			},
		})
	if err != nil {
		return err
	}
	receipt, err := client.DownloadBundleCoseWithResponse(ctx, bundled, &api.DownloadBundleCoseParams{})
	if err != nil {
		return err
	}
	fmt.Println("listed", page.JSON200.Data[0].Id)
	fmt.Println("created", made.JSON201.Id)
	return os.WriteFile("bundle.cose", receipt.Body, 0o644)
}
