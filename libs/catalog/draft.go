package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unique"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

// Drafts are blobs decoded one by one, before anything is known of the others. They keep their
// places, so that a finding about two of them can name where each stands.

type packageDraft struct {
	place
	body struct {
		Name           string     `json:"name"`
		DefaultChannel string     `json:"defaultChannel"`
		Description    string     `json:"description"`
		Icon           *iconBody  `json:"icon"`
		Properties     []Property `json:"properties"`
	}
}

// iconBody keeps the data as text: icons that are not base64 are accepted (R-CAT-41).
type iconBody struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

type channelDraft struct {
	place
	pkg     string
	body    Channel
	entries []place // of body.Entries
}

type bundleDraft struct {
	place
	pkg      string
	bundle   Bundle
	embedded bool // manifests stood in the blob or its directory
	csv      *csvFacts
	dir      string // the bundle directory that it was read from
	packaged bool   // by a package manifest, beside its directory
	// joins and preferred are the channels that a bundle directory's annotations name (R-CAT-55).
	joins     []string
	preferred string
}

// csvFacts is what a package is made of beside the bundles themselves (R-GRA-3, R-CAT-55). The CSV is
// let go: all of them together would be most of the catalog.
type csvFacts struct {
	replaces, skipRange, description string
	skips                            []string
	icon                             *iconBody
}

func factsOf(csv bundle.CSV) *csvFacts {
	f := &csvFacts{
		replaces: csv.Spec.Replaces, skipRange: csv.Annotations[annotationSkipRange],
		description: shared(csv.Spec.Description), skips: csv.Spec.Skips,
	}
	if len(csv.Spec.Icon) > 0 {
		f.icon = &iconBody{Data: shared(csv.Spec.Icon[0].Data), MediaType: csv.Spec.Icon[0].MediaType}
	}
	return f
}

// shared returns the one copy of a text that many versions of an operator have in common, as they have
// icons and descriptions.
func shared(text string) string { return unique.Make(text).Value() }

type deprecationsDraft struct {
	place
	pkg     string
	entries []Deprecation
	at      []place
}

// draftPackage decodes olm.package.
func draftPackage(b blob) (*packageDraft, []Finding) {
	d := &packageDraft{place: b.place}
	if f := b.decode(b.value, &d.body, "R-CAT-20", "olm.package"); f != nil {
		return nil, []Finding{*f}
	}
	d.body.Name = b.name
	return d, nil
}

// draftChannel decodes olm.channel and notes where each entry stands.
func draftChannel(b blob) (*channelDraft, []Finding) {
	d := &channelDraft{place: b.place, pkg: b.pkg}
	if f := b.decode(b.value, &d.body, "R-CAT-22", "olm.channel"); f != nil {
		return nil, []Finding{*f}
	}
	d.body.Name = b.name
	d.entries = b.places(len(d.body.Entries))
	return d, nil
}

// draftDeprecations decodes olm.deprecations.
func draftDeprecations(b blob) (*deprecationsDraft, []Finding) {
	var body struct {
		Entries []struct {
			Reference struct {
				Schema string `json:"schema"`
				Name   string `json:"name"`
			} `json:"reference"`
			Message string `json:"message"`
		} `json:"entries"`
	}
	if f := b.decode(b.value, &body, "R-CAT-32", "olm.deprecations"); f != nil {
		return nil, []Finding{*f}
	}
	d := &deprecationsDraft{place: b.place, pkg: b.pkg}
	for _, e := range body.Entries {
		d.entries = append(d.entries, Deprecation{Schema: e.Reference.Schema, Name: e.Reference.Name, Message: e.Message})
	}
	d.at = b.places(len(body.Entries))
	return d, nil
}

// places returns where each of n entries stands.
func (b blob) places(n int) []place {
	out := make([]place, 0, n)
	for v := range b.value.Child("entries").Items() {
		out = append(out, b.at(v))
	}
	for len(out) < n { // entries under two keys that differ in case
		out = append(out, b.place)
	}
	return out
}

// draftBundle decodes olm.bundle. Inline manifests become content at once and are let go, so that
// memory holds one bundle per worker and not the catalog.
func draftBundle(b blob, parser *docs.Parser, keep keeper) (*bundleDraft, []Finding) {
	d := &bundleDraft{place: b.place, pkg: b.pkg}
	d.bundle.Name = b.name
	r := bundleReader{blob: b, draft: d}
	r.field("image", &d.bundle.Image)
	r.field("relatedImages", &d.bundle.RelatedImages)
	i := 0
	for v := range b.value.Child("properties").Items() {
		r.property(i, propertyNode{v.Child("type"), v.Child("value"), v})
		i++
	}
	if len(r.manifests) > 0 {
		r.findings = append(r.findings, d.inline(r.manifests, parser, keep)...)
	}
	return d, r.findings
}

// bundleReader gathers what a bundle's fields and properties say.
type bundleReader struct {
	blob
	draft     *bundleDraft
	manifests [][]byte
	findings  []Finding
}

func (r *bundleReader) field(key string, into any) {
	n := r.value.Child(key)
	if !n.Exists() {
		return
	}
	if f := r.decode(n, into, "R-CAT-25", "olm.bundle "+key); f != nil {
		r.findings = append(r.findings, *f)
	}
}

// property files one property: manifests and display metadata have places of their own.
func (r *bundleReader) property(i int, p propertyNode) {
	typ, ok := p.typeName()
	if !ok || !p.value.Exists() {
		r.addf(p.at(r.blob), "property %d of bundle %q needs a type that is a non-empty string, and a value", i+1, r.name)
		return
	}
	if typ == TypeBundleObject {
		r.draft.embedded = true
		m, ok := manifest(p.value)
		if !ok {
			r.addf(p.at(r.blob), "olm.bundle.object of bundle %q must hold {data: <base64 of one manifest>}", r.name)
			return
		}
		r.manifests = append(r.manifests, m)
		return
	}
	raw := bytes.Clone(p.value.Canonical())
	if string(raw) == "null" {
		r.addf(p.at(r.blob), "property %s of bundle %q has no value", typ, r.name)
		return
	}
	if typ == TypeCSVMetadata {
		r.metadata(raw, p.at(r.blob))
		return
	}
	r.draft.bundle.Properties = append(r.draft.bundle.Properties, Property{Type: typ, Value: raw})
}

// metadata takes olm.csv.metadata; of several the last counts (R-CAT-18, R-CAT-25).
func (r *bundleReader) metadata(raw json.RawMessage, at place) {
	if r.draft.bundle.Metadata != nil {
		r.findings = append(r.findings, at.finding(SeverityWarning, "R-CAT-18", r.pkg, "bundle %q has more than one olm.csv.metadata; keep one", r.name))
	}
	r.draft.bundle.Metadata = raw
	for _, issue := range value.Property(TypeCSVMetadata, raw) {
		r.addf(at, "property %s of bundle %q: %s", TypeCSVMetadata, r.name, issue.Text)
	}
}

// addf tells of a value that does not have its form (R-CAT-25).
func (r *bundleReader) addf(at place, format string, args ...any) {
	r.findings = append(r.findings, at.finding(SeverityError, "R-CAT-25", r.pkg, format, args...))
}

// keeper takes the canonical content of a bundle for good. It is called from several goroutines; its
// error has already ended the load.
type keeper func(c Content) error

// Content is the canonical form of one bundle's manifests, for the caller of Load to store. Package and
// Bundle say where it was met first.
type Content struct {
	Digest    digest.Digest
	Canonical []byte
	Package   string
	Bundle    string
}

// take turns manifests into content. Manifests that make no bundle leave the bundle without content,
// which a warning says: it stays in the graph and cannot be installed (R-CAT-51, R-CAT-52).
func (d *bundleDraft) take(manifests []manifestAt, keep keeper) (*bundle.CSV, []Finding) {
	csv, findings := d.content(manifests, keep)
	if csv != nil && d.bundle.Metadata == nil {
		d.bundle.Metadata = metadataOf(*csv)
	}
	return csv, findings
}

// manifestAt is one manifest of a bundle, as canonical JSON, where it stands, and what it is called there.
type manifestAt struct {
	place
	what string
	raw  []byte
}

// inline takes manifests as a document holds them, JSON or YAML.
func (d *bundleDraft) inline(raw [][]byte, parser *docs.Parser, keep keeper) []Finding {
	var manifests []manifestAt
	var findings []Finding
	for i, r := range raw {
		what := fmt.Sprintf("manifest %d of bundle %q", i, d.bundle.Name)
		object, notes, err := parser.Manifest(r, docLimits())
		if err == nil && object == nil {
			err = errors.New("it is empty")
		}
		for _, n := range notes {
			findings = append(findings, d.tolerated("R-CAT-51", "%s, line %d: %s", what, n.Line, n.Text()))
		}
		switch {
		case err == nil:
			manifests = append(manifests, manifestAt{d.place, what, object})
		case isLimit(err):
			return d.sick("R-CAT-51", errs.New(errs.Invalid, "manifest is neither YAML nor JSON that can be used: %v", err).At(fmt.Sprintf("/%d", i), ""))
		default:
			findings = append(findings, d.tolerated("R-CAT-51", "%s is passed over, as OLM does: it is neither YAML nor JSON that can be used: %v", what, err))
		}
	}
	_, more := d.take(manifests, keep)
	return append(findings, more...)
}

// tolerated tells of what is wrong with the bundle and OLM takes all the same.
func (d *bundleDraft) tolerated(rule, format string, args ...any) Finding {
	return d.finding(SeverityWarning, rule, d.pkg, format, args...).strict()
}

func isLimit(err error) bool {
	e, ok := errors.AsType[*docs.Error](err)
	return !ok || e.IsLimit()
}

func (d *bundleDraft) content(manifests []manifestAt, keep keeper) (*bundle.CSV, []Finding) {
	d.embedded = true
	raw := make([][]byte, len(manifests))
	for i, m := range manifests {
		raw[i] = m.raw
	}
	objects, passed, err := bundle.Gather(raw)
	if err != nil {
		return nil, d.sick("R-CAT-51", err)
	}
	var findings []Finding
	for _, p := range passed {
		m := manifests[p.Manifest]
		findings = append(findings, m.finding(SeverityWarning, "R-CAT-51", d.pkg, "%s is passed over, as OLM does: %s", m.what, p.Message).strict())
	}
	csv, err := theCSV(objects)
	if err != nil {
		return nil, append(findings, d.sick("R-CAT-51", err)...)
	}
	canonical, dg := bundle.Join(objects)
	if missing := missingCRDs(objects, csv); len(missing) > 0 {
		findings = append(findings, d.finding(SeverityWarning, "R-CAT-52", d.pkg,
			"the CSV %s owns CRDs that are not in its bundle: %s; add their manifests", csv.Name, strings.Join(missing, ", ")).strict())
	}
	name := d.bundle.Name
	if name == "" {
		name = csv.Name
	}
	if keep(Content{Digest: dg, Canonical: canonical, Package: d.pkg, Bundle: name}) != nil {
		return nil, findings // the whole load ends with that error
	}
	d.bundle.Content = dg
	return &csv, findings
}

// theCSV returns the one ClusterServiceVersion (R-CAT-51).
func theCSV(objects []bundle.Object) (bundle.CSV, error) {
	var found []bundle.Object
	for _, o := range objects {
		if o.Kind == bundle.KindCSV {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return bundle.CSV{}, errs.New(errs.Invalid, "bundle has %d ClusterServiceVersions, want exactly 1", len(found)).At("", "R-CAT-51")
	}
	return bundle.ParseCSV(found[0].Raw)
}

// sick notes that the manifests make no bundle.
func (d *bundleDraft) sick(rule string, err error) []Finding {
	where := ""
	if e := asErr(err); e != nil && strings.HasPrefix(e.Field, "/") {
		where = fmt.Sprintf(" (manifest %s)", strings.TrimPrefix(e.Field, "/"))
	}
	return []Finding{d.finding(SeverityWarning, rule, d.pkg,
		"the manifests of bundle %q cannot be used%s, so that it cannot be installed: %v", d.bundle.Name, where, err).strict()}
}

func asErr(err error) *errs.Error {
	e, ok := err.(*errs.Error) //nolint:errorlint // the outermost error only: its Field is the manifest's index
	if !ok {
		return nil
	}
	return e
}

// missingCRDs names what the CSV owns and the bundle does not hold (R-CAT-52).
func missingCRDs(objects []bundle.Object, csv bundle.CSV) []string {
	have := map[string]bool{}
	for _, o := range objects {
		if o.Kind == bundle.KindCRD {
			have[o.Name] = true
		}
	}
	var missing []string
	for _, o := range csv.Spec.CRDs.Owned {
		if !have[o.Name] {
			have[o.Name] = true
			missing = append(missing, o.Name)
		}
	}
	return missing
}

// displayed are the fields of a CSV's spec that olm.csv.metadata has, by the names that it gives them.
var displayed = map[string]string{
	"apiservicedefinitions": "apiServiceDefinitions", "customresourcedefinitions": "crdDescriptions",
	"description": "description", "displayName": "displayName", "installModes": "installModes", "keywords": "keywords",
	"links": "links", "maintainers": "maintainers", "maturity": "maturity", "minKubeVersion": "minKubeVersion",
	"nativeAPIs": "nativeAPIs", "provider": "provider",
}

// metadataOf takes the display part of a CSV, as olm.csv.metadata holds it (R-CAT-18).
func metadataOf(csv bundle.CSV) json.RawMessage {
	canonical, err := digest.Canonical(csv.Raw)
	if err != nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	put := func(key string, v []byte) {
		if key != "" && string(v) != "null" {
			fields[key] = v
		}
	}
	jsontree.Scan(canonical, func(key, value []byte) bool {
		switch string(key) {
		case "metadata":
			jsontree.Scan(value, func(key, value []byte) bool {
				if k := string(key); k == "annotations" || k == "labels" {
					put(k, value)
				}
				return true
			})
		case "spec":
			jsontree.Scan(value, func(key, value []byte) bool {
				put(displayed[string(key)], value)
				return true
			})
		}
		return true
	})
	return joinFields(fields)
}

// joinFields writes an object of values that are canonical.
func joinFields(fields map[string]json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	for i, key := range sortedKeys(fields) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), '"', ':'), fields[key]...)
	}
	return append(out, '}')
}
