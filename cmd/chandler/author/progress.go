package author

import (
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Bars are drawn by schollz/progressbar: one bar, no goroutine of its own, nothing but a terminal's width
// below it. Programs that draw many bars at once would be more than is needed here.

// terminal reports whether a person looks at w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// bar is a progress bar on a terminal, and nothing elsewhere.
type bar struct{ *progressbar.ProgressBar }

// slow is how long a command may be silent: what is faster shows no bar.
const slow = 400 * time.Millisecond

func (t *sources) bar(what string, total int64, bytes bool) bar {
	if !terminal(t.Err) || total <= 0 {
		return bar{}
	}
	return bar{progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(t.Err), progressbar.OptionSetDescription(what), progressbar.OptionShowBytes(bytes),
		progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(slow/4), progressbar.OptionSetWidth(30),
		progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true))}
}

// add moves the bar on. A terminal that cannot show it does not end the work.
func (b bar) add(n int) {
	if b.ProgressBar != nil {
		_ = b.Add(n)
	}
}

// end takes the bar away.
func (b bar) end() {
	if b.ProgressBar != nil {
		_ = b.Finish()
	}
}

// watched is the tree with a bar that moves as its files are read; done takes the bar away.
func (t *sources) watched(r *tree) (fsys fs.FS, done func()) {
	if !terminal(t.Err) {
		return r.fs, func() {}
	}
	var total int64
	// What cannot be listed is told by whoever reads the tree: the bar is then only less exact.
	_ = fs.WalkDir(r.fs, ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	b := t.bar("reading "+r.name, total, true)
	return watchedFS{r.fs, b}, b.end
}

type watchedFS struct {
	fs.FS

	bar bar
}

// Open opens a file whose reading moves the bar.
func (w watchedFS) Open(name string) (fs.File, error) {
	f, err := w.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return f, nil
	}
	return watchedFile{f, w.bar}, nil
}

type watchedFile struct {
	fs.File

	bar bar
}

// Read reads, and moves the bar.
func (w watchedFile) Read(p []byte) (int, error) {
	n, err := w.File.Read(p)
	w.bar.add(n)
	return n, err
}
