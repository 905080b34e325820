// Command chat is a small chat server with its tools: the system under test of the study chat-release.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

const usage = `usage: chat COMMAND [FLAGS]

  serve     answer requests and WebSockets
  migrate   make the tables, where they are missing
  generate  fill an empty database with users, channels and posts
  version   print the version's name

chat COMMAND -h tells the flags.`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 {
		return errors.New(usage)
	}
	switch command, rest := arguments[0], arguments[1:]; command {
	case "serve":
		return runServe(ctx, rest)
	case "migrate":
		return runMigrate(ctx, rest)
	case "generate":
		return runGenerate(ctx, rest)
	case "version":
		fmt.Println(version)
		return nil
	default:
		return fmt.Errorf("there is no command %q\n%s", command, usage)
	}
}

func runServe(ctx context.Context, arguments []string) error {
	var o serveOptions
	var peers string
	flags := flag.NewFlagSet("chat serve", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8065", "`HOST:PORT` to listen on")
	databaseFlag(flags, &o.database)
	flags.StringVar(&peers, "peers", "", "`HOST:PORT,…` of all instances; the own address may be among them")
	flags.IntVar(&o.connections, "connections", 20, "connections to the database, at most")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	for _, peer := range strings.Split(peers, ",") {
		if peer = strings.TrimSpace(peer); peer != "" {
			o.peers = append(o.peers, peer)
		}
	}
	return serve(ctx, o)
}

func runMigrate(ctx context.Context, arguments []string) error {
	var address string
	flags := flag.NewFlagSet("chat migrate", flag.ContinueOnError)
	databaseFlag(flags, &address)
	if err := parse(flags, arguments); err != nil {
		return err
	}
	db, err := openDatabase(address, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	return migrate(ctx, db)
}

func runGenerate(ctx context.Context, arguments []string) error {
	var address string
	var size size
	flags := flag.NewFlagSet("chat generate", flag.ContinueOnError)
	databaseFlag(flags, &address)
	flags.IntVar(&size.users, "users", 100, "number of users")
	flags.IntVar(&size.teams, "teams", 2, "number of teams")
	flags.IntVar(&size.channels, "channels", 20, "number of channels in all teams; direct channels come on top")
	flags.IntVar(&size.posts, "posts", 10_000, "number of posts")
	flags.Uint64Var(&size.seed, "seed", 1, "the same seed makes the same data")
	if err := parse(flags, arguments); err != nil {
		return err
	}
	db, err := openDatabase(address, 1)
	if err != nil {
		return err
	}
	defer db.Close()
	return generate(ctx, db, size)
}

// databaseFlag reads DATABASE_URL where the flag is missing: everybody on the machine sees arguments, and a URL may have a
// password.
func databaseFlag(flags *flag.FlagSet, address *string) {
	flags.StringVar(address, "database", "", "`URL`: postgresql://… or mariadb://… (default: $DATABASE_URL)")
}

func parse(flags *flag.FlagSet, arguments []string) error {
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q", flags.Name(), flags.Arg(0))
	}
	if database := flags.Lookup("database"); database.Value.String() == "" {
		return database.Value.Set(os.Getenv("DATABASE_URL"))
	}
	return nil
}
