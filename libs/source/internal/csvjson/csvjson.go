// Package csvjson goes between a ClusterServiceVersion and the part of it that is for display
// (olm.csv.metadata, R-CAT-18), in both directions: servers make the one of the other for clients that
// show CSVs, and who reads such a server makes it back.
package csvjson

import (
	"encoding/base64"
	"encoding/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// same are the fields of the display part that bear the same name in the spec of a CSV.
var same = []string{
	"description", "displayName", "installModes", "keywords", "links",
	"maintainers", "maturity", "minKubeVersion", "nativeAPIs", "provider",
}

// other are those that do not, by their name in the display part.
var other = map[string]string{
	"apiServiceDefinitions": "apiservicedefinitions",
	"crdDescriptions":       "customresourcedefinitions",
}

// strategy is the install strategy of a CSV that is made for display. Clients rely on its presence; a
// real one has deployments.
const strategy = `{"strategy":"deployment","spec":{"deployments":null}}`

type object map[string]json.RawMessage

func (o object) put(key string, value json.RawMessage) {
	if len(value) > 0 && string(value) != "null" {
		o[key] = value
	}
}

// set adds a value of Go. Those that come here can all be encoded.
func (o object) set(key string, value any) error {
	raw, err := json.Marshal(value)
	if err == nil {
		o[key] = raw
	}
	return err
}

// csv is the outline of a ClusterServiceVersion.
type csv struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   object `json:"metadata"`
	Spec       object `json:"spec"`
}

// Make makes a CSV for display of what a catalog says of a bundle, nil where it has no display part.
// Icon, and a description where the bundle has none of its own, are those of the package (R-CAT-71).
func Make(p catalog.Package, b catalog.Bundle) (json.RawMessage, error) {
	if len(b.Metadata) == 0 {
		return nil, nil
	}
	var m object
	if err := json.Unmarshal(b.Metadata, &m); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "olm.csv.metadata of bundle %q is no object", b.Name)
	}
	c := csv{
		APIVersion: "operators.coreos.com/v1alpha1", Kind: bundle.KindCSV, Metadata: object{},
		Spec: object{"install": json.RawMessage(strategy)},
	}
	c.Metadata.put("annotations", m["annotations"])
	c.Metadata.put("labels", m["labels"])
	for _, key := range same {
		c.Spec.put(key, m[key])
	}
	for from, to := range other {
		c.Spec.put(to, m[from])
	}
	err := c.Metadata.set("name", b.Name)
	if err == nil {
		err = c.Spec.set("version", b.Version)
	}
	if d := c.Spec["description"]; err == nil && p.Description != "" && (d == nil || string(d) == `""`) {
		err = c.Spec.set("description", p.Description)
	}
	if err == nil && p.Icon != nil {
		err = c.Spec.set("icon", []map[string]string{
			{"base64data": base64.StdEncoding.EncodeToString(p.Icon.Data), "mediatype": p.Icon.MediaType},
		})
	}
	if err == nil && len(b.RelatedImages) > 0 {
		err = c.Spec.set("relatedImages", b.RelatedImages)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(c)
}

// Display returns the display part of a CSV, as olm.csv.metadata holds it.
func Display(raw json.RawMessage) (json.RawMessage, error) {
	var c csv
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the ClusterServiceVersion is no object")
	}
	m := object{}
	m.put("annotations", c.Metadata["annotations"])
	m.put("labels", c.Metadata["labels"])
	for _, key := range same {
		m.put(key, c.Spec[key])
	}
	for to, from := range other {
		m.put(to, c.Spec[from])
	}
	return json.Marshal(m)
}

// Real reports whether a CSV can be installed; others are for display alone.
func Real(c bundle.CSV) bool { return len(c.Spec.Install.Spec.Deployments) > 0 }

// Related returns the images that a CSV names.
func Related(c bundle.CSV) []catalog.RelatedImage {
	var out []catalog.RelatedImage
	for _, i := range c.Spec.RelatedImages {
		out = append(out, catalog.RelatedImage{Name: i.Name, Image: i.Image})
	}
	return out
}
