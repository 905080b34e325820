package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

func TestEachEventReachesTheMembersInOrder(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		one, three := i.login(t, 1), i.login(t, 3)
		mine, theirs := one.listen(), three.listen()
		post := id(one.post(townSquare, 0, "a plan", "mine-7")["id"])
		path := fmt.Sprintf("/api/posts/%d", post)
		one.must(200, "PUT", path, map[string]string{"message": "a better plan"})
		three.must(201, "POST", path+"/reactions", map[string]string{"emoji": "heart"})
		three.must(200, "POST", path+"/reactions", map[string]string{"emoji": "heart"})
		one.must(204, "DELETE", path, nil)
		three.must(204, "POST", "/api/channels/1/typing", nil)
		for _, socket := range []*testSocket{mine, theirs} {
			events := socket.until("typing")
			if found := names(events); found != "posted post_edited reaction_added post_deleted typing" {
				t.Fatalf("expected each event once, found %s", found)
			}
			for n, e := range events {
				if e.Seq != int64(n+1) {
					t.Errorf("expected number %d, found %+v", n+1, e)
				}
			}
			if d := events[0].Data; d["pending_id"] != "mine-7" || d["message"] != "a plan" || id(d["channel_id"]) != townSquare {
				t.Errorf("expected the post, found %v", d)
			}
			if d := events[2].Data; d["emoji"] != "heart" || id(d["post_id"]) != post || id(d["channel_id"]) != townSquare {
				t.Errorf("expected the reaction, found %v", d)
			}
		}
		if metrics := one.metrics(); !strings.Contains(metrics, "chat_websockets 2") ||
			!strings.Contains(metrics, `chat_events_sent_total{event="posted"} 2`) {
			t.Error("expected two sockets in the metrics")
		}
	})
}

func TestAnEventReachesMembersOnEachInstanceOnceAndNobodyElse(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		instances := startInstances(t, address, 2)
		a, b := instances[0], instances[1]
		// Users 2 and 3 have a direct channel, which 1 and 4 are no members of; all but 1 are connected to either instance.
		two, three, four := a.login(t, 2), b.login(t, 3), b.login(t, 4)
		shared := sharedChannel(t, two, three)
		sockets := []*testSocket{two.listen(), three.listen(), a.login(t, 3).listen()}
		outsider := four.listen()
		for n := range 20 {
			pending := fmt.Sprintf("pending-%d", n)
			two.on(instances[n%2]).post(shared, 0, "a message", pending)
		}
		two.must(204, "POST", fmt.Sprintf("/api/channels/%d/typing", shared), nil)
		two.on(b).must(204, "POST", fmt.Sprintf("/api/channels/%d/typing", shared), nil)
		for _, socket := range sockets {
			// Each instance's events arrive in its own order: with the second typing event all have come.
			events := append(socket.until("typing"), socket.until("typing")...)
			times := map[string]int{}
			for _, e := range events {
				if e.Event == "posted" {
					times[e.Data["pending_id"].(string)]++
				}
			}
			if len(times) != 20 || len(events) != 22 {
				t.Errorf("expected each of 20 posts once, found %v in %d events", times, len(events))
			}
		}
		four.post(sharedChannel(t, four, a.login(t, 5)), 0, "something else", "")
		if e := outsider.next(); e.Data["message"] != "something else" {
			t.Errorf("expected no event of a foreign channel, found %+v", e)
		}
		for _, c := range []*client{two, three} {
			if !strings.Contains(c.metrics(), "chat_events_dropped_total 0") {
				t.Error("expected no dropped event")
			}
		}
	})
}

func sharedChannel(t *testing.T, a, b *client) int64 {
	t.Helper()
	for _, mine := range a.channelIDs(directChannel) {
		for _, theirs := range b.channelIDs(directChannel) {
			if mine == theirs {
				return mine
			}
		}
	}
	t.Fatalf("users %d and %d have no direct channel", a.user, b.user)
	return 0
}

func TestANewDirectChannelIsHeardByThoseWhoAreConnected(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		instances := startInstances(t, address, 2)
		one, seven := instances[0].login(t, 1), instances[1].login(t, 7)
		sockets := []*testSocket{one.listen(), seven.listen()}
		channel := id(one.must(201, "POST", "/api/channels/direct", map[string]int64{"user_id": 7})["id"])
		one.post(channel, 0, "hello", "")
		for _, socket := range sockets {
			if e := socket.next(); e.Event != "posted" || id(e.Data["channel_id"]) != channel {
				t.Errorf("expected the first post, found %+v", e)
			}
		}
	})
}

func TestASessionHasOneSocketAndLosesItWithTheLogout(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		instances := startInstances(t, address, 2)
		one := instances[0].login(t, 1)
		older := one.listen()
		newer := one.listen()
		if _, err := older.read(); err == nil {
			t.Error("expected the older socket of a session to be closed")
		}
		one.must(204, "POST", "/api/channels/1/typing", nil)
		if e := newer.next(); e.Event != "typing" {
			t.Errorf("expected an event on the newer socket, found %+v", e)
		}
		// The other instance has the session in its cache, and is told.
		elsewhere := one.on(instances[1])
		elsewhere.must(200, "GET", "/api/users/me", nil)
		one.must(204, "POST", "/api/logout", nil)
		if _, err := newer.read(); err == nil {
			t.Error("expected the socket to be closed by the logout")
		}
		for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			if status, _ := elsewhere.send("GET", "/api/users/me", nil); status == 401 {
				break
			} else if time.Now().After(deadline) {
				t.Fatal("expected the session to end on the other instance")
			}
		}
	})
}

func TestASlowSocketIsEndedAndNotBuffered(t *testing.T) {
	h := newHub(newMetrics())
	ended := 0
	slow := &socket{session: "s", user: 1, messages: make(chan []byte, messagesQueued), end: func() { ended++ }}
	h.add(slow)
	h.listen(slow, []int64{1}, event{Name: "hello", Data: []byte("{}")})
	for range messagesQueued - 1 {
		h.deliver(event{Name: "posted", Channel: 1, Data: []byte("{}")})
	}
	if ended != 0 {
		t.Fatal("ended before its queue was full")
	}
	h.deliver(event{Name: "posted", Channel: 1, Data: []byte("{}")})
	if ended != 1 {
		t.Errorf("expected the socket to be ended once, found %d", ended)
	}
	h.remove(slow)
	if len(h.bySession)+len(h.byUser)+len(h.byChannel) != 0 {
		t.Error("expected nothing to be left of the socket")
	}
}

func TestEventsForAPeerThatIsAwayAreCountedAndHoldNothingUp(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	m := newMetrics()
	away := "127.0.0.1:" + freePort()
	p := newPeers(ctx, []string{away, "127.0.0.1:1", away}, "127.0.0.1:1", "key", m)
	if len(p.all) != 1 {
		t.Fatalf("expected one peer besides the own address, found %d", len(p.all))
	}
	for range 2 * eventsQueued {
		p.send(event{Name: "posted"})
	}
	dropped := func() float64 { return counted(t, m, "chat_events_dropped_total") }
	for deadline := time.Now().Add(10 * time.Second); dropped() < 2*eventsQueued; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("expected %d dropped events, found %v", 2*eventsQueued, dropped())
		}
	}
}

func counted(t *testing.T, m *metrics, name string) float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	return 0
}

func TestTheServerStopsWithItsSockets(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		if err := generate(t.Context(), open(t, address), toy); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		listen := "127.0.0.1:" + freePort()
		ended := make(chan error, 1)
		go func() { ended <- serve(ctx, serveOptions{listen: listen, database: address, connections: 5}) }()
		awaitListening(t, listen)
		socket := (&instance{address: listen}).login(t, 1).listen()
		start := time.Now()
		stop()
		_, err := socket.read()
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusGoingAway {
			t.Errorf("expected the socket to be told that the server goes away, found %v", err)
		}
		if err := <-ended; err != nil || time.Since(start) > drainWithin {
			t.Errorf("expected an end in order, found %v after %s", err, time.Since(start))
		}
	})
}

func awaitListening(t *testing.T, address string) {
	t.Helper()
	for range 100 {
		connection, err := dial(address)
		if err == nil {
			connection.Close()
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("nobody listens on %s", address)
}
