package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Passed is a manifest that is no part of the bundle, as it is none for OLM.
type Passed struct {
	Manifest int // its index
	Message  string
}

// Gather is FromManifests for manifests that are canonical JSON already, as their decoder writes them: it returns the
// objects of the bundle in canonical order. It takes what OLM takes, and says what it passed over:
//
//	a manifest without a kind, which is no Kubernetes object    passed over
//	a ClusterServiceVersion after the first one                 passed over
//	an object that came before, with other content              the last one counts, the one before is passed over
//	the same object in two files                                it counts once
func Gather(manifests [][]byte) (objects []Object, passed []Passed, err error) {
	if len(manifests) > MaxManifests {
		return nil, nil, errs.New(errs.TooLarge, "bundle has %d manifests, more than %d", len(manifests),
			MaxManifests).At("", "bundle.MaxManifests")
	}
	all := make([]Object, 0, len(manifests))
	from := make([]int, 0, len(manifests))
	total, csv := 0, Object{}
	for i, m := range manifests {
		if total += len(m); total > MaxBytes {
			return nil, nil, errs.New(errs.TooLarge, "bundle is larger than %d bytes", MaxBytes).At(
				fmt.Sprintf("/%d", i), "bundle.MaxBytes")
		}
		if why := noObject(m); why != "" {
			passed = append(passed, Passed{i, why})
			continue
		}
		o, err := identify(m)
		if err != nil {
			return nil, nil, at(err, i)
		}
		if o.Kind == KindCSV {
			switch {
			case csv.Name == "":
				csv = o
			case bytes.Equal(csv.Raw, o.Raw):
				continue
			default:
				passed = append(passed, Passed{i, fmt.Sprintf(
					"it is another ClusterServiceVersion, %s; a bundle has one, and the first, %s, is taken", o.Name,
					csv.Name)})
				continue
			}
		}
		all, from = append(all, o), append(from, i)
	}
	objects, before := last(all)
	for _, n := range before {
		passed = append(passed, Passed{from[n], fmt.Sprintf(
			"%s comes again with different content; the last one counts: keep one", all[n])})
	}
	return objects, passed, nil
}

// noObject says why a manifest is no Kubernetes object, "" for one that is.
func noObject(m []byte) string {
	if o, ok := identity(m); ok && o.Kind != "" {
		return ""
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(m, &head); err != nil || head.Kind == "" {
		return "it is no Kubernetes object, since it has no kind; move the file out of the manifests"
	}
	return ""
}

// last puts objects in canonical order. Of several with one identity the last one stays; before are the indices of
// those of them that had another content.
func last(all []Object) (objects []Object, before []int) {
	order := make([]int, len(all))
	for i := range all {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(all[a], all[b]) })
	for n, i := range order {
		if n+1 < len(order) && compare(all[i], all[order[n+1]]) == 0 {
			if !bytes.Equal(all[i].Raw, all[order[n+1]].Raw) {
				before = append(before, i)
			}
			continue
		}
		objects = append(objects, all[i])
	}
	return objects, before
}
