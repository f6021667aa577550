// A log of its own that feeds its checkpoints to a C2SP witness, and verifies the cosignatures with torchwood. Run
// without arguments it prints a new key pair.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const origin = "feeder.interop.example"

// history is a log in memory, as the hashes that golang.org/x/mod stores.
type history []tlog.Hash

func (h history) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		hashes[i] = h[index]
	}
	return hashes, nil
}

func grow(leaves int64, leaf func(int64) string) (history, error) {
	var h history
	for n := int64(0); n < leaves; n++ {
		hashes, err := tlog.StoredHashes(n, []byte(leaf(n)), h)
		if err != nil {
			return nil, err
		}
		h = append(h, hashes...)
	}
	return h, nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 1:
		err = printKeys()
	case len(os.Args) > 3:
		err = feed(os.Args[1], os.Args[2], os.Args[3:])
	default:
		err = fmt.Errorf("usage: feed-witness [SIGNING_KEY URL VERIFIER_KEY...]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func printKeys() error {
	signing, verifier, err := note.GenerateKey(rand.Reader, origin)
	fmt.Printf("%s\n%s\n", signing, verifier)
	return err
}

func feed(signingKey, url string, verifierKeys []string) error {
	signer, err := note.NewSigner(signingKey)
	if err != nil {
		return err
	}
	var verifiers []note.Verifier
	for _, key := range verifierKeys {
		verifier, err := torchwood.NewCosignatureVerifier(key)
		if err != nil {
			return err
		}
		verifiers = append(verifiers, verifier)
	}
	own, err := grow(300, func(n int64) string { return fmt.Sprintf("leaf %d", n) })
	if err != nil {
		return err
	}
	sizes := []int64{0, 1, 3, 3, 8, 256, 300}
	for i, size := range sizes[1:] {
		status, lines, checkpoint, err := add(signer, url, own, sizes[i], size)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("size %d: status %d: %s", size, status, lines)
		}
		n, err := note.Open(append(checkpoint, lines...), note.VerifierList(verifiers...))
		if err != nil {
			return fmt.Errorf("size %d: %w", size, err)
		}
		if len(n.Sigs) != len(verifiers) {
			return fmt.Errorf("size %d: %d cosignatures verify of %d", size, len(n.Sigs), len(verifiers))
		}
	}
	fork, err := grow(400, func(n int64) string { return fmt.Sprintf("fork %d", n) })
	if err != nil {
		return err
	}
	if status, _, _, err := add(signer, url, fork, 300, 400); err != nil || status != http.StatusUnprocessableEntity {
		return fmt.Errorf("a fork: status %d, %v", status, err)
	}
	if status, body, _, err := add(signer, url, own, 0, 300); err != nil || status != http.StatusConflict || string(body) != "300\n" {
		return fmt.Errorf("an old size: status %d, %q, %v", status, body, err)
	}
	fmt.Printf("%d checkpoints are cosigned by %d keys, and no fork\n", len(sizes)-1, len(verifiers))
	return nil
}

func add(signer note.Signer, url string, h history, from, to int64) (int, []byte, []byte, error) {
	root, err := tlog.TreeHash(to, h)
	if err != nil {
		return 0, nil, nil, err
	}
	checkpoint := torchwood.Checkpoint{Origin: origin, Tree: tlog.Tree{N: to, Hash: root}}
	signed, err := note.Sign(&note.Note{Text: checkpoint.String()}, signer)
	if err != nil {
		return 0, nil, nil, err
	}
	var body strings.Builder
	fmt.Fprintf(&body, "old %d\n", from)
	if from > 0 {
		proof, err := tlog.ProveTree(to, from, h)
		if err != nil {
			return 0, nil, nil, err
		}
		for _, hash := range proof {
			fmt.Fprintln(&body, base64.StdEncoding.EncodeToString(hash[:]))
		}
	}
	fmt.Fprintf(&body, "\n%s", signed)
	response, err := http.Post(strings.TrimSuffix(url, "/")+"/add-checkpoint", "text/plain", bytes.NewBufferString(body.String()))
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, signed, err
}
