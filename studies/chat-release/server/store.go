package main

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// store has a method for each thing that the server asks the database, which may take several queries. Each method's time,
// including the wait for a connection of the pool, goes into chat_store_time_seconds by the method's name.
type store struct {
	queries
	pool *sql.DB
	time *prometheus.HistogramVec
}

func newStore(db *database, time *prometheus.HistogramVec) *store {
	return &store{queries{db.DB, db.engine}, db.DB, time}
}

// timed begins the measurement of a method and returns its end.
func (s *store) timed(method string) func() {
	start := time.Now()
	return func() { s.time.WithLabelValues(method).Observe(time.Since(start).Seconds()) }
}

func (s *store) ping(ctx context.Context) error {
	defer s.timed("ping")()
	return s.pool.PingContext(ctx)
}

// transaction runs work in a transaction, and again where the database ended it as a deadlock's victim.
func (s *store) transaction(ctx context.Context, work func(queries) error) error {
	const attempts = 3
	var err error
	for range attempts {
		if err = s.transactionOnce(ctx, work); !isDeadlock(err) {
			return err
		}
	}
	return err
}

func (s *store) transactionOnce(ctx context.Context, work func(queries) error) error {
	tx, err := s.pool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// After a commit this does nothing.
	defer tx.Rollback()
	if err := work(queries{tx, s.engine}); err != nil {
		return err
	}
	return tx.Commit()
}

// queries runs queries on a pool or in a transaction.
type queries struct {
	on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
	engine engine
}

// change runs a statement and returns how many rows it affected.
func (q queries) change(ctx context.Context, statement string, values ...any) (int64, error) {
	result, err := q.on.ExecContext(ctx, q.engine.translate(statement), values...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row reads one row into the fields that `fields` names, or fails with sql.ErrNoRows.
func row[T any](ctx context.Context, q queries, fields func(*T) []any, query string, values ...any) (T, error) {
	var one T
	err := q.on.QueryRowContext(ctx, q.engine.translate(query), values...).Scan(fields(&one)...)
	return one, err
}

// rows reads all rows as `row` reads one. Without rows the result is empty and not nil, so that its JSON
// is a list.
func rows[T any](ctx context.Context, q queries, fields func(*T) []any, query string, values ...any) ([]T, error) {
	all := []T{}
	found, err := q.on.QueryContext(ctx, q.engine.translate(query), values...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var one T
		if err := found.Scan(fields(&one)...); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, found.Err()
}

// single is the field of a row that has one column.
func single[T any](value *T) []any { return []any{value} }

// placeholders writes n of them, with commas between.
func placeholders(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

func milliseconds(t time.Time) int64 { return t.UnixMilli() }
