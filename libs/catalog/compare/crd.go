package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Move is a value that is another one than before.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// What can become of a CRD.
const (
	Added   = "added"
	Removed = "removed"
	Changed = "changed"
)

// CRD is one custom resource definition that differs.
type CRD struct {
	Name   string `json:"name"` // plural.group
	Change string `json:"change"`
	// Scope is set where Namespaced and Cluster changed places, which no API server takes (R-CRD-8).
	Scope *Move `json:"scope,omitempty"`
	// Storage is set where another version is the one that is stored (R-CRD-5).
	Storage *Move `json:"storage,omitempty"`
	// Conversion is set where the strategy changed.
	Conversion *Move `json:"conversion,omitempty"`
	// VersionsRemoved are gone: an API server refuses that while one of them is stored (R-CRD-3).
	VersionsRemoved []string `json:"versionsRemoved,omitempty"`
	// ServedRemoved were served and are not any more, gone or not (R-CRD-2).
	ServedRemoved []string `json:"servedRemoved,omitempty"`
	VersionsAdded []string `json:"versionsAdded,omitempty"`
	// Schema lists what narrows the schema of versions that stay, so that existing resources can become
	// invalid (R-CRD-2, R-CRD-8). More counts what is not listed.
	Schema []SchemaChange `json:"schema,omitempty"`
	More   int            `json:"more,omitempty"`
}

// Breaking reports whether resources can become invalid or unreachable.
func (c *CRD) Breaking() bool {
	return c.Change == Removed || c.Scope != nil || len(c.ServedRemoved) > 0 || len(c.VersionsRemoved) > 0 ||
		len(c.Schema) > 0
}

// crd is what is read of a CRD, of apiextensions.k8s.io/v1 and of v1beta1, where one schema may stand
// for all versions.
type crd struct {
	Spec struct {
		Scope      string          `json:"scope"`
		Version    string          `json:"version"` // v1beta1
		Versions   []crdVersion    `json:"versions"`
		Validation json.RawMessage `json:"validation"` // v1beta1
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		PreserveUnknownFields *bool `json:"preserveUnknownFields"`
	} `json:"spec"`
}

type crdVersion struct {
	Name    string          `json:"name"`
	Served  bool            `json:"served"`
	Storage bool            `json:"storage"`
	Schema  json.RawMessage `json:"schema"`
}

// parseCRD reads a CRD; raw is nil where there is none.
func parseCRD(name string, raw json.RawMessage) (crd, error) {
	var c crd
	if raw == nil {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, errs.New(errs.Invalid, "custom resource definition %s cannot be read: %v", name, err).At(
			"/spec", "R-CRD-6")
	}
	if len(c.Spec.Versions) == 0 && c.Spec.Version != "" {
		c.Spec.Versions = []crdVersion{{Name: c.Spec.Version, Served: true, Storage: true}}
	}
	for i := range c.Spec.Versions {
		if v := &c.Spec.Versions[i]; v.Schema == nil {
			v.Schema = c.Spec.Validation
		}
	}
	return c, nil
}

func (c crd) version(name string) (crdVersion, bool) {
	i := slices.IndexFunc(c.Spec.Versions, func(v crdVersion) bool { return v.Name == name })
	if i < 0 {
		return crdVersion{}, false
	}
	return c.Spec.Versions[i], true
}

func (c crd) storage() string {
	for _, v := range c.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}

// conversion is the strategy; v1 and v1beta1 mean None where they say nothing.
func (c crd) conversion() string {
	if c.Spec.Conversion.Strategy == "" {
		return "None"
	}
	return c.Spec.Conversion.Strategy
}

// Definitions compares two definitions of one name, both in canonical JSON, such as the one that a cluster has with
// the one that it is to have. It returns what differs, nil where nothing of meaning does.
func Definitions(name string, from, to json.RawMessage) (*CRD, error) {
	return compareCRD(name, from, to)
}

// compareCRD returns what differs, nil where nothing of meaning does (a description, a short name).
func compareCRD(name string, from, to json.RawMessage) (*CRD, error) {
	out := &CRD{Name: name, Change: Changed}
	switch {
	case from == nil:
		out.Change = Added
		return out, nil
	case to == nil:
		out.Change = Removed
		return out, nil
	}
	old, err := parseCRD(name, from)
	if err != nil {
		return nil, err
	}
	now, err := parseCRD(name, to)
	if err != nil {
		return nil, err
	}
	out.Scope = moved(old.Spec.Scope, now.Spec.Scope)
	out.Storage = moved(old.storage(), now.storage())
	out.Conversion = moved(old.conversion(), now.conversion())
	if err := out.versions(old, now); err != nil {
		return nil, err
	}
	if out.Scope == nil && out.Storage == nil && out.Conversion == nil && len(out.VersionsAdded) == 0 &&
		!out.Breaking() {
		return nil, nil //nolint:nilnil // no difference is an answer, not a failure
	}
	return out, nil
}

func moved(from, to string) *Move {
	if from == to {
		return nil
	}
	return &Move{From: from, To: to}
}

// versions compares version by version.
func (c *CRD) versions(old, now crd) error {
	for _, v := range now.Spec.Versions {
		if _, had := old.version(v.Name); !had {
			c.VersionsAdded = append(c.VersionsAdded, v.Name)
		}
	}
	for _, was := range old.Spec.Versions {
		is, stays := now.version(was.Name)
		if !stays {
			c.VersionsRemoved = append(c.VersionsRemoved, was.Name)
		}
		if was.Served && !is.Served {
			c.ServedRemoved = append(c.ServedRemoved, was.Name)
		}
		if !stays || bytes.Equal(was.Schema, is.Schema) && pruning(old) == pruning(now) {
			continue
		}
		if err := c.schema(was, is, pruning(now) && !pruning(old)); err != nil {
			return err
		}
	}
	slices.Sort(c.VersionsAdded)
	slices.Sort(c.VersionsRemoved)
	slices.Sort(c.ServedRemoved)
	return nil
}

// pruning reports whether fields that the schema does not know are dropped.
func pruning(c crd) bool {
	return c.Spec.PreserveUnknownFields == nil || !*c.Spec.PreserveUnknownFields
}

// schema compares the schemas of one version.
func (c *CRD) schema(was, is crdVersion, prunes bool) error {
	old, err := parseSchema(was.Schema)
	if err != nil {
		return fmt.Errorf("%s, version %s, before: %w", c.Name, was.Name, err)
	}
	now, err := parseSchema(is.Schema)
	if err != nil {
		return fmt.Errorf("%s, version %s, after: %w", c.Name, is.Name, err)
	}
	w := narrower{version: was.Name}
	if prunes {
		w.add("", PruningBegins, "", "")
	}
	w.compare("", old, now)
	c.Schema = append(c.Schema, w.changes...)
	c.More += w.more
	return nil
}
