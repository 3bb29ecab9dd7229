// Command gendocs writes docs/events.md and docs/asyncapi.yaml from the registry of event types.
//
// Types, kinds, writers and fields come from the registry by reflection, so that the documents
// cannot say anything else than the code; the sentences come from the comments beside the fields.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	source := flag.String("source", "libs/events", "folder of the package events")
	out := flag.String("out", "docs", "folder to write into")
	flag.Parse()
	if err := run(*source, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func run(source, out string) error {
	comments, err := readComments(source)
	if err != nil {
		return err
	}
	model := describe(comments)
	async, err := asyncAPI(model)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "events.md"), markdown(model), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(out, "asyncapi.yaml"), async, 0o644)
}
