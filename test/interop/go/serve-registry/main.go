// Serves go-containerregistry's registry, with the referrers API, in memory, on a free port of the loopback address.
// Prints its name, 127.0.0.1:port, and ends with its standard input.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	quiet := registry.Logger(log.New(io.Discard, "", 0))
	log.Fatal(http.Serve(listener, registry.New(registry.WithReferrersSupport(true), quiet)))
}
