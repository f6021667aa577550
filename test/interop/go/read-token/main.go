// Verifies an RFC 3161 TimeStampResp with Notary Project's tspclient-go: the response, what was stamped, and the chain of
// the authority in PEM, its root last. Prints the time.
package main

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"time"

	"github.com/notaryproject/tspclient-go"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: read-token RESPONSE DATA CHAIN")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(responsePath, dataPath, chainPath string) error {
	data, err := os.ReadFile(dataPath)
	if err != nil {
		return err
	}
	roots, err := readRoots(chainPath)
	if err != nil {
		return err
	}
	token, err := readToken(responsePath)
	if err != nil {
		return err
	}
	info, err := token.Info()
	if err != nil {
		return err
	}
	stamp, err := info.Validate(data)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{Roots: roots, CurrentTime: stamp.Value}
	if _, err := token.Verify(context.Background(), options); err != nil {
		return err
	}
	fmt.Printf("tspclient-go: %s\n", stamp.Format(time.RFC3339))
	return nil
}

func readToken(path string) (*tspclient.SignedToken, error) {
	der, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var response tspclient.Response
	if err := response.UnmarshalBinary(der); err != nil {
		return nil, err
	}
	return response.SignedToken()
}

func readRoots(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	chain, err := cryptoutils.UnmarshalCertificatesFromPEM(pem)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(chain[len(chain)-1])
	return roots, nil
}
