package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"time"
)

const (
	eventsPath = "/internal/events"
	// eventsQueued is how many events wait for a peer that does not take them.
	eventsQueued = 4096
	eventsAtOnce = 100
	// eventsBodyLimit has room for that many events with the longest messages.
	eventsBodyLimit = eventsAtOnce * 4 * bodyLimit
)

// peers are the other instances behind the same proxy. Each has a queue and a sender of its own, so that one that hangs delays no
// other, and events arrive in the order of the queue.
type peers struct {
	all     []*peer
	metrics *metrics
}

type peer struct {
	address string
	key     string
	events  chan event
	client  *http.Client
	metrics *metrics
}

// newPeers leaves out the own address, and addresses that come twice: sockets get each event once.
func newPeers(ctx context.Context, addresses []string, own, key string, m *metrics) *peers {
	p := &peers{metrics: m}
	known := []string{own}
	for _, address := range addresses {
		if slices.Contains(known, address) {
			continue
		}
		known = append(known, address)
		one := &peer{
			address: address, key: key, events: make(chan event, eventsQueued), metrics: m,
			client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{}},
		}
		p.all = append(p.all, one)
		go one.run(ctx)
	}
	return p
}

// send queues an event for each peer, and drops it where the queue is full.
func (p *peers) send(e event) {
	for _, peer := range p.all {
		select {
		case peer.events <- e:
		default:
			p.metrics.dropped.Inc()
		}
	}
}

// run sends what is queued, all that waits with one request. What fails is not sent again: the peer may have received it, and
// nobody may get an event twice.
func (p *peer) run(ctx context.Context) {
	failing := false
	for {
		var batch []event
		select {
		case <-ctx.Done():
			return
		case first := <-p.events:
			batch = p.waiting(append(batch, first))
		}
		err := p.post(ctx, batch)
		if err != nil {
			p.metrics.dropped.Add(float64(len(batch)))
			if !failing {
				log.Printf("peer %s gets no events: %v", p.address, err)
			}
		} else if failing {
			log.Printf("peer %s gets events again", p.address)
		}
		failing = err != nil
	}
}

func (p *peer) waiting(batch []event) []event {
	for len(batch) < eventsAtOnce {
		select {
		case e := <-p.events:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

func (p *peer) post(ctx context.Context, batch []event) error {
	body, err := json.Marshal(batch)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.address+eventsPath, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+p.key)
	answer, err := p.client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	// Read to the end, so that the connection is kept.
	io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusNoContent {
		return fmt.Errorf("expected status 204, found %s", answer.Status)
	}
	return nil
}

// peerKey is what instances know each other by: clients reach the same port, and must not make events. All instances know the
// database's URL, and nobody else does.
func peerKey(databaseURL string) string {
	code := hmac.New(sha256.New, []byte(databaseURL))
	code.Write([]byte("events between instances"))
	return hex.EncodeToString(code.Sum(nil))
}

// takeEvents answers POST /internal/events: what happened on a peer reaches the sockets of this instance, and goes no further.
func (s *server) takeEvents(w http.ResponseWriter, r *http.Request) {
	if !hmac.Equal([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.peerKey)) {
		http.Error(w, "only another instance with the same database URL may send events", http.StatusForbidden)
		return
	}
	var batch []event
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, eventsBodyLimit)).Decode(&batch); err != nil {
		http.Error(w, "expected a list of events: "+err.Error(), http.StatusBadRequest)
		return
	}
	for _, e := range batch {
		s.deliver(e)
	}
	w.WriteHeader(http.StatusNoContent)
}
