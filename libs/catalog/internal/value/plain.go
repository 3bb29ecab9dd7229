package value

import (
	"strings"

	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// What stands here says quickly that usual values are right. A no means only that the slow way must look:
// it also says what is wrong.

// shapes are the fields of olm.csv.metadata: text, a map of text, a map, a list of text, a list of maps.
var shapes = map[string]string{
	"annotations": `{"`, "labels": `{"`, "apiServiceDefinitions": `{`, "crdDescriptions": `{`, "provider": `{`,
	"installModes": `[{`, "links": `[{`, "maintainers": `[{`, "nativeAPIs": `[{`,
	"description": `"`, "displayName": `"`, "maturity": `"`, "minKubeVersion": `"`, "keywords": `["`,
}

// plainMetadata reports whether olm.csv.metadata, without space between its values, has its form.
func plainMetadata(raw []byte) bool {
	plain := true
	whole := jsontree.Scan(raw, func(key, value []byte) bool {
		shape, known := shapes[string(key)]
		if !known {
			for name := range shapes {
				known = known || strings.EqualFold(name, string(key))
			}
			plain = plain && !known // written in another case
			return plain
		}
		plain = hasShape(value, shape)
		return plain
	})
	return whole && plain
}

// hasShape reports whether a value begins as the shape says, and so does all that it holds.
func hasShape(value []byte, shape string) bool {
	if value[0] != shape[0] {
		return false
	}
	if len(shape) == 1 {
		return true
	}
	plain := true
	if shape[0] == '{' {
		whole := jsontree.Scan(value, func(_, v []byte) bool {
			plain = v[0] == shape[1]
			return plain
		})
		return whole && plain
	}
	whole := jsontree.ScanList(value, func(v []byte) bool {
		plain = v[0] == shape[1]
		return plain
	})
	return whole && plain
}

// plainReference reports whether s is [host[:port]/]path[:tag] or …@sha256:<64 hex digits> in lower case.
func plainReference(s string) bool {
	const pin = "@sha256:"
	name, hex, pinned := strings.Cut(s, pin)
	if pinned && (len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "") || len(name) > maxReference {
		return false
	}
	host, path, ok := strings.Cut(name, "/")
	if !ok {
		return false
	}
	if bare, port, ok := strings.Cut(host, ":"); ok {
		if host = bare; port == "" || strings.Trim(port, "0123456789") != "" {
			return false
		}
	}
	if path, tag, ok := strings.Cut(path, ":"); ok {
		return plainPath(host, ".-") && plainPath(path, "/.-") && plainPath(tag, ".-") && len(tag) <= 128
	}
	return plainPath(host, ".-") && plainPath(path, "/.-")
}

// plainPath reports whether s is words of lower-case letters and digits with single signs between them.
func plainPath(s, signs string) bool {
	word := false
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			word = true
			continue
		}
		if !word || strings.IndexByte(signs, c) < 0 {
			return false
		}
		word = false
	}
	return word
}
