package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// engine is the kind of a database server.
type engine int

const (
	postgresql engine = iota
	mariadb
)

// database is a pool of connections to a server of a known kind.
type database struct {
	*sql.DB
	engine engine
}

// openDatabase makes a pool of at most that many connections, and connects when the first one is needed. The address is a URL
// with USER:PASSWORD@HOST:PORT/NAME, or with USER@/NAME?socket=/PATH for a UNIX socket; `host` may stand for `socket`.
func openDatabase(address string, connections int) (*database, error) {
	if address == "" {
		return nil, errors.New("no database: give -database or DATABASE_URL")
	}
	parsed, err := url.Parse(address)
	if err != nil {
		// The error of url.Parse repeats the URL, password included.
		return nil, errors.New("the database's URL cannot be read: expected postgresql://USER:PASSWORD@HOST:PORT/NAME")
	}
	if connections < 1 {
		return nil, fmt.Errorf("expected at least 1 connection to the database, found %d", connections)
	}
	var db *database
	switch parsed.Scheme {
	case "postgresql", "postgres":
		db, err = openPostgresql(parsed)
	case "mariadb", "mysql":
		db, err = openMariadb(parsed)
	default:
		err = fmt.Errorf("expected postgresql:// or mariadb:// as the database's URL, found %s://", parsed.Scheme)
	}
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

func openPostgresql(address *url.URL) (*database, error) {
	query := address.Query()
	if socket := query.Get("socket"); socket != "" {
		// Plimsoll names the file of the socket, or its folder as libpq does; pgx wants the folder and the port.
		query.Del("socket")
		if folder, name := path.Split(socket); strings.HasPrefix(name, ".s.PGSQL.") {
			query.Set("port", strings.TrimPrefix(name, ".s.PGSQL."))
			socket = path.Clean(folder)
		}
		query.Set("host", socket)
		address.RawQuery = query.Encode()
	}
	config, err := pgx.ParseConfig(address.String())
	if err != nil {
		return nil, fmt.Errorf("the database's URL: %w", err)
	}
	return &database{stdlib.OpenDB(*config), postgresql}, nil
}

func openMariadb(address *url.URL) (*database, error) {
	config := mysql.NewConfig()
	config.User = address.User.Username()
	config.Passwd, _ = address.User.Password()
	config.DBName = strings.TrimPrefix(address.Path, "/")
	config.Net, config.Addr = "tcp", net.JoinHostPort(address.Hostname(), portOr(address, "3306"))
	for _, key := range []string{"socket", "host"} {
		if socket := address.Query().Get(key); strings.HasPrefix(socket, "/") {
			config.Net, config.Addr = "unix", socket
		}
	}
	// One round trip for a query instead of three: prepare, execute, close.
	config.InterpolateParams = true
	// Rows that an UPDATE found count as affected, as in PostgreSQL, also where nothing changes in them.
	config.ClientFoundRows = true
	// The level that PostgreSQL has by default. The gap locks of the default level make deadlocks between replies to a thread.
	config.Params = map[string]string{"tx_isolation": "'READ-COMMITTED'"}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("the database's URL: %w", err)
	}
	return &database{sql.OpenDB(connector), mariadb}, nil
}

func portOr(address *url.URL, otherwise string) string {
	if port := address.Port(); port != "" {
		return port
	}
	return otherwise
}
