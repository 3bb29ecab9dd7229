package pglocal

import "syscall"

const (
	// memoryDir is where Linux has a file system in memory.
	memoryDir = "/dev/shm"
	// memoryFree is what has to be free there for the shared instance: the tests of all packages at once leave at most
	// 1 GB of databases, and its write-ahead log may grow to 1 GB.
	memoryFree = 4 << 30
	tmpfs      = 0x01021994 // TMPFS_MAGIC
)

// memory is a directory in memory for what does not outlive the machine, or "" where there is none with enough room. A
// database is hundreds of files, and making them on disk takes ten times the processor time even without fsync.
func memory() string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(memoryDir, &s); err != nil || s.Type != tmpfs || int64(s.Bavail)*s.Bsize < memoryFree {
		return ""
	}
	return memoryDir
}
