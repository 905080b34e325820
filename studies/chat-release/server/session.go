package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"sync"
	"time"
)

const (
	sessionLife    = 30 * 24 * time.Hour
	sessionsCached = 20_000
	sessionCacheOf = time.Minute
)

// hashPassword costs microseconds. A service that people use takes milliseconds of a processor for this, on purpose; here a
// log-in is not what is measured, and thousands of users log in before the load.
func hashPassword(salt, password string) string {
	sum := sha256.Sum256([]byte(salt + password))
	return hex.EncodeToString(sum[:])
}

func (c credentials) accept(password string) bool {
	return subtle.ConstantTimeCompare([]byte(c.hash), []byte(hashPassword(c.salt, password))) == 1
}

func newToken() string {
	token := make([]byte, 16)
	rand.Read(token) // Never fails: the program ends where there is no randomness.
	return hex.EncodeToString(token)
}

// sessionCache remembers for a minute whose a session is, so that most requests need no query for it. A log-out removes the
// session here, and on other instances by an event.
type sessionCache struct {
	mutex    sync.Mutex
	sessions map[string]cachedSession
}

type cachedSession struct {
	user  int64
	until time.Time
}

func newSessionCache() *sessionCache {
	return &sessionCache{sessions: map[string]cachedSession{}}
}

// user is the user of a session, asked of the store where the cache does not know it. It fails with sql.ErrNoRows where there is
// no such session.
func (c *sessionCache) user(ctx context.Context, token string, store *store) (int64, error) {
	if _, err := hex.DecodeString(token); err != nil {
		return 0, sql.ErrNoRows
	}
	now := time.Now()
	c.mutex.Lock()
	known, ok := c.sessions[token]
	c.mutex.Unlock()
	if ok && now.Before(known.until) {
		return known.user, nil
	}
	user, err := store.sessionUser(ctx, token, now)
	if err != nil {
		return 0, err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.sessions) >= sessionsCached {
		// To begin again is simple, and costs a query for each session once in a while.
		clear(c.sessions)
	}
	c.sessions[token] = cachedSession{user, now.Add(sessionCacheOf)}
	return user, nil
}

func (c *sessionCache) remove(token string) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.sessions, token)
}
