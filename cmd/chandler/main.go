// Command chandler is the command line of Chandler: it asks a running installation, runs a whole
// one for development, and maintains the database and the bus.
package main

import (
	"os"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli"
)

func main() { os.Exit(cli.Run()) }
