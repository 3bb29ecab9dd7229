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

func (l *linter) provider() {
	if l.csv != nil && l.csv.Spec.Provider.Name == "" {
		l.warnf("hub-provider", l.csvObject.at("spec", "provider"), "the CSV names no provider; set spec.provider.name")
	}
}

func (l *linter) maintainers() {
	if l.csv == nil {
		return
	}
	if len(l.csv.Spec.Maintainers) == 0 {
		l.warnf("hub-maintainers", l.csvObject.at("spec"), "the CSV names no maintainer; add one with name and email")
	}
	for i, m := range l.csv.Spec.Maintainers {
		at := l.csvObject.at("spec", "maintainers", nth(i))
		if m.Name == "" {
			l.warnf("hub-maintainers", at, "maintainer %d has no name", i+1)
		}
		if a, err := mail.ParseAddress(m.Email); err != nil || a.Address != m.Email {
			l.warnf("hub-maintainers", at, "the email %q of maintainer %d is no mail address", m.Email, i+1)
		}
	}
}

func (l *linter) links() {
	if l.csv == nil {
		return
	}
	for i, link := range l.csv.Spec.Links {
		at := l.csvObject.at("spec", "links", nth(i))
		if link.Name == "" {
			l.warnf("hub-links", at, "link %d has no name", i+1)
		}
		if u, err := url.Parse(link.URL); err != nil || u.Scheme == "" || u.Host == "" {
			l.warnf("hub-links", at, "the url %q of link %d is no address such as https://example.com/docs", link.URL,
				i+1)
		}
	}
}

func (l *linter) version() {
	if l.csv == nil {
		return
	}
	at := l.csvObject.at("spec", "version")
	if l.csv.Spec.Version == "" {
		l.warnf("hub-version", at, "the CSV has no version; set spec.version")
		return
	}
	if _, err := semver.Parse(l.csv.Spec.Version); err != nil {
		l.warnf("hub-version", at, "the version %q is no semantic version: %v", l.csv.Spec.Version, err)
	}
}

func (l *linter) icon() {
	if l.csv == nil {
		return
	}
	at := l.csvObject.at("spec", "icon")
	if n := len(l.csv.Spec.Icon); n != 1 {
		l.warnf("hub-icon", at, "the CSV has %d icons; give it one", n)
	}
	types := []string{"image/gif", "image/jpeg", "image/png", "image/svg+xml"}
	for i, icon := range l.csv.Spec.Icon {
		if icon.Data == "" || !slices.Contains(types, icon.MediaType) {
			l.warnf("hub-icon", l.csvObject.at("spec", "icon", nth(i)),
				"the icon needs base64data, and a mediatype of %s; it is %q", strings.Join(types, ", "), icon.MediaType)
		}
	}
}

func (l *linter) minKube() {
	if l.csv == nil {
		return
	}
	at := l.csvObject.at("spec", "minKubeVersion")
	if l.csv.Spec.MinKubeVersion == "" {
		l.warnf("hub-min-kube-version", at,
			"the CSV does not say which Kubernetes it needs, so that it is offered everywhere; set spec.minKubeVersion")
		return
	}
	if _, err := semver.Parse(l.csv.Spec.MinKubeVersion); err != nil {
		l.warnf("hub-min-kube-version", at, "minKubeVersion %q is no semantic version such as 1.25.0: %v",
			l.csv.Spec.MinKubeVersion, err)
	}
}

func (l *linter) capability() {
	if l.csv == nil {
		return
	}
	const key = "capabilities"
	if v := l.csv.Annotations[key]; !slices.Contains(capabilityLevels(), v) {
		l.warnf("hub-capability", l.annotationAt(key), "the annotation %s is %q; write one of %s", key, v,
			strings.Join(capabilityLevels(), ", "))
	}
}

func (l *linter) categories() {
	if l.csv == nil {
		return
	}
	const key = "categories"
	text := l.csv.Annotations[key]
	if text == "" {
		l.warnf("hub-categories", l.annotationAt(key),
			"the CSV has no categories, so that nobody finds it by browsing; set the annotation %s", key)
		return
	}
	for c := range strings.SplitSeq(text, ",") {
		if c = strings.TrimSpace(c); !slices.Contains(standardCategories(), c) {
			l.warnf("hub-categories", l.annotationAt(key), "the category %q is not of the standard list: %s", c,
				strings.Join(standardCategories(), ", "))
		}
	}
}
