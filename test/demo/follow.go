package main

import (
	"io"
	"os"
	"strings"
)

// follower reads the lines that are added to a file, and knows the last one.
type follower struct {
	path string
	read int64
	rest string
	last string
}

func (f *follower) look() {
	file, err := os.Open(f.path)
	if err != nil {
		return // not there yet
	}
	defer file.Close() //nolint:errcheck // only read
	if _, err := file.Seek(f.read, io.SeekStart); err != nil {
		return
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return
	}
	f.read += int64(len(added))
	lines := strings.Split(f.rest+string(added), "\n")
	f.rest = lines[len(lines)-1]
	if whole := lines[:len(lines)-1]; len(whole) > 0 {
		f.last = whole[len(whole)-1]
	}
}
