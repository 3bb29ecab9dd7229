package git

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/archive"
)

// FuzzPack proves that no pack makes the reader panic or pass a limit, and that nothing is left of it.
func FuzzPack(f *testing.F) {
	pack, commit := honestPack(f)
	f.Add(pack)
	f.Add(pack[:len(pack)/2])
	f.Add([]byte("PACK\x00\x00\x00\x02\xff\xff\xff\xff"))
	limits := archive.Limits{
		Entries: 50, EntryBytes: 64 << 10, Bytes: 256 << 10, Compressed: 64 << 10, Depth: 5,
		Ratio: 50, RatioFree: 1 << 20,
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s := Source{Temp: t.TempDir(), Limits: limits}
		objects, done, err := s.store(t.Context(), bytes.NewReader(b))
		if err == nil {
			var tree *archive.Target
			tree, _, err = s.checkout(t.Context(), objects, pointer{want: commit, commit: commit})
			if tree != nil {
				if cerr := tree.Close(); cerr != nil {
					t.Error(cerr)
				}
			}
			if derr := done(); derr != nil {
				t.Error(derr)
			}
		}
		switch errs.KindOf(err) {
		case "", errs.Invalid, errs.TooLarge, errs.NotFound:
		default:
			t.Errorf("kind %s: %v", errs.KindOf(err), err)
		}
		if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// honestPack is a commit with a file, and one that is stored as a difference to it.
func honestPack(f *testing.F) ([]byte, plumbing.Hash) {
	f.Helper()
	st := memory.NewStorage()
	put := func(encode func(plumbing.EncodedObject) error) plumbing.Hash {
		o := st.NewEncodedObject()
		if err := encode(o); err != nil {
			f.Fatal(err)
		}
		h, err := st.SetEncodedObject(o)
		if err != nil {
			f.Fatal(err)
		}
		return h
	}
	blob := func(text []byte) plumbing.Hash {
		return put(func(o plumbing.EncodedObject) error {
			o.SetType(plumbing.BlobObject)
			w, err := o.Writer()
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		})
	}
	text := bytes.Repeat([]byte("schema: olm.package\n"), 50)
	one, two := blob(text), blob(append(text, 'x'))
	tree := put((&object.Tree{Entries: []object.TreeEntry{
		{Name: "a", Mode: filemode.Regular, Hash: one},
		{Name: "b", Mode: filemode.Regular, Hash: two},
	}}).Encode)
	who := object.Signature{Name: "x", Email: "x@dock.test", When: time.Unix(1, 0)}
	commit := put((&object.Commit{TreeHash: tree, Author: who, Committer: who}).Encode)
	var b bytes.Buffer
	if _, err := packfile.NewEncoder(&b, st, false).Encode([]plumbing.Hash{one, two, tree, commit}, 10); err != nil {
		f.Fatal(err)
	}
	return b.Bytes(), commit
}
