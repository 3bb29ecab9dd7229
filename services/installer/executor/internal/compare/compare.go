package compare

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/watch"
)

// The bounds of what is reported of one object.
const (
	MaxFields     = 20
	MaxValueBytes = 256
)

// Holds reports whether everything that want says is so in live; what else live has, such as defaults and other
// people's labels, does not matter. Entries of lists are compared by place. False may be a mere difference in spelling,
// such as 1000m and 1: the API server can tell.
func Holds(want, live any) bool {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return len(w) == 0 && live == nil
		}
		for k, v := range w {
			if !Holds(v, l[k]) {
				return false
			}
		}
		return true
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(w) {
			return len(w) == 0 && live == nil
		}
		for i := range w {
			if !Holds(w[i], l[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(want, live)
}

// Fields returns what would change if the object were written again: want is what it would be then, live what it is.
// They are sorted by path and bounded (MaxFields, MaxValueBytes). What the API server itself notes in
// metadata, and status, are left out. Of what may be confidential only the path is reported.
func Fields(want, live map[string]any) []protocol.FieldDrift {
	kind, _ := want["kind"].(string)
	c := comparison{kind: kind}
	c.object("", plain(want), plain(live))
	return c.out
}

// plain returns the object without what no writer decides.
func plain(o map[string]any) map[string]any {
	out := maps.Clone(o)
	delete(out, "status")
	meta, ok := out["metadata"].(map[string]any)
	if !ok {
		return out
	}
	meta = maps.Clone(meta)
	for _, field := range []string{
		"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp",
		"selfLink",
	} {
		delete(meta, field)
	}
	out["metadata"] = meta
	return out
}

// LastManager names who wrote an object last beside own and Kubernetes itself, and when; since where nobody is known.
func LastManager(live *unstructured.Unstructured, own string, since time.Time) (string, time.Time) {
	name, at := "", time.Time{}
	for _, f := range live.GetManagedFields() {
		if f.Subresource == "" && f.Manager != own && f.Manager != watch.KubernetesManager && f.Time != nil &&
			!f.Time.Time.Before(at) {
			name, at = f.Manager, f.Time.UTC()
		}
	}
	if name == "" {
		return "", since
	}
	return name, at
}

type comparison struct {
	kind string
	out  []protocol.FieldDrift
}

func (c *comparison) object(path string, want, live map[string]any) {
	keys := slices.Sorted(maps.Keys(want))
	for k := range live {
		if _, ok := want[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		w, inWant := want[k]
		l, inLive := live[k]
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(k)
		if inWant && inLive {
			c.value(at, w, l)
			continue
		}
		c.differs(at, w, l)
	}
}

func (c *comparison) value(path string, want, live any) {
	if reflect.DeepEqual(want, live) {
		return
	}
	switch w := want.(type) {
	case map[string]any:
		if l, ok := live.(map[string]any); ok {
			c.object(path, w, l)
			return
		}
	case []any:
		if l, ok := live.([]any); ok && len(l) == len(w) {
			for i := range w {
				c.value(path+"/"+strconv.Itoa(i), w[i], l[i])
			}
			return
		}
	}
	c.differs(path, want, live)
}

func (c *comparison) differs(path string, want, live any) {
	if len(c.out) == MaxFields {
		return
	}
	f := protocol.FieldDrift{Path: path}
	if !confidential(c.kind, path) && !holdsConfidential(want) && !holdsConfidential(live) {
		f.Want, f.Have = text(want), text(live)
	}
	c.out = append(c.out, f)
}

// text is a value as JSON, nil for one that is absent, cut to a JSON string where it is long.
func text(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil // no value that came as JSON
	}
	if len(raw) <= MaxValueBytes {
		return raw
	}
	cut, err := json.Marshal(strings.ToValidUTF8(string(raw[:MaxValueBytes]), "") + "…")
	if err != nil {
		return nil
	}
	return cut
}
