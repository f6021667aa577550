// Verifies a C2SP tlog-proof, read from standard input, with torchwood: a tlog-policy, and the leaf.
package main

import (
	"fmt"
	"io"
	"os"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/tlog"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: check-proof POLICY LEAF < PROOF")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("torchwood: the leaf is in the log")
}

func check(policyPath, leafPath string) error {
	text, err := os.ReadFile(policyPath)
	if err != nil {
		return err
	}
	policy, err := torchwood.ParsePolicy(text)
	if err != nil {
		return err
	}
	leaf, err := os.ReadFile(leafPath)
	if err != nil {
		return err
	}
	proof, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	return torchwood.VerifyProof(policy, tlog.RecordHash(leaf), proof)
}
