// Command dumpschema writes what all migrations make together, for people to read: migrations/schema.sql.
//
//	go run ./libs/migrate/cmd/dumpschema -o migrations/schema.sql
//
// It migrates an empty private PostgreSQL and dumps it. Other major versions of pg_dump word the same
// schema differently: with another one than the file was made with, the file stays as it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"

	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
)

func main() {
	out := flag.String("o", "", "file to write (default: standard output)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "dumpschema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) (err error) {
	s, err := pglocal.Start(ctx, pglocal.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := migrate.Up(ctx, s.AdminURL(), migrate.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		return err
	}
	version, dump, err := pglocal.DumpSchema(ctx, s.AdminURL())
	if err != nil {
		return err
	}
	text := header(version) + normalise(dump)
	if out == "" {
		_, err := os.Stdout.WriteString(text)
		return err
	}
	return replace(out, version, text)
}

const headerStart = "-- What all migrations make together. Made by libs/migrate/cmd/dumpschema with PostgreSQL "

func header(version string) string { return headerStart + version + "; do not edit.\n" }

// replace writes the file unless it was made with another major version.
func replace(path, version, text string) error {
	old, err := os.ReadFile(path)
	if err == nil && strings.HasPrefix(string(old), headerStart) && !strings.HasPrefix(string(old), header(version)) {
		fmt.Fprintf(os.Stderr, "dumpschema: %s was made with another version than PostgreSQL %s; it stays as it is\n",
			path, version)
		return nil
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// normalise leaves out what differs between runs and what tells a reader nothing: settings of the
// dump's own session, its comments, blank lines in a row.
func normalise(dump string) string {
	var b strings.Builder
	blank := false
	for line := range strings.Lines(dump) {
		line = strings.TrimRight(line, " \t\r\n")
		if noise(line) {
			continue
		}
		if line == "" {
			blank = true
			continue
		}
		if blank {
			b.WriteByte('\n')
		}
		blank = false
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func noise(line string) bool {
	for _, p := range []string{
		"-- Dumped", "-- PostgreSQL database dump", "SET ", "SELECT pg_catalog.set_config",
		`\restrict`, `\unrestrict`,
	} {
		if strings.HasPrefix(line, p) {
			return true
		}
	}
	return line == "--" || strings.HasPrefix(line, "-- Name: ")
}
