package main

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"plimsoll.example/inputq-vs-mutex/counterpb"
)

// start serves a counter on a free port until the test ends, and returns its address.
func start(t *testing.T, mode string) string {
	t.Helper()
	c, err := newCounter(mode)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := newServer(c, false)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// connect returns a client with a connection of its own.
func connect(t *testing.T, address string) counterpb.IncrementCounterClient {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return counterpb.NewIncrementCounterClient(connection)
}

func TestRepliesOverManyConnectionsAreOneToN(t *testing.T) {
	const users, calls = 20, 50
	for _, mode := range []string{"mutex", "inputQ"} {
		t.Run(mode, func(t *testing.T) {
			address := start(t, mode)
			messages := make(chan string, users*calls)
			var group sync.WaitGroup
			for i := 0; i < users; i++ {
				client := connect(t, address)
				group.Add(1)
				go func() {
					defer group.Done()
					for j := 0; j < calls; j++ {
						reply, err := client.Increment(context.Background(), &counterpb.IncrementBy{Value: 1})
						if err != nil {
							t.Error(err)
							return
						}
						messages <- reply.GetMessage()
					}
				}()
			}
			group.Wait()
			close(messages)
			seen := make(map[int32]int)
			for message := range messages {
				var value int32
				if _, err := fmt.Sscanf(message, "Incremented value is %d", &value); err != nil {
					t.Fatalf("%q: %v", message, err)
				}
				seen[value]++
			}
			checkSequence(t, seen, users*calls)
		})
	}
}

func TestANegativeValueIsRefused(t *testing.T) {
	_, err := connect(t, start(t, "mutex")).Increment(context.Background(), &counterpb.IncrementBy{Value: -1})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("expected InvalidArgument, found %v", err)
	}
}

func TestTheCallHasTheNamesOfTheOriginal(t *testing.T) {
	const path = "/counter.incrementCounter/increment"
	if counterpb.IncrementCounter_Increment_FullMethodName != path {
		t.Errorf("expected %s, found %s", path, counterpb.IncrementCounter_Increment_FullMethodName)
	}
}
