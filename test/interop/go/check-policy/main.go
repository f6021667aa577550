// Checks a checkpoint, read from standard input, against a C2SP tlog-policy with torchwood.
package main

import (
	"fmt"
	"io"
	"os"

	"filippo.io/torchwood"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check-policy POLICY_FILE < CHECKPOINT")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	policy, err := torchwood.ParsePolicy(text)
	if err != nil {
		return err
	}
	signed, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	checkpoint, n, err := torchwood.VerifyCheckpoint(signed, policy)
	if err != nil {
		return err
	}
	fmt.Printf("%s at %d, %d signatures verified\n", checkpoint.Origin, checkpoint.N, len(n.Sigs))
	return nil
}
