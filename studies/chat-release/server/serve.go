package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// drainWithin is how long requests and sockets may take to end when the server stops.
const drainWithin = 3 * time.Second

type serveOptions struct {
	listen      string
	database    string
	peers       []string
	connections int
}

// server is one instance.
type server struct {
	store    *store
	sessions *sessionCache
	hub      *hub
	peers    *peers
	peerKey  string
	metrics  *metrics
}

func newServer(ctx context.Context, db *database, o serveOptions) *server {
	m := newMetrics()
	m.watchPool(db)
	m.expect(routes)
	key := peerKey(o.database)
	return &server{
		store:    newStore(db, m.storeTime),
		sessions: newSessionCache(),
		hub:      newHub(m),
		peers:    newPeers(ctx, o.peers, o.listen, key, m),
		peerKey:  key,
		metrics:  m,
	}
}

// publish lets an event that happened here reach all instances, this one first.
func (s *server) publish(e event) {
	if e.Name != "" {
		s.metrics.events.WithLabelValues(e.Name).Inc()
	}
	s.deliver(e)
	s.peers.send(e)
}

// publishTo tells all members of a channel that are connected.
func (s *server) publishTo(channel int64, name string, data any) {
	encoded, err := json.Marshal(data)
	if err != nil {
		s.report(name, err)
		return
	}
	s.publish(event{Name: name, Channel: channel, Data: encoded})
}

// deliver acts on an event here, wherever it happened.
func (s *server) deliver(e event) {
	if e.EndSession != "" {
		s.sessions.remove(e.EndSession)
	}
	s.hub.deliver(e)
}

// serve answers until the context ends, and then lets requests and sockets end.
func serve(ctx context.Context, o serveOptions) error {
	db, err := openDatabase(o.database, o.connections)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	// Peers get events until requests have ended.
	sending, stopSending := context.WithCancel(context.Background())
	defer stopSending()
	s := newServer(sending, db, o)
	// Clients think for up to a minute between requests, and proxies keep connections as long.
	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	log.Printf("chat %s is listening on %s", version, listener.Addr())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	return s.stop(web)
}

func (s *server) stop(web *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		var all sync.WaitGroup
		for _, socket := range s.hub.all() {
			all.Go(socket.goAway)
		}
		all.Wait()
	}()
	err := web.Shutdown(ctx)
	select {
	case <-closed:
	case <-ctx.Done():
	}
	if errors.Is(err, context.DeadlineExceeded) {
		log.Printf("requests that took longer than %s were cut off", drainWithin)
		return web.Close()
	}
	return err
}
