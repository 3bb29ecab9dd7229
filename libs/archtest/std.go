package archtest

// impureStd is what pure packages must not import.
func impureStd() []string {
	return []string{
		"net", "net/http", "net/rpc", "net/smtp", "os", "os/exec", "os/signal", "database/sql", "math/rand",
		"math/rand/v2", "crypto/rand", "syscall", "log", "log/slog", "plugin", "testing", "embed", "unsafe",
	}
}
