package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// toy is the data of most tests. Channel 1 is the town square of team 1, in which user1 and user3 are; users 1 and 2, 2 and 3 and
// so on have direct channels.
var toy = size{users: 12, teams: 2, channels: 8, posts: 1500, seed: 1}

// instance is a running server.
type instance struct {
	*server
	address string
}

// startInstances starts servers that know one another, with generated data.
func startInstances(t *testing.T, address string, n int) []*instance {
	t.Helper()
	db := open(t, address)
	if err := generate(t.Context(), db, toy); err != nil {
		t.Fatal(err)
	}
	listeners, addresses := make([]net.Listener, n), make([]string, n)
	for i := range n {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		addresses[i] = listeners[i].Addr().String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	var all []*instance
	for i, listener := range listeners {
		options := serveOptions{listen: addresses[i], database: address, peers: addresses}
		s := newServer(ctx, open(t, address), options)
		web := httptest.NewUnstartedServer(s.handler())
		web.Listener.Close()
		web.Listener = listener
		web.Start()
		t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
		all = append(all, &instance{s, addresses[i]})
	}
	return all
}

// client is a user of an instance.
type client struct {
	t       *testing.T
	address string
	token   string
	user    int64
}

func (i *instance) login(t *testing.T, user int) *client {
	t.Helper()
	c := &client{t: t, address: i.address}
	answer := c.must(200, "POST", "/api/login", map[string]string{
		"username": fmt.Sprintf("user%d", user), "password": generatedPassword,
	})
	c.token, c.user = answer["token"].(string), int64(user)
	return c
}

// on is the same session with another instance.
func (c *client) on(i *instance) *client {
	return &client{t: c.t, address: i.address, token: c.token, user: c.user}
}

// must sends a request and wants this status. A body that is a text is sent as it is.
func (c *client) must(status int, method, path string, body any) map[string]any {
	c.t.Helper()
	found, answer := c.send(method, path, body)
	if found != status {
		c.t.Fatalf("%s %s: expected status %d, found %d: %s", method, path, status, found, answer)
	}
	fields := map[string]any{}
	if len(answer) > 0 {
		if err := json.Unmarshal(answer, &fields); err != nil {
			c.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
	return fields
}

func (c *client) send(method, path string, body any) (int, []byte) {
	c.t.Helper()
	var reader io.Reader
	if text, ok := body.(string); ok {
		reader = strings.NewReader(text)
	} else if body != nil {
		encoded, _ := json.Marshal(body)
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, "http://"+c.address+path, reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer.StatusCode, all
}

func (c *client) post(channel, root int64, message, pending string) map[string]any {
	c.t.Helper()
	return c.must(201, "POST", "/api/posts", map[string]any{
		"channel_id": channel, "root_id": root, "message": message, "pending_id": pending,
	})
}

// channelIDs are those of a kind: the user's own, in the order of their ids.
func (c *client) channelIDs(kind string) []int64 {
	c.t.Helper()
	var ids []int64
	for _, one := range list(c.must(200, "GET", "/api/users/me", nil)["channels"]) {
		if one["kind"] == kind {
			ids = append(ids, id(one["id"]))
		}
	}
	return ids
}

// metrics is what GET /metrics answers.
func (c *client) metrics() string {
	c.t.Helper()
	status, text := c.send("GET", "/metrics", nil)
	if status != 200 {
		c.t.Fatalf("expected metrics, found status %d", status)
	}
	return string(text)
}

func list(value any) []map[string]any {
	var all []map[string]any
	for _, one := range value.([]any) {
		all = append(all, one.(map[string]any))
	}
	return all
}

func id(value any) int64 { return int64(value.(float64)) }

// received is an event that a client got.
type received struct {
	Event string         `json:"event"`
	Data  map[string]any `json:"data"`
	Seq   int64          `json:"seq"`
}

type testSocket struct {
	t          *testing.T
	connection *websocket.Conn
}

// listen opens a WebSocket and waits for its hello.
func (c *client) listen() *testSocket {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	connection, _, err := websocket.Dial(ctx, "ws://"+c.address+"/api/websocket?token="+c.token, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { connection.CloseNow() })
	s := &testSocket{c.t, connection}
	if hello := s.next(); hello.Event != "hello" || hello.Seq != 0 || id(hello.Data["user_id"]) != c.user {
		c.t.Fatalf("expected hello to user %d, found %+v", c.user, hello)
	}
	return s
}

func (s *testSocket) next() received {
	s.t.Helper()
	event, err := s.read()
	if err != nil {
		s.t.Fatal(err)
	}
	return event
}

func (s *testSocket) read() (received, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var event received
	_, text, err := s.connection.Read(ctx)
	if err == nil {
		err = json.Unmarshal(text, &event)
	}
	return event, err
}

// until are the events up to the first with this name, that one included.
func (s *testSocket) until(name string) []received {
	s.t.Helper()
	var all []received
	for {
		all = append(all, s.next())
		if all[len(all)-1].Event == name {
			return all
		}
	}
}

func names(events []received) string {
	var all []string
	for _, e := range events {
		all = append(all, e.Event)
	}
	return strings.Join(all, " ")
}
