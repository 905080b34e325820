package main

import (
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

func (s *server) login(r *request) (any, error) {
	body, err := decode[struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}](r)
	if err != nil {
		return nil, err
	}
	if strings.Contains(body.Username, "\x00") {
		return nil, errWrongLogin
	}
	known, err := s.store.credentials(r.Context(), body.Username)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !known.accept(body.Password) {
		return nil, errWrongLogin
	} else if err != nil {
		return nil, err
	}
	token, now := newToken(), time.Now()
	if err := s.store.createSession(r.Context(), token, known.user.ID, now, now.Add(sessionLife)); err != nil {
		return nil, err
	}
	return map[string]any{"token": token, "user": known.user}, nil
}

func (s *server) logout(r *request) (any, error) {
	if err := s.store.deleteSession(r.Context(), r.session); err != nil {
		return nil, err
	}
	s.publish(event{EndSession: r.session})
	return nil, nil
}

// me is what a client needs when it starts.
func (s *server) me(r *request) (any, error) {
	user, err := s.store.user(r.Context(), r.user)
	if err != nil {
		return nil, err
	}
	teams, err := s.store.teams(r.Context(), r.user)
	if err != nil {
		return nil, err
	}
	channels, err := s.store.channels(r.Context(), r.user)
	return map[string]any{"user": user, "teams": teams, "channels": channels}, err
}

func (s *server) getProfile(r *request) (any, error) {
	id, err := r.id("user")
	if err != nil {
		return nil, err
	}
	return s.store.user(r.Context(), id)
}

// searchUsers finds users by the beginning of their names. Names have only small letters, digits, dots and dashes, so that
// nothing else can be found.
func (s *server) searchUsers(r *request) (any, error) {
	prefix := strings.ToLower(r.URL.Query().Get("term"))
	strange := func(c rune) bool { return c > unicode.MaxASCII || c < ' ' }
	if prefix == "" || strings.ContainsFunc(prefix, strange) {
		return nil, failure{http.StatusBadRequest, "expected ?term= with the beginning of a user's name"}
	}
	users, err := s.store.searchUsers(r.Context(), prefix)
	return map[string]any{"users": users}, err
}

// searchPosts finds posts that have all words. Words of fewer than three letters are left out, as the index of MariaDB does.
func (s *server) searchPosts(r *request) (any, error) {
	between := func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	var words []string
	for _, word := range strings.FieldsFunc(r.URL.Query().Get("terms"), between) {
		if utf8.RuneCountInString(word) >= 3 {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return nil, failure{http.StatusBadRequest, "expected ?terms= with a word of three letters or more"}
	}
	posts, err := s.store.searchPosts(r.Context(), r.user, words)
	return map[string]any{"posts": posts}, err
}
