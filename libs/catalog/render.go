package catalog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// mustJSON encodes a struct of strings, which cannot fail.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("a struct of strings is JSON: " + err.Error())
	}
	return raw
}

func gvkProperty(typ, group, version, kind string) Property {
	return Property{Type: typ, Value: mustJSON(GVK{group, version, kind})}
}

// groupOf takes the group out of a CRD name, plural.group.
func groupOf(crd string) string {
	_, group, _ := strings.Cut(crd, ".")
	return group
}

// sortProperties orders properties by type and canonical value and drops repetitions (R-CAT-58).
func sortProperties(props []Property) []Property {
	canonical := func(p Property) string {
		c, err := digest.Canonical(p.Value)
		if err != nil {
			return string(p.Value)
		}
		return string(c)
	}
	type keyed struct {
		p   Property
		key string
	}
	all := make([]keyed, 0, len(props))
	for _, p := range props {
		all = append(all, keyed{p, canonical(p)})
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.p.Type, b.p.Type), cmp.Compare(a.key, b.key))
	})
	all = slices.CompactFunc(all, func(a, b keyed) bool { return a.p.Type == b.p.Type && a.key == b.key })
	out := make([]Property, 0, len(all))
	for _, k := range all {
		out = append(out, k.p)
	}
	return out
}

// relatedImages joins the CSV's related images, the bundle image and the images of its Deployments (R-CAT-58).
func relatedImages(csv bundle.CSV, image string) []RelatedImage {
	seen := map[string]bool{}
	var out []RelatedImage
	add := func(name, img string) {
		if img != "" && !seen[img] {
			seen[img] = true
			out = append(out, RelatedImage{Name: name, Image: img})
		}
	}
	for _, r := range csv.Spec.RelatedImages {
		add(r.Name, r.Image)
	}
	add("", image)
	for _, d := range csv.Spec.Install.Spec.Deployments {
		for _, img := range containerImages(d.Spec) {
			add("", img)
		}
	}
	slices.SortFunc(out, func(a, b RelatedImage) int {
		return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// containerImages returns the images of a Deployment's containers, none where its form is odd.
func containerImages(deployment json.RawMessage) []string {
	type container struct {
		Image string `json:"image"`
	}
	var s struct {
		Template struct {
			Spec struct {
				Containers     []container `json:"containers"`
				InitContainers []container `json:"initContainers"`
			} `json:"spec"`
		} `json:"template"`
	}
	if json.Unmarshal(deployment, &s) != nil {
		return nil
	}
	var out []string
	for _, c := range slices.Concat(s.Template.Spec.InitContainers, s.Template.Spec.Containers) {
		out = append(out, c.Image)
	}
	return out
}
