package main

import (
	"sync"
	"testing"
)

const (
	callers = 64
	each    = 500
	total   = callers * each
)

// replies has many callers count up by one at the same time and returns how often each value
// came back.
func replies(c counter) map[int32]int {
	var (
		mu    sync.Mutex
		seen  = make(map[int32]int, total)
		group sync.WaitGroup
	)
	for i := 0; i < callers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < each; j++ {
				value := c.increment(1)
				mu.Lock()
				seen[value]++
				mu.Unlock()
			}
		}()
	}
	group.Wait()
	return seen
}

// checkSequence fails the test unless the values are 1 to n, each once.
func checkSequence(t *testing.T, seen map[int32]int, n int32) {
	t.Helper()
	for value := int32(1); value <= n; value++ {
		if seen[value] != 1 {
			t.Errorf("value %d came %d times, expected once", value, seen[value])
		}
	}
	if len(seen) != int(n) {
		t.Errorf("%d different values, expected %d", len(seen), n)
	}
}

func TestConcurrentIncrementsCountEachValueOnce(t *testing.T) {
	for _, mode := range []string{"mutex", "inputQ"} {
		t.Run(mode, func(t *testing.T) {
			c, err := newCounter(mode)
			if err != nil {
				t.Fatal(err)
			}
			checkSequence(t, replies(c), total)
		})
	}
}

func TestEveryModeAddsTheAmountAskedFor(t *testing.T) {
	for mode, create := range modes {
		c := create()
		c.increment(40)
		if value := c.increment(2); value != 42 {
			t.Errorf("%s: 40 and 2 make %d", mode, value)
		}
	}
}

func TestAnUnknownModeIsRefused(t *testing.T) {
	if _, err := newCounter("spinlock"); err == nil {
		t.Error("expected an error for a mode that does not exist")
	}
}
