package admin

import (
	"testing"
	"time"
)

// good is a database as production needs it.
func good() facts {
	return facts{
		settings: map[string]string{
			"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on",
			"synchronous_standby_names": "ANY 1 (*)",
			"archive_mode":              "on", "max_connections": "100", "superuser_reserved_connections": "3",
		},
		sync: 1, clock: time.Unix(1000, 0), models: 14, unused: 7, mayMake: true, sealing: true,
	}
}

// Each thing that production needs is a line of its own, and the only one that changes where it is missing.
func TestJudge(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(*facts) { return func(f *facts) { f.settings[name] = value } }
	for name, c := range map[string]struct {
		change func(*facts)
		check  string
		want   verdict
	}{
		"as it should be":        {func(*facts) {}, "", fine},
		"no fsync":               {set("fsync", "off"), "fsync", failure},
		"torn pages":             {set("full_page_writes", "off"), "full_page_writes", failure},
		"commits do not wait":    {set("synchronous_commit", "off"), "synchronous_commit", failure},
		"commits wait locally":   {set("synchronous_commit", "local"), "synchronous_commit", failure},
		"the standby's memory":   {set("synchronous_commit", "remote_write"), "synchronous_commit", warning},
		"a setting is not shown": {set("fsync", ""), "fsync", failure},
		"no standby is named":    {set("synchronous_standby_names", ""), "synchronous standby", failure},
		"no standby is there":    {func(f *facts) { f.sync = 0 }, "synchronous standby", warning},
		"no archive":             {set("archive_mode", "off"), "archiving", warning},
		"too few connections":    {set("max_connections", "50"), "max_connections", failure},
		"another clock":          {func(f *facts) { f.clock = f.clock.Add(time.Minute) }, "clock", warning},
		"a mighty role":          {func(f *facts) { f.super = []string{"chandler_gateway"} }, "roles", failure},
		"effects are stopped":    {func(f *facts) { f.stopped = 1 }, "effects", failure},
		"something is parked":    {func(f *facts) { f.parked = 3 }, "parked events", warning},
		"no new read models":     {func(f *facts) { f.mayMake = false }, "read models", failure},
		"bodies in the clear":    {func(f *facts) { f.clear = 2 }, "bodies at rest", warning},
		"nothing can be sealed":  {func(f *facts) { f.clear, f.sealing = 2, false }, "bodies at rest", warning},
		"nothing to seal":        {func(f *facts) { f.sealing = false }, "", fine},
		"a fail-over last week":  {func(f *facts) { f.incidents = 1 }, "incidents", warning},
	} {
		f := good()
		c.change(&f)
		for _, got := range judge(f, time.Unix(1000, 0)) {
			want := fine
			if got.check == c.check {
				want = c.want
			}
			if got.verdict != want || (got.verdict != fine && got.todo == "") {
				t.Errorf("%s: %s is %s (%s: %s), want %s", name, got.check, got.verdict, got.is, got.todo, want)
			}
		}
	}
}
