// A server that holds WebSockets and passes what is posted on to all of them. GET /count tells how many are open and how
// many messages went out.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"
)

type hub struct {
	mutex sync.Mutex
	open  map[chan []byte]bool
	sent  atomic.Uint64
}

func (h *hub) hold(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered.
	}
	defer socket.CloseNow()
	messages := make(chan []byte, 256)
	h.mutex.Lock()
	h.open[messages] = true
	h.mutex.Unlock()
	defer func() {
		h.mutex.Lock()
		delete(h.open, messages)
		h.mutex.Unlock()
	}()
	ctx := socket.CloseRead(context.Background())
	for {
		select {
		case <-ctx.Done():
			return
		case message := <-messages:
			if socket.Write(ctx, websocket.MessageText, message) != nil {
				return
			}
			h.sent.Add(1)
		}
	}
}

func (h *hub) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for messages := range h.open {
		select {
		case messages <- body:
		default: // its client does not read
		}
	}
	w.WriteHeader(http.StatusCreated)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	flag.Parse()
	h := &hub{open: map[chan []byte]bool{}}
	http.HandleFunc("/socket", h.hold)
	http.HandleFunc("/posts", h.post)
	http.HandleFunc("/count", func(w http.ResponseWriter, _ *http.Request) {
		h.mutex.Lock()
		defer h.mutex.Unlock()
		fmt.Fprintf(w, "%d %d", len(h.open), h.sent.Load())
	})
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.Serve(listener, nil))
}
