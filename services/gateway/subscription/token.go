package subscription

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// tokenVariables are the variables of spec.config.env that give an operator the identity of a cloud with which it
// gets short-lived tokens (R-TOK §14), with the form of each of them.
var tokenVariables = map[string]*regexp.Regexp{
	"ROLEARN":        regexp.MustCompile(`^arn:[a-z0-9-]+:iam::\d{12}:role/.+$`),
	"CLIENTID":       nil,
	"TENANTID":       nil,
	"SUBSCRIPTIONID": nil,
	"AUDIENCE": regexp.MustCompile(
		`^//iam\.googleapis\.com/projects/\d+/locations/global/workloadIdentityPools/[^/]+/providers/[^/]+$`),
	"SERVICE_ACCOUNT_EMAIL": regexp.MustCompile(`^[^@]+@[^@]+\.iam\.gserviceaccount\.com$`),
}

// tokenSets are the variables that only make sense together, one set for each cloud.
var tokenSets = [][]string{
	{"ROLEARN"}, {"CLIENTID", "TENANTID", "SUBSCRIPTIONID"}, {"AUDIENCE", "SERVICE_ACCOUNT_EMAIL"},
}

// tokenModes are the modes of cloud tokens that a cluster can be in (protocol.ClusterReport), with the annotation by
// which a bundle says that its operator can use them, and the variables that give it its identity.
var tokenModes = map[string]struct {
	annotation string
	variables  []string
}{
	protocol.TokenAuthAWS:   {"features.operators.openshift.io/token-auth-aws", tokenSets[0]},
	protocol.TokenAuthAzure: {"features.operators.openshift.io/token-auth-azure", tokenSets[1]},
	protocol.TokenAuthGCP:   {"features.operators.openshift.io/token-auth-gcp", tokenSets[2]},
}

// MissingTokens are the variables that config.env lacks to give an operator short-lived tokens of the cloud (R-TOK-1):
// where its cluster is in that mode, and its bundle is annotated for it. An operator may do without, so that they are
// only advised. config is spec.config, nil for none.
func MissingTokens(mode string, annotations map[string]string, config json.RawMessage) ([]string, error) {
	m, ok := tokenModes[mode]
	if !ok || annotations[m.annotation] != "true" {
		return nil, nil
	}
	env, err := tokenEnv(config)
	return slices.DeleteFunc(slices.Clone(m.variables), func(n string) bool {
		return slices.ContainsFunc(env, func(v variable) bool {
			return v.Name == n &&
				(v.Value != "" || v.ValueFrom != nil)
		})
	}), err
}

// variable is an entry of config.env.
type variable struct {
	Name      string         `json:"name"`
	Value     string         `json:"value"`
	ValueFrom map[string]any `json:"valueFrom"`
}

// tokenEnv are the variables of config.env that are about identities.
func tokenEnv(config json.RawMessage) ([]variable, error) {
	if len(config) == 0 {
		return nil, nil
	}
	var c struct {
		Env []variable `json:"env"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, errs.New(errs.Invalid, "config: %v", err).At("/config/env", "R-SUB-14")
	}
	return slices.DeleteFunc(c.Env, func(v variable) bool { _, is := tokenVariables[v.Name]; return !is }), nil
}

// CheckTokens checks a subscription whose configuration names an identity of a cloud: its variables are whole and well
// formed (R-TOK-3). config is spec.config.
func CheckTokens(config json.RawMessage) error {
	given, err := tokenValues(config)
	if err != nil {
		return err
	}
	var v rule.Violations
	for _, set := range tokenSets {
		missing := slices.DeleteFunc(slices.Clone(set), func(n string) bool { return given[n] != "" })
		switch {
		case len(missing) == len(set):
		case len(missing) > 0 && set[0] != "CLIENTID":
			// CLIENTID and its like are names that operators use for other things, too
			v.Addf("/config/env", "R-TOK-1", "config.env names an identity of a cloud without %s: %s belong together",
				strings.Join(missing, " and "), strings.Join(set, ", "))
		}
	}
	for _, n := range whole(given) {
		if form := tokenVariables[n]; form != nil && !form.MatchString(given[n]) {
			v.Addf("/config/env", "R-TOK-3", "config.env %s does not have the form %s", n, form)
		}
	}
	return v.Err()
}

// AdviseApproval says that a subscription whose configuration names an identity of a cloud should be approved by a
// person, since a new version may need rights that an administrator of the cloud has to grant first (R-TOK-2); nil
// where nothing is to be said. approval is as it was given.
func AdviseApproval(config json.RawMessage, approval string) (advice *errs.Error, err error) {
	given, err := tokenValues(config)
	if err != nil || approval == Manual {
		return nil, err
	}
	names := whole(given)
	if len(names) == 0 {
		return nil, nil
	}
	return errs.New(errs.Invalid,
		"with %s in config.env approval should be Manual: a new version may need rights that an administrator of the "+
			"cloud grants first",
		strings.Join(names, ", ")).At("/approval", "R-TOK-2"), nil
}

// tokenValues are the identities of a cloud that config.env gives as values.
func tokenValues(config json.RawMessage) (map[string]string, error) {
	env, err := tokenEnv(config)
	given := map[string]string{}
	for _, e := range env {
		if e.Value != "" {
			given[e.Name] = e.Value
		}
	}
	return given, err
}

// whole are the variables of the sets that are given whole.
func whole(given map[string]string) []string {
	var names []string
	for _, set := range tokenSets {
		if !slices.ContainsFunc(set, func(n string) bool { return given[n] == "" }) {
			names = append(names, set...)
		}
	}
	return names
}
