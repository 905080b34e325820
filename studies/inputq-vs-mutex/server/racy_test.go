// The fault is a data race, which the race detector would report.
//go:build !race

package main

import "testing"

// The sequence check of a study needs something to catch: the racy mode loses no addition, but
// tells some callers the value of another.
func TestTheRacyModeRepeatsValues(t *testing.T) {
	seen := replies(&racyCounter{})
	if len(seen) == total {
		t.Errorf("%d concurrent increments came back as 1 to %d, each once", total, total)
	}
	if seen[total] == 0 {
		t.Errorf("the last value, %d, never came back", total)
	}
}
