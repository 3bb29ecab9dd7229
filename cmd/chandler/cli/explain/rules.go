package explain

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/rules"
)

// RulesCommand explains the rules that messages name. It needs no server.
func RulesCommand(a *command.Env) *cobra.Command {
	var o printer.Output
	c := &cobra.Command{
		Use:   "rules [RULE...]",
		Short: "Explain the rules that messages name: what they require, why, and how to fix violations",
		Long: `Explains rules by the names that messages give them, or lists all. The same text is in ` +
			rules.Document + ` and, for
programs, at /api/v1/rules. It needs no server.`,
		Example: `  chandler rules R-CAT-43
  chandler rules one-of R-CAT-59/csv-name
  chandler rules -o json`,
		RunE: func(_ *cobra.Command, args []string) error { return listRules(a, o, args) },
	}
	o.Flags(c)
	return c
}

func listRules(a *command.Env, o printer.Output, ids []string) error {
	list := rules.All()
	if len(ids) > 0 {
		list = nil
	}
	for _, id := range ids {
		r, ok := rules.Find(id)
		if !ok {
			return &client.Problem{
				Status: http.StatusNotFound,
				Detail: fmt.Sprintf("there is no rule %q: chandler rules lists them all", id),
			}
		}
		list = append(list, r)
	}
	if len(ids) > 0 && o.Format == printer.FormatTable {
		return explainRules(a, list)
	}
	items, err := printer.Items(list, nil, func(r rules.Rule) printer.Item {
		return printer.Item{Name: "rule/" + r.ID, Value: r, Cells: []any{r.ID, string(r.Kind), r.Demands}}
	})
	if err != nil {
		return err
	}
	return o.Show(a, printer.Table{
		Plural:  "rules",
		Columns: []printer.Column{{Name: "Rule"}, {Name: "Kind"}, {Name: "Demands"}},
	}, items, len(ids) == 1)
}

func explainRules(a *command.Env, list []rules.Rule) error {
	for i, r := range list {
		var t printer.Text
		if i > 0 {
			t.Put("", "")
		}
		t.Put("", r.ID)
		t.Put("  ", plainText(r.Demands))
		for _, part := range []struct{ name, text string }{
			{"Why: ", r.Why},
			{"Fix: ", r.Fix},
			{"Strict or lenient: ", r.Strictness},
			{"See ", rules.Link(r.ID)},
		} {
			if part.text != "" {
				t.Put("  ", part.name+plainText(part.text))
			}
		}
		if err := a.Say("%s", t.String()); err != nil {
			return err
		}
	}
	return nil
}

// plainText is a text of the document without its marks for code.
func plainText(s string) string { return strings.ReplaceAll(s, "`", "") }
