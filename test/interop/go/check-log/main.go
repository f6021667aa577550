// Checks a log with Tessera's client: its checkpoint by its verifier key, every entry and tile by fsck, and one leaf's
// inclusion by a proof built from the tiles.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"github.com/transparency-dev/tessera/api"
	"github.com/transparency-dev/tessera/client"
	"github.com/transparency-dev/tessera/fsck"
	"golang.org/x/mod/sumdb/note"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: check-log URL VERIFIER_KEY INDEX LEAF_RECORD")
		os.Exit(2)
	}
	if err := check(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(ctx context.Context, address, verifierKey, leafIndex, recordPath string) error {
	logURL, err := url.Parse(address)
	if err != nil {
		return err
	}
	fetcher, err := client.NewHTTPFetcher(logURL, nil)
	if err != nil {
		return err
	}
	verifier, err := note.NewVerifier(verifierKey)
	if err != nil {
		return err
	}
	checked := fsck.New(verifier.Name(), verifier, fetcher, hashEntries, fsck.Opts{N: 2})
	if err := checked.Check(ctx); err != nil {
		return err
	}
	index, err := strconv.ParseUint(leafIndex, 10, 64)
	if err != nil {
		return err
	}
	record, err := os.ReadFile(recordPath)
	if err != nil {
		return err
	}
	return checkLeaf(ctx, fetcher, verifier, index, record)
}

// checkLeaf finds the record at its index, and proves that it is there.
func checkLeaf(ctx context.Context, fetcher *client.HTTPFetcher, verifier note.Verifier, index uint64, record []byte) error {
	checkpoint, _, _, err := client.FetchCheckpoint(ctx, fetcher.ReadCheckpoint, verifier, verifier.Name())
	if err != nil {
		return err
	}
	entries, err := client.GetEntryBundle(ctx, fetcher.ReadEntryBundle, index/256, checkpoint.Size)
	if err != nil {
		return err
	}
	if !bytes.Equal(entries.Entries[index%256], record) {
		return errors.New("the entry at the leaf's index is another one")
	}
	builder, err := client.NewProofBuilder(ctx, checkpoint.Size, fetcher.ReadTile)
	if err != nil {
		return err
	}
	hashes, err := builder.InclusionProof(ctx, index)
	if err != nil {
		return err
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(record)
	if err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, checkpoint.Size, leaf, hashes, checkpoint.Hash); err != nil {
		return err
	}
	fmt.Printf("every entry and tile of %d leaves; leaf %d is included\n", checkpoint.Size, index)
	return nil
}

func hashEntries(bundle []byte) ([][]byte, error) {
	entries := &api.EntryBundle{}
	if err := entries.UnmarshalText(bundle); err != nil {
		return nil, err
	}
	hashes := make([][]byte, 0, len(entries.Entries))
	for _, entry := range entries.Entries {
		hashes = append(hashes, rfc6962.DefaultHasher.HashLeaf(entry))
	}
	return hashes, nil
}
