package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Fields of /proc/<pid>/stat, counted from 0 behind the command name: the name is in parentheses and may hold blanks.
const (
	fieldState = 0  // field 3 of proc(5)
	fieldStart = 19 // field 22 of proc(5)
)

// stat reads when a process started and whether it has ended without being waited for.
func stat(pid int) (start uint64, zombie bool, err error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) <= fieldStart {
		return 0, false, fmt.Errorf("%s has only %d fields", path, len(fields))
	}
	start, err = strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	if err != nil {
		return 0, false, fmt.Errorf("%s: start time: %w", path, err)
	}
	state := fields[fieldState][0]
	return start, state == 'Z' || state == 'X', nil
}
