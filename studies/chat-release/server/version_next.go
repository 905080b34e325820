//go:build next

// The next version. It differs from the old one (version_old.go) in two things:
//
//   - The unread check asks the database once.
//   - A new post is searched for mentions and links, which its answer and its event name. For a message as long as those of
//     `chat generate` (120 bytes) that takes about 190 µs of a processor: 140 µs on a quiet machine, up to 260 µs on a busy one.
//     BenchmarkInspect measures it. The time grows with the length.
package main

import (
	"context"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const version = "next"

// unread are the channels of a user with posts that it has not read, by one query.
func (s *store) unread(ctx context.Context, user int64) ([]unreadChannel, error) {
	defer s.timed("unread")()
	const query = `SELECT m.channel_id, c.posts - m.read_posts FROM channel_members m JOIN channels c ON c.id = m.channel_id
		WHERE m.user_id = ? AND c.posts > m.read_posts ORDER BY m.channel_id`
	return rows(ctx, s.queries, (*unreadChannel).fields, query, user)
}

var mention = regexp.MustCompile(`(?i)(?:^|[^\w.@/-])@([a-z0-9](?:[\w.-]*[a-z0-9])?)`)

// linkForms are the ways in which people write links. Each is searched for in the whole message, which is what the time goes
// into.
var linkForms = append(shortLinks(), []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s<>"')\]]+`),
	regexp.MustCompile(`(?i)\bwww\.[a-z0-9-]+(?:\.[a-z0-9-]+)+(?:/[^\s<>"')\]]*)?`),
	regexp.MustCompile(`(?i)\b(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|io|dev|app|info)\b(?:/[^\s<>"')\]]*)?`),
	regexp.MustCompile(`(?i)\b[a-z0-9._%+-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)+\b`),
	regexp.MustCompile(`(?i)\[[^\]]*\]\(([^)\s]+)\)`),
	regexp.MustCompile(`(?i)\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b(?:/\S*)?`),
}...)

// services are those of a company, to which people write links as `wiki/Plan` or `tickets.example.com/417`. Their number sets
// the cost of inspect.
var services = strings.Fields(`api build code docs files git help jira jobs logs mail metrics reports search status tests tickets
	time wiki`)

// shortLinks has a pattern for each service, as such settings of administrators are often taken.
func shortLinks() []*regexp.Regexp {
	var forms []*regexp.Regexp
	for _, service := range services {
		forms = append(forms, regexp.MustCompile(`(?i)(?:^|[\s(])((?:https?://)?`+service+`(?:\.[a-z0-9-]+)*/[^\s<>"')\]]+)`))
	}
	return forms
}

// inspect finds the users whom a message mentions and the links in it, each once, in order.
func inspect(message string) (mentions, links []string) {
	for _, found := range mention.FindAllStringSubmatch(message, -1) {
		mentions = append(mentions, strings.ToLower(found[1]))
	}
	for _, form := range linkForms {
		for _, found := range form.FindAllStringSubmatch(message, -1) {
			// The last group is the link itself, where there is more around it.
			if link, ok := normal(found[len(found)-1]); ok {
				links = append(links, link)
			}
		}
	}
	return sorted(mentions), sorted(links)
}

// normal writes a link with its scheme, and in one way.
func normal(link string) (string, bool) {
	link = strings.TrimRight(link, ".,;:!?")
	switch {
	case strings.Contains(link, "://"):
	case strings.Contains(link, "@"):
		link = "mailto://" + link
	default:
		link = "https://" + link
	}
	parsed, err := url.Parse(link)
	if err != nil || parsed.Host == "" {
		return "", false
	}
	parsed.Host = strings.ToLower(parsed.Host)
	return parsed.String(), true
}

func sorted(found []string) []string {
	slices.Sort(found)
	return slices.Compact(found)
}
