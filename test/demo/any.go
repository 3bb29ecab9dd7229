package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// given is the name of a catalog that somebody brings along.
const given = "given"

// brought are the scenes with a catalog that nobody here knows.
var brought = []scene{
	{"The catalog is checked, without a server", (*play).checkGiven},
	{"Postgres, NATS and the four services start; the catalog is added", func(p *play, ctx context.Context) error {
		return p.start(ctx, given)
	}},
	{"Two real Kubernetes control planes start and are registered", (*play).register},
	{"East subscribes, Automatic", (*play).eastTakes},
	{"West subscribes, Manual", (*play).westTakes},
	{"The objects in the clusters", (*play).seen},
	{"The event log of west", (*play).story},
	{
		"Why an operator is installed, and the decision for west, recomputed from the record",
		func(p *play, ctx context.Context) error {
			return p.why(ctx, "west", p.asked)
		},
	},
}

// hasFindings is the exit status of a check that found something: published catalogs are not without fault.
const hasFindings = 1

func (p *play) checkGiven(ctx context.Context) error {
	err := p.run(ctx, "catalog", "validate", p.catalogDir)
	if refused(err, hasFindings) {
		return nil
	}
	return err
}

func (p *play) eastTakes(ctx context.Context) (err error) {
	if p.picks, err = p.pick(ctx, mostCandidates); err != nil {
		return err
	}
	taken, rest, err := p.firstOf(ctx, "east", p.picks, "Automatic")
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		p.picks = rest // west takes another one
	}
	return p.succeeded(ctx, "east", taken.pkg)
}

func (p *play) westTakes(ctx context.Context) error {
	taken, _, err := p.firstOf(ctx, "west", p.picks, "Manual")
	if err != nil {
		return err
	}
	p.asked = taken.pkg
	if err := p.approve(ctx, "west"); err != nil {
		return err
	}
	return p.succeeded(ctx, "west", taken.pkg)
}

// mostCandidates bounds how many packages are tried: a person watches.
const mostCandidates = 12

// firstOf subscribes to one candidate after the other until one resolves, and shows why the others do not.
func (p *play) firstOf(ctx context.Context, cluster string, list []candidate, approval string) (
	candidate, []candidate, error,
) {
	for i, c := range list {
		if err := p.subscribe(ctx, cluster, c, approval); err != nil {
			return candidate{}, nil, err
		}
		why, err := p.resolved(ctx, cluster, c.pkg)
		if err != nil {
			return candidate{}, nil, err
		}
		if why == "" {
			return c, list[i+1:], nil
		}
		p.say(c.pkg + " cannot be installed here: " + why)
		if err := p.run(ctx, "delete", "subscription", c.pkg, "--cluster", cluster, "-n", namespace); err != nil {
			return candidate{}, nil, err
		}
	}
	return candidate{}, nil, fmt.Errorf("none of the first %d packages can be installed on %s; the reasons stand above",
		len(list), cluster)
}

// resolved waits until the subscription has a plan, or says why it cannot have one.
func (p *play) resolved(ctx context.Context, cluster, name string) (why string, err error) {
	path := "/api/v1/clusters/" + cluster + "/namespaces/" + namespace + "/subscriptions/" + name
	err = p.await(ctx, name+" resolves", installBound, func(ctx context.Context) (string, bool, error) {
		var s struct {
			Status struct {
				InstallPlan *struct{}
				Conditions  []struct{ Type, Status, Message string }
			}
		}
		if err := p.api.Get(ctx, path, &s); err != nil {
			return "", false, err
		}
		for _, c := range s.Status.Conditions {
			if c.Type == "ResolutionFailed" && c.Status == "True" {
				why = c.Message
			}
		}
		return why, s.Status.InstallPlan != nil || why != "", nil
	})
	return why, err
}

// candidate is a package whose head can be installed.
type candidate struct {
	pkg, channel string
	own          bool // serves its own namespace only
}

// pick returns up to n packages, by name, whose default channel has a head with manifests at hand.
func (p *play) pick(ctx context.Context, n int) ([]candidate, error) {
	var picks []candidate
	cursor := ""
	for {
		var page struct {
			Items []struct{ Name, DefaultChannel string }
			Next  string
		}
		if err := p.api.Get(ctx, "/api/v1/catalogs/"+given+"/packages"+behind(cursor), &page); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			c, ok, err := p.candidate(ctx, item.Name, item.DefaultChannel)
			if err != nil {
				return nil, err
			}
			if ok {
				picks = append(picks, c)
			}
			if len(picks) == n {
				return picks, nil
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(picks) == 0 {
		return nil, errors.New("no package of this catalog has manifests at hand: its bundles are only named by image")
	}
	return picks, nil
}

func (p *play) candidate(ctx context.Context, pkg, channel string) (candidate, bool, error) {
	var detail struct {
		Channels []struct {
			Name  string
			Heads []string
		} `json:"channelList"`
	}
	base := "/api/v1/catalogs/" + given
	if err := p.api.Get(ctx, base+"/packages/"+pkg, &detail); err != nil {
		return candidate{}, false, err
	}
	var heads []string
	for _, c := range detail.Channels {
		if c.Name == channel {
			heads = c.Heads
		}
	}
	var bundles struct {
		Items []struct {
			Name, Content string
			Metadata      struct{ InstallModes json.RawMessage }
		}
	}
	query := "?limit=500&package=" + url.QueryEscape(pkg) + "&channel=" + url.QueryEscape(channel)
	if err := p.api.Get(ctx, base+"/bundles"+query, &bundles); err != nil {
		return candidate{}, false, err
	}
	for _, b := range bundles.Items {
		if slices.Contains(heads, b.Name) && b.Content != "" {
			all, own := modes(b.Metadata.InstallModes)
			return candidate{pkg: pkg, channel: channel, own: !all}, all || own, nil
		}
	}
	return candidate{}, false, nil
}

// modes says whether an operator can serve all namespaces, and whether it can serve its own.
func modes(raw json.RawMessage) (all, own bool) {
	var list []struct {
		Type      string
		Supported bool
	}
	if json.Unmarshal(raw, &list) != nil {
		return false, false // a head without readable install modes is passed over
	}
	for _, m := range list {
		all = all || m.Type == "AllNamespaces" && m.Supported
		own = own || m.Type == "OwnNamespace" && m.Supported
	}
	return all, own
}

// subscribe writes OLM's own YAML and applies it, as somebody who comes from OLM would.
func (p *play) subscribe(ctx context.Context, cluster string, c candidate, approval string) error {
	spec := "{}"
	if c.own {
		spec = "{targetNamespaces: [" + namespace + "]}"
	}
	text := fmt.Sprintf(`apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata: {name: demo, namespace: %[1]s}
spec: %[2]s
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata: {name: %[3]s, namespace: %[1]s}
spec: {name: %[3]s, channel: %[4]q, source: %[5]s, sourceNamespace: catalogs, installPlanApproval: %[6]s}
`, namespace, spec, c.pkg, c.channel, given, approval)
	file := filepath.Join(p.dir, cluster+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		p.say("  " + line)
	}
	return p.run(ctx, "apply", "-f", file, "--cluster", cluster)
}

// behind asks for the page behind a cursor; the first one has none.
func behind(cursor string) string {
	if cursor == "" {
		return ""
	}
	return "?cursor=" + url.QueryEscape(cursor)
}
