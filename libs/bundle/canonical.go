package bundle

import (
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Join returns the canonical JSON of a bundle, and its digest, of objects that Gather returned.
func Join(objects []Object) ([]byte, digest.Digest) {
	n := len(Type) + len("\n{\"manifests\":[]}")
	for _, o := range objects {
		n += len(o.Raw) + 1
	}
	b := make([]byte, 0, n)
	b = append(b, Type+"\n{\"manifests\":["...)
	for i, o := range objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, o.Raw...)
	}
	b = append(b, "]}"...)
	return b[len(Type)+1:], digest.Bytes(b)
}

// identity reads apiVersion, kind and metadata of an object in canonical form without looking at what
// comes behind them, which is most of it. It returns false where it is not sure.
func identity(j []byte) (o Object, ok bool) {
	text := func(into *string, value []byte) (ok bool) {
		*into, ok = jsontree.Unquote(value)
		return ok
	}
	done := false
	good := jsontree.Scan(j, func(key, value []byte) bool {
		switch string(key) {
		case "apiVersion":
			return text(&o.APIVersion, value)
		case "kind":
			return text(&o.Kind, value)
		case "metadata": // keys are sorted: the others stand before
			done = jsontree.Scan(value, func(key, value []byte) bool {
				switch string(key) {
				case "name":
					return text(&o.Name, value)
				case "namespace":
					return text(&o.Namespace, value)
				}
				return true
			})
			return false
		}
		return true
	})
	o.Raw = j
	return o, good && done && o.APIVersion != "" && o.Kind != "" && o.Name != ""
}
