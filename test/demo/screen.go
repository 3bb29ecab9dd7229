package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// quietBound is how long a person should look at a screen on which nothing moves.
	quietBound = 3 * time.Second
	// loggedEvery is how often progress is told where lines cannot be written over: in a file, in a pipe.
	loggedEvery = 15 * time.Second
	// screenWidth is how much of a line of progress is shown: it is written over, which a wrapped line cannot be.
	screenWidth = 79
)

// screen is where the demo writes. On a terminal, progress is one line that is written over again and again; elsewhere
// it is a line now and then, and nothing but text is written.
type screen struct {
	out      io.Writer
	terminal bool // lines can be written over
	styled   bool // letters may be bold
	now      func() time.Time

	mu     sync.Mutex
	shown  bool      // a line of progress stands there
	logged time.Time // when progress was last told where it cannot be written over
}

// newScreen looks at what the output is: a terminal has control codes unless it says that it is dumb, and colours
// unless NO_COLOR is set (https://no-color.org).
func newScreen(out *os.File, env func(string) string) *screen {
	terminal := isDevice(out) && env("TERM") != "dumb" && env("TERM") != ""
	return &screen{out: out, terminal: terminal, styled: terminal && env("NO_COLOR") == "", now: time.Now}
}

// isDevice tells whether somebody may sit behind a file. Nobody does behind the null device.
func isDevice(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// line writes one line for good.
func (s *screen) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	s.write(text + "\n")
}

// progress tells how far something is.
func (s *screen) progress(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text = "   … " + text
	if !s.terminal {
		if now := s.now(); now.Sub(s.logged) >= loggedEvery {
			s.logged = now
			s.write(text + "\n")
		}
		return
	}
	if runes := []rune(text); len(runes) > screenWidth {
		text = string(runes[:screenWidth-1]) + "…"
	}
	s.wipe()
	s.write(text)
	s.shown = true
}

// end leaves no progress behind.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
}

// wipe takes away the line of progress.
func (s *screen) wipe() {
	if s.shown {
		s.write("\r\033[K")
		s.shown = false
	}
}

// write ignores a terminal that is gone: the exit status still tells.
func (s *screen) write(text string) { _, _ = io.WriteString(s.out, text) }

// bold and dim are for what is not output of a command.
func (s *screen) bold(text string) string { return s.style("1", text) }
func (s *screen) dim(text string) string  { return s.style("2", text) }

func (s *screen) style(code, text string) string {
	if !s.styled {
		return text
	}
	return fmt.Sprintf("\033[%sm%s\033[0m", code, text)
}

// since is a time as people say it: 1m20s.
func since(begin, now time.Time) string {
	d := now.Sub(begin)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
