package service

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/telemetry"
)

// The runs share the process's telemetry, so they are not parallel.
func TestRunMainStatus(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for name, c := range map[string]struct {
		ctx    context.Context
		args   []string
		result error
		want   int
		says   string
	}{
		"done":           {ctx: t.Context(), want: exitOK},
		"failed":         {ctx: t.Context(), result: errors.New("no database"), want: exitFailed, says: "no database"},
		"stopped":        {ctx: stopped, result: context.Canceled, want: exitOK},
		"wrong flag":     {ctx: t.Context(), args: []string{"--nope"}, want: exitUsage, says: "nope"},
		"wrong level":    {ctx: t.Context(), args: []string{"--log-level=loud"}, want: exitUsage, says: "loud"},
		"wrong endpoint": {ctx: t.Context(), args: []string{"--log-format=xml"}, want: exitUsage, says: "xml"},
		"version": {ctx: t.Context(), args: []string{"--version"}, want: exitOK, says: "tester " + Version() +
			"\n"},
		"help": {ctx: t.Context(), args: []string{"--help"}, want: exitOK, says: "CHANDLER_NATS_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			var cfg Config
			p := process{args: c.args, env: func(string) (string, bool) { return "", false }, out: &out, errOut: &out}
			got := runMain(c.ctx, p, "tester", &cfg, func(_ context.Context, tel *telemetry.Telemetry) error {
				if tel.Log == nil || tel.Metrics == nil {
					t.Error("telemetry was not started")
				}
				return c.result
			})
			if got != c.want || !strings.Contains(out.String(), c.says) {
				t.Errorf("status %d, want %d; said %q, want %q in it", got, c.want, out.String(), c.says)
			}
		})
	}
}
