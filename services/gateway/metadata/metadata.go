// Package metadata checks the labels and annotations of an intent. They mean nothing to Chandler, and mirrors carry
// them into clusters, so that what an API server would refuse is refused before it is kept. The package is pure.
package metadata

import (
	"maps"
	"slices"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// fields say in the API what an annotation says on an object of OLM: an annotation beside one could say something else.
var fields = map[events.Kind]map[string]string{
	events.KindCatalog: {model.AnnotationTemplate: "source.template"},
	events.KindOperatorGroup: {
		model.AnnotationExcludeGlobal: "excludeGlobalCatalogs",
		model.AnnotationProvidedAPIs:  "providedAPIs",
	},
}

// Check says what is wrong with the labels and annotations of an intent; at is the place of both.
func Check(v *rule.Violations, at string, kind events.Kind, in model.Metadata) {
	v.Labels(at+"/labels", in.Labels)
	own(v, at+"/labels", in.Labels)
	v.Annotations(at+"/annotations", in.Annotations)
	own(v, at+"/annotations", in.Annotations)
	for _, key := range slices.Sorted(maps.Keys(fields[kind])) {
		if _, given := in.Annotations[key]; given {
			v.Addf(at+"/annotations", rule.ReservedKey, "the annotation %s has a field of its own here: say it with %s",
				key, fields[kind][key])
		}
	}
}

// own refuses the words by which Chandler finds its own objects in clusters: mirrors would bear them.
func own(v *rule.Violations, at string, values map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if render.OwnWord(key) {
			v.Addf(at+"/"+rule.Escape(key), rule.ReservedKey,
				"key %q is one by which objects of operators are found in clusters: choose another", key)
		}
	}
}
