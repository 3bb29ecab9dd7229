// Package catalogtest gives tests the real catalogs that the requirements were taken from.
package catalogtest

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// The archives, by name without their ending.
const (
	// CertifiedFBC414 is a file-based catalog with all manifests inline: 40 packages, 369 bundles.
	CertifiedFBC414 = "certified-v4.14.fbc"
	// CertifiedFBC420 is one with olm.csv.metadata and no manifests: 59 packages, 676 bundles.
	CertifiedFBC420 = "certified-v4.20.fbc"
	// CertifiedBundles420 are the bundle directories of the same packages: 1,171 bundles, 570 MB.
	CertifiedBundles420 = "certified-v4.20.bundles"
	// InstallSet are head and predecessor of 50 operators as bundle directories.
	InstallSet = "install-set"
	// Okderators is another publisher's catalog, several files a package.
	Okderators = "okderators.fbc"
)

// Unpack unpacks an archive into a temporary directory of the test and returns it. keep, where given,
// chooses files by their path inside the archive. Where the archives are missing the test is skipped,
// with CI=true it fails: CHANDLER_TESTDATA names their directory, by default ../shared/data or
// ../shared beside the repository.
func Unpack(tb testing.TB, archive string, keep func(path string) bool) string {
	tb.Helper()
	file := find(tb, archive+".tar.zst")
	dir := tb.TempDir()
	f, err := os.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	}()
	const window = 1 << 27 // the archives are packed with --long=27
	z, err := zstd.NewReader(f, zstd.WithDecoderMaxWindow(window))
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	if err := untar(tar.NewReader(z), dir, keep); err != nil {
		tb.Fatalf("unpack %s: %v", archive, err)
	}
	return dir
}

// Conformance returns the directory of the cases of resolution whose outcome OLM told. Where it is missing the
// test is skipped, with CI=true it fails, as with Unpack.
func Conformance(tb testing.TB) string {
	tb.Helper()
	return find(tb, "conformance")
}

func find(tb testing.TB, name string) string {
	tb.Helper()
	for _, dir := range places() {
		file := filepath.Join(dir, name)
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	const message = "%s is not there; set CHANDLER_TESTDATA to the directory that holds it"
	if os.Getenv("CI") == "true" {
		tb.Fatalf(message, name)
	}
	tb.Skipf(message, name)
	return ""
}

// places returns where archives may lie.
func places() []string {
	if dir := os.Getenv("CHANDLER_TESTDATA"); dir != "" {
		return []string{dir, filepath.Join(dir, "data")}
	}
	root, err := os.Getwd()
	for err == nil && root != filepath.Dir(root) {
		if _, statErr := os.Stat(filepath.Join(root, "go.work")); statErr == nil {
			beside := filepath.Join(root, "..", "shared")
			return []string{filepath.Join(beside, "data"), beside}
		}
		root = filepath.Dir(root)
	}
	return nil
}

func untar(r *tar.Reader, dir string, keep func(string) bool) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(filepath.Clean("/"+h.Name), "/")
		if h.Typeflag != tar.TypeReg || keep != nil && !keep(name) {
			continue
		}
		if err := write(filepath.Join(dir, name), r); err != nil {
			return err
		}
	}
}

func write(file string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}
