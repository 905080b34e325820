package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// bodyLimit is the size of a request's body, at most.
const bodyLimit = 64 << 10

// routes are the handlers by the names that metrics give them.
var routes = []struct {
	pattern string
	name    string
	handle  handler
}{
	{"POST /api/login", "login", (*server).login},
	{"POST /api/logout", "logout", (*server).logout},
	{"GET /api/users/me", "me", (*server).me},
	{"GET /api/users/me/unread", "unread", (*server).unread},
	{"GET /api/users/me/threads", "getThreads", (*server).getThreads},
	{"GET /api/users/me/drafts", "getDrafts", (*server).getDrafts},
	{"PUT /api/users/me/drafts", "upsertDraft", (*server).upsertDraft},
	{"DELETE /api/users/me/drafts/{channel}", "deleteDraft", (*server).deleteDraft},
	{"GET /api/users/{user}", "getProfile", (*server).getProfile},
	{"GET /api/search/users", "searchUsers", (*server).searchUsers},
	{"GET /api/search/posts", "searchPosts", (*server).searchPosts},
	{"POST /api/channels/direct", "createDirectChannel", (*server).createDirectChannel},
	{"POST /api/channels/{channel}/view", "viewChannel", (*server).viewChannel},
	{"GET /api/channels/{channel}/posts", "getPosts", (*server).getPosts},
	{"POST /api/channels/{channel}/typing", "typing", (*server).typing},
	{"POST /api/posts", "createPost", (*server).createPost},
	{"PUT /api/posts/{post}", "editPost", (*server).editPost},
	{"DELETE /api/posts/{post}", "deletePost", (*server).deletePost},
	{"POST /api/posts/{post}/reactions", "addReaction", (*server).addReaction},
	{"GET /api/posts/{post}/thread", "viewThread", (*server).viewThread},
	{"PUT /api/posts/{post}/thread/read", "updateThreadRead", (*server).updateThreadRead},
}

// handler answers a request with what becomes JSON, with nil for an answer without content, or with an error.
type handler func(*server, *request) (any, error)

// request is one of a user, who is logged in everywhere but in the handler login.
type request struct {
	*http.Request
	session string
	user    int64
}

// created is an answer with the status 201.
type created struct{ body any }

// failure is an error that the client made, and may read.
type failure struct {
	status int
	text   string
}

func (f failure) Error() string { return f.text }

var (
	errNotMember  = failure{http.StatusForbidden, "you are no member of this channel"}
	errNotAuthor  = failure{http.StatusForbidden, "you did not write this post"}
	errNoRoot     = failure{http.StatusBadRequest, "root_id is not the first post of a thread in this channel"}
	errNoSession  = failure{http.StatusUnauthorized, "log in first: POST /api/login"}
	errWrongLogin = failure{http.StatusUnauthorized, "wrong user name or password"}
	errNotFound   = failure{http.StatusNotFound, "not found"}
)

// statusClientGone is for requests whose client did not wait for the answer. Nobody receives it; metrics count it.
const statusClientGone = 499

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes {
		mux.HandleFunc(route.pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, route.name, route.handle) })
	}
	mux.HandleFunc("GET /api/websocket", s.serveWebSocket)
	mux.HandleFunc("POST "+eventsPath, s.takeEvents)
	mux.HandleFunc("GET /health", s.health)
	mux.Handle("GET /metrics", s.metrics.handler())
	return mux
}

func (s *server) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.store.ping(ctx); err != nil {
		http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
		return
	}
	w.Write([]byte("ok\n"))
}

// answer runs a handler for a user who is logged in, and measures it.
func (s *server) answer(w http.ResponseWriter, r *http.Request, name string, handle handler) {
	start := time.Now()
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
	status := http.StatusOK
	if body, err := s.handle(r, name, handle); err != nil {
		status = s.refuse(w, name, err)
	} else {
		status = write(w, body)
	}
	s.metrics.apiTime.WithLabelValues(name, r.Method, strconv.Itoa(status)).Observe(time.Since(start).Seconds())
}

func (s *server) handle(r *http.Request, name string, handle handler) (any, error) {
	request := &request{Request: r}
	if name == "login" {
		return handle(s, request)
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil, errNoSession
	}
	user, err := s.sessions.user(r.Context(), token, s.store)
	if err != nil {
		return nil, unauthorized(err)
	}
	request.session, request.user = token, user
	return handle(s, request)
}

// unauthorized is the error of who has no session.
func unauthorized(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errNoSession
	}
	return err
}

// write answers with JSON and returns the status.
func write(w http.ResponseWriter, body any) int {
	status := http.StatusOK
	switch b := body.(type) {
	case nil:
		w.WriteHeader(http.StatusNoContent)
		return http.StatusNoContent
	case created:
		body, status = b.body, http.StatusCreated
	}
	return writeJSON(w, status, body)
}

// writeJSON answers with a known length, so that proxies pass the answer on in one piece.
func writeJSON(w http.ResponseWriter, status int, body any) int {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // No answer has a field that JSON cannot hold.
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(encoded)))
	w.WriteHeader(status)
	w.Write(encoded) // Fails only where the client is gone.
	return status
}

// refuse answers with an error and returns the status. An error that is not the client's is reported, and not told.
func (s *server) refuse(w http.ResponseWriter, name string, err error) int {
	refusal := failure{http.StatusInternalServerError, "internal error"}
	switch {
	case errors.As(err, &refusal):
	case errors.Is(err, sql.ErrNoRows):
		refusal = errNotFound
	case errors.Is(err, context.Canceled):
		refusal = failure{statusClientGone, "the client is gone"}
	default:
		s.report(name, err)
	}
	return writeJSON(w, refusal.status, map[string]string{"error": refusal.text})
}

// report logs an error of the server or its database, and counts it.
func (s *server) report(name string, err error) {
	s.metrics.httpErrors.Inc()
	log.Printf("%s: %v", name, err)
}

// id reads a number of the path.
func (r *request) id(name string) (int64, error) {
	return number(name, r.PathValue(name))
}

func number(name, text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, failure{http.StatusBadRequest, "expected a number as " + name + ", found " + strconv.Quote(text)}
	}
	return id, nil
}

// decode reads the body. Names that it does not know are refused: a mistake in a study shows at once.
func decode[T any](r *request) (T, error) {
	var body T
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&body)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return body, failure{http.StatusRequestEntityTooLarge, "the body has more than 64 KiB"}
	} else if err != nil {
		return body, failure{http.StatusBadRequest, "the body: " + err.Error()}
	}
	return body, nil
}
