// An HTTP server that misbehaves now and then, and counts every request that it receives: what a generator says that it
// has sent is held against that. GET /count tells, and is not counted.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// One request in so many fails in this way.
const (
	serverError = 101
	closeAfter  = 503
	closeBefore = 1009
	tooLate     = 5003
)

var received atomic.Uint64

func answer(w http.ResponseWriter, r *http.Request) {
	number := received.Add(1)
	io.Copy(io.Discard, r.Body)
	switch {
	case number%tooLate == 0:
		time.Sleep(3 * time.Second) // users wait for two
	case number%closeBefore == 0:
		panic(http.ErrAbortHandler) // the connection ends without a response
	case number%closeAfter == 0:
		w.Header().Set("Connection", "close")
	case number%serverError == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, `{"token":"%d"}`, number)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	flag.Parse()
	http.HandleFunc("/", answer)
	http.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, received.Load()) })
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
