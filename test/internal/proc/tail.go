package proc

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	tailBytes = 16 << 10
	tailLines = 15
)

// Tail returns the last lines of a log, indented, with a heading that names the file.
func Tail(path string) string {
	data, err := lastBytes(path, tailBytes)
	if err != nil {
		return fmt.Sprintf("its log cannot be read: %v", err)
	}
	lines := strings.Split(string(bytes.TrimSpace(data)), "\n")
	if len(lines) > tailLines {
		lines = lines[len(lines)-tailLines:]
	}
	return fmt.Sprintf("end of %s:\n    %s", path, strings.Join(lines, "\n    "))
}

func lastBytes(path string, n int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(max(0, info.Size()-n), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(file, n))
}
