// An HTTP server whose requests cost a known amount of work: it hashes a block so many times.
// What a study of two such servers should find is known before.
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
)

// Hashes per request, by the name of the variant.
var hashes = map[string]int{"base": 2000, "twin": 2000, "second twin": 2000, "+2%": 2040, "+5%": 2100, "+10%": 2200}

func main() {
	cost := flag.String("cost", "base", "base, twin, second twin, +2%, +5% or +10%")
	listen := flag.String("listen", "127.0.0.1:0", "address")
	flag.Parse()
	count, known := hashes[*cost]
	if !known {
		log.Fatalf("-cost %q: expected base, twin, second twin, +2%%, +5%% or +10%%", *cost)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var block [sha256.Size]byte
		for range count {
			block = sha256.Sum256(block[:])
		}
		fmt.Fprintf(w, "%x\n", block)
	})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
