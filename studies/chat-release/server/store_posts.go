package main

import (
	"context"
	"time"
)

// pageSize is how many posts a channel shows at once.
const pageSize = 30

type post struct {
	ID        int64      `json:"id"`
	ChannelID int64      `json:"channel_id"`
	UserID    int64      `json:"user_id"`
	RootID    int64      `json:"root_id"`
	Message   string     `json:"message"`
	CreatedAt int64      `json:"created_at"`
	EditedAt  int64      `json:"edited_at"`
	Reactions []reaction `json:"reactions,omitempty"`
}

const postColumns = "p.id, p.channel_id, p.user_id, p.root_id, p.message, p.created_at, p.edited_at"

func (p *post) fields() []any {
	return []any{&p.ID, &p.ChannelID, &p.UserID, &p.RootID, &p.Message, &p.CreatedAt, &p.EditedAt}
}

type reaction struct {
	PostID    int64  `json:"post_id"`
	UserID    int64  `json:"user_id"`
	Emoji     string `json:"emoji"`
	CreatedAt int64  `json:"created_at"`
}

func (r *reaction) fields() []any { return []any{&r.PostID, &r.UserID, &r.Emoji, &r.CreatedAt} }

func (s *store) latestPosts(ctx context.Context, channel int64) ([]post, error) {
	defer s.timed("latestPosts")()
	const query = "SELECT " + postColumns + ` FROM posts p WHERE p.channel_id = ? AND p.deleted_at = 0
		ORDER BY p.id DESC LIMIT ?`
	return s.posts(ctx, query, channel, pageSize)
}

func (s *store) postsBefore(ctx context.Context, channel, before int64) ([]post, error) {
	defer s.timed("postsBefore")()
	const query = "SELECT " + postColumns + ` FROM posts p WHERE p.channel_id = ? AND p.id < ? AND p.deleted_at = 0
		ORDER BY p.id DESC LIMIT ?`
	return s.posts(ctx, query, channel, before, pageSize)
}

// searchPosts finds the newest posts with all of the words in the channels of the user.
func (s *store) searchPosts(ctx context.Context, user int64, words []string) ([]post, error) {
	defer s.timed("searchPosts")()
	query := "SELECT " + postColumns + ` FROM posts p
		JOIN channel_members m ON m.channel_id = p.channel_id AND m.user_id = ?
		WHERE ` + s.engine.matches() + " AND p.deleted_at = 0 ORDER BY p.id DESC LIMIT ?"
	return s.posts(ctx, query, user, s.engine.searchTerms(words), pageSize)
}

// posts reads posts, and the reactions to them with a second query.
func (s *store) posts(ctx context.Context, query string, values ...any) ([]post, error) {
	posts, err := rows(ctx, s.queries, (*post).fields, query, values...)
	if err != nil || len(posts) == 0 {
		return posts, err
	}
	ids, place := make([]any, len(posts)), make(map[int64]int, len(posts))
	for i, p := range posts {
		ids[i], place[p.ID] = p.ID, i
	}
	reactionsOf := "SELECT post_id, user_id, emoji, created_at FROM reactions WHERE post_id IN (" + placeholders(len(ids)) +
		") ORDER BY post_id, created_at, user_id"
	reactions, err := rows(ctx, s.queries, (*reaction).fields, reactionsOf, ids...)
	for _, r := range reactions {
		p := &posts[place[r.PostID]]
		p.Reactions = append(p.Reactions, r)
	}
	return posts, err
}

// post is one that is not deleted.
func (s *store) post(ctx context.Context, id int64) (post, error) {
	defer s.timed("post")()
	return s.queries.post(ctx, id)
}

func (q queries) post(ctx context.Context, id int64) (post, error) {
	return row(ctx, q, (*post).fields, "SELECT "+postColumns+" FROM posts p WHERE p.id = ? AND p.deleted_at = 0", id)
}

// createPost adds a post and returns its id. The author has read it.
//
// All who post lock rows in one order: their own membership, the thread, the channel. The channel comes last, because all who
// post to it wait for that lock until the commit.
func (s *store) createPost(ctx context.Context, p post) (int64, error) {
	defer s.timed("createPost")()
	var id int64
	err := s.transaction(ctx, func(tx queries) error {
		const read = "UPDATE channel_members SET read_posts = read_posts + 1 WHERE user_id = ? AND channel_id = ?"
		if found, err := tx.change(ctx, read, p.UserID, p.ChannelID); err != nil {
			return err
		} else if found == 0 {
			return errNotMember
		}
		var err error
		const insert = `INSERT INTO posts (channel_id, user_id, root_id, message, created_at, edited_at, deleted_at)
			VALUES (?, ?, ?, ?, ?, 0, 0) RETURNING id`
		id, err = row(ctx, tx, single[int64], insert, p.ChannelID, p.UserID, p.RootID, p.Message, p.CreatedAt)
		if err != nil {
			return err
		}
		if p.RootID != 0 {
			if err := tx.addReply(ctx, p, id); err != nil {
				return err
			}
		}
		const count = "UPDATE channels SET posts = posts + 1, last_post_at = ? WHERE id = ?"
		_, err = tx.change(ctx, count, p.CreatedAt, p.ChannelID)
		return err
	})
	return id, err
}

func (s *store) updateMessage(ctx context.Context, id int64, message string, now time.Time) error {
	defer s.timed("updateMessage")()
	_, err := s.change(ctx, "UPDATE posts SET message = ?, edited_at = ? WHERE id = ?", message, milliseconds(now), id)
	return err
}

// deletePost hides a post. Its row stays, and its channel's count too: who had not read it still sees the channel as unread.
func (s *store) deletePost(ctx context.Context, id int64, now time.Time) error {
	defer s.timed("deletePost")()
	_, err := s.change(ctx, "UPDATE posts SET deleted_at = ? WHERE id = ?", milliseconds(now), id)
	return err
}

// addReaction returns false if the user had reacted with it before.
func (s *store) addReaction(ctx context.Context, r reaction) (bool, error) {
	defer s.timed("addReaction")()
	const statement = `INSERT INTO reactions (post_id, user_id, emoji, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
	added, err := s.change(ctx, statement, r.PostID, r.UserID, r.Emoji, r.CreatedAt)
	return added > 0, err
}
