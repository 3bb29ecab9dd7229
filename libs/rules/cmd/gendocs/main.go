// Command gendocs writes docs/rules.md from the table of rules.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/chandler-fleet/chandler/libs/rules"
)

func main() {
	out := flag.String("o", rules.Document, "file to write")
	flag.Parse()
	if err := os.WriteFile(*out, []byte(rules.Markdown()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}
