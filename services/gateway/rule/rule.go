// Package rule checks the names and values that people send, and says which rule they break and where.
//
// A place is a JSON pointer into the input, such as /spec/channel; a rule is a short stable word
// that programs may compare. All violations of one input are collected, in the order of the checks,
// so that one answer lists everything that is wrong.
package rule

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Names of rules. They are part of the API: clients compare them.
const (
	Required      = "required"
	MaxLength     = "max-length"
	MaxItems      = "max-items"
	OneOf         = "one-of"
	DNSLabel      = "dns-1123-label"
	DNSSubdomain  = "dns-1123-subdomain"
	Token         = "printable-token"
	LabelKey      = "kubernetes-label-key"
	LabelValue    = "kubernetes-label-value"
	AnnotationKey = "kubernetes-annotation-key"
	// ConditionType and ConditionReason are of conditions, as Kubernetes has them.
	ConditionType   = "kubernetes-condition-type"
	ConditionReason = "kubernetes-condition-reason"
	Unique          = "unique"
	Together        = "given-together"
	NotChangeable   = "not-changeable"
	Object          = "json-object"
	Reserved        = "reserved-namespace"
	ReservedKey     = "reserved-key"
	// Encoding and those below it are of the form of a request.
	Encoding          = "percent-encoding"
	Text              = "text"
	Once              = "given-once"
	HasValue          = "has-value"
	UnknownParameter  = "unknown-parameter"
	UnsupportedHeader = "unsupported-header"
	NoBody            = "no-body"
	ContentType       = "content-type"
)

// Limits of names, as Kubernetes has them.
const (
	MaxLabel     = 63
	MaxSubdomain = 253
	// MaxToken bounds channel and CSV names: the longest in the known catalogs has about 100 characters.
	MaxToken = 253
	// MaxConditionType is that of a condition in Kubernetes. MaxConditionReason is lower than there: what is longer
	// than a word is a message.
	MaxConditionType   = 316
	MaxConditionReason = 256
	// MaxLabels bounds the labels of a cluster or an intent: enough to select by, too few to store documents in.
	MaxLabels = 64
)

// Patterns in the form that OpenAPI documents take; the API's types repeat them as tags.
const (
	PatternDNSLabel     = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	PatternDNSSubdomain = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// PatternToken is printable ASCII without space and slash: channel and CSV names go into event
	// subjects and lists, where a slash or a control character would be read as something else.
	PatternToken = `^[^\x00-\x20/\x7f-\x{10FFFF}]+$`
	// PatternConditionType and PatternConditionReason are those of metav1.Condition.
	PatternConditionType   = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`
	PatternConditionReason = `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`
	patternLabelValue      = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
)

var (
	reLabel      = regexp.MustCompile(PatternDNSLabel)
	reSubdomain  = regexp.MustCompile(PatternDNSSubdomain)
	reToken      = regexp.MustCompile(PatternToken)
	reLabelValue = regexp.MustCompile(patternLabelValue)

	reConditionType   = regexp.MustCompile(PatternConditionType)
	reConditionReason = regexp.MustCompile(PatternConditionReason)
)

// Violations collects what is wrong with one input. Its zero value is ready for use.
type Violations struct{ list []*errs.Error }

// Addf records that the value at field breaks a rule.
func (v *Violations) Addf(field, rule, format string, args ...any) {
	v.list = append(v.list, errs.New(errs.Invalid, format, args...).At(field, rule))
}

// AddAt adds what is wrong with a part of the input that stands at field; its places begin there.
func (v *Violations) AddAt(field string, err error) {
	if part, ok := errors.AsType[*Error](err); ok {
		for _, e := range part.Violations {
			v.list = append(v.list, e.At(field+e.Field, e.Rule))
		}
	} else if err != nil {
		v.list = append(v.list, errs.New(errs.KindOf(err), "%s: %s", field, err))
	}
}

// Err returns nil without violations, and otherwise an *Error of kind errs.Invalid.
func (v *Violations) Err() error {
	if len(v.list) == 0 {
		return nil
	}
	return &Error{Violations: v.list}
}

// Error is an input with at least one violation. errors.As finds the first of them.
type Error struct{ Violations []*errs.Error }

// Error joins the sentences of all violations.
func (e *Error) Error() string {
	texts := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		texts[i] = v.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the violations.
func (e *Error) Unwrap() []error {
	out := make([]error, len(e.Violations))
	for i, v := range e.Violations {
		out[i] = v
	}
	return out
}

// DNSLabelName checks a required DNS-1123 label, such as the name of a cluster or a namespace.
func (v *Violations) DNSLabelName(field, value string) {
	v.pattern(field, value, MaxLabel, reLabel, DNSLabel,
		"lower-case letters, digits and '-', beginning and ending with a letter or digit")
}

// OpenNamespace checks the name of a namespace that operators may be in, or have rights in: any but Chandler's own,
// where what may do everything in the cluster lies.
func (v *Violations) OpenNamespace(field, value string) {
	v.DNSLabelName(field, value)
	if value == events.SystemNamespace {
		v.Addf(field, Reserved,
			"%s is %q, Chandler's own namespace: no operator is installed there or serves it; choose another", field,
			value)
	}
}

// DNSSubdomainName checks a required DNS-1123 subdomain, such as the name of a subscription.
func (v *Violations) DNSSubdomainName(field, value string) {
	v.pattern(field, value, MaxSubdomain, reSubdomain, DNSSubdomain,
		"DNS-1123 labels joined by '.'")
}

// TokenName checks a required channel or CSV name.
func (v *Violations) TokenName(field, value string) {
	v.pattern(field, value, MaxToken, reToken, Token, "printable ASCII without space and '/'")
}

// ConditionType checks the required type of a condition.
func (v *Violations) ConditionType(field, value string) {
	v.pattern(field, value, MaxConditionType, reConditionType, ConditionType,
		"the type of a condition, such as Upgradeable")
}

// ConditionReason checks the required reason of a condition.
func (v *Violations) ConditionReason(field, value string) {
	v.pattern(field, value, MaxConditionReason, reConditionReason, ConditionReason,
		"one word that begins with a letter, such as Tested")
}

func (v *Violations) pattern(field, value string, limit int, re *regexp.Regexp, rule, want string) {
	switch {
	case value == "":
		v.Addf(field, Required, "%s must not be empty", field)
	case len(value) > limit:
		v.Addf(field, MaxLength, "%s has %d characters, %d are allowed", field, len(value), limit)
	case !re.MatchString(value):
		v.Addf(field, rule, "%s is %q: want %s", field, value, want)
	}
}

// OneOf checks that value is one of the allowed words.
func (v *Violations) OneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.Addf(field, OneOf, "%s is %q: want one of %s", field, value, strings.Join(allowed, ", "))
	}
}

// Labels checks keys and values as Kubernetes does.
func (v *Violations) Labels(field string, labels map[string]string) {
	if len(labels) > MaxLabels {
		v.Addf(field, MaxItems, "%s has %d entries, %d are allowed", field, len(labels), MaxLabels)
		return
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		at := field + "/" + Escape(k)
		if !labelKey(k) {
			v.Addf(at, LabelKey,
				"label key %q: want [prefix/]name, the prefix a DNS-1123 subdomain, the name at most %d of A-Z a-z "+
					"0-9 - _ .", k, MaxLabel)
		}
		if value := labels[k]; len(value) > MaxLabel || !reLabelValue.MatchString(value) {
			v.Addf(at, LabelValue,
				"the value of label %q: want at most %d of A-Z a-z 0-9 - _ ., beginning and ending with a letter or "+
					"digit", k, MaxLabel)
		}
	}
}

// Annotations checks keys, and the size of all, as Kubernetes does.
func (v *Violations) Annotations(field string, annotations map[string]string) {
	size := 0
	for _, k := range slices.Sorted(maps.Keys(annotations)) {
		size += len(k) + len(annotations[k])
		if !labelKey(strings.ToLower(k)) { // of an annotation the prefix may have capitals
			v.Addf(field+"/"+Escape(k), AnnotationKey,
				"annotation key %q: want [prefix/]name, the prefix a DNS-1123 subdomain, the name at most %d of A-Z "+
					"a-z 0-9 - _ .", k, MaxLabel)
		}
	}
	if size > events.MaxAnnotations {
		v.Addf(field, MaxLength, "%s has %d bytes in keys and values, %d are allowed", field, size,
			events.MaxAnnotations)
	}
}

func labelKey(k string) bool {
	prefix, name, ok := strings.Cut(k, "/")
	if !ok {
		name = k
	} else if len(prefix) > MaxSubdomain || !reSubdomain.MatchString(prefix) {
		return false
	}
	return name != "" && len(name) <= MaxLabel && reLabelValue.MatchString(name)
}

// Escape writes a key as one reference token of a JSON pointer (RFC 6901).
func Escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// maxChoices bounds the names that a refusal lists.
const maxChoices = 50

// Choices lists the names that would have been accepted, as far as they fit into a message.
func Choices(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if extra := len(names) - maxChoices; extra > 0 {
		return strings.Join(names[:maxChoices], ", ") + fmt.Sprintf(" and %d more", extra)
	}
	return strings.Join(names, ", ")
}
