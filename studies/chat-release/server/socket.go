package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

const (
	// messagesQueued is how many messages wait for a socket whose client does not read.
	messagesQueued = 256
	pingEvery      = 30 * time.Second
	// writeWithin is how long a message may take to be written, and a ping to be answered.
	writeWithin = 10 * time.Second
)

// socket is the WebSocket of a session.
type socket struct {
	connection *websocket.Conn
	session    string
	user       int64
	messages   chan []byte
	// channels are those that the socket listens to. The hub guards them.
	channels []int64
	// end closes the connection at once; it may be called more than once.
	end context.CancelFunc
}

// serveWebSocket answers GET /api/websocket?token=…, and returns when the socket has ended.
func (s *server) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	user, err := s.sessions.user(r.Context(), token, s.store)
	if err != nil {
		s.refuse(w, "websocket", unauthorized(err))
		return
	}
	// Any page may connect: the token proves who it is, no cookie does.
	connection, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // Accept has answered.
	}
	defer connection.CloseNow()
	connection.SetReadLimit(4096)

	ctx, end := context.WithCancel(context.Background())
	defer end()
	socket := &socket{
		connection: connection, session: token, user: user, messages: make(chan []byte, messagesQueued), end: end,
	}
	// Known by its user first: a direct channel that is made while the channels are read is then not missed.
	s.hub.add(socket)
	defer s.hub.remove(socket)
	channels, err := s.store.channelIDs(ctx, user)
	if err != nil {
		s.report("websocket", err)
		return
	}
	hello, _ := json.Marshal(map[string]int64{"user_id": user})
	s.hub.listen(socket, channels, event{Name: "hello", Data: hello})
	go socket.write(ctx)
	socket.read(ctx)
}

// read takes what the client sends, which only pongs and the close matter of, until the connection ends.
func (s *socket) read(ctx context.Context) {
	for {
		_, message, err := s.connection.Reader(ctx)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, message); err != nil {
			return
		}
	}
}

// write sends what is queued, and pings.
func (s *socket) write(ctx context.Context) {
	defer s.end()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	var buffer []byte
	for number := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ping.C:
			// Events do not wait for the pong.
			go s.ping(ctx)
		case message := <-s.messages:
			buffer = append(strconv.AppendInt(append(buffer[:0], message...), number, 10), '}')
			number++
			if s.send(ctx, buffer) != nil {
				return
			}
		}
	}
}

func (s *socket) send(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return s.connection.Write(ctx, websocket.MessageText, message)
}

func (s *socket) ping(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	if s.connection.Ping(ctx) != nil {
		s.end()
	}
}

// goAway closes the connection as the protocol wants it, which takes until the client has answered.
func (s *socket) goAway() {
	s.connection.Close(websocket.StatusGoingAway, "the server stops")
	s.end()
}
