// Verifies a Sigstore bundle with sigstore-go: a file, the bundle, a trusted root and a public key in PEM. As
// docs/verifying.md says, an entry in the log is required and no time stamp; with -time a time stamp or the log's own
// time is required too, as in the library's documentation, and with -stamp a time stamp over the signature. With -identity
// the signature must be by a certificate with that subject, as gh requires.
package main

import (
	"crypto"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

func main() {
	wantsTime := flag.Bool("time", false, "want a time stamp, or a time from the log")
	wantsStamp := flag.Bool("stamp", false, "want a time stamp over the signature")
	identity := flag.String("identity", "", "want a certificate with this subject")
	flag.Parse()
	if flag.NArg() != 4 {
		fmt.Fprintln(os.Stderr, "usage: verify-bundle [-time] [-stamp] [-identity SUBJECT] FILE BUNDLE TRUSTED_ROOT KEY")
		os.Exit(2)
	}
	time := timeOption(*wantsTime, *wantsStamp)
	if err := check(time, *identity, flag.Arg(0), flag.Arg(1), flag.Arg(2), flag.Arg(3)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("sigstore-go: verified")
}

func timeOption(wantsTime, wantsStamp bool) verify.VerifierOption {
	switch {
	case wantsStamp:
		return verify.WithSignedTimestamps(1)
	case wantsTime:
		return verify.WithObserverTimestamps(1)
	default:
		return verify.WithNoObserverTimestamps()
	}
}

func signerOption(identity string) (verify.PolicyOption, error) {
	if identity == "" {
		return verify.WithKey(), nil
	}
	wanted, err := verify.NewShortCertificateIdentity("", ".*", identity, "")
	return verify.WithCertificateIdentity(wanted), err
}

func check(time verify.VerifierOption, identity, artifactPath, bundlePath, rootPath, keyPath string) error {
	signed, err := bundle.LoadJSONFromPath(bundlePath)
	if err != nil {
		return err
	}
	logs, err := root.NewTrustedRootFromPath(rootPath)
	if err != nil {
		return err
	}
	keys, err := trustedKey(keyPath)
	if err != nil {
		return err
	}
	verifier, err := verify.NewVerifier(root.TrustedMaterialCollection{logs, keys}, verify.WithTransparencyLog(1), time)
	if err != nil {
		return err
	}
	artifact, err := os.Open(artifactPath)
	if err != nil {
		return err
	}
	defer artifact.Close()
	signer, err := signerOption(identity)
	if err != nil {
		return err
	}
	_, err = verifier.Verify(signed, verify.NewPolicy(verify.WithArtifact(artifact), signer))
	return err
}

// trustedKey answers with one key to every hint.
func trustedKey(path string) (root.TrustedMaterial, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(pem)
	if err != nil {
		return nil, err
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	always := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	find := func(string) (root.TimeConstrainedVerifier, error) { return always, nil }
	return root.NewTrustedPublicKeyMaterial(find), nil
}
