package main

import (
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// messageLimit is the number of characters in a message, at most.
const messageLimit = 4000

// createdPost is a post as its author and the channel get it when it is new.
type createdPost struct {
	post
	// PendingID is the client's own id of the post: it tells the client which of its posts an answer or an event is about.
	PendingID string `json:"pending_id,omitempty"`
	// What inspect found, which the old version does not look for.
	Mentions []string `json:"mentions,omitempty"`
	Links    []string `json:"links,omitempty"`
}

func (s *server) createPost(r *request) (any, error) {
	body, err := decode[struct {
		ChannelID int64  `json:"channel_id"`
		RootID    int64  `json:"root_id"`
		Message   string `json:"message"`
		PendingID string `json:"pending_id"`
	}](r)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(body.Message); err != nil {
		return nil, err
	}
	if len(body.PendingID) > 64 {
		return nil, failure{http.StatusBadRequest, "pending_id has more than 64 bytes"}
	}
	p := createdPost{PendingID: body.PendingID, post: post{
		ChannelID: body.ChannelID, UserID: r.user, RootID: body.RootID, Message: body.Message, CreatedAt: milliseconds(time.Now()),
	}}
	p.Mentions, p.Links = inspect(body.Message)
	if p.ID, err = s.store.createPost(r.Context(), p.post); err != nil {
		return nil, err
	}
	s.publishTo(p.ChannelID, "posted", p)
	return p, nil
}

func (s *server) editPost(r *request) (any, error) {
	body, err := decode[struct {
		Message string `json:"message"`
	}](r)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(body.Message); err != nil {
		return nil, err
	}
	post, err := s.ownPost(r)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	if err := s.store.updateMessage(r.Context(), post.ID, body.Message, now); err != nil {
		return nil, err
	}
	post.Message, post.EditedAt = body.Message, milliseconds(now)
	s.publishTo(post.ChannelID, "post_edited", post)
	return post, nil
}

func (s *server) deletePost(r *request) (any, error) {
	post, err := s.ownPost(r)
	if err != nil {
		return nil, err
	}
	if err := s.store.deletePost(r.Context(), post.ID, time.Now()); err != nil {
		return nil, err
	}
	s.publishTo(post.ChannelID, "post_deleted", map[string]int64{"id": post.ID, "channel_id": post.ChannelID})
	return nil, nil
}

// addReaction answers with the status 201, and with 200 where the user had reacted with it before.
func (s *server) addReaction(r *request) (any, error) {
	body, err := decode[struct {
		Emoji string `json:"emoji"`
	}](r)
	if err != nil {
		return nil, err
	}
	if body.Emoji == "" || utf8.RuneCountInString(body.Emoji) > 64 || strings.Contains(body.Emoji, "\x00") {
		return nil, failure{http.StatusBadRequest, "expected an emoji of 1 to 64 characters"}
	}
	post, err := s.readablePost(r)
	if err != nil {
		return nil, err
	}
	given := reaction{post.ID, r.user, body.Emoji, milliseconds(time.Now())}
	added, err := s.store.addReaction(r.Context(), given)
	if err != nil || !added {
		return existing{given}, err
	}
	s.publishTo(post.ChannelID, "reaction_added", struct {
		reaction
		ChannelID int64 `json:"channel_id"`
	}{given, post.ChannelID})
	return given, nil
}

func (s *server) getThreads(r *request) (any, error) {
	threads, err := s.store.threads(r.Context(), r.user)
	return map[string]any{"threads": threads}, err
}

// viewThread shows the thread that a post is in.
func (s *server) viewThread(r *request) (any, error) {
	root, err := s.readablePost(r)
	if err != nil {
		return nil, err
	}
	if root.RootID != 0 {
		if root, err = s.store.post(r.Context(), root.RootID); err != nil {
			return nil, err
		}
	}
	replies, err := s.store.replies(r.Context(), root.ID)
	return map[string]any{"root": root, "replies": replies}, err
}

func (s *server) updateThreadRead(r *request) (any, error) {
	root, err := r.id("post")
	if err != nil {
		return nil, err
	}
	return nil, s.store.updateThreadRead(r.Context(), root, r.user)
}

// readablePost is the post of the path, in a channel of the user.
func (s *server) readablePost(r *request) (post, error) {
	id, err := r.id("post")
	if err != nil {
		return post{}, err
	}
	p, err := s.store.post(r.Context(), id)
	if err != nil {
		return post{}, err
	}
	return p, s.checkMember(r, p.ChannelID)
}

// ownPost is the post of the path, which the user must have written.
func (s *server) ownPost(r *request) (post, error) {
	id, err := r.id("post")
	if err != nil {
		return post{}, err
	}
	p, err := s.store.post(r.Context(), id)
	if err == nil && p.UserID != r.user {
		return post{}, errNotAuthor
	}
	return p, err
}

// checkMessage refuses what a message cannot be. PostgreSQL stores no zero byte.
func checkMessage(message string) error {
	if message == "" || utf8.RuneCountInString(message) > messageLimit || strings.Contains(message, "\x00") {
		return failure{http.StatusBadRequest, "expected a message of 1 to 4000 characters without a zero"}
	}
	return nil
}
