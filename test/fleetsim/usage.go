package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/test/stack"
)

// ticks is how many clock ticks of /proc make a second: USER_HZ, which is 100 on every Linux.
const ticks = 100

// usage is what the parts of a hub have used: processor seconds since they started, and bytes that they hold now.
type usage struct {
	at       time.Time
	cpu      map[string]float64
	resident map[string]int64
}

// postgres is the name of the part that is no process of the stack's own.
const postgres = "postgres"

// measure reads what the parts of the stack use. What Postgres' own processes share is counted once: of all but the
// first only what they have for themselves.
func measure(s *stack.Stack) (usage, error) {
	u := usage{at: time.Now(), cpu: map[string]float64{}, resident: map[string]int64{}}
	for name, pid := range s.Processes() {
		p, err := read(pid)
		if err != nil {
			return u, err
		}
		u.cpu[name], u.resident[name] = p.cpu, p.resident
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return u, err
	}
	first := s.Postgres().PID()
	for _, dir := range all {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		p, err := read(pid)
		switch {
		case err != nil: // it has ended meanwhile
		case pid == first:
			u.cpu[postgres] += p.cpu + p.children
			u.resident[postgres] += p.resident
		case p.parent == first:
			u.cpu[postgres] += p.cpu
			u.resident[postgres] += p.private
		}
	}
	return u, nil
}

// since is what was used in between, as a table's cells: processor seconds of all parts, and of each.
func (u usage) since(before usage) (seconds float64, parts string) {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(u.cpu)) {
		used := u.cpu[name] - before.cpu[name]
		if used < 0 { // it was started in between
			used = u.cpu[name]
		}
		seconds += used
		fmt.Fprintf(&b, "%s %.1f  ", name, used)
	}
	return seconds, b.String()
}

// memory is what all parts hold, and each of them.
func (u usage) memory() (total int64, parts string) {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(u.resident)) {
		total += u.resident[name]
		fmt.Fprintf(&b, "%s %d  ", name, u.resident[name]>>20)
	}
	return total, b.String()
}

type process struct {
	parent            int
	cpu, children     float64
	resident, private int64 // bytes
}

// Fields of /proc/<pid>/stat, counted from 0 behind the command name (proc(5)).
const (
	fieldParent   = 1
	fieldUser     = 11
	fieldChildren = 13
)

func read(pid int) (p process, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return p, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	number := func(field int) float64 {
		n, _ := strconv.ParseFloat(string(fields[field]), 64) // the kernel writes numbers
		return n
	}
	p.parent = int(number(fieldParent))
	p.cpu = (number(fieldUser) + number(fieldUser+1)) / ticks
	p.children = (number(fieldChildren) + number(fieldChildren+1)) / ticks
	// statm: size, resident, shared, in pages
	data, err = os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return p, err
	}
	var size, resident, shared int64
	if _, err := fmt.Sscan(string(data), &size, &resident, &shared); err != nil {
		return p, err
	}
	page := int64(os.Getpagesize())
	p.resident, p.private = resident*page, (resident-shared)*page
	return p, nil
}
