// Command counter is the system of the study "inputQ against mutex": a gRPC service with one
// call, which adds to a counter and replies with its new value. How the counter is kept
// consistent between concurrent calls is what the study compares.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/reflection"

	"plimsoll.example/inputq-vs-mutex/counterpb"
)

// options are the command's flags.
type options struct {
	mode    string
	listen  string
	logging bool
	version bool
}

func main() {
	opts, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(2)
	}
	if opts.version {
		fmt.Println(version())
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if err := run(ctx, opts); err != nil {
		fmt.Fprintln(os.Stderr, "counter:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("counter", flag.ContinueOnError)
	flags.StringVar(&opts.mode, "mode", "mutex", "how the counter is kept: mutex, inputQ or racy")
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:50055", "address to listen on")
	flags.BoolVar(&opts.logging, "log", false, "print a line per request, as the original study did")
	flags.BoolVar(&opts.version, "version", false, "print versions and exit")
	err := flags.Parse(args)
	return opts, err
}

// run serves until ctx is done.
func run(ctx context.Context, opts options) error {
	counter, err := newCounter(opts.mode)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return err
	}
	server := newServer(counter, opts.logging)
	go func() {
		<-ctx.Done()
		server.Stop()
	}()
	fmt.Printf("listening on %s, mode %s, %d processors\n", listener.Addr(), opts.mode, runtime.GOMAXPROCS(0))
	return server.Serve(listener)
}

// newServer returns a gRPC server with the counter and with reflection, which lets clients ask
// for the interface instead of reading counter.proto.
func newServer(counter counter, logging bool) *grpc.Server {
	server := grpc.NewServer()
	counterpb.RegisterIncrementCounterServer(server, &service{counter: counter, logging: logging})
	reflection.Register(server)
	return server
}

// version names what a result depends on: the library and the compiler.
func version() string {
	return fmt.Sprintf("counter, grpc-go %s, %s", moduleVersion("google.golang.org/grpc"), runtime.Version())
}

func moduleVersion(path string) string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range build.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return "unknown"
}
