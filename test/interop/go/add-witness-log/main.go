// Adds a log and its key to the database of a litewitness that runs.
package main

import (
	"fmt"
	"os"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: add-witness-log DATABASE ORIGIN VERIFIER_KEY")
		os.Exit(2)
	}
	if err := add(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func add(path, origin, verifierKey string) (err error) {
	db, err := sqlite.OpenConn(path, sqlite.OpenReadWrite, sqlite.OpenWAL)
	if err != nil {
		return err
	}
	defer db.Close()
	defer sqlitex.Save(db)(&err)
	empty := "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	insert := "INSERT INTO log (origin, tree_size, tree_hash) VALUES (?, 0, ?)"
	if err := sqlitex.Execute(db, insert, &sqlitex.ExecOptions{Args: []any{origin, empty}}); err != nil {
		return err
	}
	insert = "INSERT INTO key (origin, key) VALUES (?, ?)"
	return sqlitex.Execute(db, insert, &sqlitex.ExecOptions{Args: []any{origin, verifierKey}})
}
