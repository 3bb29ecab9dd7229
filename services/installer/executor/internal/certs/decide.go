package certs

import "slices"

// Definition is what decides how the API server brings the objects of a CRD from version to version.
type Definition struct {
	// Webhook is set where it calls an operator for that; else it changes the version's name and nothing more.
	Webhook bool
	// Versions are all of them, Served those under which objects can be read and written.
	Versions []string
	Served   []string
	// Stored is the version in which objects are written down.
	Stored string
}

// KeptForm is what a CRD in a new form keeps of the form that it has in the cluster.
type KeptForm struct {
	Conversion bool
	Stored     bool
}

// Keep decides what stays of a CRD (R-CSV-46) while the operator that brings its new form does not answer yet. What
// could be read and written before can be all the while, and nothing is converted by anybody who does not know how:
//
//	from live to next     served versions   kept of live
//	by name to by name    any               nothing
//	webhook to webhook    any               conversion, stored version
//	by name to webhook    none is new       conversion, stored version
//	by name to webhook    some are new      stored version
//	webhook to by name    none is new       conversion, stored version
//	webhook to by name    some are new      nothing
//
// Where it stays a webhook, a new version waits for the operator: the former one refuses it. By name it would be read,
// and written, in a wrong form; so the webhook comes at once, and until it answers the stored version alone can be
// used. That one stays what it was as long as the next form has it: what is written is stored without a conversion.
func Keep(live, next Definition) KeptForm {
	added := slices.ContainsFunc(next.Served, func(v string) bool { return !slices.Contains(live.Served, v) })
	k := KeptForm{Conversion: live.Webhook || next.Webhook, Stored: live.Webhook || next.Webhook}
	switch {
	case live.Webhook == next.Webhook || !added:
	case next.Webhook:
		k.Conversion = false
	default:
		k = KeptForm{}
	}
	k.Stored = k.Stored && slices.Contains(next.Versions, live.Stored)
	return k
}
