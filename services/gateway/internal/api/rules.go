package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	tagRules  = "Rules"
	pathRules = "/rules"
)

// ruleHelp is where the API explains a rule, "" for one that it does not know.
func ruleHelp(id string) string {
	if _, ok := rules.Find(id); !ok {
		return ""
	}
	return prefix + pathRules + "?" + url.Values{"id": {id}}.Encode()
}

// rules explains the rules that problems and findings name.
func (a *API) rules() {
	register(a, needRead, operation(http.MethodGet, pathRules, "list-rules", tagRules, "Explain the rules that problems and findings name"),
		func(_ context.Context, _ model.Caller, in *struct {
			ID string `query:"id" maxLength:"128" doc:"Only this rule, such as R-CAT-43 or one-of"`
		},
		) (*listOutput[rules.Rule], error) {
			if in.ID == "" {
				return listed(rules.All(), nil, nil)
			}
			r, ok := rules.Find(in.ID)
			if !ok {
				return nil, errs.New(errs.NotFound, "there is no rule %q", in.ID)
			}
			return listed([]rules.Rule{r}, nil, nil)
		})
}
