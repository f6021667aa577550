// A log of Tessera's on files, that takes entries over HTTP: the body of POST /add is one, and its index the answer, once
// it is durable and integrated. Prints `ready URL`; the only argument is the folder of the log, which must be empty.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/transparency-dev/tessera"
	"github.com/transparency-dev/tessera/storage/posix"
	"golang.org/x/mod/sumdb/note"
)

// A batch is full with as many entries as there are connections; Tessera's own 256 would wait for the clock each time.
const (
	batchSize = 64
	batchAge  = 20 * time.Millisecond
	maxEntry  = 64 << 10
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: tessera-log DIR")
	}
	ctx := context.Background()
	appender, err := open(ctx, os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /add", func(w http.ResponseWriter, r *http.Request) { add(appender, w, r) })
	fmt.Printf("ready http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

func open(ctx context.Context, dir string) (*tessera.Appender, error) {
	key, _, err := note.GenerateKey(rand.Reader, "localhost/tessera")
	if err != nil {
		return nil, err
	}
	signer, err := note.NewSigner(key)
	if err != nil {
		return nil, err
	}
	driver, err := posix.New(ctx, posix.Config{Path: dir})
	if err != nil {
		return nil, err
	}
	appender, _, _, err := tessera.NewAppender(ctx, driver, tessera.NewAppendOptions().
		WithCheckpointSigner(signer).
		WithCheckpointInterval(time.Second).
		WithBatching(batchSize, batchAge))
	return appender, err
}

func add(appender *tessera.Appender, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxEntry))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	index, err := appender.Add(r.Context(), tessera.NewEntry(body))()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%d", index.Index)
}
