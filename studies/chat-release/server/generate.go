package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log"
	"math/rand/v2"
	"slices"
	"time"
)

// generatedPassword is that of all users.
const generatedPassword = "password"

const (
	// channelsOfUser is how many channels of a team a user joins, besides the one that all members are in.
	channelsOfUser = 10
	// rootsOpen is how many of the newest threads of a channel get replies.
	rootsOpen = 4
	// unreadAtMost is how many posts of a channel a user has not read.
	unreadAtMost = 20
)

// The data is as old as it was: times do not depend on the clock, and what is posted later is newer.
var (
	firstPostAt = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	postedFor   = 90 * 24 * time.Hour
)

// size is how much data there is. The same size makes the same data in each database.
type size struct {
	users, teams, channels, posts int
	seed                          uint64
}

func (s size) check() error {
	if s.teams < 1 || s.users < s.teams || s.channels < s.teams || s.posts < 0 {
		return errors.New("expected at least 1 team, and at least as many users and channels as teams")
	}
	return nil
}

// generator makes rows in the order of its methods, each of which draws random numbers.
type generator struct {
	size
	random *rand.Rand
	// members of a team, and of a channel: by id, the users' ids.
	teamMembers    [][]int64
	channelMembers [][]int64
	channels       []channel
	// reactions are drawn with the posts.
	reactions []reaction
}

// generate fills an empty database that migrate has prepared.
func generate(ctx context.Context, db *database, s size) error {
	if err := s.check(); err != nil {
		return err
	}
	var users int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM users").Scan(&users); err != nil {
		return fmt.Errorf("count the users (chat migrate makes the tables): %w", err)
	}
	if users > 0 {
		return fmt.Errorf("expected an empty database, found %d users", users)
	}
	start := time.Now()
	if err := db.dropIndexes(ctx); err != nil {
		return err
	}
	if err := newGenerator(s).fill(ctx, db); err != nil {
		return err
	}
	if err := db.derive(ctx); err != nil {
		return err
	}
	if err := db.createIndexes(ctx); err != nil {
		return err
	}
	if err := db.settle(ctx); err != nil {
		return err
	}
	log.Printf("generated %d users, %d teams, %d channels and %d posts in %.1f s",
		s.users, s.teams, s.channels, s.posts, time.Since(start).Seconds())
	return nil
}

func newGenerator(s size) *generator {
	return &generator{size: s, random: rand.New(rand.NewPCG(s.seed, 0))}
}

func (g *generator) fill(ctx context.Context, db *database) error {
	steps := []struct {
		table   string
		columns []string
		rows    iter.Seq[[]any]
	}{
		{"teams", []string{"id", "name", "display_name"}, g.teamRows},
		{"users", []string{"id", "username", "full_name", "salt", "password_hash", "created_at"}, g.userRows},
		{"team_members", []string{"team_id", "user_id"}, g.teamMemberRows},
		{"posts", []string{
			"id", "channel_id", "user_id", "root_id", "message", "created_at", "edited_at", "deleted_at",
		}, g.postRows},
		// After the posts, which they count.
		{"channels", []string{"id", "team_id", "kind", "name", "display_name", "posts", "last_post_at"}, g.channelRows},
		{"channel_members", []string{"channel_id", "user_id", "read_posts", "last_viewed_at"}, g.channelMemberRows},
		{"reactions", []string{"post_id", "user_id", "emoji", "created_at"}, g.reactionRows},
		{"drafts", []string{"user_id", "channel_id", "root_id", "message", "updated_at"}, g.draftRows},
	}
	for _, step := range steps {
		if err := db.insertMany(ctx, step.table, step.columns, step.rows); err != nil {
			return err
		}
	}
	return nil
}

// derive makes the threads of the replies. Who replied to a thread or began it follows it; every fourth has read nothing of it.
func (db *database) derive(ctx context.Context) error {
	for _, statement := range []string{
		`INSERT INTO threads (root_id, channel_id, replies, last_reply_id)
			SELECT root_id, min(channel_id), count(*), max(id) FROM posts WHERE root_id > 0 GROUP BY root_id`,
		`INSERT INTO thread_members (root_id, user_id, last_read_id)
			SELECT t.root_id, f.user_id, CASE WHEN (t.root_id + f.user_id) % 4 = 0 THEN 0 ELSE t.last_reply_id END
			FROM threads t JOIN (
				SELECT root_id, user_id FROM posts WHERE root_id > 0
				UNION SELECT p.id, p.user_id FROM posts p JOIN threads r ON r.root_id = p.id
			) f ON f.root_id = t.root_id`,
	} {
		if err := db.define(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// settle lets new rows get ids after the generated ones, and the planner know the data.
func (db *database) settle(ctx context.Context) error {
	const filled = "users, teams, team_members, channels, channel_members, posts, threads, thread_members, reactions, drafts"
	if db.engine == mariadb {
		// AUTO_INCREMENT goes on after the largest id by itself.
		return db.define(ctx, "ANALYZE TABLE "+filled)
	}
	for _, table := range []string{"users", "teams", "channels", "posts"} {
		statement := "SELECT setval(pg_get_serial_sequence('" + table + "', 'id'), greatest(max(id), 1)) FROM " + table
		if err := db.define(ctx, statement); err != nil {
			return err
		}
	}
	return db.define(ctx, "VACUUM ANALYZE "+filled)
}

// drawMembers decides who is in which channel. A user is in one team or two, in the first channel of each, and in some others.
func (g *generator) drawMembers() {
	g.teamMembers = make([][]int64, g.teams+1)
	for user := 1; user <= g.users; user++ {
		first := (user-1)%g.teams + 1
		g.teamMembers[first] = append(g.teamMembers[first], int64(user))
		if g.teams > 1 && g.random.IntN(4) == 0 {
			second := (first+g.random.IntN(g.teams-1))%g.teams + 1
			g.teamMembers[second] = append(g.teamMembers[second], int64(user))
		}
	}
	g.channels = make([]channel, 1, g.channelsInAll()+1)
	g.channelMembers = make([][]int64, g.channelsInAll()+1)
	ofTeam := make([][]int, g.teams+1)
	for id := 1; id <= g.size.channels; id++ {
		team := (id-1)%g.teams + 1
		g.channels = append(g.channels, g.teamChannel(id, team))
		if id <= g.teams {
			g.channelMembers[id] = slices.Clone(g.teamMembers[team])
		} else {
			ofTeam[team] = append(ofTeam[team], id)
		}
	}
	for team := 1; team <= g.teams; team++ {
		g.drawTeam(team, ofTeam[team])
	}
	g.addDirectChannels()
}

func (g *generator) teamChannel(id, team int) channel {
	c := channel{ID: int64(id), TeamID: int64(team), Kind: publicChannel, Name: fmt.Sprintf("channel-%d", id)}
	if id <= g.teams {
		c.Name = "town-square"
	} else if g.random.IntN(5) == 0 {
		c.Kind = privateChannel
	}
	c.DisplayName = c.Name
	return c
}

func (g *generator) drawTeam(team int, channels []int) {
	for _, user := range g.teamMembers[team] {
		for range min(channelsOfUser, len(channels)) {
			// Drawn twice is joined once: so numbers of channels differ between users.
			id := channels[g.random.IntN(len(channels))]
			if members := g.channelMembers[id]; len(members) == 0 || members[len(members)-1] != user {
				g.channelMembers[id] = append(members, user)
			}
		}
	}
	for _, id := range channels {
		if len(g.channelMembers[id]) == 0 {
			members := g.teamMembers[team]
			g.channelMembers[id] = []int64{members[g.random.IntN(len(members))]}
		}
	}
}

// directChannels is how many there are: each user has one with the next, and the last with the first.
func (g *generator) directChannels() int {
	if g.users < 3 {
		return g.users - 1
	}
	return g.users
}

func (g *generator) channelsInAll() int { return g.size.channels + g.directChannels() }

func (g *generator) addDirectChannels() {
	for i := range g.directChannels() {
		a, b := int64(i+1), int64((i+1)%g.users+1)
		id := len(g.channels)
		g.channels = append(g.channels, channel{ID: int64(id), Kind: directChannel, Name: directName(a, b)})
		g.channelMembers[id] = []int64{a, b}
	}
}
