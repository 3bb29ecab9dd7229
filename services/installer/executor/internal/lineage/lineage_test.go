package lineage_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/lineage"
)

// R-CSV §6.6: who follows whom decides which operator is replaced, and which two may not own one API.
func TestLine(t *testing.T) {
	t.Parallel()
	first, later := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	line := lineage.Line{
		{Name: "etcd.v1", Created: first},
		{Name: "etcd.v2", Replaces: "etcd.v1", Created: later},
		{Name: "etcd.v3", Replaces: "etcd.v2", Created: later},
		{Name: "other.v1", Replaces: "other.v0", Created: first},
	}
	assert.Equal(t, "etcd.v1", line.Predecessor("etcd.v2"))
	assert.Equal(t, "etcd.v3", line.Successor("etcd.v2"))
	assert.Empty(t, line.Predecessor("etcd.v1"))
	assert.Empty(t, line.Successor("etcd.v3"))
	assert.Empty(t, line.Predecessor("other.v1"), "what it followed is gone")
	assert.Equal(t, "other.v1", line.Successor("other.v0"), "also of one that is gone")
	assert.Empty(t, line.Successor(""), "whoever follows nobody is nobody's successor")

	assert.True(t, line.Related("etcd.v1", "etcd.v3"), "through another")
	assert.True(t, line.Related("etcd.v3", "etcd.v1"))
	assert.False(t, line.Related("etcd.v1", "other.v1"))
	assert.True(t, line.Apart("etcd.v1", "other.v1"))
	assert.False(t, line.Apart("etcd.v1", "etcd.v3"))
	assert.False(t, line.Apart("etcd.v1", "gone.v1"), "a name that is gone is nobody's")

	assert.True(t, line.CameFirst("etcd.v1", "other.v1"), "in the same second the names decide")
	assert.False(t, line.CameFirst("other.v1", "etcd.v1"))
	assert.True(t, line.CameFirst("other.v1", "etcd.v2"))
	assert.False(t, line.CameFirst("etcd.v1", "etcd.v2"), "one chain")
}

// A rollback brings back a version that the one which it leaves names as its predecessor: each names the other.
func TestLineAfterRollback(t *testing.T) {
	t.Parallel()
	line := lineage.Line{{Name: "etcd.v1", Replaces: "etcd.v2", Back: true}, {Name: "etcd.v2", Replaces: "etcd.v1"}}
	assert.Equal(t, "etcd.v2", line.Predecessor("etcd.v1"))
	assert.Empty(t, line.Predecessor("etcd.v2"))
	assert.Equal(t, "etcd.v1", line.Successor("etcd.v2"))
	assert.Empty(t, line.Successor("etcd.v1"))
	assert.True(t, line.RolledBack("etcd.v2"))
	assert.False(t, line.RolledBack("etcd.v1"))
	assert.True(t, line.Related("etcd.v1", "etcd.v2"))
}

// Names are written by people, too: a ring ends, and is not one with a third.
func TestLineRing(t *testing.T) {
	t.Parallel()
	line := lineage.Line{{Name: "a", Replaces: "b"}, {Name: "b", Replaces: "a"}, {Name: "c"}}
	assert.False(t, line.Related("a", "c"))
	assert.True(t, line.Related("a", "b"))
}
