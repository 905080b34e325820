// A server whose capacity is known: a queue in front of workers, each of which takes an exponential time for a request, or
// always the same. It sleeps instead of working, so that neither processors nor neighbours limit it.
package main

import (
	"flag"
	"log"
	"math/rand"
	"net/http"
	"time"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "the address")
	workers := flag.Int("workers", 4, "requests that are served at the same time")
	mean := flag.Duration("mean", 20*time.Millisecond, "the mean time of a request")
	constant := flag.Bool("constant", false, "whether each request takes the mean")
	flag.Parse()

	// Each free worker, with the time by which its sleeps have been too long so far: later ones are shorter by as much.
	// Goroutines that wait for a channel are served in the order in which they came.
	free := make(chan time.Duration, *workers)
	for range *workers {
		free <- 0
	}
	http.HandleFunc("/", func(reply http.ResponseWriter, _ *http.Request) {
		late := <-free
		began := time.Now()
		takes := *mean
		if !*constant {
			takes = time.Duration(rand.ExpFloat64() * float64(*mean))
		}
		time.Sleep(takes - late)
		free <- late + time.Since(began) - takes
		reply.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe(*listen, nil))
}
