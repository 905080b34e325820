package main

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	rowsOfInsert      = 1000
	insertsOfTransact = 50
)

// insertMany adds rows as fast as the database takes them. A row may be overwritten as soon as the next one is asked for.
func (db *database) insertMany(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) error {
	insert := db.insertInBatches
	if db.engine == postgresql {
		insert = db.copyIn
	}
	if err := insert(ctx, table, columns, rows); err != nil {
		return fmt.Errorf("fill %s: %w", table, err)
	}
	return nil
}

func (db *database) copyIn(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) error {
	connection, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer connection.Close()
	next, stop := iter.Pull(rows)
	defer stop()
	source := pgx.CopyFromFunc(func() ([]any, error) {
		row, _ := next()
		return row, nil // pgx ends at a row that is nil.
	})
	return connection.Raw(func(driver any) error {
		_, err := driver.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, source)
		return err
	})
}

// insertInBatches needs no right to load files, and no setting of the server.
func (db *database) insertInBatches(ctx context.Context, table string, columns []string, rows iter.Seq[[]any]) error {
	row := ", (" + placeholders(len(columns)) + ")"
	statement := func(rows int) string {
		return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES " + strings.Repeat(row, rows)[2:]
	}
	full := statement(rowsOfInsert)
	var tx *sql.Tx
	inserts := 0
	flush := func(statement string, values []any) error {
		var err error
		if tx == nil {
			if tx, err = db.BeginTx(ctx, nil); err != nil {
				return err
			}
		}
		if _, err = tx.ExecContext(ctx, statement, values...); err != nil {
			tx.Rollback()
			return err
		}
		if inserts++; inserts%insertsOfTransact == 0 {
			err, tx = tx.Commit(), nil
		}
		return err
	}
	values := make([]any, 0, rowsOfInsert*len(columns))
	for row := range rows {
		values = append(values, row...)
		if len(values) == cap(values) {
			if err := flush(full, values); err != nil {
				return err
			}
			values = values[:0]
		}
	}
	if len(values) > 0 {
		if err := flush(statement(len(values)/len(columns)), values); err != nil {
			return err
		}
	}
	if tx != nil {
		return tx.Commit()
	}
	return nil
}
