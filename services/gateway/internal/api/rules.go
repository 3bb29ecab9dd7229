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

// ruleHandlers explain the rules that problems and findings name.
type ruleHandlers struct{}

func (h ruleHandlers) register(a *API) {
	register(a, needRead, operation(http.MethodGet, pathRules, "list-rules", tagRules,
		"Explain the rules that problems and findings name"), h.listRules)
}

type listRulesInput struct {
	ID string `query:"id" maxLength:"128" doc:"Only this rule, such as R-CAT-43 or one-of"`
}

func (h ruleHandlers) listRules(
	_ context.Context, _ model.Caller, in *listRulesInput,
) (*listOutput[rules.Rule], error) {
	if in.ID == "" {
		return listed(rules.All(), nil, nil)
	}
	r, ok := rules.Find(in.ID)
	if !ok {
		return nil, errs.New(errs.NotFound, "there is no rule %q", in.ID)
	}
	return listed([]rules.Rule{r}, nil, nil)
}
