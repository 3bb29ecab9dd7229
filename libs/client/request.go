package client

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
)

// pathOf puts values into the places of a path.
func pathOf(pattern string, values ...string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(pattern, "{")
		b.WriteString(before)
		if !found || len(values) == 0 {
			return b.String()
		}
		b.WriteString(url.PathEscape(values[0]))
		values = values[1:]
		_, pattern, _ = strings.Cut(rest, "}")
	}
}

// addParam adds a parameter, unless it has its zero value: for the API it is absent then. A list is given once for each
// element.
func addParam(q url.Values, name string, value any) {
	v := reflect.ValueOf(value)
	if v.IsZero() {
		return
	}
	if v.Kind() != reflect.Slice {
		q.Add(name, fmt.Sprint(value))
		return
	}
	for i := range v.Len() {
		q.Add(name, fmt.Sprint(v.Index(i).Interface()))
	}
}

// addJoined adds a list as one value with commas.
func addJoined(q url.Values, name string, values []string) {
	if len(values) > 0 {
		q.Add(name, strings.Join(values, ","))
	}
}
