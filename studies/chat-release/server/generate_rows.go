package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// The rows of each table, as insertMany takes them.

func (g *generator) teamRows(yield func([]any) bool) {
	for id := 1; id <= g.teams; id++ {
		if !yield([]any{int64(id), fmt.Sprintf("team%d", id), fmt.Sprintf("Team %d", id)}) {
			return
		}
	}
}

func (g *generator) userRows(yield func([]any) bool) {
	for id := 1; id <= g.users; id++ {
		salt := fmt.Sprintf("%016x", g.random.Uint64())
		name := pick(g.random, firstNames) + " " + pick(g.random, lastNames)
		row := []any{
			int64(id), fmt.Sprintf("user%d", id), name, salt, hashPassword(salt, generatedPassword), firstPostAt.UnixMilli(),
		}
		if !yield(row) {
			return
		}
	}
}

func (g *generator) teamMemberRows(yield func([]any) bool) {
	g.drawMembers()
	for team, users := range g.teamMembers {
		for _, user := range users {
			if !yield([]any{int64(team), user}) {
				return
			}
		}
	}
}

// postRows draws a few channels often and most seldom, as people do. A quarter of the posts are replies.
func (g *generator) postRows(yield func([]any) bool) {
	order := g.random.Perm(len(g.channels) - 1)
	popular := rand.NewZipf(g.random, 1.1, 10, uint64(len(order)-1))
	roots := make([][]int64, len(g.channels))
	row := make([]any, 8)
	for i := range g.posts {
		id, at := int64(i+1), firstPostAt.Add(postedFor/time.Duration(g.posts)*time.Duration(i)).UnixMilli()
		place := order[popular.Uint64()] + 1
		author := pick(g.random, g.channelMembers[place])
		root := int64(0)
		if len(roots[place]) > 0 && g.random.IntN(4) == 0 {
			root = pick(g.random, roots[place])
		} else {
			roots[place] = append(roots[place], id)
			roots[place] = roots[place][max(0, len(roots[place])-rootsOpen):]
		}
		c := &g.channels[place]
		c.Posts, c.LastPostAt = c.Posts+1, at
		if g.random.IntN(10) == 0 {
			r := reaction{id, pick(g.random, g.channelMembers[place]), pick(g.random, emojis), at}
			g.reactions = append(g.reactions, r)
		}
		row[0], row[1], row[2], row[3] = id, int64(place), author, root
		row[4], row[5], row[6], row[7] = g.message(), at, int64(0), int64(0)
		if !yield(row) {
			return
		}
	}
}

func (g *generator) channelRows(yield func([]any) bool) {
	for _, c := range g.channels[1:] {
		if !yield([]any{c.ID, c.TeamID, c.Kind, c.Name, c.DisplayName, c.Posts, c.LastPostAt}) {
			return
		}
	}
}

func (g *generator) channelMemberRows(yield func([]any) bool) {
	for id, users := range g.channelMembers {
		for _, user := range users {
			c := g.channels[id]
			read := c.Posts - g.random.Int64N(min(c.Posts, unreadAtMost)+1)
			if !yield([]any{c.ID, user, read, c.LastPostAt}) {
				return
			}
		}
	}
}

func (g *generator) reactionRows(yield func([]any) bool) {
	for _, r := range g.reactions {
		if !yield([]any{r.PostID, r.UserID, r.Emoji, r.CreatedAt}) {
			return
		}
	}
}

// draftRows lets every fifth user or so have begun to write in the first channel of the team.
func (g *generator) draftRows(yield func([]any) bool) {
	for user := 1; user <= g.users; user++ {
		if g.random.IntN(5) != 0 {
			continue
		}
		channel := int64((user-1)%g.teams + 1)
		if !yield([]any{int64(user), channel, int64(0), g.message(), firstPostAt.Add(postedFor).UnixMilli()}) {
			return
		}
	}
}

// message is a sentence of 5 to 29 words, 130 bytes on average. Some mention a user or have a link.
func (g *generator) message() string {
	var text strings.Builder
	for i := range 5 + g.random.IntN(25) {
		if i > 0 {
			text.WriteByte(' ')
		}
		switch g.random.IntN(100) {
		case 0:
			fmt.Fprintf(&text, "@user%d", 1+g.random.IntN(g.users))
		case 1:
			fmt.Fprintf(&text, "https://docs.example.com/%s/%d", pick(g.random, words), g.random.IntN(1000))
		case 2, 3:
			// Words that few posts have, as names of projects are.
			text.WriteString(pick(g.random, words) + pick(g.random, words))
		default:
			text.WriteString(pick(g.random, words))
		}
	}
	return text.String()
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

var (
	firstNames = strings.Fields("Ada Alan Barbara Donald Edsger Frances Grace Hedy Ivan Jean John Ken Leslie Margaret Niklaus Radia")
	lastNames  = strings.Fields("Abbott Baker Carver Dyer Evans Fisher Gardner Hunter Irwin Jensen Keller Lange Mason Novak Olsen Parker")
	emojis     = strings.Fields("thumbsup heart eyes tada smile rocket white_check_mark thinking")
	// words has none of fewer than three letters, and none that indexes leave out.
	words = strings.Fields(`account answer archive backlog balance branch bridge budget build button cache calendar
		carrier catalog change channel checklist client cluster column comment commit compile concept config contract
		corner counter course customer database deadline decision default delivery deploy design device diagram
		document domain draft driver editor engine error estimate event example export factor failure feature
		feedback field figure filter folder format forward friday function gateway graph green group handler
		header history holiday image import inbox index input install invoice issue journal keyboard language
		laptop latency layout letter library license limit machine manager market measure meeting memory merge
		message metric migration minute mobile model module monday morning network notebook number office option
		order outage owner package parser password patch payment people person picture pipeline planning platform
		player pointer policy printer problem process product profile project prompt proposal protocol provider
		quality quarter question queue random reader reason record release report request research response result
		review rollback router sample schedule schema screen script search section sector server session setting
		signal socket source sprint staging status storage stream string summary support switch system table target
		team template terminal test thread ticket timeout token topic traffic training transfer trigger tunnel
		update upload user vacation value vector vendor version video viewer volume warning weather website week
		window worker workshop writer yellow zone`)
)
