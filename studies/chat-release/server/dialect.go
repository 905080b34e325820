package main

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

var (
	translated = map[engine]*sync.Map{postgresql: {}, mariadb: {}}
	onConflict = regexp.MustCompile(`ON CONFLICT \([^)]*\) DO UPDATE SET`)
	excluded   = regexp.MustCompile(`EXCLUDED\.(\w+)`)
	doNothing  = regexp.MustCompile(`(?s)INSERT INTO(.*) ON CONFLICT DO NOTHING`)
)

// translate writes a query for the engine. Queries stand in the code once, in the SQL of PostgreSQL, but with `?` for a value.
// Their number is bounded, so that each is translated only once.
func (e engine) translate(query string) string {
	if known, ok := translated[e].Load(query); ok {
		return known.(string)
	}
	result := query
	switch e {
	case postgresql:
		result = numbered(query)
	case mariadb:
		result = onConflict.ReplaceAllString(result, "ON DUPLICATE KEY UPDATE")
		result = excluded.ReplaceAllString(result, "VALUES($1)")
		result = doNothing.ReplaceAllString(result, "INSERT IGNORE INTO$1")
	}
	translated[e].Store(query, result)
	return result
}

// numbered writes the first `?` as `$1`, the second as `$2`. No query of this program has a `?` in a text.
func numbered(query string) string {
	var result strings.Builder
	for i, part := range strings.Split(query, "?") {
		if i > 0 {
			result.WriteString("$" + strconv.Itoa(i))
		}
		result.WriteString(part)
	}
	return result.String()
}

// matches is the condition that a post's message has all words of a parameter that searchTerms made.
func (e engine) matches() string {
	if e == postgresql {
		return "to_tsvector('simple', p.message) @@ to_tsquery('simple', ?)"
	}
	return "MATCH (p.message) AGAINST (? IN BOOLEAN MODE)"
}

// searchTerms writes words as the parameter of a search for posts that have all of them.
func (e engine) searchTerms(words []string) string {
	if e == postgresql {
		return strings.Join(words, " & ")
	}
	return "+" + strings.Join(words, " +")
}

// isDeadlock is true if the database ended a transaction so that others could go on. The same transaction may succeed when it
// is tried again.
func isDeadlock(err error) bool {
	var ofPostgresql *pgconn.PgError
	if errors.As(err, &ofPostgresql) {
		return ofPostgresql.Code == "40P01" || ofPostgresql.Code == "40001"
	}
	var ofMariadb *mysql.MySQLError
	return errors.As(err, &ofMariadb) && ofMariadb.Number == 1213
}
