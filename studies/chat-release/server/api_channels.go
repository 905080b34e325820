package main

import (
	"database/sql"
	"errors"
	"net/http"
	"time"
)

// viewChannel switches to a channel: it counts as read, and shows its newest posts.
func (s *server) viewChannel(r *request) (any, error) {
	channel, err := r.id("channel")
	if err != nil {
		return nil, err
	}
	if err := s.store.markRead(r.Context(), channel, r.user, time.Now()); err != nil {
		return nil, notMember(err)
	}
	posts, err := s.store.latestPosts(r.Context(), channel)
	return map[string]any{"channel_id": channel, "posts": posts}, err
}

// getPosts scrolls up: it shows the posts before the one that the client has.
func (s *server) getPosts(r *request) (any, error) {
	channel, err := s.ownChannel(r)
	if err != nil {
		return nil, err
	}
	before, err := number("before", r.URL.Query().Get("before"))
	if err != nil {
		return nil, err
	}
	posts, err := s.store.postsBefore(r.Context(), channel, before)
	return map[string]any{"channel_id": channel, "posts": posts}, err
}

// unread tells the channels with unread posts. The store's method differs between the versions.
func (s *server) unread(r *request) (any, error) {
	channels, err := s.store.unread(r.Context(), r.user)
	var total int64
	for _, c := range channels {
		total += c.Unread
	}
	return map[string]any{"total": total, "channels": channels}, err
}

func (s *server) typing(r *request) (any, error) {
	channel, err := s.ownChannel(r)
	if err != nil {
		return nil, err
	}
	s.publishTo(channel, "typing", map[string]int64{"channel_id": channel, "user_id": r.user})
	return nil, nil
}

// createDirectChannel answers with the status 201 where the channel is new, and with 200 where the two had one.
func (s *server) createDirectChannel(r *request) (any, error) {
	body, err := decode[struct {
		UserID int64 `json:"user_id"`
	}](r)
	if err != nil {
		return nil, err
	}
	if body.UserID == r.user {
		return nil, failure{http.StatusBadRequest, "a direct channel is with another user"}
	}
	if _, err := s.store.user(r.Context(), body.UserID); err != nil {
		return nil, err
	}
	channel, isNew, err := s.store.createDirectChannel(r.Context(), r.user, body.UserID)
	if err != nil || !isNew {
		return existing{channel}, err
	}
	s.publish(event{Channel: channel.ID, Join: []int64{r.user, body.UserID}})
	return channel, nil
}

func (s *server) getDrafts(r *request) (any, error) {
	drafts, err := s.store.drafts(r.Context(), r.user)
	return map[string]any{"drafts": drafts}, err
}

func (s *server) upsertDraft(r *request) (any, error) {
	body, err := decode[struct {
		ChannelID int64  `json:"channel_id"`
		RootID    int64  `json:"root_id"`
		Message   string `json:"message"`
	}](r)
	if err != nil {
		return nil, err
	}
	if err := checkMessage(body.Message); err != nil {
		return nil, err
	}
	if err := s.checkMember(r, body.ChannelID); err != nil {
		return nil, err
	}
	d := draft{body.ChannelID, body.RootID, body.Message, milliseconds(time.Now())}
	return d, s.store.upsertDraft(r.Context(), r.user, d)
}

// deleteDraft succeeds where there is no draft: clients delete what they may have.
func (s *server) deleteDraft(r *request) (any, error) {
	channel, err := r.id("channel")
	if err != nil {
		return nil, err
	}
	root := int64(0)
	if text := r.URL.Query().Get("root_id"); text != "" {
		if root, err = number("root_id", text); err != nil {
			return nil, err
		}
	}
	return nil, s.store.deleteDraft(r.Context(), r.user, channel, root)
}

// ownChannel is the channel of the path, of which the user must be a member.
func (s *server) ownChannel(r *request) (int64, error) {
	channel, err := r.id("channel")
	if err != nil {
		return 0, err
	}
	return channel, s.checkMember(r, channel)
}

func (s *server) checkMember(r *request, channel int64) error {
	member, err := s.store.isMember(r.Context(), channel, r.user)
	if err == nil && !member {
		return errNotMember
	}
	return err
}

// notMember is the error where a query found no membership.
func notMember(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return errNotMember
	}
	return err
}
