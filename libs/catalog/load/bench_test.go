package load_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// What opm needed to validate the two file-based catalogs, on a machine whose yardstick was this.
const opmYardstick = 0.89 // seconds for sha256 over 1 GiB in one thread

var opmValidate = map[string]struct{ seconds, megabytes float64 }{
	catalogtest.CertifiedFBC414: {5.1, 350},
	catalogtest.CertifiedFBC420: {1.45, 150},
}

// yardstick measures this machine, in this moment, in the same way.
func yardstick() float64 {
	const rounds, size = 256, 4 << 20
	block := make([]byte, size)
	h := sha256.New()
	began := time.Now()
	for range rounds {
		h.Write(block)
	}
	h.Sum(nil)
	return time.Since(began).Seconds()
}

func drop(load.Content) error { return nil }

func mustLoad(b *testing.B, dir string, o load.Options) *load.Catalog {
	b.Helper()
	c, err := load.Load(os.DirFS(dir), o)
	if err != nil || len(c.Packages) < 40 {
		b.Fatalf("%v, %d packages", err, len(c.Packages))
	}
	return c
}

// BenchmarkValidate loads the file-based catalogs without keeping content, as `catalog validate` does, and
// reports how many times faster than opm that is and how much of its memory it takes (at least 4, at most 0.5).
func BenchmarkValidate(b *testing.B) {
	for name, opm := range opmValidate {
		b.Run(name, func(b *testing.B) {
			dir := catalogtest.Unpack(b, name, nil)
			var own, stick float64
			for b.Loop() {
				before := yardstick()
				began := time.Now()
				mustLoad(b, dir, load.Options{})
				own += time.Since(began).Seconds()
				stick += (before + yardstick()) / 2
			}
			b.ReportMetric(opm.seconds*stick/opmYardstick/own, "opm-ratio")
			b.ReportMetric(peak(b, dir, false)/opm.megabytes, "opm-memory")
			b.ReportMetric(peak(b, dir, false), "peak-MB")
			b.ReportMetric(own/float64(b.N), "load-s/op")
		})
	}
}

// BenchmarkIndex loads the same catalogs as an index does, content included, and reports the time as a ratio
// to parsing their documents once on all processors (at most 1.2).
func BenchmarkIndex(b *testing.B) {
	for name := range opmValidate {
		b.Run(name, func(b *testing.B) {
			compareWithParsing(b, catalogtest.Unpack(b, name, nil))
		})
	}
}

// BenchmarkBundleDirectories loads 1,171 real bundle directories, content included, and reports the time as a
// ratio to parsing every distinct file of them once on all processors (DESIGN §7: at most 1.0), and the peak
// of memory (at most 300 MB).
func BenchmarkBundleDirectories(b *testing.B) {
	dir := catalogtest.Unpack(b, catalogtest.CertifiedBundles420, nil)
	compareWithParsing(b, dir)
	b.ReportMetric(peak(b, dir, true), "peak-MB")
}

func compareWithParsing(b *testing.B, dir string) {
	b.Helper()
	var base, own time.Duration
	for b.Loop() {
		began := time.Now()
		parseDistinct(b, dir)
		base += time.Since(began)
		began = time.Now()
		mustLoad(b, dir, load.Options{Keep: drop})
		own += time.Since(began)
	}
	b.ReportMetric(float64(own)/float64(base), "ratio")
	b.ReportMetric(base.Seconds()/float64(b.N), "parse-s/op")
	b.ReportMetric(own.Seconds()/float64(b.N), "load-s/op")
}

// parseDistinct is what loads are compared with: every distinct YAML file, document by document.
func parseDistinct(b *testing.B, dir string) {
	b.Helper()
	files := make(chan string, 64)
	var mu sync.Mutex
	seen := map[[32]byte]bool{}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for f := range files {
				data, err := os.ReadFile(f)
				if err != nil {
					b.Error(err)
					continue
				}
				sum := sha256.Sum256(data)
				mu.Lock()
				twice := seen[sum]
				seen[sum] = true
				mu.Unlock()
				if twice {
					continue
				}
				for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
					var v any
					if yaml.Unmarshal(doc, &v) != nil {
						continue // some are sick, as in life
					}
				}
			}
		})
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml")) {
			files <- path
		}
		return err
	})
	close(files)
	wg.Wait()
	if err != nil {
		b.Fatal(err)
	}
}

// The variables that make a process of this test binary measure one load.
const (
	envPeakDir  = "CHANDLER_TEST_PEAK_DIR"
	envPeakKeep = "CHANDLER_TEST_PEAK_KEEP"
)

// peak returns the largest size in megabytes of a process that loads a directory.
func peak(b *testing.B, dir string, keep bool) float64 {
	b.Helper()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		return 0 // not Linux
	}
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run", "^TestPeak$", "-test.v")
	cmd.Env = append(os.Environ(), envPeakDir+"="+dir, envPeakKeep+"="+strconv.FormatBool(keep))
	out, err := cmd.CombinedOutput()
	_, rest, found := strings.Cut(string(out), "VmHWM:")
	fields := strings.Fields(rest)
	if err != nil || !found || len(fields) == 0 {
		b.Fatalf("%v: %s", err, out)
	}
	kb, err := strconv.ParseFloat(fields[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}

// TestPeak is the process that peak starts.
func TestPeak(t *testing.T) {
	dir := os.Getenv(envPeakDir)
	if dir == "" {
		t.Skip("it is run by the benchmarks, in a process of its own")
	}
	o := load.Options{}
	if os.Getenv(envPeakKeep) == "true" {
		o.Keep = drop
	}
	if _, err := load.Load(os.DirFS(dir), o); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", status)
}

// BenchmarkReload loads a catalog of 300 packages of which one has changed, with a memory of the last load.
func BenchmarkReload(b *testing.B) {
	dir := b.TempDir()
	const packages = 300
	texts := packageTexts(b)
	for i := range packages {
		name := fmt.Sprintf("package-%d", i)
		text := strings.ReplaceAll(texts[i%len(texts)].text, texts[i%len(texts)].name, name)
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	n := &notebook{values: map[digest.Digest][]byte{}}
	load := func() map[string]digest.Digest {
		return mustLoad(b, dir, load.Options{Keep: drop, Memory: n}).Digests()
	}
	began := time.Now()
	before := load()
	cold := time.Since(began)
	changed := filepath.Join(dir, "package-7.yaml")
	for b.Loop() {
		text, err := os.ReadFile(changed)
		if err == nil {
			err = os.WriteFile(changed, append(text, []byte("---\nschema: sea.test/note\npackage: package-7\nabout: "+
				strconv.Itoa(len(text))+"\n")...), 0o600)
		}
		if err != nil {
			b.Fatal(err)
		}
		after := load()
		moved := 0
		for name, d := range after {
			if before[name] != d {
				moved++
			}
		}
		if moved != 1 || len(after) != len(before) {
			b.Fatalf("%d packages moved, %d of %d are left", moved, len(after), len(before))
		}
		before = maps.Clone(after)
	}
	warm := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(cold.Seconds(), "cold-s")
	b.ReportMetric(warm, "warm-s/op")
	b.ReportMetric(warm*opmYardstick/yardstick(), "scaled-s/op") // as on the machine of opm's figures
}

type packageText struct{ name, text string }

// packageTexts returns the files of real packages, one each.
func packageTexts(b *testing.B) []packageText {
	b.Helper()
	var out []packageText
	dir := catalogtest.Unpack(b, catalogtest.CertifiedFBC420, nil)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name := filepath.Base(filepath.Dir(path))
		if err == nil && bytes.Contains(text, []byte("package: "+name+"\n")) {
			out = append(out, packageText{name, string(text)})
		}
		return err
	})
	if err != nil || len(out) < 40 {
		b.Fatalf("%v, %d packages", err, len(out))
	}
	return out
}

// BenchmarkPackageDigest is what every load does for every package at its end.
func BenchmarkPackageDigest(b *testing.B) {
	c := mustLoad(b, catalogtest.Unpack(b, catalogtest.CertifiedFBC420, nil), load.Options{})
	var n int64
	for _, p := range c.Packages {
		raw, err := json.Marshal(p)
		if err != nil {
			b.Fatal(err)
		}
		n += int64(len(raw))
	}
	b.SetBytes(n)
	for b.Loop() {
		for _, p := range c.Packages {
			if _, err := p.Digest(); err != nil {
				b.Fatal(err)
			}
		}
	}
}
