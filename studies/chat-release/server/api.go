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

// route is a request that is answered. Metrics have the name of its handler.
type route struct {
	method, path, name string
	// status is that of an answer where all went well: 204 without a body.
	status int
	handle handler
}

var routes = []route{
	{"POST", "/api/login", "login", 200, (*server).login},
	{"POST", "/api/logout", "logout", 204, (*server).logout},
	{"GET", "/api/users/me", "me", 200, (*server).me},
	{"GET", "/api/users/me/unread", "unread", 200, (*server).unread},
	{"GET", "/api/users/me/threads", "getThreads", 200, (*server).getThreads},
	{"GET", "/api/users/me/drafts", "getDrafts", 200, (*server).getDrafts},
	{"PUT", "/api/users/me/drafts", "upsertDraft", 200, (*server).upsertDraft},
	{"DELETE", "/api/users/me/drafts/{channel}", "deleteDraft", 204, (*server).deleteDraft},
	{"GET", "/api/users/{user}", "getProfile", 200, (*server).getProfile},
	{"GET", "/api/search/users", "searchUsers", 200, (*server).searchUsers},
	{"GET", "/api/search/posts", "searchPosts", 200, (*server).searchPosts},
	{"POST", "/api/channels/direct", "createDirectChannel", 201, (*server).createDirectChannel},
	{"POST", "/api/channels/{channel}/view", "viewChannel", 200, (*server).viewChannel},
	{"GET", "/api/channels/{channel}/posts", "getPosts", 200, (*server).getPosts},
	{"POST", "/api/channels/{channel}/typing", "typing", 204, (*server).typing},
	{"POST", "/api/posts", "createPost", 201, (*server).createPost},
	{"PUT", "/api/posts/{post}", "editPost", 200, (*server).editPost},
	{"DELETE", "/api/posts/{post}", "deletePost", 204, (*server).deletePost},
	{"POST", "/api/posts/{post}/reactions", "addReaction", 201, (*server).addReaction},
	{"GET", "/api/posts/{post}/thread", "viewThread", 200, (*server).viewThread},
	{"PUT", "/api/posts/{post}/thread/read", "updateThreadRead", 204, (*server).updateThreadRead},
}

// handler answers a request with what becomes JSON, with nil for an answer without content, or with an error.
type handler func(*server, *request) (any, error)

// request is one of a user, who is logged in everywhere but in the handler login.
type request struct {
	*http.Request
	session string
	user    int64
}

// existing is an answer with the status 200 where 201 is usual: what was asked for was there before.
type existing struct{ body any }

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
		mux.HandleFunc(route.method+" "+route.path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, route) })
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
func (s *server) answer(w http.ResponseWriter, r *http.Request, route route) {
	start := time.Now()
	r.Body = http.MaxBytesReader(w, r.Body, bodyLimit)
	status := route.status
	if body, err := s.handle(r, route); err != nil {
		status = s.refuse(w, route.name, err)
	} else {
		status = write(w, status, body)
	}
	s.metrics.apiTime.WithLabelValues(route.name, r.Method, strconv.Itoa(status)).Observe(time.Since(start).Seconds())
}

func (s *server) handle(r *http.Request, route route) (any, error) {
	request := &request{Request: r}
	if route.name == "login" {
		return route.handle(s, request)
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
	return route.handle(s, request)
}

// unauthorized is the error of who has no session.
func unauthorized(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errNoSession
	}
	return err
}

// write answers with JSON of a known length, so that proxies pass it on in one piece, and returns the status.
func write(w http.ResponseWriter, status int, body any) int {
	if known, ok := body.(existing); ok {
		body, status = known.body, http.StatusOK
	}
	if body == nil {
		w.WriteHeader(status)
		return status
	}
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
	return write(w, refusal.status, map[string]string{"error": refusal.text})
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
