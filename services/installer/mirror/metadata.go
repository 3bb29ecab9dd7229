package mirror

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// annotationExcludeGlobal hides the catalogs of the whole fleet from a namespace (R-RES-5).
const annotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"

// mirrorMetadata are the labels and annotations of a mirror: those of the intent, and ours, which win. Where no API
// server would take both, only ours are shown.
func mirrorMetadata(m protocol.Metadata, labels, annotations map[string]string) (
	allLabels, allAnnotations map[string]string,
) {
	allLabels, allAnnotations = join(m.Labels, labels), join(m.Annotations, annotations)
	size := 0
	for k, v := range allAnnotations {
		size += len(k) + len(v)
	}
	if size > events.MaxAnnotations {
		allAnnotations = annotations
	}
	return allLabels, allAnnotations
}

func join(theirs, ours map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, theirs)
	maps.Copy(all, ours)
	return all
}

// Leaves reports labels or annotations that manager wrote and that are wanted no more: what the intent had before.
// Those of others stay.
func Leaves(written []metav1.ManagedFieldsEntry, manager string, want Object) (bool, error) {
	meta, _ := want.Body["metadata"].(map[string]any)
	for _, entry := range written {
		if entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Metadata struct {
				Labels      map[string]json.RawMessage `json:"f:labels"`
				Annotations map[string]json.RawMessage `json:"f:annotations"`
			} `json:"f:metadata"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			return false, errs.Wrap(errs.Internal, err, "read the managed fields of %s %s", want.GVK.Kind, want.Name)
		}
		if more(fields.Metadata.Labels, meta["labels"]) || more(fields.Metadata.Annotations, meta["annotations"]) {
			return true, nil
		}
	}
	return false, nil
}

// more reports a key of fields, each of which is written as f:KEY, that is not wanted.
func more(fields map[string]json.RawMessage, wanted any) bool {
	want, _ := wanted.(map[string]any)
	for f := range fields {
		key, named := strings.CutPrefix(f, "f:")
		if _, is := want[key]; named && !is {
			return true
		}
	}
	return false
}
