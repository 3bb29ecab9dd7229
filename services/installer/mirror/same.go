package mirror

import "reflect"

// Holds reports whether an object that is there is as wanted: its labels and annotations may be more than that, those
// of others stay; the rest of a mirror must be that and nothing else. In an OperatorCondition others write, too.
func Holds(live map[string]any, want Object) bool {
	exact := comparison{exact: want.GVK != GVKOperatorCondition}
	for key, value := range want.Body {
		c := exact
		if key == "metadata" {
			c = comparison{}
		}
		if !c.holds(live[key], value) {
			return false
		}
	}
	return true
}

// SameStatus reports whether a status says what is wanted. When it was said does not count.
func SameStatus(live, want map[string]any) bool {
	return comparison{exact: true, timeless: true}.holds(live, want)
}

// comparison of what is there with what is wanted. An empty value is as good as none: the API server drops some.
type comparison struct {
	exact    bool // nothing more may be there
	timeless bool // times of reports do not count
}

func (c comparison) holds(have, want any) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return have == nil && len(w) == 0
		}
		return c.holdsMap(h, w)
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return have == nil && len(w) == 0
		}
		for i := range w {
			if !c.holds(h[i], w[i]) {
				return false
			}
		}
		return true
	default:
		return reflect.DeepEqual(have, want)
	}
}

func (c comparison) holdsMap(have, want map[string]any) bool {
	for k, w := range want {
		if !c.skips(k) && !c.holds(have[k], w) {
			return false
		}
	}
	if !c.exact {
		return true
	}
	for k := range have {
		if _, wanted := want[k]; !wanted && !c.skips(k) {
			return false
		}
	}
	return true
}

// Timeless is a status without the times that do not count.
func Timeless(status map[string]any) map[string]any {
	out, ok := timeless(status).(map[string]any)
	if !ok {
		return nil
	}
	return out
}

func timeless(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if !(comparison{timeless: true}).skips(k) {
				out[k] = timeless(e)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = timeless(e)
		}
		return out
	default:
		return v
	}
}

func (c comparison) skips(key string) bool {
	return c.timeless && (key == "lastUpdated" || key == "lastTransitionTime" || key == "lastUpdateTime")
}
