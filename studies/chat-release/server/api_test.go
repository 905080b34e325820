package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

const townSquare = 1

func TestEachHandlerAnswers(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		one, three := i.login(t, 1), i.login(t, 3)

		me := one.must(200, "GET", "/api/users/me", nil)
		if user := me["user"].(map[string]any); user["username"] != "user1" || list(me["teams"])[0]["name"] != "team1" {
			t.Errorf("expected user1 in team1, found %v", me)
		}
		direct := one.channelIDs(directChannel)
		if len(direct) != 2 {
			t.Errorf("expected two direct channels, found %v", direct)
		}

		// Switch, scroll, read.
		view := one.must(200, "POST", "/api/channels/1/view", nil)
		page := list(view["posts"])
		if len(page) != pageSize || id(page[0]["id"]) <= id(page[1]["id"]) {
			t.Fatalf("expected the %d newest posts, newest first, found %d", pageSize, len(page))
		}
		last := id(page[pageSize-1]["id"])
		for _, p := range list(one.must(200, "GET", fmt.Sprintf("/api/channels/1/posts?before=%d", last), nil)["posts"]) {
			if id(p["id"]) >= last {
				t.Errorf("expected posts before %d, found %v", last, p["id"])
			}
		}
		for _, c := range list(one.must(200, "GET", "/api/users/me/unread", nil)["channels"]) {
			if id(c["channel_id"]) == townSquare {
				t.Error("the channel that was viewed has unread posts")
			}
		}

		// Post, edit, react.
		posted := one.post(townSquare, 0, "we deploy the zanzibar release", "mine-1")
		root := id(posted["id"])
		if posted["pending_id"] != "mine-1" || id(posted["user_id"]) != 1 {
			t.Errorf("expected the own post, found %v", posted)
		}
		path := fmt.Sprintf("/api/posts/%d", root)
		edited := one.must(200, "PUT", path, map[string]string{"message": "we deployed the zanzibar release"})
		if edited["message"] != "we deployed the zanzibar release" || id(edited["edited_at"]) == 0 {
			t.Errorf("expected another text, found %v", edited)
		}
		three.must(201, "POST", path+"/reactions", map[string]string{"emoji": "tada"})
		three.must(200, "POST", path+"/reactions", map[string]string{"emoji": "tada"})
		newest := list(three.must(200, "POST", "/api/channels/1/view", nil)["posts"])[0]
		if id(newest["id"]) != root || len(list(newest["reactions"])) != 1 {
			t.Errorf("expected the post with one reaction, found %v", newest)
		}

		// Threads.
		reply := id(three.post(townSquare, root, "well done", "")["id"])
		three.post(townSquare, root, "who writes the summary?", "")
		thread := list(one.must(200, "GET", "/api/users/me/threads", nil)["threads"])[0]
		if id(thread["root"].(map[string]any)["id"]) != root || id(thread["replies"]) != 2 || id(thread["unread"]) != 2 {
			t.Errorf("expected a thread with two unread replies, found %v", thread)
		}
		shown := one.must(200, "GET", fmt.Sprintf("/api/posts/%d/thread", reply), nil)
		if id(shown["root"].(map[string]any)["id"]) != root || len(list(shown["replies"])) != 2 {
			t.Errorf("expected the thread of the reply, found %v", shown)
		}
		one.must(204, "PUT", path+"/thread/read", nil)
		if thread = list(one.must(200, "GET", "/api/users/me/threads", nil)["threads"])[0]; id(thread["unread"]) != 0 {
			t.Errorf("expected a thread that was read, found %v", thread)
		}

		// Drafts.
		for _, message := range []string{"a thought", "a better thought"} {
			one.must(200, "PUT", "/api/users/me/drafts", map[string]any{"channel_id": townSquare, "root_id": root, "message": message})
		}
		ofThread := func(d map[string]any) bool { return id(d["root_id"]) == root && d["message"] == "a better thought" }
		if drafts := list(one.must(200, "GET", "/api/users/me/drafts", nil)["drafts"]); !slices.ContainsFunc(drafts, ofThread) {
			t.Errorf("expected the later draft, found %v", drafts)
		}
		one.must(204, "DELETE", fmt.Sprintf("/api/users/me/drafts/1?root_id=%d", root), nil)
		if drafts := list(one.must(200, "GET", "/api/users/me/drafts", nil)["drafts"]); slices.ContainsFunc(drafts, ofThread) {
			t.Errorf("expected no draft of the thread, found %v", drafts)
		}

		// Search.
		found := list(one.must(200, "GET", "/api/search/posts?terms=Zanzibar+release", nil)["posts"])
		if len(found) != 1 || id(found[0]["id"]) != root {
			t.Errorf("expected the post with both words, found %v", found)
		}
		if found := list(one.must(200, "GET", "/api/search/posts?terms=zanzibar+nowhere", nil)["posts"]); len(found) != 0 {
			t.Errorf("expected no post with both words, found %v", found)
		}
		users := list(one.must(200, "GET", "/api/search/users?term=User1", nil)["users"])
		if len(users) != 4 || users[0]["username"] != "user1" || users[3]["username"] != "user12" {
			t.Errorf("expected user1, user10, user11 and user12, found %v", users)
		}
		if profile := one.must(200, "GET", "/api/users/7", nil); profile["username"] != "user7" || profile["salt"] != nil {
			t.Errorf("expected user7, found %v", profile)
		}

		// A direct channel is made once for a pair.
		made := one.must(201, "POST", "/api/channels/direct", map[string]int64{"user_id": 7})
		seven := i.login(t, 7)
		if again := seven.must(200, "POST", "/api/channels/direct", map[string]int64{"user_id": 1}); again["id"] != made["id"] {
			t.Errorf("expected one channel, found %v and %v", made, again)
		}
		seven.post(id(made["id"]), 0, "hello", "")
		one.must(204, "POST", fmt.Sprintf("/api/channels/%d/typing", id(made["id"])), nil)

		// Delete, leave.
		one.must(204, "DELETE", path, nil)
		one.must(404, "PUT", path, map[string]string{"message": "too late"})
		one.must(204, "POST", "/api/logout", nil)
		one.must(401, "GET", "/api/users/me", nil)

		checkMetrics(t, one.metrics())
	})
}

// checkMetrics wants each handler to have been measured, and what a study reads by default.
func checkMetrics(t *testing.T, metrics string) {
	t.Helper()
	wanted := []string{
		"go_goroutines", "process_cpu_seconds_total", `chat_store_time_seconds_count{method="createPost"}`, "chat_websockets 0",
		`chat_events_total{event="posted"} 4`, `chat_events_total{event="typing"} 1`, "chat_events_dropped_total 0",
		"chat_http_errors_total 0", "go_sql_wait_count_total",
	}
	for _, series := range wanted {
		if !strings.Contains(metrics, series) {
			t.Errorf("expected %s among the metrics", series)
		}
	}
	for _, route := range routes {
		count := fmt.Sprintf(`chat_api_time_seconds_count{handler=%q,method=%q,status_code="%d"}`, route.name, route.method, route.status)
		if !strings.Contains(metrics, count) || strings.Contains(metrics, count+" 0") {
			t.Errorf("expected a request of %s with the status %d", route.name, route.status)
		}
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		one, two := i.login(t, 1), i.login(t, 2)
		foreign := i.login(t, 5).channelIDs(directChannel)[0]
		own := one.channelIDs(directChannel)[0]
		post := id(one.post(townSquare, 0, "mine", "")["id"])
		stranger := &client{t: t, address: i.address}
		for _, c := range []struct {
			client *client
			status int
			method string
			path   string
			body   any
		}{
			{stranger, 401, "POST", "/api/login", map[string]string{"username": "user1", "password": "wrong"}},
			{stranger, 401, "POST", "/api/login", map[string]string{"username": "nobody\x00", "password": "password"}},
			{stranger, 401, "GET", "/api/users/me", nil},
			{&client{t: t, address: i.address, token: "00"}, 401, "GET", "/api/users/me", nil},
			{stranger, 401, "GET", "/api/websocket?token=%00", nil},
			{stranger, 404, "GET", "/api/nothing", nil},
			{stranger, 405, "PATCH", "/api/posts", nil},
			{stranger, 403, "POST", eventsPath, "[]"},
			{one, 404, "GET", "/api/users/99", nil},
			{one, 400, "GET", "/api/users/nobody", nil},
			{one, 403, "POST", fmt.Sprintf("/api/channels/%d/view", foreign), nil},
			{one, 403, "GET", fmt.Sprintf("/api/channels/%d/posts?before=9", foreign), nil},
			{one, 403, "POST", fmt.Sprintf("/api/channels/%d/typing", foreign), nil},
			{one, 403, "POST", "/api/posts", map[string]any{"channel_id": foreign, "message": "let me in"}},
			{one, 403, "PUT", "/api/users/me/drafts", map[string]any{"channel_id": foreign, "message": "let me in"}},
			{one, 400, "GET", "/api/channels/1/posts", nil},
			{one, 400, "POST", "/api/posts", map[string]any{"channel_id": townSquare, "message": ""}},
			{one, 400, "POST", "/api/posts", map[string]any{"channel_id": townSquare, "message": "a\x00b"}},
			{one, 400, "POST", "/api/posts", map[string]any{"channel_id": townSquare, "message": "a", "root_id": 1 << 40}},
			{one, 400, "POST", "/api/posts", map[string]any{"channel_id": own, "message": "a", "root_id": post}},
			{one, 400, "POST", "/api/posts", map[string]any{"channel_id": townSquare, "massage": "a"}},
			{one, 400, "POST", "/api/posts", "no JSON"},
			{one, 413, "POST", "/api/posts", `{"message":"` + strings.Repeat("a", bodyLimit) + `"}`},
			{two, 403, "PUT", fmt.Sprintf("/api/posts/%d", post), map[string]string{"message": "not mine"}},
			{two, 403, "DELETE", fmt.Sprintf("/api/posts/%d", post), nil},
			{one, 404, "PUT", fmt.Sprintf("/api/posts/%d/thread/read", post), nil},
			{one, 400, "POST", "/api/channels/direct", map[string]int64{"user_id": 1}},
			{one, 404, "POST", "/api/channels/direct", map[string]int64{"user_id": 99}},
			{one, 400, "GET", "/api/search/posts?terms=a+%27+%26", nil},
			{one, 400, "GET", "/api/search/users?term=%C3%A4", nil},
			{one, 200, "GET", "/api/search/posts?terms=it%27s+%22a%22+-budget+(module%26", nil},
			{one, 200, "GET", "/api/search/users?term=%25", nil},
		} {
			if status, body := c.client.send(c.method, c.path, c.body); status != c.status {
				t.Errorf("%s %s: expected status %d, found %d: %s", c.method, c.path, c.status, status, body)
			}
		}
		if metrics := one.metrics(); !strings.Contains(metrics, "chat_http_errors_total 0") {
			t.Error("a mistake of a client counts as an error of the server")
		}
	})
}

func TestAnErrorOfTheDatabaseIsA500AndCounts(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		one := i.login(t, 1)
		one.must(200, "GET", "/api/users/me", nil)
		if status, _ := one.send("GET", "/health", nil); status != http.StatusOK {
			t.Errorf("expected a healthy instance, found status %d", status)
		}
		i.store.pool.Close()
		one.must(500, "GET", "/api/users/me", nil)
		if status, _ := one.send("GET", "/health", nil); status != http.StatusServiceUnavailable {
			t.Errorf("expected status 503, found %d", status)
		}
		if metrics := one.metrics(); !strings.Contains(metrics, "chat_http_errors_total 1") {
			t.Error("expected one error in the metrics")
		}
	})
}

// Both versions pass this test: what `unread` tells is what `me` tells, which is the same code in both, and what the tables have.
func TestUnreadIsWhatTheUserHasNotRead(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		db := open(t, address)
		for user := 1; user <= toy.users; user++ {
			checkUnread(t, db, i.login(t, user))
		}
		one, three := i.login(t, 1), i.login(t, 3)
		one.must(200, "POST", "/api/channels/1/view", nil)
		three.must(200, "POST", "/api/channels/1/view", nil)
		for range 3 {
			one.post(townSquare, 0, "news", "")
		}
		if own := checkUnread(t, db, one)[townSquare]; own != 0 {
			t.Errorf("expected own posts to be read, found %d unread", own)
		}
		if news := checkUnread(t, db, three)[townSquare]; news != 3 {
			t.Errorf("expected 3 unread posts, found %d", news)
		}
	})
}

func checkUnread(t *testing.T, db *database, c *client) map[int64]int64 {
	t.Helper()
	wanted := map[int64]int64{}
	for _, channel := range list(c.must(200, "GET", "/api/users/me", nil)["channels"]) {
		read := `SELECT read_posts FROM channel_members WHERE user_id = ? AND channel_id = ?`
		count := `SELECT count(*) FROM posts WHERE channel_id = ?`
		all, err := row(t.Context(), queries{db, db.engine}, single[int64], count, id(channel["id"]))
		if err != nil {
			t.Fatal(err)
		}
		position, err := row(t.Context(), queries{db, db.engine}, single[int64], read, c.user, id(channel["id"]))
		if err != nil {
			t.Fatal(err)
		}
		if all-position != id(channel["unread"]) {
			t.Errorf("expected %d unread posts in channel %v, found %v", all-position, channel["id"], channel["unread"])
		}
		if all > position {
			wanted[id(channel["id"])] = all - position
		}
	}
	answer := c.must(200, "GET", "/api/users/me/unread", nil)
	found, total := map[int64]int64{}, int64(0)
	for _, channel := range list(answer["channels"]) {
		found[id(channel["channel_id"])] = id(channel["unread"])
		total += id(channel["unread"])
	}
	if fmt.Sprint(found) != fmt.Sprint(wanted) || total != id(answer["total"]) {
		t.Errorf("user %d: expected unread posts %v, found %v, in all %v", c.user, wanted, found, answer["total"])
	}
	return found
}

func TestManyWhoPostAtOnceLoseNothing(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		i := startInstances(t, address, 1)[0]
		root := id(i.login(t, 1).post(townSquare, 0, "how was the week?", "")["id"])
		before := countPosts(t, address)
		var all sync.WaitGroup
		for _, user := range []int{1, 3, 5, 7, 9, 11} {
			c := i.login(t, user)
			all.Go(func() {
				for n := range 20 {
					status, body := c.send("POST", "/api/posts", map[string]any{
						"channel_id": townSquare, "root_id": root * int64(n%2), "message": "fine",
					})
					if status != 201 {
						t.Errorf("expected a new post, found %d: %s", status, body)
					}
					c.send("POST", "/api/channels/1/view", nil)
					c.send("PUT", fmt.Sprintf("/api/posts/%d/thread/read", root), nil)
				}
			})
		}
		all.Wait()
		if after := countPosts(t, address); after != [2]int64{before[0] + 120, before[1] + 120} {
			t.Errorf("expected 120 more than %v, found %v", before, after)
		}
		thread := list(i.login(t, 1).must(200, "GET", "/api/users/me/threads", nil)["threads"])[0]
		if id(thread["replies"]) != 60 {
			t.Errorf("expected 60 replies, found %v", thread["replies"])
		}
	})
}

// countPosts counts the rows of the town square, and reads its counter.
func countPosts(t *testing.T, address string) (counts [2]int64) {
	t.Helper()
	db := open(t, address)
	for i, query := range []string{"SELECT count(*) FROM posts WHERE channel_id = 1", "SELECT posts FROM channels WHERE id = 1"} {
		if err := db.QueryRow(query).Scan(&counts[i]); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}
