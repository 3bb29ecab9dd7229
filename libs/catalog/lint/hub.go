package lint

import (
	"net/mail"
	"net/url"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
)

// capabilityLevels are the values of the annotation capabilities (BEHAVIOUR §0).
func capabilityLevels() []string {
	return []string{"Basic Install", "Seamless Upgrades", "Full Lifecycle", "Deep Insights", "Auto Pilot"}
}

// standardCategories are those by which users browse.
func standardCategories() []string {
	return []string{
		"AI/Machine Learning", "Application Runtime", "Big Data", "Cloud Provider", "Database", "Developer Tools",
		"Development Tools", "Drivers and plugins", "Integration & Delivery", "Logging & Tracing",
		"Modernization & Migration", "Monitoring", "Networking", "Observability", "OpenShift Optional", "Security",
		"Storage", "Streaming & Messaging",
	}
}

// hubCheck holds what a public list of operators shows.
type hubCheck struct {
	in  *parsed
	out *report
}

// run makes the checks, which need exactly one CSV that can be read.
func (l hubCheck) run() {
	if l.in.csv == nil {
		return
	}
	l.provider()
	l.maintainers()
	l.links()
	l.version()
	l.icon()
	l.minKube()
	l.capability()
	l.categories()
}

func (l hubCheck) provider() {
	if l.in.csv.Spec.Provider.Name == "" {
		l.out.warnf("hub-provider", l.in.csvObject.at("spec", "provider"), "the CSV names no provider; set spec.provider.name")
	}
}

func (l hubCheck) maintainers() {
	if len(l.in.csv.Spec.Maintainers) == 0 {
		l.out.warnf("hub-maintainers", l.in.csvObject.at("spec"), "the CSV names no maintainer; add one with name and email")
	}
	for i, m := range l.in.csv.Spec.Maintainers {
		at := l.in.csvObject.at("spec", "maintainers", nth(i))
		if m.Name == "" {
			l.out.warnf("hub-maintainers", at, "maintainer %d has no name", i+1)
		}
		if a, err := mail.ParseAddress(m.Email); err != nil || a.Address != m.Email {
			l.out.warnf("hub-maintainers", at, "the email %q of maintainer %d is no mail address", m.Email, i+1)
		}
	}
}

func (l hubCheck) links() {
	for i, link := range l.in.csv.Spec.Links {
		at := l.in.csvObject.at("spec", "links", nth(i))
		if link.Name == "" {
			l.out.warnf("hub-links", at, "link %d has no name", i+1)
		}
		if u, err := url.Parse(link.URL); err != nil || u.Scheme == "" || u.Host == "" {
			l.out.warnf("hub-links", at, "the url %q of link %d is no address such as https://example.com/docs", link.URL,
				i+1)
		}
	}
}

func (l hubCheck) version() {
	at := l.in.csvObject.at("spec", "version")
	if l.in.csv.Spec.Version == "" {
		l.out.warnf("hub-version", at, "the CSV has no version; set spec.version")
		return
	}
	if _, err := semver.Parse(l.in.csv.Spec.Version); err != nil {
		l.out.warnf("hub-version", at, "the version %q is no semantic version: %v", l.in.csv.Spec.Version, err)
	}
}

func (l hubCheck) icon() {
	at := l.in.csvObject.at("spec", "icon")
	if n := len(l.in.csv.Spec.Icon); n != 1 {
		l.out.warnf("hub-icon", at, "the CSV has %d icons; give it one", n)
	}
	types := []string{"image/gif", "image/jpeg", "image/png", "image/svg+xml"}
	for i, icon := range l.in.csv.Spec.Icon {
		if icon.Data == "" || !slices.Contains(types, icon.MediaType) {
			l.out.warnf("hub-icon", l.in.csvObject.at("spec", "icon", nth(i)),
				"the icon needs base64data, and a mediatype of %s; it is %q", strings.Join(types, ", "), icon.MediaType)
		}
	}
}

func (l hubCheck) minKube() {
	at := l.in.csvObject.at("spec", "minKubeVersion")
	if l.in.csv.Spec.MinKubeVersion == "" {
		l.out.warnf("hub-min-kube-version", at,
			"the CSV does not say which Kubernetes it needs, so that it is offered everywhere; set spec.minKubeVersion")
		return
	}
	if _, err := semver.Parse(l.in.csv.Spec.MinKubeVersion); err != nil {
		l.out.warnf("hub-min-kube-version", at, "minKubeVersion %q is no semantic version such as 1.25.0: %v",
			l.in.csv.Spec.MinKubeVersion, err)
	}
}

func (l hubCheck) capability() {
	const key = "capabilities"
	if v := l.in.csv.Annotations[key]; !slices.Contains(capabilityLevels(), v) {
		l.out.warnf("hub-capability", l.in.annotationAt(key), "the annotation %s is %q; write one of %s", key, v,
			strings.Join(capabilityLevels(), ", "))
	}
}

func (l hubCheck) categories() {
	const key = "categories"
	text := l.in.csv.Annotations[key]
	if text == "" {
		l.out.warnf("hub-categories", l.in.annotationAt(key),
			"the CSV has no categories, so that nobody finds it by browsing; set the annotation %s", key)
		return
	}
	for c := range strings.SplitSeq(text, ",") {
		if c = strings.TrimSpace(c); !slices.Contains(standardCategories(), c) {
			l.out.warnf("hub-categories", l.in.annotationAt(key), "the category %q is not of the standard list: %s", c,
				strings.Join(standardCategories(), ", "))
		}
	}
}
