package main

import (
	"context"
	"database/sql"
	"errors"
)

const (
	threadsShown = 25
	repliesShown = 60
)

type thread struct {
	Root        post  `json:"root"`
	Replies     int64 `json:"replies"`
	LastReplyID int64 `json:"last_reply_id"`
	Unread      int64 `json:"unread"`
}

func (t *thread) fields() []any {
	return append(t.Root.fields(), &t.Replies, &t.LastReplyID, &t.Unread)
}

// threads are the newest that the user follows, with the replies that it has not read.
func (s *store) threads(ctx context.Context, user int64) ([]thread, error) {
	defer s.timed("threads")()
	const query = "SELECT " + postColumns + `, t.replies, t.last_reply_id,
			(SELECT count(*) FROM posts r WHERE r.root_id = t.root_id AND r.id > m.last_read_id AND r.deleted_at = 0)
		FROM thread_members m JOIN threads t ON t.root_id = m.root_id JOIN posts p ON p.id = t.root_id
		WHERE m.user_id = ? AND p.deleted_at = 0 ORDER BY t.last_reply_id DESC LIMIT ?`
	return rows(ctx, s.queries, (*thread).fields, query, user, threadsShown)
}

// replies are the newest of a thread.
func (s *store) replies(ctx context.Context, root int64) ([]post, error) {
	defer s.timed("replies")()
	const query = "SELECT " + postColumns + ` FROM posts p WHERE p.root_id = ? AND p.deleted_at = 0 ORDER BY p.id DESC LIMIT ?`
	return s.posts(ctx, query, root, repliesShown)
}

// updateThreadRead moves a member's read position to the end of the thread. It fails with sql.ErrNoRows for who does not follow
// the thread.
func (s *store) updateThreadRead(ctx context.Context, root, user int64) error {
	defer s.timed("updateThreadRead")()
	const statement = `UPDATE thread_members SET last_read_id = (SELECT t.last_reply_id FROM threads t WHERE t.root_id = ?)
		WHERE root_id = ? AND user_id = ?`
	found, err := s.change(ctx, statement, root, root, user)
	if err == nil && found == 0 {
		return sql.ErrNoRows
	}
	return err
}

// addReply counts a reply in its thread, which the author and that of the root follow from now on. The author has read it.
func (q queries) addReply(ctx context.Context, reply post, id int64) error {
	root, err := q.post(ctx, reply.RootID)
	if errors.Is(err, sql.ErrNoRows) || err == nil && (root.ChannelID != reply.ChannelID || root.RootID != 0) {
		return errNoRoot
	} else if err != nil {
		return err
	}
	const count = `INSERT INTO threads (root_id, channel_id, replies, last_reply_id) VALUES (?, ?, 1, ?)
		ON CONFLICT (root_id) DO UPDATE SET replies = threads.replies + 1,
			last_reply_id = GREATEST(threads.last_reply_id, EXCLUDED.last_reply_id)`
	if _, err := q.change(ctx, count, root.ID, root.ChannelID, id); err != nil {
		return err
	}
	const follow = "INSERT INTO thread_members (root_id, user_id, last_read_id) VALUES (?, ?, 0) ON CONFLICT DO NOTHING"
	if _, err := q.change(ctx, follow, root.ID, root.UserID); err != nil {
		return err
	}
	const read = `INSERT INTO thread_members (root_id, user_id, last_read_id) VALUES (?, ?, ?)
		ON CONFLICT (user_id, root_id) DO UPDATE SET last_read_id = EXCLUDED.last_read_id`
	_, err = q.change(ctx, read, root.ID, reply.UserID, id)
	return err
}
