package main

import (
	"encoding/json"
	"strconv"
	"sync"
)

// event is something that happened, as instances tell one another.
type event struct {
	// Name is empty where clients are told nothing.
	Name    string          `json:"event,omitempty"`
	Channel int64           `json:"channel,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	// Join are users who became members of the channel.
	Join []int64 `json:"join,omitempty"`
	// EndSession is the token of a session that was logged out.
	EndSession string `json:"end_session,omitempty"`
}

// message is the event as sockets get it, but for the end: each socket numbers its own messages.
func (e event) message() []byte {
	message := append([]byte(`{"event":`), strconv.Quote(e.Name)...)
	message = append(message, `,"data":`...)
	message = append(message, e.Data...)
	return append(message, `,"seq":`...)
}

// hub knows the sockets of this instance, and which channels each listens to. So an event needs no query for the channel's
// members.
type hub struct {
	metrics   *metrics
	mutex     sync.RWMutex
	bySession map[string]*socket
	byUser    map[int64]map[*socket]bool
	byChannel map[int64]map[*socket]bool
}

func newHub(m *metrics) *hub {
	return &hub{
		metrics:   m,
		bySession: map[string]*socket{},
		byUser:    map[int64]map[*socket]bool{},
		byChannel: map[int64]map[*socket]bool{},
	}
}

// add makes a socket known by its user. A session has one socket: an older one is closed.
func (h *hub) add(s *socket) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if older := h.bySession[s.session]; older != nil {
		h.forget(older)
		older.end()
	}
	h.bySession[s.session] = s
	put(h.byUser, s.user, s)
	h.metrics.webSockets.Inc()
}

// listen lets a socket hear of these channels from now on, and says so to its client with the event `hello`.
func (h *hub) listen(s *socket, channels []int64, hello event) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.bySession[s.session] != s {
		return
	}
	h.queue(s, hello.Name, hello.message())
	for _, channel := range channels {
		h.join(s, channel)
	}
}

func (h *hub) remove(s *socket) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.bySession[s.session] == s {
		h.forget(s)
	}
}

// deliver acts on an event that happened here or on a peer.
func (h *hub) deliver(e event) {
	if e.EndSession != "" {
		h.endSession(e.EndSession)
	}
	if len(e.Join) > 0 {
		h.joinUsers(e.Join, e.Channel)
	}
	if e.Name == "" {
		return
	}
	message := e.message()
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	for s := range h.byChannel[e.Channel] {
		h.queue(s, e.Name, message)
	}
}

// all are the sockets that are open now.
func (h *hub) all() []*socket {
	h.mutex.RLock()
	defer h.mutex.RUnlock()
	var all []*socket
	for _, s := range h.bySession {
		all = append(all, s)
	}
	return all
}

// queue gives a message to a socket, or ends the socket where its queue is full: its client reads too slowly, and to leave a
// message out would be worse than to let it connect again.
func (h *hub) queue(s *socket, name string, message []byte) {
	select {
	case s.messages <- message:
		h.metrics.sent.WithLabelValues(name).Inc()
	default:
		h.metrics.dropped.Inc()
		s.end()
	}
}

func (h *hub) joinUsers(users []int64, channel int64) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, user := range users {
		for s := range h.byUser[user] {
			h.join(s, channel)
		}
	}
}

func (h *hub) endSession(token string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if s := h.bySession[token]; s != nil {
		h.forget(s)
		s.end()
	}
}

func (h *hub) join(s *socket, channel int64) {
	if !h.byChannel[channel][s] {
		put(h.byChannel, channel, s)
		s.channels = append(s.channels, channel)
	}
}

func (h *hub) forget(s *socket) {
	delete(h.bySession, s.session)
	take(h.byUser, s.user, s)
	for _, channel := range s.channels {
		take(h.byChannel, channel, s)
	}
	h.metrics.webSockets.Dec()
}

func put(sets map[int64]map[*socket]bool, key int64, s *socket) {
	if sets[key] == nil {
		sets[key] = map[*socket]bool{}
	}
	sets[key][s] = true
}

func take(sets map[int64]map[*socket]bool, key int64, s *socket) {
	delete(sets[key], s)
	if len(sets[key]) == 0 {
		delete(sets, key)
	}
}
