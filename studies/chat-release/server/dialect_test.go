package main

import "testing"

func TestQueriesAreTranslated(t *testing.T) {
	for _, c := range []struct{ query, postgresql, mariadb string }{
		{"SELECT a FROM t WHERE a = ? AND b < ?", "SELECT a FROM t WHERE a = $1 AND b < $2", "SELECT a FROM t WHERE a = ? AND b < ?"},
		{
			"INSERT INTO t (a) VALUES (?) ON CONFLICT DO NOTHING",
			"INSERT INTO t (a) VALUES ($1) ON CONFLICT DO NOTHING",
			"INSERT IGNORE INTO t (a) VALUES (?)",
		},
		{
			"INSERT INTO t (a, b) VALUES (?, 1) ON CONFLICT (a, c) DO UPDATE SET b = t.b + EXCLUDED.b",
			"INSERT INTO t (a, b) VALUES ($1, 1) ON CONFLICT (a, c) DO UPDATE SET b = t.b + EXCLUDED.b",
			"INSERT INTO t (a, b) VALUES (?, 1) ON DUPLICATE KEY UPDATE b = t.b + VALUES(b)",
		},
	} {
		if found := postgresql.translate(c.query); found != c.postgresql {
			t.Errorf("expected %s, found %s", c.postgresql, found)
		}
		if found := mariadb.translate(c.query); found != c.mariadb {
			t.Errorf("expected %s, found %s", c.mariadb, found)
		}
	}
}
