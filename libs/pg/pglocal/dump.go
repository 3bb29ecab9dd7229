package pglocal

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// DumpSchema returns the definitions of a database as pg_dump words them, and PostgreSQL's major version.
func (s *Server) DumpSchema(ctx context.Context, database string) (version, dump string, err error) {
	v, err := s.tool(ctx, "pg_dump", "--version")
	if err != nil {
		return "", "", err
	}
	fields := strings.Fields(string(v)) // pg_dump (PostgreSQL) 15.14 (Debian …)
	if len(fields) < 3 {
		return "", "", fmt.Errorf("pg_dump --version says %q", v)
	}
	version, _, _ = strings.Cut(fields[2], ".")
	out, err := s.tool(ctx, "pg_dump", "--schema-only", "--dbname", s.URL("postgres", database))
	return version, string(out), err
}

// Dump returns a whole database in pg_dump's custom format, for Restore.
func (s *Server) Dump(ctx context.Context, database string) ([]byte, error) {
	return s.tool(ctx, "pg_dump", "--format=custom", "--dbname", s.URL("postgres", database))
}

// Restore puts a dump into an empty database.
func (s *Server) Restore(ctx context.Context, database string, dump []byte) error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pg_restore"), "--exit-on-error", "--dbname", s.URL("postgres", database))
	cmd.Stdin = bytes.NewReader(dump)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_restore: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// tool runs one of PostgreSQL's programs and returns what it prints.
func (s *Server) tool(ctx context.Context, name string, args ...string) ([]byte, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(bin, name), args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
