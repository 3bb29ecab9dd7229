package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/nats-io/nats.go/jetstream"
)

// Small disks: room for what is there and some work, and filled in a moment.
const (
	diskOfPostgres = 384 << 20
	diskOfNATS     = 128 << 20
)

// smallDisk puts what is in a directory on a small file system of its own, in the same place, until the test ends. It
// belongs to a part that stop ends and start brings back.
func (w *world) smallDisk(dir string, size int, stop func() error, start func(context.Context) error) {
	w.t.Helper()
	aside := dir + ".aside"
	info, err := os.Stat(dir)
	w.must(err)
	owner := info.Sys().(*syscall.Stat_t)
	w.must(stop())
	w.must(os.Rename(dir, aside))
	w.must(os.Mkdir(dir, info.Mode().Perm()))
	options := fmt.Sprintf("size=%d,mode=%o,uid=%d,gid=%d", size, info.Mode().Perm(), owner.Uid, owner.Gid)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		w.must(os.Remove(dir))
		w.must(os.Rename(aside, dir))
		w.must(start(w.ctx))
		w.t.Skipf("a disk is filled on a small file system, and this user may mount none: %v; root may", err)
	}
	w.t.Cleanup(func() { // the disk goes, what is on it stays
		w.must(stop())
		w.must(os.RemoveAll(aside))
		w.copied(dir, aside)
		w.must(syscall.Unmount(dir, 0))
		w.must(os.Remove(dir))
		w.must(os.Rename(aside, dir))
		w.must(start(w.ctx))
		w.readyAgain()
	})
	w.copied(aside+"/.", dir)
	w.must(start(w.ctx))
	w.readyAgain()
}

// filled leaves no byte on the disk of a directory, and returns what makes room again.
func (w *world) filled(dir string) (room func()) {
	w.t.Helper()
	file := filepath.Join(dir, "filled-by-a-test")
	f, err := os.Create(file)
	w.must(err)
	for block := make([]byte, 1<<16); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		w.t.Errorf("filling the disk ends with %v", err)
	}
	w.must(f.Close())
	return func() { w.must(os.Remove(file)) }
}

// copied copies a directory with its owners and modes.
func (w *world) copied(from, to string) {
	w.t.Helper()
	if out, err := exec.CommandContext(w.ctx, "cp", "-a", from, to).CombinedOutput(); err != nil {
		w.t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}

// smallPostgres gives the record a small disk.
func (w *world) smallPostgres() {
	w.t.Helper()
	w.smallDisk(w.Postgres().DataDir(), diskOfPostgres, func() error { return w.Postgres().Stop() }, w.StartPostgres)
}

// fullDisk fills the disk of the record. PostgreSQL refuses what needs room, and ends itself where it cannot write its
// log; who operates it makes room and starts it.
func (w *world) fullDisk() {
	w.t.Helper()
	room := w.filled(w.Postgres().DataDir())
	_, err := w.record.Exec(w.ctx, `create table too_large as select repeat('x', 1000) from generate_series(1, 50000)`)
	if p, ok := errors.AsType[*pgconn.PgError](err); !ok || p.Code != "53100" {
		w.t.Errorf("a table on a full disk: %v", err)
	}
	w.during(15 * time.Second)
	for err = nil; err == nil; { // until there is no room for its log
		_, err = w.record.Exec(w.ctx, `select pg_logical_emit_message(true, 'full', 'x'), pg_switch_wal()`)
	}
	w.t.Logf("without room for its log PostgreSQL says: %v", err)
	w.during(15 * time.Second)
	room()
	if !w.postgresAnswers() {
		w.t.Log("PostgreSQL has ended itself, and is started")
		w.must(w.StartPostgres(w.ctx))
	}
}

func (w *world) postgresAnswers() bool {
	conn, err := pgx.Connect(w.ctx, w.Postgres().AdminURL())
	if err != nil {
		return false
	}
	return conn.Close(w.ctx) == nil
}

// natsStore is where nats-server keeps its streams.
func (w *world) natsStore() string {
	return filepath.Join(filepath.Dir(filepath.Dir(w.Log("nats-server"))), "nats")
}

// smallNATS gives the bus a small disk.
func (w *world) smallNATS() {
	w.t.Helper()
	w.smallDisk(w.natsStore(), diskOfNATS, func() error { w.Kill("nats-server"); return nil }, w.StartNATS)
}

// fullStore fills the disk of the bus. nats-server takes JetStream out of service when it cannot write, until it is
// started again; who operates it makes room and does so.
func (w *world) fullStore() {
	w.t.Helper()
	room := w.filled(w.natsStore())
	w.wanted("no-room")
	w.unready("installer", "acknowledges nothing")
	w.during(30 * time.Second)
	room()
	w.Kill("nats-server")
	w.must(w.StartNATS(w.ctx))
	w.succeeded("no-room", "lighthouse.v1.2.0")
}

// crowdedStore has somebody else's stream take all that the store may hold, without filling the disk: the server
// refuses what is published to any stream until that one is gone. It is not started again.
func (w *world) crowdedStore() {
	w.t.Helper()
	b := w.bus()
	const name = "SOMEBODY-ELSE"
	_, err := b.js.CreateStream(w.ctx, jetstream.StreamConfig{Name: name, Subjects: []string{"somebody.else"}})
	w.must(err)
	for size := 1 << 19; size > 0; size /= 8 { // until not even the smallest message has room
		for err = nil; err == nil; {
			_, err = b.js.Publish(w.ctx, "somebody.else", make([]byte, size))
		}
		if _, full := errors.AsType[*jetstream.APIError](err); !full {
			w.t.Fatalf("the store is not full: %v", err)
		}
	}
	w.wanted("crowded-out")
	w.unready("installer", "refuses messages: insufficient resources")
	w.during(30 * time.Second)
	w.must(b.js.DeleteStream(w.ctx, name))
	w.succeeded("crowded-out", "lighthouse.v1.2.0")
}

// wanted wants something that needs NATS.
func (w *world) wanted(namespace string) {
	w.t.Helper()
	w.addedBefore("wanted")
	w.group(namespace)
	w.subscribe(namespace, subscription{Name: "light", Package: "lighthouse", Catalog: "wanted"})
}

// readiness is what a service says of itself.
func (w *world) readiness(service string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, "http://"+w.OpsAddress(service)+"/readyz",
		http.NoBody)
	w.must(err)
	answer, err := http.DefaultClient.Do(req)
	w.must(err)
	defer answer.Body.Close() //nolint:errcheck // read whole
	body, err := io.ReadAll(answer.Body)
	w.must(err)
	return answer.Status + " " + string(body)
}

// unready waits until a service says why it is not ready.
func (w *world) unready(service, why string) {
	w.t.Helper()
	w.eventually(service+" says "+why, func() (string, bool) {
		said := w.readiness(service)
		return said, strings.Contains(said, why)
	})
}

// TestFaultsOfDisks fills the disks of the record and of the bus while portals write. DESIGN D1, D4.
func TestFaultsOfDisks(t *testing.T) {
	t.Parallel()
	w := newDurableWorld(t)
	w.tried([]fault{
		{name: "the disk of PostgreSQL is full", before: (*world).smallPostgres, do: (*world).fullDisk},
		{name: "the store of NATS is full", before: (*world).smallNATS, do: (*world).crowdedStore},
		{name: "the disk of NATS is full", before: (*world).smallNATS, do: (*world).fullStore},
	})
}
