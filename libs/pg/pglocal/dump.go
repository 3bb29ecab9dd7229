package pglocal

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// DumpSchema returns the definitions of the database of a URL as pg_dump words them, and pg_dump's major version.
func DumpSchema(ctx context.Context, url string) (version, dump string, err error) {
	v, err := tool(ctx, "pg_dump", "--version")
	if err != nil {
		return "", "", err
	}
	fields := strings.Fields(string(v)) // pg_dump (PostgreSQL) 15.14 (Debian …)
	if len(fields) < 3 {
		return "", "", fmt.Errorf("pg_dump --version says %q", v)
	}
	version, _, _ = strings.Cut(fields[2], ".")
	out, err := tool(ctx, "pg_dump", "--schema-only", "--dbname", url)
	return version, string(out), err
}

// Dump returns the whole database of a URL in pg_dump's custom format, for Restore.
func Dump(ctx context.Context, url string) ([]byte, error) {
	return tool(ctx, "pg_dump", "--format=custom", "--dbname", url)
}

// Restore puts a dump into the empty database of a URL.
func Restore(ctx context.Context, url string, dump []byte) error {
	bin, err := binaries()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "pg_restore"), "--exit-on-error", "--dbname", url)
	cmd.Stdin = bytes.NewReader(dump)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_restore: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// tool runs one of PostgreSQL's programs and returns what it prints.
func tool(ctx context.Context, name string, args ...string) ([]byte, error) {
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
