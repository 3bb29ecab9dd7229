package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// settings are those that PostgreSQL needs to count statements.
func (o options) settings() []string {
	if o.statements == 0 {
		return nil
	}
	return []string{
		"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track=all", "pg_stat_statements.max=10000",
	}
}

// forgetStatements has statements counted from now on.
func (p *play) forgetStatements(ctx context.Context) error {
	if p.statements == 0 {
		return nil
	}
	_, err := p.record.Exec(ctx, `select pg_stat_statements_reset()`)
	return err
}

// maxStatementText bounds what is shown of a statement.
const maxStatementText = 160

// showStatements prints what PostgreSQL was asked since, the most expensive first. Statements within functions count in
// them, too, and are shown by themselves: the sum is of those that services sent.
func (p *play) showStatements(ctx context.Context) error {
	if p.statements == 0 {
		return nil
	}
	var calls, begun int64
	var seconds float64
	if err := p.record.QueryRow(ctx, `select coalesce(sum(calls), 0)::bigint,
		coalesce(sum(calls) filter (where query ~* '^(begin|commit)'), 0)::bigint,
		coalesce(sum(total_exec_time), 0) / 1000 from pg_stat_statements where toplevel`).
		Scan(&calls, &begun, &seconds); err != nil {
		return err
	}
	fmt.Fprintf(p.out, "  statements:        %d, of which %d begin or end a transaction; %.1f s in them\n", calls, begun,
		seconds)
	if err := p.showRoles(ctx); err != nil {
		return err
	}
	rows, err := p.record.Query(ctx, `select toplevel, calls, total_exec_time, rows, u.rolname, query
		from pg_stat_statements s join pg_roles u on u.oid = s.userid order by total_exec_time desc limit $1`, p.statements)
	if err != nil {
		return err
	}
	var top bool
	var n, got int64
	var total float64
	var role, query string
	_, err = pgx.ForEachRow(rows, []any{&top, &n, &total, &got, &role, &query}, func() error {
		mark := " "
		if !top {
			mark = "|" // within a function
		}
		text := strings.Join(strings.Fields(query), " ")
		fmt.Fprintf(p.out, "  %s %8.0f ms %7d calls %8d rows  %s: %s\n", mark, total, n, got,
			strings.TrimPrefix(role, "chandler_"), text[:min(len(text), maxStatementText)])
		return nil
	})
	return err
}

// showRoles prints how many statements each service sent.
func (p *play) showRoles(ctx context.Context) error {
	rows, err := p.record.Query(ctx, `select u.rolname, sum(calls)::bigint, sum(total_exec_time) / 1000
		from pg_stat_statements s join pg_roles u on u.oid = s.userid where toplevel group by 1 order by 1`)
	if err != nil {
		return err
	}
	var role string
	var calls int64
	var seconds float64
	_, err = pgx.ForEachRow(rows, []any{&role, &calls, &seconds}, func() error {
		fmt.Fprintf(p.out, "    %-16s %7d, %.1f s\n", strings.TrimPrefix(role, "chandler_"), calls, seconds)
		return nil
	})
	return err
}
