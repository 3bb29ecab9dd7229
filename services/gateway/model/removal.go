package model

import "time"

// Uninstall says how an operator is to be uninstalled.
type Uninstall struct {
	CRDs []string // names of definitions, or *
	Plan string   // digest of the removal plan that was shown
	// Subscriptions says that those which want the operator are deleted, too.
	Subscriptions bool
}

// RemovalRequested is the answer to a request to uninstall an operator.
type RemovalRequested struct {
	Removal       string   `json:"removal" doc:"Id of the request" format:"uuid"`
	Cluster       string   `json:"cluster"`
	Namespace     string   `json:"namespace"`
	Name          string   `json:"name" doc:"Of the CSV"`
	CRDs          []string `json:"crds,omitempty" doc:"Custom resource definitions that go with it, and with them all their objects"`
	Plan          string   `json:"plan,omitempty" doc:"Digest of the removal plan that was shown"`
	Subscriptions []string `json:"subscriptions,omitempty" doc:"That were deleted with the request"`
	Stream        string   `json:"stream,omitempty" doc:"Id of the operator's stream of events"`
	Version       int64    `json:"version,omitempty" doc:"Of its stream"`
	Position      string   `json:"position,omitempty" doc:"Of the write"`
}

// Phases of a removal.
const (
	RemovalAsked   = "Requested"
	RemovalStarted = "Started"
	RemovalBlocked = "Blocked"
	RemovalRefused = "Refused"
)

// Removal is a request to uninstall an operator that is still there, and how far it is.
type Removal struct {
	ID      string    `json:"id" doc:"Of the request"`
	CRDs    []string  `json:"crds,omitempty" doc:"Custom resource definitions that go with it, and with them all their objects"`
	Plan    string    `json:"plan,omitempty" doc:"Digest of the removal plan that was shown"`
	Phase   string    `json:"phase" enum:"Requested,Started,Blocked,Refused" doc:"Refused has ended; the others go on by themselves until the operator is gone"`
	Class   string    `json:"class,omitempty" doc:"Of a block: transient, conflict or stopped"`
	Reason  string    `json:"reason,omitempty" doc:"Code for programs"`
	Message string    `json:"message,omitempty" doc:"Sentence for people, with what to do"`
	By      string    `json:"by" doc:"Actor who asked, or the fleet subscription that a cluster left"`
	Since   time.Time `json:"since" doc:"Time of the event that set the phase"`
}

// Object names one object of a cluster.
type Object struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// RemovalPlan is what uninstalling an operator would do now.
type RemovalPlan struct {
	CSV    string        `json:"csv"`
	Digest string        `json:"digest" doc:"Asking with it removes exactly this, or is refused"`
	Steps  []RemovalStep `json:"steps" nullable:"false" doc:"What goes, in order"`
	Stays  []Leftover    `json:"stays" nullable:"false" doc:"What the operator brought and is left"`
	Losses []Loss        `json:"losses,omitempty" doc:"Data that goes and that no other plan brings back"`
	Needed []string      `json:"needed,omitempty" doc:"Operators that depend on this one, as namespace/csv: they need an API of it, or require it otherwise"`
	// Requires are known to the resolver alone.
	Requires []RemovalDependant `json:"requires,omitempty" nullable:"false" doc:"What dependants require, where it is written beside their ClusterServiceVersion (dependencies.yaml)"`
	Next     *PreviewScope      `json:"next,omitempty" doc:"What would be decided in the namespace once the operator and its subscriptions are gone"`
	// Subscriptions are known to the gateway.
	Subscriptions []string `json:"subscriptions,omitempty" doc:"That want the operator: they are to be deleted, too"`
}

// RemovalDependant is an operator that requires another one.
type RemovalDependant struct {
	Operator string   `json:"operator" doc:"As namespace/csv"`
	Requires []string `json:"requires" nullable:"false" example:"of package tidegauge in range >=1.0.0"`
}

// RemovalStep is one stretch of a removal.
type RemovalStep struct {
	Action  string   `json:"action" doc:"DeleteCustomResources (every object of the definitions), ResetConversion, DeleteObjects or DeleteCRDs"`
	Objects []Object `json:"objects" nullable:"false"`
}

// Leftover is an object that stays when an operator goes (R-UNI-2).
type Leftover struct {
	Object
	Reason string   `json:"reason" doc:"NotAsked, OtherOwners, or NotOurs: Chandler did not write it"`
	Owners []string `json:"owners,omitempty" doc:"Other operators that own it, as namespace/csv"`
}

// Loss is the data that goes with one custom resource definition.
type Loss struct {
	CRD     string   `json:"crd"`
	Objects int      `json:"objects" doc:"How many there are"`
	More    bool     `json:"more,omitempty" doc:"Counting ended at a limit"`
	Sample  []string `json:"sample,omitempty" doc:"Some of them, as namespace/name"`
}

// Leftovers is what an operator left when it was uninstalled (R-UNI-7). It is listed until its package is installed in
// the cluster again.
type Leftovers struct {
	Cluster   string     `json:"cluster"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name" doc:"Of the CSV"`
	Package   string     `json:"package"`
	Removal   string     `json:"removal" doc:"Id of the request that it went with"`
	RemovedAt time.Time  `json:"removedAt"`
	Objects   []Leftover `json:"objects" nullable:"false" doc:"Empty where nothing was left"`
	More      int        `json:"more,omitempty" doc:"Objects that were left and are not listed, since the cluster's report would not have fitted into a message"`
}

// LeftoverFilter chooses leftovers; empty fields choose all.
type LeftoverFilter struct {
	Cluster   string
	Namespace string
	Package   string
	Page
}
