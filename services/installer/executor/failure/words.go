package failure

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Messages pass on words of others: of an API server, and of whoever runs an admission webhook or wrote a policy there,
// who sees every object with its configuration. They are read by everybody who may see the plan.
const (
	// maxWords bounds a message in the words of others: an API server names a dozen fields in it.
	maxWords = 2 << 10
	// minWithheld is the least length of a value that is looked for in a message: what is shorter stands in other words
	// by chance, and is guessed sooner than read.
	minWithheld = 6
	// withheld stands for a value.
	withheld = "(withheld)"
	// maxDepth bounds the search for values; the objects of Kubernetes are not as deep.
	maxDepth = 64
)

// denial is where the words of a webhook or a policy begin in what the API server says.
var denial = regexp.MustCompile(`denied (?:the )?request: `)

// words are a message of others without values of the object, on one line, without anything that a terminal would obey,
// and bounded. What a webhook or a policy says is in quotes: it is not ours.
func words(message string, values []string) string {
	for _, v := range values {
		message = strings.ReplaceAll(message, v, withheld)
	}
	if at := denial.FindStringIndex(message); at != nil {
		return shown(message[:at[1]]) + strconv.Quote(bounded(message[at[1]:]))
	}
	return shown(bounded(message))
}

func bounded(text string) string {
	if len(text) <= maxWords {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:maxWords], "") + "…"
}

func shown(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// valuesOf are the values of an object that may be secret, longest first, as they are and as they are quoted: those of
// a Secret, and of environment variables, which is where configuration goes.
func valuesOf(kind string, body map[string]any) []string {
	found := map[string]bool{}
	add := func(v any) {
		text, _ := v.(string)
		quoted := strconv.Quote(text)
		for _, form := range []string{text, quoted[1 : len(quoted)-1]} {
			if len(form) >= minWithheld {
				found[form] = true
			}
		}
	}
	if kind == "Secret" {
		data, _ := body["data"].(map[string]any)
		for _, v := range data {
			add(v)
			text, _ := v.(string)
			if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
				add(string(raw))
			}
		}
		data, _ = body["stringData"].(map[string]any)
		for _, v := range data {
			add(v)
		}
	}
	environment(body, maxDepth, add)
	values := make([]string, 0, len(found))
	for v := range found {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	return values
}

// environment gives the values of all environment variables below a value to add.
func environment(v any, depth int, add func(any)) {
	if depth == 0 {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			environment(e, depth-1, add)
		}
	case map[string]any:
		for key, e := range v {
			if list, is := e.([]any); is && key == "env" {
				for _, one := range list {
					variable, _ := one.(map[string]any)
					add(variable["value"])
				}
			}
			environment(e, depth-1, add)
		}
	}
}
