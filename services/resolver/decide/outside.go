package decide

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// unfetched explains that bundle images of a component have to come first; nil where all are there.
func unfetched(c resolution.Component) *resolution.Explanation {
	e := &resolution.Explanation{
		Reason: resolution.ReasonUnpacking, Class: resolution.ClassBundleImage,
		Subscriptions: c.Subscriptions,
	}
	for _, b := range c.Bundles {
		if b.Content != "" || b.Image == "" {
			continue
		}
		s := resolution.Statement{
			Kind: resolution.BundleImagePending, Bundle: b.CSV, Package: b.Package,
			Catalog: b.Catalog.String(),
		}
		s.Text = fmt.Sprintf("bundle image %s of %s is being fetched", b.Image, b.CSV)
		if b.Unfetched != "" {
			e.Reason = resolution.ReasonUnpackFailed
			s.Kind = resolution.BundleImageFailed
			s.Text = fmt.Sprintf("bundle image %s of %s in catalog %s cannot be had (%s): %s", b.Image, b.CSV,
				b.Catalog, b.Unfetched, advice(b.Unfetched))
		}
		e.Statements = append(e.Statements, s)
	}
	if len(e.Statements) == 0 {
		return nil
	}
	slices.SortStableFunc(e.Statements, func(a, b resolution.Statement) int { return cmp.Compare(a.Text, b.Text) })
	return e
}

// advice says what helps, by the reason of catalog.bundles-fetched.v1.
func advice(reason string) string {
	switch reason {
	case "Unauthorized":
		return "the catalog's credentials do not allow it; give others, and it is tried again at once"
	case "NotFound":
		return "no registry or mirror has it; it is tried again by itself"
	case "DigestMismatch":
		return "what the registry sent is not what its digest says; it is tried again by itself"
	case "InvalidBundle":
		return "what is in it is not this bundle, or not a valid one; the catalog's author has to publish another"
	case "TooLarge":
		return "it is larger than a bundle may be; the catalog's author has to publish another"
	default:
		return "its registry does not answer; it is tried again by itself"
	}
}

// cordoned explains that nothing of a component is planned while its cluster is cordoned; nil where nothing could be.
func cordoned(c resolution.Component) *resolution.Explanation {
	if len(c.Bundles) == 0 {
		return nil
	}
	cluster := c.Input.Scope.Cluster
	return &resolution.Explanation{
		Reason: resolution.ReasonClusterCordoned, Class: resolution.ClassCordoned, Subscriptions: c.Subscriptions,
		Statements: []resolution.Statement{{
			Kind: resolution.ClusterCordoned, Text: fmt.Sprintf("cluster %s is cordoned: no new install plans are made "+
				"for it until somebody uncordons it", cluster),
		}},
	}
}

// RestsOnCluster says whether a verdict would be another one if the cluster were cordoned no more. That a proposal
// would be none in a cordoned cluster is seen to where it is written: a plan that is there does not rest on it.
func (v Verdict) RestsOnCluster() bool {
	return v.Kind == Blocked && v.Failure.Class == resolution.ClassCordoned
}

// strict holds up a proposal where a catalog that the namespace sees is unhealthy and its own namespace is
// strict about that (R-CAT-99), as the resolution found and recorded:
//
//	one is unhealthy              → blocked: recorded once, with the catalogs and what helps
//	one is loaded the first time  → waiting
//
// Plans that are there already are carried out.
func strict(v *Verdict) {
	switch {
	case v.Component.Blocked != nil:
		v.Kind, v.Failure = Blocked, v.Component.Blocked
	case v.Component.Loading:
		v.Kind = Waiting
	}
}
