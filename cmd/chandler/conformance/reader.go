package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/services/resolver/conformance"
)

// maxUnpacked bounds a catalog file, unpacked: the resolution's part of the largest published catalogs has some 10 MB.
const maxUnpacked = 1 << 30

// Reader reads cases, and the catalogs that they name, each catalog once. It is safe for concurrent use.
type Reader struct {
	mu       sync.Mutex
	catalogs map[string]*catalogFile // by absolute path
}

type catalogFile struct {
	once    sync.Once
	content *conformance.Content
	err     error
}

// NewReader returns a reader.
func NewReader() *Reader { return &Reader{catalogs: map[string]*catalogFile{}} }

// ReadCase reads a case from a file. Its errors name the file and what is wrong in it.
func ReadCase(file string) (conformance.Case, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return conformance.Case{}, plain(file, err)
	}
	c, err := conformance.Decode(raw)
	if err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// Load returns how the catalogs of a case are loaded that stands in dir: a file is looked for there, and in each
// directory above, since sets share the folder of their catalogs.
func (r *Reader) Load(dir string) conformance.Load {
	return func(k conformance.Catalog) (*conformance.Content, error) {
		if k.File == "" {
			content, err := conformance.NewContent(k.Inline)
			if err != nil {
				return nil, fmt.Errorf("catalog %s/%s: %w", k.Namespace, k.Name, err)
			}
			return content, nil
		}
		path, err := find(dir, k.File)
		if err != nil {
			return nil, fmt.Errorf("catalog %s/%s: %w", k.Namespace, k.Name, err)
		}
		f := r.file(path)
		f.once.Do(func() { f.content, f.err = readCatalog(path) })
		return f.content, f.err
	}
}

func (r *Reader) file(path string) *catalogFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.catalogs[path] == nil {
		r.catalogs[path] = &catalogFile{}
	}
	return r.catalogs[path]
}

func find(dir, file string) (string, error) {
	if filepath.IsAbs(file) {
		return file, nil
	}
	at, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for {
		path := filepath.Join(at, filepath.FromSlash(file))
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
			return path, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("file %s is neither in %s nor in a directory above", file, dir)
		}
		at = up
	}
}

// readCatalog reads the documents of a catalog, JSON values one after the other, packed with gzip or not.
func readCatalog(path string) (*conformance.Content, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, plain(path, err)
	}
	documents, err := readDocuments(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	content, err := conformance.NewContent(documents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

func readDocuments(f io.Reader) ([]json.RawMessage, error) {
	buffered := bufio.NewReader(f)
	var in io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		in = z
	}
	limited := &io.LimitedReader{R: in, N: maxUnpacked}
	var out []json.RawMessage
	for d := json.NewDecoder(limited); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		switch {
		case limited.N <= 0:
			return nil, fmt.Errorf("the catalog has more than %d bytes", maxUnpacked)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("document %d of the catalog: %w", len(out)+1, err)
		}
		out = append(out, raw)
	}
}

// FindCases returns the files of all cases below a directory, or the one file that is named, in order.
func FindCases(dir string) ([]string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, plain(dir, err)
	}
	var out []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Type().IsRegular() && strings.HasSuffix(d.Name(), ".json") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, filepath.Join(dir, rel))
		}
		return nil
	})
	slices.Sort(out)
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: there is no case in it; a case is a file *.json", dir)
	}
	return out, err
}

// plain says a failure of the file system without the name of the system call.
func plain(path string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%s: %w", path, e.Err)
	}
	return err
}
