package main

import (
	"fmt"
	"runtime"
	"sync"
)

// A counter counts up for many callers at once.
type counter interface {
	// increment adds n and returns the value that this very addition made.
	increment(n int32) int32
}

// modes are the ways to keep a counter consistent, by the name that -mode takes.
var modes = map[string]func() counter{
	"mutex":  func() counter { return &mutexCounter{} },
	"inputQ": func() counter { return newInputQCounter() },
	"racy":   func() counter { return &racyCounter{} },
}

// newCounter returns a counter at zero that works in the given mode.
func newCounter(mode string) (counter, error) {
	create, known := modes[mode]
	if !known {
		return nil, fmt.Errorf("unknown mode %q: expected mutex, inputQ or racy", mode)
	}
	return create(), nil
}

// mutexCounter keeps callers apart with a lock, and reads the reply before it lets the next in.
type mutexCounter struct {
	mu    sync.Mutex
	value int32
}

func (c *mutexCounter) increment(n int32) int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value += n
	return c.value
}

// inputQCounter leaves the value to one goroutine, which takes requests from a channel one by
// one: no lock, and nothing shared but the channel. The goroutine lives as long as the process.
type inputQCounter struct {
	queue chan addition
}

// An addition is a request to the goroutine that owns the value. The reply channel holds one
// value, so that the owner never waits for a caller.
type addition struct {
	n     int32
	reply chan int32
}

func newInputQCounter() *inputQCounter {
	c := &inputQCounter{queue: make(chan addition)}
	go c.serve()
	return c
}

func (c *inputQCounter) serve() {
	var value int32
	for request := range c.queue {
		value += request.n
		request.reply <- value
	}
}

func (c *inputQCounter) increment(n int32) int32 {
	request := addition{n: n, reply: make(chan int32, 1)}
	c.queue <- request
	return <-request.reply
}

// racyCounter is the fault of the original study's mutex mode: the value is added to under the
// lock and read after it, so a caller can be told the value of another.
//
// The gap is a few instructions wide. Where the runtime has a single processor, goroutines hardly
// ever change places inside it, so the gap is held open for as long as others are ready to run:
// the fault stays the same, and shows in seconds instead of days.
type racyCounter struct {
	mu    sync.Mutex
	value int32
}

func (c *racyCounter) increment(n int32) int32 {
	c.mu.Lock()
	c.value += n
	c.mu.Unlock()
	runtime.Gosched()
	return c.value
}
