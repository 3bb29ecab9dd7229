package eventlog

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/chandler-fleet/chandler/libs/events"
)

// BenchmarkDecode is what a reader pays for each event beside reading its row.
func BenchmarkDecode(b *testing.B) {
	s := events.StreamID{
		Kind: events.KindCluster, Key: events.Key("default", events.KindCluster, "east"),
		Incarnation: 1,
	}
	m := events.Meta{
		Tenant: "default", Source: events.Gateway, Command: uuid.New(), Correlation: uuid.NewString(),
		TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Actor: "user-1", Time: time.Now(),
	}
	e, err := events.Seal(m, s, "east", 1, 0, events.ClusterRegistered{
		Name: "east", Credential: "c1:00",
		Labels: map[string]string{"region": "north"},
	})
	if err != nil {
		b.Fatal(err)
	}
	body, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	w := row{
		tenant: "default", kind: string(s.Kind), key: pgtype.UUID{Bytes: s.Key, Valid: true}, incarnation: 1,
		version: 1, typ: string(e.Type), body: body, hash: make([]byte, 32),
	}
	b.ReportAllocs()
	for b.Loop() {
		r := w.event()
		if err == nil {
			err = r.decode()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
