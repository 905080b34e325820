package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Kinds of channels.
const (
	publicChannel  = "public"
	privateChannel = "private"
	directChannel  = "direct"
)

type channel struct {
	ID          int64  `json:"id"`
	TeamID      int64  `json:"team_id"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	DisplayName string `json:"display_name"`
	Posts       int64  `json:"posts"`
	LastPostAt  int64  `json:"last_post_at"`
	Unread      int64  `json:"unread"`
}

func (c *channel) fields() []any {
	return []any{&c.ID, &c.TeamID, &c.Kind, &c.Name, &c.DisplayName, &c.Posts, &c.LastPostAt, &c.Unread}
}

// channels are those of a user, with their unread posts.
func (s *store) channels(ctx context.Context, user int64) ([]channel, error) {
	defer s.timed("channels")()
	const query = `SELECT c.id, c.team_id, c.kind, c.name, c.display_name, c.posts, c.last_post_at, c.posts - m.read_posts
		FROM channel_members m JOIN channels c ON c.id = m.channel_id WHERE m.user_id = ? ORDER BY c.id`
	return rows(ctx, s.queries, (*channel).fields, query, user)
}

func (s *store) channelIDs(ctx context.Context, user int64) ([]int64, error) {
	defer s.timed("channelIDs")()
	return s.channelIDsOf(ctx, user)
}

func (q queries) channelIDsOf(ctx context.Context, user int64) ([]int64, error) {
	return rows(ctx, q, single[int64], "SELECT channel_id FROM channel_members WHERE user_id = ? ORDER BY channel_id", user)
}

// unreadChannel is a channel with posts that the user has not read.
type unreadChannel struct {
	ChannelID int64 `json:"channel_id"`
	Unread    int64 `json:"unread"`
}

func (u *unreadChannel) fields() []any { return []any{&u.ChannelID, &u.Unread} }

func (s *store) isMember(ctx context.Context, channel, user int64) (bool, error) {
	defer s.timed("isMember")()
	const query = "SELECT 1 FROM channel_members WHERE user_id = ? AND channel_id = ?"
	_, err := row(ctx, s.queries, single[int], query, user, channel)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// markRead moves a member's read position to the end of the channel. It fails with sql.ErrNoRows for who is no member.
//
// The channel's row is only read: with a lock on it, who reads would wait for who posts.
func (s *store) markRead(ctx context.Context, channel, user int64, now time.Time) error {
	defer s.timed("markRead")()
	const query = `SELECT c.posts FROM channel_members m JOIN channels c ON c.id = m.channel_id
		WHERE m.user_id = ? AND m.channel_id = ?`
	posts, err := row(ctx, s.queries, single[int64], query, user, channel)
	if err != nil {
		return err
	}
	// The position never goes back: the user may have posted since.
	const statement = `UPDATE channel_members SET read_posts = CASE WHEN read_posts < ? THEN ? ELSE read_posts END,
		last_viewed_at = ? WHERE user_id = ? AND channel_id = ?`
	_, err = s.change(ctx, statement, posts, posts, milliseconds(now), user, channel)
	return err
}

// createDirectChannel finds or makes the channel between two users. `isNew` is true if it was made.
func (s *store) createDirectChannel(ctx context.Context, a, b int64) (c channel, isNew bool, err error) {
	defer s.timed("createDirectChannel")()
	err = s.transaction(ctx, func(tx queries) error {
		name := directName(a, b)
		const insert = `INSERT INTO channels (team_id, kind, name, display_name, posts, last_post_at)
			VALUES (0, ?, ?, '', 0, 0) ON CONFLICT DO NOTHING`
		inserted, err := tx.change(ctx, insert, directChannel, name)
		if err != nil {
			return err
		}
		isNew = inserted > 0
		const find = `SELECT id, team_id, kind, name, display_name, posts, last_post_at, 0
			FROM channels WHERE team_id = 0 AND name = ?`
		if c, err = row(ctx, tx, (*channel).fields, find, name); err != nil || !isNew {
			return err
		}
		const join = `INSERT INTO channel_members (channel_id, user_id, read_posts, last_viewed_at)
			VALUES (?, ?, 0, 0), (?, ?, 0, 0)`
		_, err = tx.change(ctx, join, c.ID, a, c.ID, b)
		return err
	})
	return c, isNew, err
}

// directName is the same for both users, so that the unique key of names lets a pair have one channel.
func directName(a, b int64) string { return fmt.Sprintf("%d__%d", min(a, b), max(a, b)) }

type draft struct {
	ChannelID int64  `json:"channel_id"`
	RootID    int64  `json:"root_id"`
	Message   string `json:"message"`
	UpdatedAt int64  `json:"updated_at"`
}

func (d *draft) fields() []any { return []any{&d.ChannelID, &d.RootID, &d.Message, &d.UpdatedAt} }

func (s *store) drafts(ctx context.Context, user int64) ([]draft, error) {
	defer s.timed("drafts")()
	const query = `SELECT channel_id, root_id, message, updated_at FROM drafts WHERE user_id = ?
		ORDER BY updated_at DESC, channel_id, root_id`
	return rows(ctx, s.queries, (*draft).fields, query, user)
}

func (s *store) upsertDraft(ctx context.Context, user int64, d draft) error {
	defer s.timed("upsertDraft")()
	const statement = `INSERT INTO drafts (user_id, channel_id, root_id, message, updated_at) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (user_id, channel_id, root_id) DO UPDATE SET message = EXCLUDED.message, updated_at = EXCLUDED.updated_at`
	_, err := s.change(ctx, statement, user, d.ChannelID, d.RootID, d.Message, d.UpdatedAt)
	return err
}

func (s *store) deleteDraft(ctx context.Context, user, channel, root int64) error {
	defer s.timed("deleteDraft")()
	const statement = "DELETE FROM drafts WHERE user_id = ? AND channel_id = ? AND root_id = ?"
	_, err := s.change(ctx, statement, user, channel, root)
	return err
}
