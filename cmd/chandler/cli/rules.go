package cli

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/rules"
)

// rulesCommand explains the rules that messages name. It needs no server.
func (a *app) rulesCommand() *cobra.Command {
	var o output
	c := &cobra.Command{
		Use:   "rules [RULE...]",
		Short: "Explain the rules that messages name: what they demand, why, and how to mend what breaks them",
		Long: `Explains rules by the names that messages give them, or lists all. The same stands in ` + rules.Document + ` and, for
programs, at /api/v1/rules. No server is asked.`,
		Example: `  chandler rules R-CAT-43
  chandler rules one-of R-CAT-59/csv-name
  chandler rules -o json`,
		RunE: func(_ *cobra.Command, args []string) error { return a.rules(o, args) },
	}
	o.flags(c)
	return c
}

func (a *app) rules(o output, ids []string) error {
	if err := o.check(); err != nil {
		return err
	}
	list := rules.All()
	if len(ids) > 0 {
		list = nil
	}
	for _, id := range ids {
		r, ok := rules.Find(id)
		if !ok {
			return &client.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no rule %q: chandler rules lists them all", id)}
		}
		list = append(list, r)
	}
	if len(ids) > 0 && o.format == formatTable {
		return a.explainRules(list)
	}
	items, err := all(list, nil, func(r rules.Rule) item {
		return item{name: "rule/" + r.ID, value: r, cells: []any{r.ID, string(r.Kind), r.Demands}}
	})
	if err != nil {
		return err
	}
	return a.show(o, resource{names: []string{"rule", "rules"}, columns: []column{{name: "Rule"}, {name: "Kind"}, {name: "Demands"}}}, items, len(ids) == 1)
}

func (a *app) explainRules(list []rules.Rule) error {
	for i, r := range list {
		var t prose
		if i > 0 {
			t.put("", "")
		}
		t.put("", r.ID)
		t.put("  ", plainText(r.Demands))
		for _, part := range []struct{ name, text string }{{"Why: ", r.Why}, {"Mend: ", r.Mend}, {"Strict or lenient: ", r.Strictness}, {"See ", rules.Link(r.ID)}} {
			if part.text != "" {
				t.put("  ", part.name+plainText(part.text))
			}
		}
		if err := a.say("%s", t.String()); err != nil {
			return err
		}
	}
	return nil
}

// hint says on standard error how the rules are explained that a table names.
func (a *app) hint(named []string) error {
	hint := rules.Hint(strings.Join(named, " "))
	if hint == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Err, hint)
	return err
}

// plainText is a text of the document without its marks for code.
func plainText(s string) string { return strings.ReplaceAll(s, "`", "") }
