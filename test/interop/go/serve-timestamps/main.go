// Sigstore's timestamp-authority with a key and a chain that it makes in memory, on a free port of 127.0.0.1, whose
// address it prints. Its own program serves metrics as well, always on port 2112, and ends if that is taken.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/sigstore/timestamp-authority/v2/pkg/server"
	"github.com/spf13/viper"
)

const (
	policy  = "1.3.6.1.4.1.57264.2"
	timeout = 10 * time.Second
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	viper.Set("timestamp-signer", "memory")
	viper.Set("timestamp-signer-hash", "sha256")
	viper.Set("default-policy-oid", policy)
	viper.Set("accepted-policy-oids", []string{policy})
	viper.Set("max-request-body-size", 1<<20)
	authority := server.NewRestAPIServer("127.0.0.1", 0, []string{"http"}, false, timeout, timeout)
	if err := authority.Listen(); err != nil {
		return err
	}
	fmt.Printf("http://127.0.0.1:%d/api/v1/timestamp\n", authority.Port)
	return authority.Serve()
}
