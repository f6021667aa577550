// Verifies an RFC 3161 TimeStampResp with Sigstore's timestamp-authority: the response, what was stamped, and the chain
// of the authority in PEM, its own certificate first. Prints what the stamp says.
package main

import (
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/timestamp-authority/v2/pkg/verification"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: read-timestamp RESPONSE DATA CHAIN")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(responsePath, dataPath, chainPath string) error {
	response, err := os.ReadFile(responsePath)
	if err != nil {
		return err
	}
	data, err := os.Open(dataPath)
	if err != nil {
		return err
	}
	defer data.Close()
	chain, err := readChain(chainPath)
	if err != nil {
		return err
	}
	last := len(chain) - 1
	options := verification.VerifyOpts{
		TSACertificate: chain[0],
		Intermediates:  chain[1:last],
		Roots:          chain[last:],
	}
	stamp, err := verification.VerifyTimestampResponse(response, data, options)
	if err != nil {
		return err
	}
	fmt.Printf("policy %s, time %s, accuracy %s\n", stamp.Policy, stamp.Time.Format(time.RFC3339Nano), stamp.Accuracy)
	return nil
}

func readChain(path string) ([]*x509.Certificate, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	chain, err := cryptoutils.UnmarshalCertificatesFromPEM(pem)
	if err == nil && len(chain) < 2 {
		err = fmt.Errorf("%s holds no chain", path)
	}
	return chain, err
}
