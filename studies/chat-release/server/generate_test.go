package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestTheSameSeedMakesTheSameDataInEachDatabase(t *testing.T) {
	sums := map[string]string{}
	onEach(t, func(t *testing.T, server *databaseServer) {
		for _, seed := range []uint64{7, 7, 8} {
			db := open(t, server.newDatabase(t))
			if err := generate(t.Context(), db, size{users: 40, teams: 3, channels: 12, posts: 2500, seed: seed}); err != nil {
				t.Fatal(err)
			}
			sum, key := checksum(t, db), fmt.Sprint(seed)
			if known := sums[key]; known == "" {
				sums[key] = sum
			} else if known != sum {
				t.Errorf("expected the same data for seed %d", seed)
			}
		}
		if sums["7"] == sums["8"] {
			t.Error("expected other data for another seed")
		}
	})
}

// checksum is one of all rows of all tables.
func checksum(t *testing.T, db *database) string {
	t.Helper()
	sum := sha256.New()
	for _, table := range tables {
		name, _, _ := strings.Cut(table, " ")
		for _, line := range sortedRows(t, db, name) {
			fmt.Fprintln(sum, name, line)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func sortedRows(t *testing.T, db *database, table string) []string {
	t.Helper()
	found, err := db.Query("SELECT * FROM " + table + " ORDER BY 1, 2, 3")
	if err != nil {
		// team_members has two columns.
		if found, err = db.Query("SELECT * FROM " + table + " ORDER BY 1, 2"); err != nil {
			t.Fatal(err)
		}
	}
	defer found.Close()
	columns, _ := found.Columns()
	var lines []string
	for found.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := found.Scan(into...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprint(values))
	}
	return lines
}

func TestGeneratedDataFitTogether(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		db := open(t, address)
		s := size{users: 40, teams: 3, channels: 12, posts: 2500, seed: 3}
		if err := generate(t.Context(), db, s); err != nil {
			t.Fatal(err)
		}
		for query, wanted := range map[string]int{
			"SELECT count(*) FROM users":                           40,
			"SELECT count(*) FROM teams":                           3,
			"SELECT count(*) FROM channels WHERE kind <> 'direct'": 12,
			"SELECT count(*) FROM channels WHERE kind = 'direct'":  40,
			"SELECT count(*) FROM posts":                           2500,
			"SELECT sum(posts) FROM channels":                      2500,
			"SELECT sum(replies) FROM threads":                     count(t, db, "SELECT count(*) FROM posts WHERE root_id > 0"),
			"SELECT count(*) FROM channels c WHERE posts <> (SELECT count(*) FROM posts p WHERE p.channel_id = c.id)": 0,
			"SELECT count(*) FROM channel_members WHERE read_posts < 0":                                               0,
			`SELECT count(*) FROM posts p LEFT JOIN channel_members m ON m.channel_id = p.channel_id AND m.user_id = p.user_id
				WHERE m.user_id IS NULL`: 0,
			`SELECT count(*) FROM posts p JOIN posts r ON r.id = p.root_id WHERE r.root_id <> 0 OR r.channel_id <> p.channel_id`: 0,
			`SELECT count(*) FROM channels c LEFT JOIN channel_members m ON m.channel_id = c.id WHERE m.user_id IS NULL`:         0,
		} {
			if found := count(t, db, query); found != wanted {
				t.Errorf("%s: expected %d, found %d", query, wanted, found)
			}
		}
		if err := generate(t.Context(), db, s); err == nil || !strings.Contains(err.Error(), "empty database") {
			t.Errorf("expected a refusal to fill a database twice, found %v", err)
		}
		if err := migrate(t.Context(), db); err != nil {
			t.Errorf("expected a second migration to change nothing, found %v", err)
		}
	})
}

func TestTheSmallestDataAreMade(t *testing.T) {
	inBoth(t, func(t *testing.T, address string) {
		db := open(t, address)
		if err := generate(t.Context(), db, size{users: 1, teams: 1, channels: 1, posts: 0}); err != nil {
			t.Fatal(err)
		}
		if err := generate(t.Context(), db, size{users: 1, teams: 2, channels: 2}); err == nil {
			t.Error("expected a refusal of more teams than users")
		}
	})
}

func count(t *testing.T, db *database, query string) (n int) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestTheDatabaseIsReachedByItsSocket(t *testing.T) {
	onEach(t, func(t *testing.T, server *databaseServer) {
		address := server.newDatabase(t)
		name := address[strings.LastIndex(address, "/")+1:]
		ways := []string{"socket=" + url.QueryEscape(server.socket)}
		if server.name == "postgresql" {
			port := server.socket[strings.LastIndex(server.socket, ".")+1:]
			ways = append(ways, "host="+server.folder+"&port="+port, "socket="+server.folder+"&port="+port)
		}
		for _, way := range ways {
			db := open(t, server.name+"://chat:secret@/"+name+"?"+way)
			if found := count(t, db, "SELECT count(*) FROM users"); found != 0 {
				t.Errorf("expected an empty table, found %d rows", found)
			}
		}
	})
}

func TestAURLThatCannotBeReadIsRefusedWithoutItsPassword(t *testing.T) {
	for _, address := range []string{"", "sqlite://file", "postgresql://chat:secret@host:port/db", "chat:secret@/db"} {
		if db, err := openDatabase(address, 1); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: expected a refusal, found %v and %v", address, db, err)
		}
	}
}

func dial(address string) (net.Conn, error) { return net.DialTimeout("tcp", address, time.Second) }
