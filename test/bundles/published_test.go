package bundles_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// Settings of the campaign over everything that is published.
const (
	// publishedEnv is a directory below which bundle directories lie; "all" is every archive of the test data.
	publishedEnv = "CHANDLER_CAMPAIGN"
	// publishedLogEnv is a file with a line for each package that is through: a campaign that was interrupted goes on
	// behind them.
	publishedLogEnv = "CHANDLER_CAMPAIGN_LOG"
	everything      = "all"
)

const (
	// atOnce is how many packages are on their way at a time: the API server of a test holds the definitions of all of
	// them.
	atOnce = 4
	// blockedFor is how long a plan says the same before that is its result, and slowFor the same of an operator, whose
	// Deployments take their time on a busy machine.
	blockedFor = 30 * time.Second
	slowFor    = 3 * time.Minute
	// stepFor bounds an install, an upgrade or a removal.
	stepFor = 10 * time.Minute
)

// version is one bundle of a package.
type version struct {
	name    string
	content digest.Digest
}

// published is a package with one or two versions, the second of which replaces the first.
type published struct {
	name     string
	versions []version
	why      string // it cannot be installed at all, as far as is known before
}

// ending is what became of one package: Succeeded, or the reason in the words that a user is told.
type ending struct {
	Package  string   `json:"package"`
	Versions []string `json:"versions"`
	Result   string   `json:"result"`
	Stage    string   `json:"stage,omitempty"`
	Reason   string   `json:"reason,omitempty"` // a code
	Took     string   `json:"took"`
}

const unexplained = "Unexplained"

// unclear are reasons that explain nothing to a user.
func unclear(reason string) bool {
	return slices.Contains([]string{
		"", "InternalError", "ServerError", "Timeout", "ClusterUnreachable",
		"DigestMismatch", "ContentUnavailable",
	}, reason)
}

// TestPublished takes every package of a tree of published bundles through its life: installed, upgraded, removed with
// its definitions. One that fails stops no other; the test fails where something does not say why.
func TestPublished(t *testing.T) {
	t.Parallel()
	where := os.Getenv(publishedEnv)
	if where == "" {
		t.Skip("set " + publishedEnv + " to a directory of bundle directories, or to " + everything)
	}
	p := &publishedCampaign{T: t, spoke: newSpoke(t, hubtest.New(t)), store: t.TempDir(), done: map[string]ending{}}
	p.resume()
	p.start(hubtest.Quick())
	for _, s := range sourcesOf(t, where) {
		p.through(s.name, p.packages(s.dir))
	}
	p.table()
	p.complete()
}

// source is one tree of bundles.
type source struct{ name, dir string }

func sourcesOf(t *testing.T, where string) []source {
	t.Helper()
	if where != everything {
		return []source{{where, where}}
	}
	var out []source
	for _, archive := range []string{
		catalogtest.CertifiedBundles420, catalogtest.CertifiedFBC414,
		catalogtest.Okderators, catalogtest.InstallSet,
	} {
		out = append(out, source{archive, catalogtest.Unpack(t, archive, nil)})
	}
	return out
}

type publishedCampaign struct {
	*testing.T
	*spoke
	store string // of contents, by digest
	round int    // of the sources, so that a package has a namespace of its own in each

	mu      sync.Mutex
	done    map[string]ending // by source and package
	results []ending
}

// packages reads a tree as the indexer reads a catalog.
func (p *publishedCampaign) packages(dir string) []published {
	p.Helper()
	c, err := load.Load(os.DirFS(dir), load.Options{Lenient: true, Keep: func(c load.Content) error {
		return os.WriteFile(filepath.Join(p.store, c.Digest.Hex()), c.Canonical, 0o600)
	}})
	must(p, err)
	var out []published
	for _, k := range c.Packages {
		out = append(out, ladder(k))
	}
	for _, q := range c.Quarantined {
		why := "the catalog refuses it"
		if i := slices.IndexFunc(c.Findings, func(f catalog.Finding) bool {
			return f.Package == q.Package &&
				f.Severity == catalog.SeverityError
		}); i >= 0 {
			why += ": " + c.Findings[i].String()
		}
		out = append(out, published{name: q.Package, why: why})
	}
	for _, f := range c.Findings { // a package of which every bundle is left out is in neither list
		if f.Package != "" && f.Severity != catalog.SeverityInfo &&
			!slices.ContainsFunc(out, func(k published) bool { return k.name == f.Package }) {
			out = append(out, published{name: f.Package, why: "no bundle of it is served: " + f.String()})
		}
	}
	if len(out) == 0 {
		p.Fatalf("%s holds no package: %v", dir, c.Findings)
	}
	return out
}

// ladder chooses the head of the default channel and what it can be reached from in one step.
func ladder(k catalog.Package) published {
	out := published{name: k.Name}
	channel, ok := k.Default()
	if !ok {
		out.why = "it has no default channel"
		return out
	}
	g, err := catalog.NewGraph(channel)
	if err != nil {
		out.why = err.Error()
		return out
	}
	versions := k.Versions()
	at := func(name string) (version, bool) {
		b, ok := k.Bundle(name)
		return version{name: name, content: b.Content}, ok && b.Content != ""
	}
	head, ok := at(g.Head().Name)
	if !ok {
		out.why = "the manifests of its head, " + g.Head().Name + ", are not in the tree, or make no bundle"
		return out
	}
	for _, e := range g.Ordered()[1:] {
		before, ok := at(e.Name)
		if ok && slices.ContainsFunc(g.Successors(e.Name, versions[e.Name]),
			func(s catalog.Entry) bool { return s.Name == head.name }) {
			out.versions = []version{before, head}
			return out
		}
	}
	out.versions = []version{head}
	return out
}

// through takes packages through their lives, some at a time.
func (p *publishedCampaign) through(source string, list []published) {
	p.round++
	var running sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, k := range list {
		key := source + "/" + k.name
		if r, ok := p.done[key]; ok {
			p.results = append(p.results, r)
			continue
		}
		turns <- struct{}{}
		running.Go(func() {
			defer func() { <-turns }()
			began := time.Now()
			r := ending{Package: k.name, Result: unexplained, Stage: "campaign"}
			defer func() { // also where the goroutine ends early
				r.Took = time.Since(began).Round(time.Second).String()
				p.note(key, r)
				fmt.Fprintf(os.Stderr, "campaign: %s %d of %d: %s %s: %s (%s)\n", source, i+1, len(list), k.name,
					strings.Join(r.Versions, " -> "), oneLine(r), r.Took)
			}()
			r = p.life(k, fmt.Sprintf("life-%d-%d", p.round, i))
		})
	}
	running.Wait()
}

func oneLine(r ending) string {
	if r.Stage == "" {
		return r.Result
	}
	return r.Stage + ": " + r.Result
}

// life takes one package through its life.
func (p *publishedCampaign) life(k published, ns string) ending {
	r := ending{Package: k.name}
	if k.why != "" {
		r.Result, r.Stage, r.Reason = k.why, "read", "Refused"
		return r
	}
	before, installed := "", []protocol.Installed(nil)
	for i, v := range k.versions {
		r.Versions = append(r.Versions, v.name)
		if r.Stage = "install"; i > 0 {
			r.Stage = "upgrade"
		}
		content, csv, err := p.content(v, ns)
		if err != nil { // rendering says it to the resolver, which explains it
			r.Result, r.Reason = err.Error(), "Refused"
			break
		}
		if i == 0 {
			p.serve(ns, csv.Spec.InstallModes)
		}
		s := p.Scope(ns)
		plan := p.Plan(ns, k.name, hubtest.Bundle{Content: content, Replaces: before, Allowed: true})
		s.Plans, s.Installed = []protocol.Plan{plan}, installed
		p.Publish(s)
		if r.Result, r.Reason = p.await(ns, plan.ID, csv.Name, before); r.Result != "" {
			break
		}
		before, installed = csv.Name, []protocol.Installed{{CSV: csv.Name, Content: string(v.content), Plan: plan.ID}}
	}
	if why, reason := p.clear(ns, installed); r.Result == "" && why != "" {
		r.Stage, r.Result, r.Reason = "remove", why, reason
	}
	if r.Result == "" {
		r.Stage, r.Result = "", "Succeeded"
	}
	return r
}

// content is a bundle that can be rendered.
func (p *publishedCampaign) content(v version, ns string) (bundle.Content, bundle.CSV, error) {
	var c bundle.Content
	raw, err := os.ReadFile(filepath.Join(p.store, v.content.Hex()))
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, bundle.CSV{}, err
	}
	csv, err := c.CSV()
	if err == nil {
		_, err = render.Render(render.Input{Content: c, Namespace: ns})
	}
	return c, csv, err
}

// await waits until an operator is Succeeded and the one before it gone. Otherwise it returns what the reports say,
// once they say the same for a while.
func (p *publishedCampaign) await(ns, plan, csv, before string) (text, reason string) {
	return p.watch(ns, func(r protocol.ScopeReport) (bool, string, string, time.Duration) {
		done := succeeded(csv)(r) == nil && (before == "" || gone(before)(r) == nil)
		text, reason, patience := told(r, plan, csv)
		return done, text, reason, patience
	})
}

// told is what the reports say of a plan and its operator that are not where they should be.
func told(r protocol.ScopeReport, plan, csv string) (text, reason string, patience time.Duration) {
	for _, c := range r.CSVs {
		if n := len(c.History); c.Name == csv && !c.Removed && n > 0 {
			last := c.History[n-1]
			text = fmt.Sprintf("%s: %s: %s%s", last.Phase, last.Reason, cmp.Or(c.Message, last.Message), unmet(c))
			reason, patience = last.Reason, slowFor
		}
	}
	for _, x := range r.Plans {
		if x.ID == plan && (x.Phase == protocol.PlanBlocked || x.Phase == protocol.PlanFailed) &&
			(text == "" || reason == "InstallSucceeded" || !strings.Contains(text, x.Reason)) {
			patience = blockedFor
			if unclear(x.Reason) {
				patience = stepFor // what says nothing about the operator passes, as a rule
			}
			return fmt.Sprintf("plan %s: %s: %s", x.Phase, x.Reason, x.Message), x.Reason, patience
		}
	}
	return text, reason, patience
}

// unmet are the requirements of an operator that are not there, behind its message, which names none (R-CSV-5).
func unmet(c protocol.CSVReport) string {
	var list []struct{ Kind, Name, Status, Message string }
	if len(c.Requirements) == 0 || json.Unmarshal(c.Requirements, &list) != nil {
		return ""
	}
	text := ""
	for _, r := range list {
		if r.Status != "Present" {
			text += fmt.Sprintf("; %s %s: %s: %s", r.Kind, r.Name, r.Status, r.Message)
		}
	}
	return text
}

// watch looks at the reports of a namespace until they are as wanted, say the same for long, or the time is over.
func (p *publishedCampaign) watch(ns string, look func(protocol.ScopeReport) (
	done bool, text, reason string, patience time.Duration),
) (string, string) {
	ctx, cancel := context.WithTimeout(p.Context(), stepFor)
	defer cancel()
	before, since := "", time.Now()
	for {
		r, changed := p.board.look(ns)
		done, text, reason, patience := look(r)
		if done {
			return "", ""
		}
		if text != before {
			before, since = text, time.Now()
		}
		left := cmp.Or(patience, stepFor) - time.Since(since)
		if left <= 0 {
			return cmp.Or(text, "nothing is reported"), reason
		}
		timer := time.NewTimer(left)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return cmp.Or(text, "nothing is reported"), reason
		}
		timer.Stop()
	}
}

// clear removes what is left of a package, with its definitions, and closes its namespace.
func (p *publishedCampaign) clear(ns string, installed []protocol.Installed) (text, reason string) {
	r, _ := p.board.look(ns)
	for _, c := range r.CSVs {
		if c.Removed {
			continue
		}
		x := p.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: c.Name, CRDs: []string{"*"}})
		s := p.Scope(ns)
		s.Plans, s.Installed, s.Removals = nil, installed, []protocol.Removal{x}
		p.Publish(s)
		why, code := p.watch(ns, func(r protocol.ScopeReport) (bool, string, string, time.Duration) {
			for _, m := range r.Removals {
				if m.ID == x.ID {
					return m.Phase == protocol.PlanFinished,
						fmt.Sprintf("removal %s: %s: %s", m.Phase, m.Reason, m.Message), m.Reason, slowFor
				}
			}
			return false, "", "", 0
		})
		text, reason = cmp.Or(text, why), cmp.Or(reason, code)
	}
	s := p.Scope(ns)
	s.Plans, s.Removals, s.Installed, s.OperatorGroups, s.OperatorGroup = nil, nil, nil, 0, protocol.OperatorGroup{}
	p.Publish(s)
	return text, reason
}

// note keeps a result, in the log as well, so that the next campaign need not do it again.
func (p *publishedCampaign) note(key string, r ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = append(p.results, r)
	file := os.Getenv(publishedLogEnv)
	if file == "" {
		return
	}
	line, err := json.Marshal(map[string]any{"key": key, "result": r})
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, err = f.Write(append(line, '\n'))
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		p.Errorf("%s: %v", file, err)
	}
}

// resume reads what an interrupted campaign was through with; its last line may be half written.
func (p *publishedCampaign) resume() {
	f, err := os.Open(os.Getenv(publishedLogEnv))
	if err != nil {
		return
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Key    string `json:"key"`
			Result ending `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Key != "" &&
			(line.Result.Stage == "" || !unclear(line.Result.Reason)) {
			p.done[line.Key] = line.Result
		}
	}
	must(p, errors.Join(lines.Err(), f.Close()))
}

// complete puts the log of a campaign that is through aside, so that the next one begins anew.
func (p *publishedCampaign) complete() {
	if file := os.Getenv(publishedLogEnv); file != "" {
		must(p, os.Rename(file, file+".done"))
	}
}

// table prints every package with its result, and fails where one is not explained.
func (p *publishedCampaign) table() {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tVERSIONS\tTOOK\tRESULT")
	good, open := 0, 0
	slices.SortStableFunc(p.results, func(a, b ending) int { return strings.Compare(a.Package, b.Package) })
	for _, r := range p.results {
		if r.Stage == "" {
			good++
		} else if unclear(r.Reason) {
			open++
			p.Errorf("%s is not explained: %s: %s", r.Package, r.Stage, r.Result)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Package, strings.Join(r.Versions, " -> "), r.Took, cut(oneLine(r)))
	}
	must(p, w.Flush())
	for _, r := range p.results {
		if full := strings.Join(strings.Fields(oneLine(r)), " "); cut(full) != full {
			fmt.Fprintf(&b, "\n%s: %s\n", r.Package, full)
		}
	}
	p.Logf("\n%s\n%d packages: %d Succeeded, %d with a named reason, %d unexplained", b.String(), len(p.results), good,
		len(p.results)-good-open, open)
}

// widest is how much of a reason the table shows; the log has all of it.
const widest = 300

func cut(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > widest {
		return strings.ToValidUTF8(text[:widest], "") + "…"
	}
	return text
}
