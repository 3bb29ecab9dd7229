package subscription

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// tokenVariables are the variables of spec.config.env by which an operator is told with which identity of a cloud it
// gets short-lived tokens (R-TOK §14), with what each of them must look like.
var tokenVariables = map[string]*regexp.Regexp{
	"ROLEARN":               regexp.MustCompile(`^arn:[a-z0-9-]+:iam::\d{12}:role/.+$`),
	"CLIENTID":              nil,
	"TENANTID":              nil,
	"SUBSCRIPTIONID":        nil,
	"AUDIENCE":              regexp.MustCompile(`^//iam\.googleapis\.com/projects/\d+/locations/global/workloadIdentityPools/[^/]+/providers/[^/]+$`),
	"SERVICE_ACCOUNT_EMAIL": regexp.MustCompile(`^[^@]+@[^@]+\.iam\.gserviceaccount\.com$`),
}

// tokenSets are the variables that only make sense together, one set for each cloud.
var tokenSets = [][]string{{"ROLEARN"}, {"CLIENTID", "TENANTID", "SUBSCRIPTIONID"}, {"AUDIENCE", "SERVICE_ACCOUNT_EMAIL"}}

// CheckTokens checks a subscription whose configuration names an identity of a cloud: its variables are whole and well
// formed (R-TOK-3), and its approval is Manual, since a new version may need rights that an administrator of the cloud
// has to grant first (R-TOK-2). config is spec.config; approval as it was given.
func CheckTokens(config json.RawMessage, approval string) error {
	var c struct {
		Env []struct {
			Name  string `json:"name"`
			Value string `json:"value"`
		} `json:"env"`
	}
	if err := json.Unmarshal(config, &c); err != nil {
		return errs.New(errs.Invalid, "config: %v", err).At("/config/env", "R-SUB-14")
	}
	given := map[string]string{}
	for _, e := range c.Env {
		if _, is := tokenVariables[e.Name]; is && e.Value != "" {
			given[e.Name] = e.Value
		}
	}
	var v rule.Violations
	var whole []string
	for _, set := range tokenSets {
		missing := slices.DeleteFunc(slices.Clone(set), func(n string) bool { return given[n] != "" })
		switch {
		case len(missing) == len(set):
		case len(missing) > 0 && set[0] != "CLIENTID": // CLIENTID and its like are names that operators use for other things, too
			v.Addf("/config/env", "R-TOK-1", "config.env names an identity of a cloud without %s: %s belong together", strings.Join(missing, " and "), strings.Join(set, ", "))
		case len(missing) == 0:
			whole = append(whole, set...)
		}
	}
	for _, n := range whole {
		if form := tokenVariables[n]; form != nil && !form.MatchString(given[n]) {
			v.Addf("/config/env", "R-TOK-3", "config.env %s does not have the form %s", n, form)
		}
	}
	if len(whole) > 0 && approval != Manual {
		v.Addf("/approval", "R-TOK-2", "with %s in config.env approval must be Manual: a new version may need rights that an administrator of the cloud grants first", strings.Join(whole, ", "))
	}
	return v.Err()
}
