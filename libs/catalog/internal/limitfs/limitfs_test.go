package limitfs

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestFS proves that all files together are read up to the limit and no further, and that everything else is
// as the file system has it (DESIGN D10).
func TestFS(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"d/a": {Data: []byte("1234")}, "d/b": {Data: []byte("5678")}}
	for _, c := range []struct {
		limit int64
		spent bool
	}{{8, false}, {7, true}, {4, true}, {100, false}} {
		m := New(files, c.limit, nil)
		_, errA := fs.ReadFile(m, "d/a")
		_, errB := fs.ReadFile(m, "d/b")
		if errA != nil || (errB != nil) != c.spent || m.Spent() != c.spent || m.Stopped() {
			t.Errorf("%d: %v, %v, spent %v", c.limit, errA, errB, m.Spent())
		}
		if _, err := m.Open("d/a"); (err != nil) != c.spent || c.spent && !strings.Contains(err.Error(), "more than") {
			t.Errorf("%d: open again: %v", c.limit, err)
		}
	}
	if err := fstest.TestFS(New(files, 1<<20, nil), "d/a", "d/b"); err != nil {
		t.Error(err)
	}
}

// TestStop proves that a file that is half read is read no further.
func TestStop(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	m := New(fstest.MapFS{"a": {Data: []byte("1234")}}, 1<<20, stop)
	f, err := m.Open("a")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Read(make([]byte, 2)); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	close(stop)
	if _, err := io.ReadAll(f); !errors.Is(err, ErrStopped) || !m.Stopped() {
		t.Errorf("read on: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	_, err1 := m.Open("a")
	_, err2 := m.ReadDir(".")
	if !errors.Is(err1, ErrStopped) || !errors.Is(err2, ErrStopped) {
		t.Error(err1, err2)
	}
}
