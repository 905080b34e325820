package main

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"plimsoll.example/inputq-vs-mutex/counterpb"
)

// service answers increment calls from its counter.
type service struct {
	counterpb.UnimplementedIncrementCounterServer
	counter counter
	// logging prints a line per request, as the original study did.
	logging bool
}

// Increment replies with the counter's value after adding the request's, which must not be
// negative.
func (s *service) Increment(_ context.Context, request *counterpb.IncrementBy) (*counterpb.Status, error) {
	if s.logging {
		log.Print("a request to increment the counter")
	}
	n := request.GetValue()
	if n < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "value must not be negative, found %d", n)
	}
	return &counterpb.Status{Message: fmt.Sprintf("Incremented value is %d", s.counter.increment(n))}, nil
}
