package model

import (
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Operator is an installed operator: one ClusterServiceVersion in one namespace of one cluster.
type Operator struct {
	Cluster    string         `json:"cluster"`
	Namespace  string         `json:"namespace"`
	Name       string         `json:"name" doc:"Of the CSV" example:"tidegauge.v2.1.0"`
	Package    string         `json:"package"`
	Version    string         `json:"version"`
	Phase      string         `json:"phase" doc:"Pending, InstallReady, Installing, Succeeded, Failed, Replacing, Deleting or Unknown"`
	Reason     string         `json:"reason"`
	Message    string         `json:"message,omitempty"`
	Content    string         `json:"content,omitempty" doc:"Digest of the canonical bundle"`
	Plan       string         `json:"plan,omitempty" doc:"Id of the install plan that brought it"`
	Conditions []Condition    `json:"conditions" nullable:"false" doc:"What is out of the ordinary whatever its phase: OptionalKindsNotServed while the cluster does not serve kinds that it brings and runs without"`
	Flapping   bool           `json:"flapping,omitempty" doc:"The phase changes too often to record each change"`
	Drift      *OperatorDrift `json:"drift,omitempty" doc:"Objects that are not as Chandler wrote them; absent where all are"`
	Removal    *Removal       `json:"removal,omitempty" doc:"That was asked for last"`
	Overrides  *Overrides     `json:"overrides,omitempty" doc:"What counts in the place of its own conditions; absent where nothing was set by Chandler. The details say what its cluster makes of it"`
	History    []Phase        `json:"history" nullable:"false" doc:"Newest 20 transitions, oldest first"`
	OperatorRecord
	// Details are absent until the executor has reported them.
	Details *OperatorDetails `json:"details,omitempty" doc:"What its cluster says of it beside its phase, in answers about one operator, and in lists with details=true"`
}

// OperatorRecord is when an operator was installed and changed, and where its events are.
type OperatorRecord struct {
	InstalledAt   time.Time `json:"installedAt"`
	UpdatedAt     time.Time `json:"updatedAt"`
	Stream        string    `json:"stream,omitempty" doc:"Id of its stream of events"`
	StreamVersion int64     `json:"streamVersion,omitempty" doc:"Of its stream"`
}

// Overrides are what counts of an operator's conditions in the place of its own word (R-COND-6). They end with the
// operator: the next version begins without.
type Overrides struct {
	Conditions []ConditionOverride `json:"conditions" nullable:"false" doc:"By type"`
	By         string              `json:"by" doc:"Actor who set them last"`
	Since      time.Time           `json:"since" doc:"When that was"`
}

// ConditionOverride is what counts of one condition.
type ConditionOverride struct {
	Type   string `json:"type" minLength:"1" maxLength:"316" example:"Upgradeable" doc:"Upgradeable; no other one has an effect"`
	Status string `json:"status" enum:"True,False,Unknown" doc:"Of Upgradeable, all but True hold upgrades back"`
	Reason string `json:"reason" minLength:"1" maxLength:"256" example:"Tested" doc:"Code, one word: it stays in the event log"`
}

// SetOverrides are all overrides of an operator from now on.
type SetOverrides struct {
	Conditions []ConditionOverride `json:"conditions" nullable:"false" minItems:"1" maxItems:"8" doc:"Each type once"`
}

// Events are the overrides as events have them.
func (s SetOverrides) Events() []events.ConditionOverride {
	out := make([]events.ConditionOverride, len(s.Conditions))
	for i, c := range s.Conditions {
		out[i] = events.ConditionOverride(c)
	}
	return out
}

// OverridesOf are overrides as the API has them; by and since are of the event that set them.
func OverridesOf(list []events.ConditionOverride, by string, since time.Time) Overrides {
	out := Overrides{Conditions: make([]ConditionOverride, len(list)), By: by, Since: since}
	for i, o := range list {
		out.Conditions[i] = ConditionOverride(o)
	}
	return out
}

// OperatorOverrides are the overrides of one operator.
type OperatorOverrides struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Name      string `json:"name" doc:"Of the CSV"`
	Overrides
	Stream   string `json:"stream,omitempty" doc:"Id of the operator's stream of events"`
	Version  int64  `json:"version,omitempty" doc:"Of its stream"`
	Position string `json:"position,omitempty" doc:"Of the write"`
}

// States of an operator beside its phase, by which lists choose.
const (
	OperatorDrifted      = "Drifted"
	OperatorFlapping     = "Flapping"
	OperatorUninstalling = "Uninstalling"
)

// OperatorDrift says that objects of an operator are not as Chandler wrote them.
type OperatorDrift struct {
	Objects int       `json:"objects" doc:"How many"`
	Policy  string    `json:"policy,omitempty" doc:"What becomes of them: correct, report"`
	Since   time.Time `json:"since" doc:"When the first of them was found"`
}

// OperatorDetails are what the executor reports of an installed operator.
type OperatorDetails struct {
	Requirements []Requirement               `json:"requirementStatus" nullable:"false" doc:"What it needs of its cluster (R-CSV-5)"`
	Condition    *protocol.OperatorCondition `json:"operatorCondition,omitempty" doc:"Whether it lets itself be upgraded; absent while it says nothing"`
	Drift        []protocol.Drift            `json:"drift" nullable:"false" doc:"Objects that are not as Chandler wrote them, and those that were put right a moment ago"`
	Components   []protocol.Component        `json:"components" nullable:"false" doc:"All objects that belong to it (R-CSV-62)"`
	NotReady     []protocol.NotReady         `json:"notReady" nullable:"false" doc:"Deployments that are not ready, and why, as far as that is known"`
	RemovedAPIs  []RemovedAPI                `json:"removedAPIs,omitempty" nullable:"false" doc:"What it uses and the next minor version of Kubernetes no longer serves: replace it before the upgrade (R-CSV-61)"`
	LeftOut      *protocol.Cut               `json:"leftOut,omitempty" doc:"How much of this the cluster's report went without, since it would not fit into a message; absent where it is whole"`
	UpdatedAt    time.Time                   `json:"updatedAt"`
}

// Requirement is one thing that an operator needs of its cluster.
type Requirement struct {
	Group      string      `json:"group"`
	Version    string      `json:"version"`
	Kind       string      `json:"kind"`
	Name       string      `json:"name"`
	Status     string      `json:"status" doc:"Present where it is met"`
	Message    string      `json:"message,omitempty"`
	UUID       string      `json:"uuid,omitempty"`
	Dependents []Dependent `json:"dependents,omitempty" nullable:"false" doc:"Rights that a service account has to have"`
}

// Dependent is one right of a service account that is required.
type Dependent struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
	Status  string `json:"status" doc:"Satisfied, NotSatisfied"`
	Message string `json:"message,omitempty"`
}

// Phase is one transition of a CSV (R-CSV-5).
type Phase struct {
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
	Event  string    `json:"event" doc:"Id of the event"`
}

// OperatorFilter chooses installed operators; empty fields choose all.
type OperatorFilter struct {
	Cluster   string
	Namespace string
	Package   string
	Phase     string
	State     string // a phase, or Drifted, Flapping, Uninstalling
	Details   bool   // lists have them, too
	Serves    string // a namespace that the operator's group serves
	Version   string // a range, such as >=1.2.0 <2.0.0
	Choice
	Page
}

// SummaryCounts say how many of what is there.
type SummaryCounts struct {
	Operators        int            `json:"operators" doc:"Installed operators"`
	Phases           map[string]int `json:"phases" nullable:"false" doc:"Installed operators by phase; phases that none is in are left out"`
	Drifted          int            `json:"drifted" doc:"Installed operators of which objects are not as Chandler wrote them"`
	Subscriptions    int            `json:"subscriptions"`
	RequiresApproval int            `json:"requiresApproval" doc:"Subscriptions whose install plan waits for people"`
	Failing          int            `json:"failing" doc:"Installed operators in phase Failed, and subscriptions of others that do not resolve or whose install plan failed"`
	UpgradeAvailable int            `json:"upgradeAvailable" doc:"Subscriptions for which a newer version than the installed one was found"`
	Deprecated       int            `json:"deprecated" doc:"Subscriptions whose package, channel or installed version their catalog has deprecated"`
}

// Add adds what another part has.
func (c *SummaryCounts) Add(o SummaryCounts) {
	c.Operators += o.Operators
	c.Drifted += o.Drifted
	c.Subscriptions += o.Subscriptions
	c.RequiresApproval += o.RequiresApproval
	c.Failing += o.Failing
	c.UpgradeAvailable += o.UpgradeAvailable
	c.Deprecated += o.Deprecated
	if c.Phases == nil {
		c.Phases = map[string]int{}
	}
	for phase, n := range o.Phases {
		c.Phases[phase] += n
	}
}

// Summary is how one part of the fleet does; of its names those are given that it is summarized by.
type Summary struct {
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty" doc:"Of the cluster"`
	Package   string `json:"package,omitempty"`
	Catalog   string `json:"catalog,omitempty" doc:"A catalog of the hub by its name, one of a cluster as cluster/namespace/name; absent for operators that no subscription follows"`
	SummaryCounts
}

// What summaries are made by.
const (
	ByCluster   = "cluster"
	ByNamespace = "namespace"
	ByPackage   = "package"
	ByCatalog   = "catalog"
)

// SummaryFilter chooses what is summarized; empty fields choose all.
type SummaryFilter struct {
	By              string
	Cluster         string
	Namespace       string
	Package         string
	Catalog         string
	ClusterSelector string
	Page
}

// FleetSummary is a page of parts of the fleet, and all of them together.
type FleetSummary struct {
	Total SummaryCounts `json:"total" doc:"Of all parts, also those of other pages"`
	Items []Summary     `json:"items" nullable:"false"`
	Next  string        `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
	// BreakGlass is told to everybody.
	BreakGlass *BreakGlassUse `json:"breakGlass,omitempty" doc:"The break-glass token of the tenant is in use, or was in the last 24 hours"`
}

// OperatorLogs are lines that pods of an operator have written.
type OperatorLogs struct {
	Containers int          `json:"containers" doc:"So many were asked for their lines"`
	Lines      []LogLine    `json:"lines" nullable:"false" doc:"By time; of each container in the order in which it wrote them"`
	Problems   []LogProblem `json:"problems" nullable:"false" doc:"Containers of which nothing, or not all, can be told"`
	Choices    []LogChoice  `json:"choices,omitempty" nullable:"false" doc:"Pods of several containers, of which the question chose none"`
	After      string       `json:"after" doc:"Give it as the parameter after, to ask for what follows"`
	More       bool         `json:"more,omitempty" doc:"There is more already: the answer is full"`
	LeftOut    int          `json:"leftOut,omitempty" doc:"Containers of which nothing is told, since an answer has 20: choose a Deployment or a pod"`
	MorePods   bool         `json:"morePods,omitempty" doc:"A Deployment has more pods than are looked at: choose one by its name"`
}

// LogLine is one line that a container wrote.
type LogLine struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	// Time is not rounded to seconds as other times are: lines of a second are told apart by it.
	Time string `json:"time" doc:"As the node wrote it: RFC 3339 with the digits that it has" example:"2031-02-03T04:05:06.123456789Z"`
	Text string `json:"text"`
}

// LogChoice says which container of a pod was taken, and out of which.
type LogChoice struct {
	Pod        string   `json:"pod"`
	Container  string   `json:"container" doc:"That was taken"`
	Containers []string `json:"containers" nullable:"false" doc:"All of the pod"`
}

// LogProblem is why a container's lines cannot be told.
type LogProblem struct {
	Pod       string `json:"pod"`
	Container string `json:"container"`
	Message   string `json:"message" doc:"Of the API server or the node, such as that the container has not started"`
}

// LogsOf takes lines of an answer apart and sorts them.
func LogsOf(a protocol.LogAnswer) OperatorLogs {
	out := OperatorLogs{
		Containers: len(a.Containers), Lines: []LogLine{}, Problems: []LogProblem{}, After: a.After, More: a.More,
		LeftOut: a.LeftOut, MorePods: a.MorePods,
	}
	type timed struct {
		LogLine

		at time.Time
	}
	var all []timed
	for _, c := range a.Containers {
		if c.Problem != "" {
			out.Problems = append(out.Problems, LogProblem{c.Pod, c.Container, valid(c.Problem)})
		}
		if len(c.Choices) > 0 {
			out.Choices = append(out.Choices, LogChoice{c.Pod, c.Container, c.Choices})
		}
		for line := range strings.Lines(string(c.Lines)) {
			at, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			when, err := time.Parse(time.RFC3339Nano, at)
			if err != nil { // executors send none such
				continue
			}
			all = append(all, timed{LogLine{c.Pod, c.Container, at, valid(text)}, when})
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return a.at.Compare(b.at) })
	for _, l := range all {
		out.Lines = append(out.Lines, l.LogLine)
	}
	return out
}

// valid is a text as JSON can have it.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// Text are the lines as a terminal shows them, with their times, and with pod and container before them, if that is
// wanted.
func (l OperatorLogs) Text(times, sources bool) []byte {
	var b strings.Builder
	for _, x := range l.Lines {
		if sources {
			b.WriteString("[pod/" + x.Pod + "/" + x.Container + "] ")
		}
		if times {
			b.WriteString(x.Time + " ")
		}
		b.WriteString(x.Text + "\n")
	}
	return []byte(b.String())
}
