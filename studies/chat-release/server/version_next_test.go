//go:build next

package main

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// typical is as long as the messages of `chat generate` are on average, with a mention and a link.
const typical = "the release report is in https://docs.example.com/plan/417 and @user12 asks for a review of the draft before the deadline"

func TestInspectFindsMentionsAndLinks(t *testing.T) {
	for _, c := range []struct {
		message         string
		mentions, links []string
	}{
		{"nothing here", nil, nil},
		{typical, []string{"user12"}, []string{"https://docs.example.com/plan/417"}},
		{"@Ada and @ada, ask @bob.", []string{"ada", "bob"}, nil},
		{"see www.example.org/a, example.com.", nil, []string{"https://example.com", "https://www.example.org/a"}},
		{"[plan](https://a.example/x) of ada@example.org", nil, []string{"https://a.example/x", "mailto://ada@example.org"}},
		{"it is in wiki/Plan and (tickets.example.com/417)", nil, []string{"https://tickets.example.com/417", "https://wiki/Plan"}},
		{"it runs on 10.0.0.1:80/health", nil, []string{"https://10.0.0.1:80/health"}},
	} {
		mentions, links := inspect(c.message)
		for _, link := range c.links {
			if !slices.Contains(links, link) {
				t.Errorf("%s: expected the link %s, found %v", c.message, link, links)
			}
		}
		if !slices.Equal(mentions, c.mentions) || c.links == nil && links != nil {
			t.Errorf("%s: expected mentions %v, found %v and links %v", c.message, c.mentions, mentions, links)
		}
	}
}

// BenchmarkInspect is the cost that the next version adds to createPost: go test -tags next -run - -bench Inspect -cpu 1
//
// On a machine that does other things too, cpu-ns/op is the number to read.
func BenchmarkInspect(b *testing.B) {
	for name, message := range map[string]string{"short": typical[:30], "typical": typical, "long": strings.Repeat(typical+" ", 4)} {
		b.Run(fmt.Sprintf("%s=%d", name, len(message)), func(b *testing.B) {
			start := processorTime(b)
			for b.Loop() {
				inspect(message)
			}
			b.ReportMetric(float64(processorTime(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// processorTime is what this process has used, in nanoseconds.
func processorTime(b *testing.B) int64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}
