package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/docs"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
	"github.com/chandler-fleet/chandler/libs/catalog/validate"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/internal/jsontree"
)

func factsOf(csv bundle.CSV) *validate.CSVFacts {
	f := &validate.CSVFacts{
		Replaces: csv.Spec.Replaces, SkipRange: csv.Annotations[catalog.AnnotationSkipRange],
		Description: shared(csv.Spec.Description), Skips: csv.Spec.Skips,
	}
	if len(csv.Spec.Icon) > 0 {
		f.Icon = &validate.IconDraft{Data: shared(csv.Spec.Icon[0].Data), MediaType: csv.Spec.Icon[0].MediaType}
	}
	return f
}

// shared returns the one copy of a text that many versions of an operator have in common, as they have
// icons and descriptions.
func shared(text string) string { return unique.Make(text).Value() }

// draftPackage decodes olm.package.
func draftPackage(b blob) (*validate.PackageDraft, []catalog.Finding) {
	d := &validate.PackageDraft{Place: b.Place}
	if f := b.decode(b.value, &d.Body, "R-CAT-20", "olm.package"); f != nil {
		return nil, []catalog.Finding{*f}
	}
	d.Body.Name = b.name
	return d, nil
}

// draftChannel decodes olm.channel and notes where each entry stands.
func draftChannel(b blob) (*validate.ChannelDraft, []catalog.Finding) {
	d := &validate.ChannelDraft{Place: b.Place, Package: b.pkg}
	if f := b.decode(b.value, &d.Body, "R-CAT-22", "olm.channel"); f != nil {
		return nil, []catalog.Finding{*f}
	}
	d.Body.Name = b.name
	d.Entries = b.places(len(d.Body.Entries))
	return d, nil
}

// draftDeprecations decodes olm.deprecations.
func draftDeprecations(b blob) (*validate.DeprecationsDraft, []catalog.Finding) {
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
		return nil, []catalog.Finding{*f}
	}
	d := &validate.DeprecationsDraft{Place: b.Place, Package: b.pkg}
	for _, e := range body.Entries {
		d.Entries = append(d.Entries, catalog.Deprecation{
			Schema: e.Reference.Schema, Name: e.Reference.Name,
			Message: e.Message,
		})
	}
	d.EntriesAt = b.places(len(body.Entries))
	return d, nil
}

// places returns where each of n entries stands.
func (b blob) places(n int) []validate.Place {
	out := make([]validate.Place, 0, n)
	for v := range b.value.Child("entries").Items() {
		out = append(out, b.at(v))
	}
	for len(out) < n { // entries under two keys that differ in case
		out = append(out, b.Place)
	}
	return out
}

// draftBundle decodes olm.bundle. Inline manifests become content at once and are let go, so that
// memory holds one bundle per worker and not the catalog.
func draftBundle(b blob, parser *docs.Parser, keep keeper) (*validate.BundleDraft, []catalog.Finding) {
	d := &validate.BundleDraft{Place: b.Place, Package: b.pkg}
	d.Bundle.Name = b.name
	r := bundleReader{blob: b, draft: d}
	r.field("image", &d.Bundle.Image)
	r.field("relatedImages", &d.Bundle.RelatedImages)
	i := 0
	for v := range b.value.Child("properties").Items() {
		r.property(i, propertyNode{v.Child("type"), v.Child("value"), v})
		i++
	}
	if len(r.manifests) > 0 {
		r.findings = append(r.findings, takeInline(d, r.manifests, parser, keep)...)
	}
	return d, r.findings
}

// bundleReader gathers what a bundle's fields and properties say.
type bundleReader struct {
	blob
	draft     *validate.BundleDraft
	manifests [][]byte
	findings  []catalog.Finding
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
		r.addf(p.at(r.blob), "property %d of bundle %q needs a type that is a non-empty string, and a value", i+1,
			r.name)
		return
	}
	if typ == catalog.TypeBundleObject {
		r.draft.Embedded = true
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
	if typ == catalog.TypeCSVMetadata {
		r.metadata(raw, p.at(r.blob))
		return
	}
	r.draft.Bundle.Properties = append(r.draft.Bundle.Properties, catalog.Property{Type: typ, Value: raw})
}

// metadata takes olm.csv.metadata; of several the last counts (R-CAT-18, R-CAT-25).
func (r *bundleReader) metadata(raw json.RawMessage, at validate.Place) {
	if r.draft.Bundle.Metadata != nil {
		r.findings = append(r.findings, at.Finding(catalog.SeverityWarning, "R-CAT-18", r.pkg,
			"bundle %q has more than one olm.csv.metadata; keep one", r.name))
	}
	r.draft.Bundle.Metadata = raw
	for _, issue := range value.Property(catalog.TypeCSVMetadata, raw) {
		r.addf(at, "property %s of bundle %q: %s", catalog.TypeCSVMetadata, r.name, issue.Text)
	}
}

// addf reports a value that does not have its form (R-CAT-25).
func (r *bundleReader) addf(at validate.Place, format string, args ...any) {
	r.findings = append(r.findings, at.Finding(catalog.SeverityError, "R-CAT-25", r.pkg, format, args...))
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

// takeManifests turns manifests into content. Manifests that make no bundle leave the bundle without content,
// which a warning says: it stays in the graph and cannot be installed (R-CAT-51, R-CAT-52).
func takeManifests(d *validate.BundleDraft, manifests []manifestAt, keep keeper) (*bundle.CSV, []catalog.Finding) {
	csv, findings := makeContent(d, manifests, keep)
	if csv != nil && d.Bundle.Metadata == nil {
		d.Bundle.Metadata = metadataOf(*csv)
	}
	return csv, findings
}

// manifestAt is one manifest of a bundle, as canonical JSON, where it stands, and what it is called there.
type manifestAt struct {
	validate.Place
	what string
	raw  []byte
}

// takeInline takes manifests as a document holds them, JSON or YAML.
func takeInline(d *validate.BundleDraft, raw [][]byte, parser *docs.Parser, keep keeper) []catalog.Finding {
	var manifests []manifestAt
	var findings []catalog.Finding
	for i, r := range raw {
		what := fmt.Sprintf("manifest %d of bundle %q", i, d.Bundle.Name)
		object, notes, err := parser.Manifest(r, docLimits())
		if err == nil && object == nil {
			err = errors.New("it is empty")
		}
		for _, n := range notes {
			findings = append(findings, tolerated(d, "R-CAT-51", "%s, line %d: %s", what, n.Line, n.Text()))
		}
		switch {
		case err == nil:
			manifests = append(manifests, manifestAt{d.Place, what, object})
		case isLimit(err):
			return unusable(d, "R-CAT-51", errs.New(errs.Invalid,
				"manifest is neither YAML nor JSON that can be used: %v", err).At(fmt.Sprintf("/%d", i), ""))
		default:
			findings = append(findings, tolerated(d, "R-CAT-51",
				"%s is passed over, as OLM does: it is neither YAML nor JSON that can be used: %v", what, err))
		}
	}
	_, more := takeManifests(d, manifests, keep)
	return append(findings, more...)
}

// tolerated is a finding about what OLM takes all the same.
func tolerated(d *validate.BundleDraft, rule, format string, args ...any) catalog.Finding {
	return validate.ForAuthors(d.Finding(catalog.SeverityWarning, rule, d.Package, format, args...))
}

func isLimit(err error) bool {
	e, ok := errors.AsType[*docs.Error](err)
	return !ok || e.IsLimit()
}

func makeContent(d *validate.BundleDraft, manifests []manifestAt, keep keeper) (*bundle.CSV, []catalog.Finding) {
	d.Embedded = true
	raw := make([][]byte, len(manifests))
	for i, m := range manifests {
		raw[i] = m.raw
	}
	objects, passed, err := bundle.Gather(raw)
	if err != nil {
		return nil, unusable(d, "R-CAT-51", err)
	}
	var findings []catalog.Finding
	for _, p := range passed {
		m := manifests[p.Manifest]
		findings = append(findings, validate.ForAuthors(
			m.Finding(catalog.SeverityWarning, "R-CAT-51", d.Package, "%s is passed over, as OLM does: %s", m.what,
				p.Message)))
	}
	csv, err := theCSV(objects)
	if err != nil {
		return nil, append(findings, unusable(d, "R-CAT-51", err)...)
	}
	canonical, dg := bundle.Join(objects)
	if missing := missingCRDs(objects, csv); len(missing) > 0 {
		findings = append(findings, tolerated(d, "R-CAT-52",
			"the CSV %s owns CRDs that are not in its bundle: %s; add their manifests", csv.Name,
			strings.Join(missing, ", ")))
	}
	name := d.Bundle.Name
	if name == "" {
		name = csv.Name
	}
	if keep(Content{Digest: dg, Canonical: canonical, Package: d.Package, Bundle: name}) != nil {
		return nil, findings // the whole load ends with that error
	}
	d.Bundle.Content = dg
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
		return bundle.CSV{}, errs.New(errs.Invalid, "bundle has %d ClusterServiceVersions, want exactly 1",
			len(found)).At("", "R-CAT-51")
	}
	return bundle.ParseCSV(found[0].Raw)
}

// unusable reports that the manifests make no bundle.
func unusable(d *validate.BundleDraft, rule string, err error) []catalog.Finding {
	where := ""
	if e := asErr(err); e != nil && strings.HasPrefix(e.Field, "/") {
		where = fmt.Sprintf(" (manifest %s)", strings.TrimPrefix(e.Field, "/"))
	}
	return []catalog.Finding{tolerated(d, rule,
		"the manifests of bundle %q cannot be used%s, so that it cannot be installed: %v", d.Bundle.Name, where, err)}
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
	for i, key := range slices.Sorted(maps.Keys(fields)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), '"', ':'), fields[key]...)
	}
	return append(out, '}')
}
