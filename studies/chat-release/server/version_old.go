//go:build !next

// The old version. It differs from the next one (version_next.go) in two things:
//
//   - The unread check asks the database channel by channel.
//   - A new post is stored and sent as it is.
package main

import "context"

const version = "old"

// unread are the channels of a user with posts that it has not read, by one query for the channels and one for each of them.
func (s *store) unread(ctx context.Context, user int64) ([]unreadChannel, error) {
	defer s.timed("unread")()
	channels, err := s.channelIDsOf(ctx, user)
	if err != nil {
		return nil, err
	}
	const query = `SELECT m.channel_id, c.posts - m.read_posts FROM channel_members m JOIN channels c ON c.id = m.channel_id
		WHERE m.user_id = ? AND m.channel_id = ?`
	unread := []unreadChannel{}
	for _, channel := range channels {
		one, err := row(ctx, s.queries, (*unreadChannel).fields, query, user, channel)
		if err != nil {
			return nil, err
		}
		if one.Unread > 0 {
			unread = append(unread, one)
		}
	}
	return unread, nil
}

// inspect finds nothing: this version does not look.
func inspect(string) (mentions, links []string) { return nil, nil }
