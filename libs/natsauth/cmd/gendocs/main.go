// Command gendocs writes what package natsauth says: docs/nats.md and deploy/compose/nats.conf.
//
//	go run ./libs/natsauth/cmd/gendocs
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/chandler-fleet/chandler/libs/natsauth"
)

func main() {
	for path, text := range map[string]string{
		filepath.Join("docs", "nats.md"):                natsauth.Markdown(),
		filepath.Join("deploy", "compose", "nats.conf"): natsauth.ComposeConfig(),
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			os.Exit(1)
		}
	}
}
