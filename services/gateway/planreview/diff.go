package planreview

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
)

// What becomes of an object.
const (
	Added   = "Added"
	Removed = "Removed"
	Changed = "Changed"
)

// What an object is about: approvers look at one after the other.
const (
	AreaWorkload   = "Workload"
	AreaRBAC       = "RBAC"
	AreaWebhook    = "Webhook"
	AreaDefinition = "CustomResourceDefinition"
	AreaOther      = "Other"
)

// Bounds on what is said of one object. What is left out is counted.
const (
	// MaxFields is how many fields are listed; an upgrade of a schema changes hundreds, and compare.CRD says what they
	// mean.
	MaxFields = 500
	// MaxValue is the size of a value of a field that is shown: icons and examples are larger, and say nothing to
	// people.
	MaxValue = 4 << 10
	// MaxDiffed is the size of the two forms of an object up to which lines are compared, in time that grows as
	// n log n with them: the largest published definition has 1.5 MB of YAML.
	MaxDiffed = 8 << 20
)

// Change is one object that differs from what is installed.
type Change struct {
	Change string
	Area   string
	// Was is the object as it is installed, Is as it will be; nil where there is none.
	Was, Is *Object
	Fields  []Field
	More    int // fields that are not listed
	Images  []Image
	CRD     *compare.CRD // what the change of a definition means for custom resources
	// Minor says that nothing differs but the marks by which Chandler knows whose object it is: they name the version.
	Minor bool
}

// Field is one field that differs; absent values are nil.
type Field struct {
	Path  string // JSON pointer
	Was   json.RawMessage
	Is    json.RawMessage
	Large bool // one of the values is larger than is shown
}

// Image is an image of a container that differs; "" where there is no such container.
type Image struct {
	Container string
	Was, Is   string
}

// Of is the object as it will be, or as it was where it goes.
func (c *Change) Of() *Object {
	if c.Is != nil {
		return c.Is
	}
	return c.Was
}

// Diff compares the objects of a bundle with those of the one that is installed, in the order of the plan; what goes
// comes last.
func Diff(from, to []Object) ([]Change, error) {
	before, left := paired(from, to)
	var out []Change
	for i := range to {
		c, err := change(before[i], &to[i])
		if err != nil {
			return nil, err
		}
		if c != nil {
			out = append(out, *c)
		}
	}
	for i := range left {
		c, err := change(left[i], nil)
		if err != nil {
			return nil, err
		}
		out = append(out, *c)
	}
	return out, nil
}

// identity is what makes an object the same in two versions, whatever version of its API it is written in.
type identity struct {
	kind            schema.GroupKind
	namespace, name string
}

func key(o Object) identity { return identity{o.GVK.GroupKind(), o.Namespace, o.Name} }

// sort is an identity without its name.
func sort(o Object) identity { return identity{o.GVK.GroupKind(), o.Namespace, ""} }

// paired finds what each object of a bundle was before, nil where it was not there, and what goes. An object that has
// another name in each version, such as the ClusterServiceVersion, or a role whose name is made of its rules, is the
// same where one of its kind goes and one comes: the two are compared.
func paired(from, to []Object) (before, left []*Object) {
	known := map[identity][]*Object{}
	for i := range from {
		known[key(from[i])] = append(known[key(from[i])], &from[i])
	}
	before = make([]*Object, len(to))
	taken := map[*Object]bool{}
	comes := map[identity]int{}
	for i := range to {
		if same := known[key(to[i])]; len(same) > 0 {
			before[i], known[key(to[i])] = same[0], same[1:]
			taken[same[0]] = true
		} else {
			comes[sort(to[i])]++
		}
	}
	goes := map[identity][]*Object{}
	for i := range from {
		if !taken[&from[i]] {
			goes[sort(from[i])] = append(goes[sort(from[i])], &from[i])
		}
	}
	for i := range to {
		if s := sort(to[i]); before[i] == nil && comes[s] == 1 && len(goes[s]) == 1 {
			before[i] = goes[s][0]
			taken[before[i]] = true
		}
	}
	for i := range from {
		if !taken[&from[i]] {
			left = append(left, &from[i])
		}
	}
	return before, left
}

// change says what becomes of one object; nil where nothing does.
func change(was, is *Object) (*Change, error) {
	c := &Change{Change: Changed, Was: was, Is: is}
	switch {
	case was == nil:
		c.Change = Added
	case is == nil:
		c.Change = Removed
	case was.Digest == is.Digest:
		return nil, nil //nolint:nilnil // no difference is an answer
	}
	c.Area = area(c.Of().GVK)
	c.Images = images(was, is)
	if c.Area == AreaDefinition {
		var err error
		if c.CRD, err = compare.Definitions(c.Of().Name, raw(was), raw(is)); err != nil {
			return nil, err
		}
	}
	if c.Change != Changed {
		return c, nil
	}
	var a, b any
	if err := readJSON(was.Shown, &a); err != nil {
		return nil, err
	}
	if err := readJSON(is.Shown, &b); err != nil {
		return nil, err
	}
	c.fields("", a, b)
	c.Minor = c.More == 0 && len(c.Fields) > 0 &&
		!slices.ContainsFunc(c.Fields, func(f Field) bool { return !mark(f.Path) })
	return c, nil
}

// marks are the fields by which Chandler knows whose an object is, as JSON pointers.
var marks = []string{
	"/metadata/labels/" + render.LabelOwner,
	"/metadata/annotations/" + strings.ReplaceAll(render.AnnotationInstalledAlongside, "/", "~1"),
}

// mark reports one of marks; annotations of this kind end in a hash.
func mark(path string) bool {
	return path == marks[0] || strings.HasPrefix(path, marks[1])
}

func raw(o *Object) json.RawMessage {
	if o == nil {
		return nil
	}
	return o.Shown
}

func area(gvk schema.GroupVersionKind) string {
	switch {
	case gvk.Kind == "Deployment":
		return AreaWorkload
	case gvk.Group == "rbac.authorization.k8s.io", gvk.Group == "" && gvk.Kind == "ServiceAccount":
		return AreaRBAC
	case gvk == render.GVKMutatingWebhook, gvk == render.GVKValidatingWebhook:
		return AreaWebhook
	case gvk.Kind == bundle.KindCRD:
		return AreaDefinition
	}
	return AreaOther
}

// readJSON reads JSON with numbers as they are written.
func readJSON(data []byte, into *any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return errs.Wrap(errs.Internal, d.Decode(into), "read an object")
}

// fields lists what differs below a path.
func (c *Change) fields(path string, a, b any) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.members(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			c.elements(path, x, y)
			return
		}
	}
	if !equal(a, b) {
		c.field(path, a, b)
	}
}

func (c *Change) members(path string, a, b map[string]any) {
	names := slices.Sorted(maps.Keys(a))
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		x, had := a[name]
		y, has := b[name]
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		switch {
		case !had:
			c.field(at, nil, y)
		case !has:
			c.field(at, x, nil)
		default:
			c.fields(at, x, y)
		}
	}
}

// elements compares lists. Those whose elements have names, such as containers and variables, are compared by name, so
// that one more at the front is one that comes.
func (c *Change) elements(path string, a, b []any) {
	x, named := byName(a)
	if y, both := byName(b); named && both {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(append(order(x), order(y)...)))) {
			i, had := x[name]
			j, has := y[name]
			switch {
			case !had:
				c.field(path+"/"+strconv.Itoa(j), nil, b[j])
			case !has:
				c.field(path+"/"+strconv.Itoa(i), a[i], nil)
			default:
				c.fields(path+"/"+strconv.Itoa(j), a[i], b[j])
			}
		}
		return
	}
	for i := range max(len(a), len(b)) {
		at := path + "/" + strconv.Itoa(i)
		switch {
		case i >= len(a):
			c.field(at, nil, b[i])
		case i >= len(b):
			c.field(at, a[i], nil)
		default:
			c.fields(at, a[i], b[i])
		}
	}
}

// byName are the indexes of elements by their names; false where one has none, or two have the same.
func byName(list []any) (map[string]int, bool) {
	out := map[string]int{}
	for i, v := range list {
		m, _ := v.(map[string]any)
		name, ok := m["name"].(string)
		if _, twice := out[name]; !ok || twice {
			return nil, false
		}
		out[name] = i
	}
	return out, true
}

func order(m map[string]int) []string { return slices.Collect(maps.Keys(m)) }

func (c *Change) field(path string, a, b any) {
	if len(c.Fields) == MaxFields {
		c.More++
		return
	}
	f := Field{Path: path}
	f.Was, f.Is = value(a, &f.Large), value(b, &f.Large)
	c.Fields = append(c.Fields, f)
}

// value writes a value that is not too large.
func value(v any, large *bool) json.RawMessage {
	if v == nil {
		return nil
	}
	out, err := json.Marshal(v)
	if err != nil || len(out) > MaxValue { // what came out of JSON goes back into it
		*large = true
		return nil
	}
	return out
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// images are the images of the containers of a workload that differ.
func images(was, is *Object) []Image {
	a, b := imagesOf(was), imagesOf(is)
	var out []Image
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(a)),
		slices.Collect(maps.Keys(b)))))) {
		if a[name] != b[name] {
			out = append(out, Image{Container: name, Was: a[name], Is: b[name]})
		}
	}
	return out
}

func imagesOf(o *Object) map[string]string {
	out := map[string]string{}
	if o == nil || o.GVK.Kind != "Deployment" {
		return out
	}
	at := any(o.Body)
	for _, name := range []string{"spec", "template", "spec"} {
		m, _ := at.(map[string]any)
		at = m[name]
	}
	pod, _ := at.(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		containers, _ := pod[list].([]any)
		for _, v := range containers {
			c, _ := v.(map[string]any)
			name, _ := c["name"].(string)
			image, _ := c["image"].(string)
			out[name] = image
		}
	}
	return out
}

// Unified writes the change of an object as a unified diff of its YAML, as diff -u and kubectl diff do. It is anchored
// at lines that occur once in each form, and not the shortest one: what a publisher writes must not decide
// how long it takes, and to look for the longest common part is quadratic in lines that are equal.
func (c *Change) Unified() (string, error) {
	if size := len(raw(c.Was)) + len(raw(c.Is)); size > MaxDiffed {
		return fmt.Sprintf("# %s is too large to be compared line by line: %d bytes of JSON, and the bound is %d\n",
			c.Of(), size, MaxDiffed), nil
	}
	was, nameWas, err := text("a", c.Was)
	if err != nil {
		return "", err
	}
	is, nameIs, err := text("b", c.Is)
	if err != nil {
		return "", err
	}
	// The first line is a command, which names the two once more.
	_, out, _ := bytes.Cut(diff.Diff(nameWas, was, nameIs, is), []byte("\n"))
	return string(out), nil
}

// text is the YAML of an object, and how the diff names it.
func text(side string, o *Object) (content []byte, name string, err error) {
	if o == nil {
		return nil, "/dev/null", nil
	}
	y, err := yaml.JSONToYAML(o.Shown)
	if err != nil {
		return nil, "", errs.Wrap(errs.Internal, err, "write %s as YAML", o)
	}
	parts := []string{side, cmp.Or(o.GVK.Group, "core"), o.GVK.Kind}
	if o.Namespace != "" {
		parts = append(parts, o.Namespace)
	}
	return y, strings.Join(append(parts, o.Name), "/"), nil
}
