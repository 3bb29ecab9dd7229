package docs

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// BenchmarkReaders compares the readers of one document with each other and with the usual libraries, in one
// thread, over a real catalog: as it is published, in YAML, and the same in JSON.
func BenchmarkReaders(b *testing.B) {
	var texts, asJSON [][]byte
	dir := catalogtest.Unpack(b, catalogtest.CertifiedFBC420, nil)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		err = Split(f, usual, func(c Chunk) error {
			v, perr := new(Parser).Parse(c, usual)
			if perr != nil {
				return perr
			}
			texts, asJSON = append(texts, c.Text()), append(asJSON, v.JSON())
			return nil
		})
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	var builder jsontree.Builder
	var block blockReader
	for _, c := range []struct {
		name string
		in   [][]byte
		read func([]byte) bool
	}{
		{"yaml-block", texts, func(t []byte) bool { return block.read(t, &builder) }},
		{"yaml-library", texts, func(t []byte) bool { return readYAML(t, &builder, usual) == nil }},
		{"yaml-sigs", texts, func(t []byte) bool { var v any; return yaml.Unmarshal(t, &v) == nil }},
		{"json", asJSON, func(t []byte) bool { return builder.Read(t) == nil }},
		{"json-encoding", asJSON, func(t []byte) bool { var v any; return json.Unmarshal(t, &v) == nil }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var size int64
			for _, t := range c.in {
				size += int64(len(t))
			}
			b.SetBytes(size)
			for b.Loop() {
				for _, t := range c.in {
					builder.Reset(usual.tree())
					if !c.read(t) {
						b.Fatal("a document is not read")
					}
				}
			}
		})
	}
}
