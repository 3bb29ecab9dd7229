package configmap

import (
	"encoding/json"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/internal/render"
	"github.com/chandler-fleet/chandler/libs/source/internal/spool"
)

// The keys of a config map.
const (
	keyCRDs     = "customResourceDefinitions"
	keyCSVs     = "clusterServiceVersions"
	keyPackages = "packages"
)

// manifest is a package as the last key lists it.
type manifest struct {
	PackageName string `json:"packageName"`
	Channels    []struct {
		Name       string `json:"name"`
		CurrentCSV string `json:"currentCSV"`
	} `json:"channels"`
	DefaultChannel string `json:"defaultChannel"`
}

// content is what a config map holds, by name.
type content struct {
	crds map[string]json.RawMessage
	csvs map[string]bundle.CSV
}

// convert writes the catalog that a config map holds.
func convert(data map[string]string, s *spool.Spool) error {
	var packages []manifest
	c := content{csvs: map[string]bundle.CSV{}}
	var err error
	if c.crds, err = objects(data, keyCRDs); err != nil {
		return err
	}
	csvs, err := objects(data, keyCSVs)
	if err != nil {
		return err
	}
	for name, raw := range csvs {
		if c.csvs[name], err = bundle.ParseCSV(raw); err != nil {
			return errs.Wrap(errs.Invalid, err, "CSV %q of the config map", name)
		}
	}
	if err := list(data, keyPackages, &packages); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, p := range packages {
		if p.PackageName == "" || names[p.PackageName] {
			return errs.New(errs.Invalid, "key %s of the config map names package %q twice, or not at all", keyPackages,
				p.PackageName).At(keyPackages, "R-CAT-20")
		}
		names[p.PackageName] = true
		if err := c.pkg(p, s); err != nil {
			return err
		}
	}
	return nil
}

// list decodes a key.
func list(data map[string]string, key string, into any) error {
	text, ok := data[key]
	if !ok {
		return errs.New(errs.Invalid, "the config map has no key %s; give a list, [] where there is nothing", key).At(
			key, "R-CAT-84")
	}
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		return errs.Wrap(errs.Invalid, err, "key %s of the config map is no list of such objects", key)
	}
	return nil
}

// objects decodes a key of Kubernetes objects, by name.
func objects(data map[string]string, key string) (map[string]json.RawMessage, error) {
	var all []json.RawMessage
	if err := list(data, key, &all); err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	for i, raw := range all {
		var m struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(raw, &m); err != nil || m.Metadata.Name == "" {
			return nil, errs.New(errs.Invalid, "object %d of key %s of the config map has no name", i+1, key).At(
				key, "R-CAT-51")
		}
		if out[m.Metadata.Name] != nil {
			return nil, errs.New(errs.Invalid, "key %s of the config map holds %q twice; keep one", key,
				m.Metadata.Name).At(key, "R-CAT-51")
		}
		out[m.Metadata.Name] = raw
	}
	return out, nil
}

// pkg writes one package with its channels and bundles.
func (c content) pkg(p manifest, s *spool.Spool) error {
	doc := spool.Package{Schema: catalog.SchemaPackage, Name: p.PackageName, DefaultChannel: p.DefaultChannel}
	if doc.DefaultChannel == "" && len(p.Channels) == 1 {
		doc.DefaultChannel = p.Channels[0].Name
	}
	joins := map[string][]string{} // channels by bundle
	var docs []any
	for _, ch := range p.Channels {
		entries := c.entries(ch.CurrentCSV)
		if len(entries) == 0 {
			return errs.New(errs.Invalid,
				"channel %q of package %q has the current CSV %q, which key %s of the config map does not hold",
				ch.Name, p.PackageName, ch.CurrentCSV, keyCSVs).At(keyPackages, "R-CAT-22")
		}
		for _, e := range entries {
			joins[e.Name] = append(joins[e.Name], ch.Name)
		}
		if ch.Name == doc.DefaultChannel {
			face(&doc, c.csvs[ch.CurrentCSV])
		}
		docs = append(docs, spool.Channel{
			Schema: catalog.SchemaChannel, Package: p.PackageName, Name: ch.Name,
			Entries: entries,
		})
	}
	if err := s.Write(p.PackageName, append([]any{doc}, docs...)...); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(joins)) {
		b, err := c.bundle(p.PackageName, name, joins[name])
		if err == nil {
			err = s.Write(p.PackageName, b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// face gives a package what the head of its default channel shows.
func face(doc *spool.Package, csv bundle.CSV) {
	doc.Description = csv.Spec.Description
	if len(csv.Spec.Icon) > 0 {
		doc.Icon = &spool.Icon{Data: csv.Spec.Icon[0].Data, MediaType: csv.Spec.Icon[0].MediaType}
	}
}

// entries follows a channel from its head. Each CSV is met once, so that rings end; the catalog then
// says what is wrong with them (R-GRA-15).
func (c content) entries(head string) []catalog.Entry {
	var out []catalog.Entry
	met := map[string]bool{}
	for open := []string{head}; len(open) > 0; {
		name := open[0]
		open = open[1:]
		csv, ok := c.csvs[name]
		if !ok || met[name] {
			continue
		}
		met[name] = true
		out = append(out, catalog.Entry{
			Name: name, Replaces: csv.Spec.Replaces, Skips: csv.Spec.Skips, SkipRange: csv.Annotations["olm.skipRange"],
		})
		open = append(append(open, csv.Spec.Replaces), csv.Spec.Skips...)
	}
	return out
}

// bundle makes the olm.bundle of a CSV with the CRDs that it owns.
func (c content) bundle(pkg, name string, channels []string) (spool.Bundle, error) {
	csv := c.csvs[name]
	manifests := [][]byte{csv.Raw}
	added := map[string]bool{}
	for _, owned := range csv.Spec.CRDs.Owned {
		if crd := c.crds[owned.Name]; crd != nil && !added[owned.Name] {
			added[owned.Name] = true
			manifests = append(manifests, crd)
		}
	}
	f, findings := render.Bundle(pkg, "", channels, manifests)
	if err := findings.Err(); err != nil {
		return spool.Bundle{}, errs.Wrap(errs.Invalid, err, "CSV %q of the config map", name)
	}
	return render.Document(f, manifests)
}
