package protocol

import (
	"crypto"
	"encoding/json"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// ObjectRef names one object of a cluster.
type ObjectRef struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is "Kind namespace/name", for people.
func (r ObjectRef) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Removal is one request to uninstall an operator (csv.removal-requested.v1) that has not ended.
type Removal struct {
	ID   string   `json:"id"`
	CSV  string   `json:"csv"`
	CRDs []string `json:"crds,omitempty"` // to be deleted with all objects of theirs
	Plan string   `json:"plan,omitempty"` // digest of the RemovalPlan that was shown
	// Dependants are those of RemovalQuestion, as they were when it was asked for.
	Dependants []string `json:"dependants,omitempty"`
	// Grant lets the removal begin: whoever can write to the bus can ask for nothing that the hub was not asked for.
	Grant Grant `json:"grant"`
}

// removalType is the type prefix of the digest of a request.
const removalType = "chandler.removal-request.v1"

// Digest is that of the request without its grant: what the grant is for.
func (r Removal) Digest() (digest.Digest, error) {
	r.Grant = Grant{}
	return digest.JSON(removalType, r)
}

// Granted is the request with a grant for a namespace of a cluster.
func (r Removal) Granted(clusterID, namespace string, expires time.Time, key crypto.Signer) (Removal, error) {
	d, err := r.Digest()
	if err != nil {
		return r, err
	}
	r.Grant, err = Grant{
		Plan: r.ID, Digest: string(d), Cluster: clusterID, Namespace: namespace,
		Expires: expires.UTC().Truncate(time.Second),
	}.Sign(key)
	return r, err
}

// RemovalPlan is what a removal would do now, in order. Its digest is taken without Losses, which change all the time.
type RemovalPlan struct {
	CSV string `json:"csv"`
	// UID is that of the InstalledOperator: one of the same name that was installed since is another operator. "" if it
	// does not exist.
	UID string `json:"uid,omitempty"`
	// Steps are carried out in this order; the objects of one step are deleted together.
	Steps []RemovalStep `json:"steps"`
	// Stays are objects of the operator that are not deleted, with the reason.
	Stays []Leftover `json:"stays"`
	// Needed are operators of the cluster that need an API of this one, as namespace/csv.
	Needed []string `json:"needed,omitempty"`
	// Losses are data that no plan restores: the objects of each definition that is deleted.
	Losses []Loss `json:"losses,omitempty"`
}

// RemovalStep is one step of a removal.
type RemovalStep struct {
	Action  string      `json:"action"` // one of the actions of a removal
	Objects []ObjectRef `json:"objects"`
}

// Actions of a removal.
const (
	RemovalCustomResources = "DeleteCustomResources" // every object of the definitions
	RemovalConversion      = "ResetConversion"       // of definitions that stay: their objects are no longer converted
	RemovalObjects         = "DeleteObjects"
	RemovalCRDs            = "DeleteCRDs"
)

// Why an object stays.
const (
	LeftNotAsked    = "NotAsked"
	LeftOtherOwners = "OtherOwners" // operators that are installed own it, too
	LeftNotOurs     = "NotOurs"     // Chandler did not write it, or not first
)

// Leftover is an object that stays.
type Leftover struct {
	ObjectRef
	Reason string `json:"reason"` // one of the above
	// Owners are the other operators that own it, as namespace/csv.
	Owners []string `json:"owners,omitempty"`
}

// Loss is the data that is deleted with one custom resource definition.
type Loss struct {
	CRD     string `json:"crd"`
	Objects int    `json:"objects"`
	More    bool   `json:"more,omitempty"` // counting ended at a limit
	// Sample are some of them, as namespace/name.
	Sample []string `json:"sample,omitempty"`
}

// RemovalReport is how far a removal is. Ended ones are reported until the hub no longer names them.
type RemovalReport struct {
	ID      string     `json:"id"`
	CSV     string     `json:"csv"`
	Phase   string     `json:"phase"` // PlanBlocked, PlanStarted, PlanFinished, or RemovalRefused
	Class   string     `json:"class,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	Message string     `json:"message,omitempty"`
	Left    []Leftover `json:"left,omitempty"` // what stayed, once it is finished
	Cut     int        `json:"cut,omitempty"`  // entries of Left that are left out
}

// RemovalRefused is the phase of a removal that ended without effect.
const RemovalRefused = "Refused"

// Drift is one object that is not as Chandler wrote it.
type Drift struct {
	ObjectRef
	// Fields are the differences, a bounded number of them; a missing object has none.
	Fields  []FieldDrift `json:"fields,omitempty"`
	Missing bool         `json:"missing,omitempty"`
	Manager string       `json:"manager,omitempty"` // field manager that wrote it last, where known
	Since   time.Time    `json:"since"`
	// Corrected is set if it was corrected at once; such an entry is reported for a while.
	Corrected bool `json:"corrected,omitempty"`
	// Reason is why it cannot be compared completely, or corrected: the API server's error of the dry run or of the
	// write.
	Reason string `json:"reason,omitempty"`
}

// FieldDrift is one field that differs. Want and Have are JSON, cut to a bounded length; of Secrets they are absent.
type FieldDrift struct {
	Path string          `json:"path"` // JSON pointer
	Want json.RawMessage `json:"want,omitempty"`
	Have json.RawMessage `json:"have,omitempty"`
}

// Component is one object that belongs to an installed operator, with its state (R-CSV-62).
type Component struct {
	ObjectRef
	// of kstatus: Current, InProgress, Failed, Terminating, NotFound; or ComponentWaiting
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

// ComponentWaiting is the status of a component that is left out while the cluster does not serve its kind, which no
// operator needs.
const ComponentWaiting = "Waiting"

// OptionalKindsNotServed is the type of the condition of an operator that runs without objects of optional kinds.
const OptionalKindsNotServed = "OptionalKindsNotServed"

// ReasonNotServed is why: the API of a kind is not served.
const ReasonNotServed = "APINotServed"

// Condition is one thing that is out of the ordinary with an operator, whatever its phase: True is abnormal.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"lastTransitionTime"`
}

// NotReady is a Deployment of an installed operator that is not ready, and why, as far as that is known.
type NotReady struct {
	Deployment string `json:"deployment"`
	Reason     string `json:"reason,omitempty"`  // a code of package readiness, "" while it is not known
	Message    string `json:"message,omitempty"` // for people; stays out of the log
	Webhook    string `json:"webhook,omitempty"` // the admission webhook that is to blame
	// Owner is the operator that this webhook belongs to, as namespace/csv.
	Owner string `json:"owner,omitempty"`
}

// OperatorCondition is what an operator and its administrators say of an upgrade (R-COND).
type OperatorCondition struct {
	Upgradeable bool   `json:"upgradeable"`
	Reason      string `json:"reason,omitempty"`
	Message     string `json:"message,omitempty"`
	Overridden  bool   `json:"overridden,omitempty"`
}

// GroupReport is what an operator group comes to in its cluster.
type GroupReport struct {
	ID           string           `json:"id"` // as OperatorGroup.ID
	Name         string           `json:"name"`
	Targets      []string         `json:"targets"` // sorted; [""] is all namespaces
	ProvidedAPIs []string         `json:"providedAPIs"`
	Conditions   []GroupCondition `json:"conditions,omitempty"`
	// Roles are the names of the aggregating cluster roles of the group (R-OG-40).
	Roles []string `json:"roles,omitempty"`
}

// Types of the conditions of a group, as far as its cluster reports them (R-OG §7.1).
const (
	// GroupServiceAccount: the named account does not exist (ServiceAccountNotFound).
	GroupServiceAccount = "OperatorGroupServiceAccount"
	// GroupTargetsMissing: listed targets do not exist or are being deleted (NamespaceNotFound).
	GroupTargetsMissing = "TargetNamespacesMissing"
	// GroupForbidden: the accounts of its operators lack rights that their roles would give there (Forbidden).
	GroupForbidden = "TargetNamespacesForbidden"
	// GroupUnattended: something of its operators cannot be written, or others undo it (TriedAgain).
	GroupUnattended = "OperatorsUnattended"
)

// GroupCondition is one thing that is the matter with a group.
type GroupCondition struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}
