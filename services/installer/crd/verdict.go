package crd

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// Verdict is what the definitions and the objects come to; more says that there are objects that were not added.
//
//	 1  no definition in the cluster                      safe: it is created
//	 2  nothing becomes narrower, goes or moves           safe, whoever owns it (P13)
//	 3  another scope, kind or plural                     refused: no API server takes it (R-CRD-8)
//	 4  a stored version would go                         refused: risk of data loss (R-CRD-3)
//	 5  a served version would go, others own it, too     refused, with the owners (R-CRD-2a, P15)
//	 6  a served version would go, nobody else owns it    safe, with a warning (R-CRD-1, R-CRD-5)
//	 7  objects that were valid become invalid            refused, with a sample (R-CRD-2b, R-CRD-4)
//	 8  the same, with a conversion webhook in the plan   safe, with a warning (R-CRD-4)
//	 9  objects hold fields that the new schema drops     safe, with a warning; cannot be undone
//	10  narrower, and all objects that were read fit      safe (R-CRD-1); a warning where some were not read
//	11  objects are stored in a version that only the     safe; cannot be undone: going back would remove a
//	    new definition has from then on                   stored version (R-CRD-3)
//	12  conversion begins and the stored version moves    safe; cannot be undone: what is stored anew would be
//	                                                      read without conversion
//	13  objects would be converted by another webhook       refused, with the owners: their objects would be sent there
//	    than now, or by none, and others own them, too
//
// Rows 5 and 7 are what an approver may override, with a reason: the verdict then has a finding to name. What no API
// server takes, or would leave objects that nobody can read, nobody overrides.
//
// Reversible is about going back afterwards; what the objects of that time say is checked when it is asked for, and
// what they could say is a warning here.
func (j *Judge) Verdict(more bool) protocol.CRDVerdict {
	j.out.More = more
	if !j.created {
		j.shape()
		j.conversion()
	}
	if j.diff != nil {
		j.storedVersions()
		j.servedVersions()
		j.objects()
		j.irreversible()
	}
	j.later()
	j.out.Safe, j.out.Reversible = len(j.out.Problems) == 0, len(j.out.Irreversible) == 0
	j.out.Finding = j.finding()
	return j.out
}

// findingType is the type prefix of the digest of a finding.
const findingType = "chandler.crd-finding.v1"

// finding is the digest by which an approver may override the verdict, "" where there is nothing to override or nobody
// may. It is that of the change: which objects it hurts at the moment is no part of it, since that passes (DESIGN D6).
func (j *Judge) finding() string {
	if j.out.Safe || j.fixed {
		return ""
	}
	// Who converts is no part of it, either: certificates are renewed.
	live, next := j.live.Spec, j.next.Spec
	live.Conversion, next.Conversion = nil, nil
	d, err := digest.JSON(findingType, map[string]any{
		"crd": j.next.Name, "live": live, "next": next, "gone": j.diff.ServedRemoved, "others": j.others,
		"invalid": j.out.Invalid > 0,
	})
	if err != nil {
		return "" // a definition that came as JSON has a digest
	}
	return string(d)
}

// never notes a problem that nobody may override.
func (j *Judge) never(format string, args ...any) {
	j.fixed = true
	j.problem(format, args...)
}

func (j *Judge) problem(format string, args ...any) {
	j.out.Problems = append(j.out.Problems, fmt.Sprintf(format, args...))
}

func (j *Judge) warn(format string, args ...any) {
	j.out.Warnings = append(j.out.Warnings, fmt.Sprintf(format, args...))
}

// shape is row 3.
func (j *Judge) shape() {
	for _, m := range []struct{ what, from, to string }{
		{"scope", string(j.live.Spec.Scope), string(j.next.Spec.Scope)},
		{"kind", j.live.Spec.Names.Kind, j.next.Spec.Names.Kind},
		{"plural", j.live.Spec.Names.Plural, j.next.Spec.Names.Plural},
	} {
		if m.from != m.to {
			j.never("%s cannot change its %s from %s to %s: delete the definition, and with it its objects, before",
				j.next.Name, m.what, m.from, m.to)
		}
	}
}

// conversion is row 13. A definition that says nothing of conversion leaves it as it is.
func (j *Judge) conversion() {
	if len(j.others) == 0 || j.next.Spec.Conversion == nil || converter(j.next) == converter(j.live) {
		return
	}
	j.never(
		"objects of %s would be converted by %s, and are converted by %s; the definition is owned by %s, too: "+
			"uninstall one of the two",
		j.next.Name, converter(j.next), converter(j.live), strings.Join(j.others, ", "))
}

// converter is where a definition sends its objects to be converted: namespace/service with the path, or a URL.
func converter(c apiextensionsv1.CustomResourceDefinition) string {
	if !converts(c) {
		return "nobody"
	}
	if c.Spec.Conversion.Webhook == nil || c.Spec.Conversion.Webhook.ClientConfig == nil {
		return "a webhook"
	}
	config := c.Spec.Conversion.Webhook.ClientConfig
	if s := config.Service; s != nil {
		out := s.Namespace + "/" + s.Name
		if s.Path != nil {
			out += *s.Path
		}
		return out
	}
	if config.URL != nil {
		return *config.URL
	}
	return "a webhook"
}

// storedVersions is row 4.
func (j *Judge) storedVersions() {
	for _, v := range j.live.Status.StoredVersions {
		if _, stays := version(j.next, v); !stays {
			j.never(
				"risk of data loss updating %q: new CRD removes version %s that is listed as a stored version on the "+
					"existing CRD", j.next.Name, v)
		}
	}
}

// servedVersions is rows 5 and 6.
func (j *Judge) servedVersions() {
	gone := strings.Join(j.diff.ServedRemoved, ", ")
	switch {
	case gone == "":
	case len(j.others) > 0:
		j.problem("%s would no longer be served in %s, and is owned by %s, too", j.next.Name, gone,
			strings.Join(j.others, ", "))
	default:
		j.warn("%s is no longer served in %s: clients that use it fail", j.next.Name, gone)
	}
}

// objects is rows 7 to 10.
func (j *Judge) objects() {
	switch {
	case j.out.Invalid == 0:
	case converts(j.next):
		j.warn(
			"%d of %d objects of %s are not valid under its new schema as they are; its conversion webhook has to "+
				"make them so", j.out.Invalid, j.out.Checked, j.next.Name)
	default:
		j.problem("error validating existing CRs against new CRD's schema for %q: %d of %d objects become invalid: %s",
			j.next.Name, j.out.Invalid, j.out.Checked, strings.Join(j.out.Sample[:min(len(j.out.Sample), 3)], "; "))
	}
	if len(j.dropped) > 0 {
		j.warn("objects of %s hold fields that its new schema does not know, which are dropped: %s", j.next.Name,
			j.droppedFields())
	}
	if j.out.More {
		j.warn("only %d objects of %s were checked; there are more", j.out.Checked, j.next.Name)
	}
	if len(j.unread) > 0 {
		j.warn("objects of %s cannot be checked as %s, in which the cluster does not serve them now", j.next.Name,
			strings.Join(j.unread, ", "))
	}
}

func (j *Judge) droppedFields() string {
	fields := make([]string, 0, len(j.dropped))
	for f, n := range j.dropped {
		fields = append(fields, fmt.Sprintf("%s (%d)", f, n))
	}
	slices.Sort(fields)
	return list(fields)
}

// irreversible is rows 9, 11 and 12.
func (j *Judge) irreversible() {
	if len(j.dropped) > 0 {
		j.cannotUndo("fields that objects hold are dropped: %s", j.droppedFields())
	}
	if m := j.diff.Storage; m != nil {
		if _, known := version(j.live, m.To); !known {
			j.cannotUndo("objects are stored as %s from then on, which the definition as it is now does not have", m.To)
		} else if converts(j.next) && !converts(j.live) {
			j.cannotUndo(
				"objects are stored as %s from then on and converted, which the definition as it is now does not do",
				m.To)
		}
	}
}

// later says what only the objects of a later time can tell of going back.
func (j *Judge) later() {
	if j.back == nil || len(j.back.Schema) == 0 {
		return
	}
	var places []string
	for _, c := range j.back.Schema {
		if p := c.Version + " " + place(c); !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	j.warn("going back later takes less than the new %s: it depends on what objects then hold at %s", j.next.Name,
		list(places))
}

func (j *Judge) cannotUndo(format string, args ...any) {
	j.out.Irreversible = append(j.out.Irreversible, fmt.Sprintf(format, args...))
}

func place(c compare.SchemaChange) string {
	if c.Path == "" {
		return "the whole"
	}
	return c.Path
}

func list(items []string) string {
	if n := len(items) - maxFields; n > 0 {
		return strings.Join(items[:maxFields], ", ") + fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(items, ", ")
}
