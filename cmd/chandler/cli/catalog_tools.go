package cli

import (
	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
)

// addCatalogTools puts the commands for authors beside those that ask Chandler, and what a catalog at hand
// holds below "catalog list".
func (a *app) addCatalogTools(parent *cobra.Command) {
	const groupAsk, groupTools = "ask", "tools"
	parent.AddGroup(&cobra.Group{ID: groupAsk, Title: "Catalogs of the fleet:"}, &cobra.Group{ID: groupTools, Title: "Writing and curating catalogs, without a server:"})
	for _, c := range parent.Commands() {
		c.GroupID = groupAsk
		if c.Name() == "list" {
			c.AddCommand(author.ListCommands(a.authorEnv())...)
		}
	}
	for _, c := range author.Commands(a.authorEnv()) {
		c.GroupID = groupTools
		parent.AddCommand(c)
	}
}

func (a *app) authorEnv() author.Env {
	return author.Env{In: a.In, Out: a.Out, Err: a.Err, Lookup: a.Env}
}
