package lint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// practiceCheck holds good practice.
type practiceCheck struct {
	in  *parsed
	out *report
}

func (l practiceCheck) run() {
	l.resourceRequests()
	l.channelNames()
	l.crdDescriptions()
	l.crdRights()
	l.nameForm()
}

func (l practiceCheck) resourceRequests() {
	if l.in.csv == nil {
		return
	}
	for i, d := range l.in.csv.Spec.Install.Spec.Deployments {
		base := []string{"spec", "install", "spec", "deployments", nth(i)}
		spec, err := d.Typed()
		if err != nil {
			l.out.warnf("practice-resources", l.in.csvObject.at(base...), "the deployment %s does not have the right form: %v",
				d.Name, err)
			continue
		}
		for j, c := range spec.Template.Spec.Containers {
			if missing := withoutRequest(c); missing != "" {
				at := l.in.csvObject.at(append(base, "spec", "template", "spec", "containers", nth(j))...)
				l.out.warnf("practice-resources", at,
					"the container %s of deployment %s requests no %s, so that it is placed by chance and evicted "+
						"first; set resources.requests", c.Name, d.Name, missing)
			}
		}
	}
}

func withoutRequest(c corev1.Container) string {
	var missing []string
	for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, set := c.Resources.Requests[r]; !set {
			missing = append(missing, string(r))
		}
	}
	return strings.Join(missing, " and ")
}

// channelNames holds the scheme by which users know what to expect of a channel.
func (l practiceCheck) channelNames() {
	v := l.in.annotated.Child(catalog.AnnotationChannels)
	if !v.Exists() {
		return
	}
	for c := range strings.SplitSeq(v.Text(), ",") {
		c = strings.TrimSpace(c)
		known := slices.ContainsFunc([]string{"candidate", "fast", "stable"},
			func(p string) bool { return strings.HasPrefix(c, p) })
		if c != "" && !known {
			l.out.warnf("practice-channels", place{fileAnnotations, v.Line(), v.Column()},
				"the channel %q tells nothing of its pace; begin its name with candidate, fast or stable", c)
		}
	}
}

func (l practiceCheck) crdDescriptions() {
	if l.in.csv == nil {
		return
	}
	for i, c := range l.in.csv.Spec.CRDs.Owned {
		if strings.TrimSpace(c.Description) == "" {
			l.out.warnf("practice-crd-description", l.in.csvObject.at("spec", "customresourcedefinitions", "owned",
				nth(i)),
				"the CSV does not describe its CRD %s; say what it is for", c.Name)
		}
	}
}

func (l practiceCheck) crdRights() {
	for _, g := range l.in.grants() {
		if g.covers("apiextensions.k8s.io", "customresourcedefinitions", "create") {
			l.out.warnf("practice-crd-rights", g.at,
				"the rule lets the operator create CRDs, which may replace those of others; bring them in the bundle")
		}
	}
}

var nameForm = regexp.MustCompile(`^.+?\.v(.+)$`)

func (l practiceCheck) nameForm() {
	if l.in.csv == nil {
		return
	}
	if m := nameForm.FindStringSubmatch(l.in.csv.Name); m != nil {
		if _, err := semver.Parse(m[1]); err == nil {
			return
		}
	}
	l.out.warnf("practice-name", l.in.csvObject.at("metadata", "name"),
		"the name %q of the CSV should have the form <operator>.v<semantic version>", l.in.csv.Name)
}
