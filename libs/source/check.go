package source

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Rules that settings may break. They are part of the API: clients compare them.
const (
	RuleRequired      = "required"
	RuleOneOf         = "one-of"
	RuleExclusive     = "exactly-one"
	RuleNotForType    = "not-for-this-type"
	RuleMaxLength     = "max-length"
	RuleMaxItems      = "max-items"
	RuleUnique        = "unique"
	RuleDNSLabel      = "dns-1123-label"
	RuleDNSSubdomain  = "dns-1123-subdomain"
	RulePath          = "path"
	RuleURL           = "url"
	RuleReference     = "image-reference"
	RuleTemplate      = "image-template"
	RuleGitReference  = "git-reference"
	RuleAddress       = "host-and-port"
	RuleDuration      = "duration"
	RulePollInterval  = "poll-interval"
	RuleMirror        = "mirror"
	RuleIcon          = "icon"
	RuleNoCredentials = "no-credentials"
)

// Bounds of settings.
const (
	// MaxPath bounds a path and a URL, as operating systems do.
	MaxPath = 4096
	// MaxSecrets is how many credentials a source may name; one per registry is advised (R-DIS-5).
	MaxSecrets = 32
	// MaxMirrors is how many mappings a catalog may have, and mirrors one mapping.
	MaxMirrors = 64
	// MaxDisplay bounds the words that people see, the description excepted.
	MaxDisplay = 256
	// MaxDescription bounds the description of a catalog.
	MaxDescription = 16 << 10
	// MaxIcon bounds an icon: it is sent with each list.
	MaxIcon = 64 << 10
)

// Violation says which rule a field of the settings breaks. Field is a JSON pointer into Settings.
type Violation struct {
	Field   string
	Rule    string
	Message string
}

// Types returns all kinds of sources.
func Types() []Type { return []Type{Directory, Archive, Git, Image, GRPC, ConfigMap, SQLite} }

// taken says which fields have a meaning for a type, beside those that have one for all.
var taken = map[Type][]string{
	Directory: {"path"},
	Archive:   {"path", "url", "subdirectory"},
	Git:       {"url", "reference", "subdirectory"},
	Image:     {"path", "reference", "image", "template", "subdirectory"},
	GRPC:      {"address"},
	ConfigMap: {"configMap"},
	SQLite:    {"path"},
}

// Check returns everything that is wrong with the settings of a source, in the order of their fields.
// An interval of polling that cannot be parsed is not among it: R-CAT-96 has it replaced and reported.
func Check(t Type, s Settings) []Violation {
	fields, known := taken[t]
	if !known {
		return []Violation{{"/type", RuleOneOf, fmt.Sprintf("source type %q is unknown; want one of %s",
			shorten(string(t)), joinTypes())}}
	}
	c := checker{}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"path", s.Path != ""},
		{"url", s.URL != ""},
		{"reference", s.Reference != ""},
		{"subdirectory", s.Subdirectory != ""},
		{"image", s.Image != ""},
		{"template", s.Template != ""},
		{"address", s.Address != ""},
		{"configMap", s.ConfigMap != nil},
	} {
		if f.set && !slices.Contains(fields, f.name) {
			c.addf("/"+f.name, RuleNotForType, "a source of type %s takes no %s; it takes %s", t, f.name,
				strings.Join(fields, ", "))
		}
	}
	if len(c.list) == 0 {
		c.place(t, s)
	}
	c.common(s)
	c.signatures(t, s)
	return c.list
}

func joinTypes() string {
	names := make([]string, 0, len(taken))
	for _, t := range Types() {
		names = append(names, string(t))
	}
	return strings.Join(names, ", ")
}

type checker struct{ list []Violation }

func (c *checker) addf(field, rule, format string, args ...any) {
	c.list = append(c.list, Violation{field, rule, fmt.Sprintf(format, args...)})
}

// place checks the fields that say where the content is.
func (c *checker) place(t Type, s Settings) {
	switch t {
	case Directory, SQLite:
		c.required("/path", s.Path)
	case Archive:
		c.exactlyOne(t, map[string]bool{"path": s.Path != "", "url": s.URL != ""})
	case Git:
		c.required("/url", s.URL)
	case Image:
		c.exactlyOne(t, map[string]bool{"path": s.Path != "", "image (or template)": s.Image != "" || s.Template != ""})
	case GRPC:
		c.address(s.Address)
	case ConfigMap:
		c.configMap(s.ConfigMap)
	}
	c.path("/path", s.Path)
	c.url(t, s)
	c.reference(t, s)
	c.subdirectory(s.Subdirectory)
	c.image(s)
}

func (c *checker) required(field, value string) {
	if value == "" {
		c.addf(field, RuleRequired, "%s must not be empty", field)
	}
}

func (c *checker) exactlyOne(t Type, given map[string]bool) {
	var all, set []string
	for name, is := range given {
		all = append(all, name)
		if is {
			set = append(set, name)
		}
	}
	slices.Sort(all)
	slices.Sort(set)
	if len(set) != 1 {
		c.addf("", RuleExclusive, "a source of type %s needs exactly one of %s; it has %d of them", t,
			strings.Join(all, " and "), len(set))
	}
}

// common checks the fields that every type takes.
func (c *checker) common(s Settings) {
	c.secrets(s.Secrets)
	c.mirrors(s.Mirrors)
	if d, err := time.ParseDuration(s.Poll); err == nil && d > 0 && d < MinPoll {
		c.addf("/poll", RulePollInterval,
			"an interval of %s is shorter than %s; ask for a refresh, or let a webhook do so, where news must be "+
				"seen sooner", d, MinPoll)
	}
	if s.Timeout != "" {
		if d, err := time.ParseDuration(s.Timeout); err != nil || d <= 0 || d > MaxTimeout {
			c.addf("/timeout", RuleDuration,
				"timeout %q: want a duration such as 90s or 10m, more than 0 and at most %s", shorten(s.Timeout),
				MaxTimeout)
		}
	}
	if !slices.Contains([]string{"", Strict, Lenient}, s.Mode) {
		c.addf("/mode", RuleOneOf, "mode %q: want %s or %s", shorten(s.Mode), Strict, Lenient)
	}
	if s.Display != nil {
		c.display(*s.Display)
	}
}

var (
	reLabel     = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$`)
	reSubdomain = regexp.MustCompile(`^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$`)
)

func (c *checker) name(field, value, rule string, re *regexp.Regexp, limit int) {
	switch {
	case value == "":
		c.required(field, value)
	case len(value) > limit:
		c.addf(field, RuleMaxLength, "%s has %d characters, %d are allowed", field, len(value), limit)
	case !re.MatchString(value):
		c.addf(field, rule,
			"%s is %q: want lower-case letters, digits and '-', beginning and ending with a letter or digit", field,
			value)
	}
}

func (c *checker) secrets(names []string) {
	if len(names) > MaxSecrets {
		c.addf("/secrets", RuleMaxItems,
			"/secrets has %d entries, %d are allowed; several docker configurations may stand in one secret",
			len(names), MaxSecrets)
		return
	}
	for i, n := range names {
		at := fmt.Sprintf("/secrets/%d", i)
		c.name(at, n, RuleDNSSubdomain, reSubdomain, 253)
		if slices.Contains(names[:i], n) {
			c.addf(at, RuleUnique, "secret %q is named twice", n)
		}
	}
}

func (c *checker) configMap(ref *ConfigMapRef) {
	if ref == nil {
		c.addf("/configMap", RuleRequired, "/configMap must say namespace and name of the config map")
		return
	}
	c.name("/configMap/namespace", ref.Namespace, RuleDNSLabel, reLabel, 63)
	c.name("/configMap/name", ref.Name, RuleDNSSubdomain, reSubdomain, 253)
}

func (c *checker) display(d Display) {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"name", d.Name, MaxDisplay},
		{"publisher", d.Publisher, MaxDisplay},
		{"description", d.Description, MaxDescription},
	} {
		if len(f.value) > f.limit {
			c.addf("/display/"+f.name, RuleMaxLength, "/display/%s has %d bytes, %d are allowed", f.name, len(f.value),
				f.limit)
		}
	}
	if d.Icon == nil {
		return
	}
	if known := []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif"}; !slices.Contains(
		known, d.Icon.MediaType) {
		c.addf("/display/icon/mediatype", RuleIcon, "media type %q: want one of %s", shorten(d.Icon.MediaType),
			strings.Join(known, ", "))
	}
	if len(d.Icon.Data) == 0 || len(d.Icon.Data) > MaxIcon {
		c.addf("/display/icon/base64data", RuleIcon, "the icon has %d bytes; want 1 to %d", len(d.Icon.Data), MaxIcon)
	}
}

// Decode reads settings as the gateway stores them.
func Decode(settings []byte) (Settings, error) {
	var s Settings
	err := json.Unmarshal(settings, &s)
	return s, err
}
