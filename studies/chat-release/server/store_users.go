package main

import (
	"context"
	"time"
)

type user struct {
	ID        int64  `json:"id"`
	Username  string `json:"username"`
	FullName  string `json:"full_name"`
	CreatedAt int64  `json:"created_at"`
}

const userColumns = "id, username, full_name, created_at"

func (u *user) fields() []any { return []any{&u.ID, &u.Username, &u.FullName, &u.CreatedAt} }

func (s *store) user(ctx context.Context, id int64) (user, error) {
	defer s.timed("user")()
	return row(ctx, s.queries, (*user).fields, "SELECT "+userColumns+" FROM users WHERE id = ?", id)
}

type credentials struct {
	user user
	salt string
	hash string
}

func (c *credentials) fields() []any { return append(c.user.fields(), &c.salt, &c.hash) }

func (s *store) credentials(ctx context.Context, username string) (credentials, error) {
	defer s.timed("credentials")()
	const query = "SELECT " + userColumns + ", salt, password_hash FROM users WHERE username = ?"
	return row(ctx, s.queries, (*credentials).fields, query, username)
}

// searchUsers finds users by the beginning of their names. The range uses the index of names in both databases.
func (s *store) searchUsers(ctx context.Context, prefix string) ([]user, error) {
	defer s.timed("searchUsers")()
	const query = "SELECT " + userColumns + " FROM users WHERE username >= ? AND username < ? ORDER BY username LIMIT 25"
	return rows(ctx, s.queries, (*user).fields, query, prefix, prefix+"\x7f")
}

func (s *store) createSession(ctx context.Context, token string, user int64, now, expires time.Time) error {
	defer s.timed("createSession")()
	const statement = "INSERT INTO sessions (token, user_id, created_at, expires_at) VALUES (?, ?, ?, ?)"
	_, err := s.change(ctx, statement, token, user, milliseconds(now), milliseconds(expires))
	return err
}

// sessionUser is the user of a session that has not expired.
func (s *store) sessionUser(ctx context.Context, token string, now time.Time) (int64, error) {
	defer s.timed("sessionUser")()
	const query = "SELECT user_id FROM sessions WHERE token = ? AND expires_at > ?"
	return row(ctx, s.queries, single[int64], query, token, milliseconds(now))
}

func (s *store) deleteSession(ctx context.Context, token string) error {
	defer s.timed("deleteSession")()
	_, err := s.change(ctx, "DELETE FROM sessions WHERE token = ?", token)
	return err
}

type team struct {
	ID          int64  `json:"id"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
}

func (t *team) fields() []any { return []any{&t.ID, &t.Name, &t.DisplayName} }

func (s *store) teams(ctx context.Context, user int64) ([]team, error) {
	defer s.timed("teams")()
	const query = `SELECT t.id, t.name, t.display_name FROM team_members m JOIN teams t ON t.id = m.team_id
		WHERE m.user_id = ? ORDER BY t.id`
	return rows(ctx, s.queries, (*team).fields, query, user)
}
