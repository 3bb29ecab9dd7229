package source_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
)

// TestCheckTakes proves that usual settings of each type are taken (R-CAT-84).
func TestCheckTakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ source.Type
		in  source.Settings
	}{
		"directory": {source.Directory, source.Settings{
			Path: "/srv/catalogs/fleet", Poll: "30m",
			Timeout: "90s", Mode: source.Lenient,
		}},
		"archive on disk": {source.Archive, source.Settings{Path: "fleet.tar.zst", Subdirectory: "fleet/catalog"}},
		"archive at a URL": {source.Archive, source.Settings{
			URL:     "https://files.dock.test/fleet.tar.gz",
			Secrets: []string{"dock-files"},
		}},
		"archive in clear": {source.Archive, source.Settings{
			URL:      "http://files.dock.test/fleet.tar.gz",
			Insecure: true,
		}},
		"git": {source.Git, source.Settings{
			URL:       "https://git.dock.test/fleet.git",
			Reference: "release/v1", Subdirectory: "catalog/",
		}},
		"git over SSH": {source.Git, source.Settings{
			URL:       "ssh://git@git.dock.test:2222/fleet.git",
			Reference: "refs/tags/v1.0.0",
		}},
		"git in short form": {source.Git, source.Settings{URL: "git@git.dock.test:ops/fleet.git"}},
		"git on disk":       {source.Git, source.Settings{URL: "file:///srv/git/fleet.git"}},
		"image by tag": {source.Image, source.Settings{
			Image: "registry.dock.test:5000/ops/fleet:v1.33",
			Poll:  "0s",
		}},
		"image by digest": {source.Image, source.Settings{
			Image: "registry.dock.test/ops/fleet@sha256:" + strings.Repeat("a", 64),
		}},
		"image by template": {source.Image, source.Settings{
			Template: "registry.dock.test/ops/fleet:v{kube_major_version}.{kube_minor_version}",
		}},
		"with fallback": {source.Image, source.Settings{
			Template: "registry.dock.test/f:v{kube_patch_version}",
			Image:    "registry.dock.test/f:v1",
		}},
		"image in a layout": {source.Image, source.Settings{Path: "/srv/layouts/fleet", Reference: "v1.33"}},
		"server":            {source.GRPC, source.Settings{Address: "fleet.catalogs.svc:50051"}},
		"server by address": {source.GRPC, source.Settings{Address: "[::1]:50051"}},
		"config map": {source.ConfigMap, source.Settings{
			ConfigMap: &source.ConfigMapRef{Namespace: "catalogs", Name: "fleet.v1"},
		}},
		"database": {source.SQLite, source.Settings{Path: "/srv/index.db"}},
		// R-CAT-96: replaced and reported
		"unparsable poll": {source.Directory, source.Settings{Path: "/srv", Poll: "often"}},
		"mirrors": {source.Directory, source.Settings{
			Path: "/srv", Mirrors: []source.Mirror{
				{Source: "registry.dock.test", Mirrors: []string{"mirror.test:5000/dock"}, Never: true},
			},
		}},
		"mirror of one tag": {source.Directory, source.Settings{
			Path: "/srv", Mirrors: []source.Mirror{
				{Source: "registry.dock.test/a/b:v1", Mirrors: []string{"mirror.test/b:v1"}},
			},
		}},
		"display and icon": {source.Directory, source.Settings{
			Path: "/srv", Display: &source.Display{
				Name: "Fleet",
				Icon: &source.Icon{Data: []byte("x"), MediaType: "image/svg+xml"},
			},
		}},
		"several references": {source.Directory, source.Settings{
			Path: "/srv", Secrets: []string{"dock-pull", "dock-ca"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v := source.Check(c.typ, c.in); len(v) != 0 {
				t.Errorf("Check = %+v", v)
			}
		})
	}
}

// TestCheckRefuses proves that each mistake is found, with its field and rule.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 5000)
	git := func(reference string) source.Settings {
		return source.Settings{URL: "https://git.dock.test/f.git", Reference: reference}
	}
	mirrored := func(m source.Mirror) source.Settings {
		return source.Settings{Path: "/srv", Mirrors: []source.Mirror{m}}
	}
	for name, c := range map[string]struct {
		typ  source.Type
		in   source.Settings
		want []string // field and rule
	}{
		"unknown type":       {"ftp", source.Settings{}, []string{"/type one-of"}},
		"nothing":            {source.Directory, source.Settings{}, []string{"/path required"}},
		"a null in the path": {source.Directory, source.Settings{Path: "/srv/\x00"}, []string{"/path path"}},
		"a long path":        {source.SQLite, source.Settings{Path: "/" + long}, []string{"/path max-length"}},
		"fields of others": {
			source.Directory,
			source.Settings{Path: "/srv", Image: "x", Address: "y"},
			[]string{"/image not-for-this-type", "/address not-for-this-type"},
		},
		"all fields of others": {
			source.GRPC,
			source.Settings{
				Path: "a", URL: "b", Reference: "c",
				Subdirectory: "d", Image: "e", Template: "f", ConfigMap: &source.ConfigMapRef{},
			},
			[]string{
				"/path not-for-this-type", "/url not-for-this-type", "/reference not-for-this-type",
				"/subdirectory not-for-this-type", "/image not-for-this-type", "/template not-for-this-type",
				"/configMap not-for-this-type",
			},
		},
		"neither path nor URL": {source.Archive, source.Settings{}, []string{" exactly-one"}},
		"both path and URL": {
			source.Archive,
			source.Settings{Path: "/a", URL: "https://b.test/c"},
			[]string{" exactly-one"},
		},
		"an image and a layout": {
			source.Image,
			source.Settings{Path: "/a", Image: "b.test/c:d"},
			[]string{" exactly-one"},
		},
		"another scheme": {
			source.Archive,
			source.Settings{URL: "ftp://files.dock.test/x"},
			[]string{"/url url"},
		},
		"no host": {source.Archive, source.Settings{URL: "https:///x"}, []string{"/url url"}},
		"without TLS": {
			source.Archive,
			source.Settings{URL: "http://files.dock.test/x"},
			[]string{"/url url"},
		},
		"a password": {
			source.Git,
			source.Settings{URL: "https://me:secret@git.dock.test/f.git"},
			[]string{"/url no-credentials"},
		},
		"a token without scheme": {
			source.Archive,
			source.Settings{URL: "user:secret@host.test/x"},
			[]string{"/url no-credentials"},
		},
		"a broken password": {
			source.Archive,
			source.Settings{URL: "https://user:se/cret@host.test/x"},
			[]string{"/url url"},
		},
		"a token in short form": {
			source.Git,
			source.Settings{URL: "user:secret@host.test:x/y"},
			[]string{"/url no-credentials"},
		},
		"two users in short form": {
			source.Git,
			source.Settings{URL: "user@secret@host.test:x/y"},
			[]string{"/url no-credentials"},
		},
		"a user of an archive": {
			source.Archive,
			source.Settings{URL: "git@host.test:x/y"},
			[]string{"/url no-credentials"},
		},
		"a password for SSH": {
			source.Git,
			source.Settings{URL: "ssh://me:secret@git.dock.test/f.git"},
			[]string{"/url no-credentials"},
		},
		"a fragment": {
			source.Git,
			source.Settings{URL: "https://git.dock.test/f.git#main"},
			[]string{"/url url"},
		},
		"a long URL": {
			source.Git,
			source.Settings{URL: "https://git.dock.test/" + long},
			[]string{"/url max-length"},
		},
		"an option as reference": {source.Git, git("--upload-pack=x"), []string{"/reference git-reference"}},
		"a walk as reference":    {source.Git, git("a..b"), []string{"/reference git-reference"}},
		"a space in a reference": {source.Git, git("a b"), []string{"/reference git-reference"}},
		"up from the directory": {
			source.Directory,
			source.Settings{Path: "fleet/../../etc"},
			[]string{"/path path"},
		},
		"up from the subdirectory": {source.Git, source.Settings{
			URL:          "https://git.dock.test/f.git",
			Subdirectory: "a/../../b",
		}, []string{"/subdirectory path"}},
		"no registry": {
			source.Image,
			source.Settings{Image: "ops/fleet:v1"},
			[]string{"/image image-reference"},
		},
		"no tag": {
			source.Image,
			source.Settings{Image: "registry.dock.test/ops/fleet"},
			[]string{"/image image-reference"},
		},
		"upper case": {
			source.Image,
			source.Settings{Image: "registry.dock.test/Ops:v1"},
			[]string{"/image image-reference"},
		},
		"a short digest": {
			source.Image,
			source.Settings{Image: "registry.dock.test/ops@sha256:abc"},
			[]string{"/image image-reference"},
		},
		"a long reference": {
			source.Image,
			source.Settings{Image: "registry.dock.test/" + long + ":v1"},
			[]string{"/image image-reference"},
		},
		"an unknown variable": {
			source.Image,
			source.Settings{Template: "r.test/f:{ocp_version}"},
			[]string{"/template image-template"},
		},
		"an open brace": {
			source.Image,
			source.Settings{Template: "r.test/f:{kube_major_version"},
			[]string{"/template image-template"},
		},
		"a closing brace": {
			source.Image,
			source.Settings{Template: "r.test/f:}"},
			[]string{"/template image-template"},
		},
		"a template of nothing": {
			source.Image,
			source.Settings{Template: "{kube_major_version}"},
			[]string{"/template image-reference"},
		},
		"a reference to a tag": {
			source.Image,
			source.Settings{Image: "r.test/f:v1", Reference: "v2"},
			[]string{"/reference not-for-this-type"},
		},
		"no address": {source.GRPC, source.Settings{}, []string{"/address required"}},
		"no port": {
			source.GRPC,
			source.Settings{Address: "fleet.test"},
			[]string{"/address host-and-port"},
		},
		"a port too high": {
			source.GRPC,
			source.Settings{Address: "fleet.test:70000"},
			[]string{"/address host-and-port"},
		},
		"a URL as address": {
			source.GRPC,
			source.Settings{Address: "https://fleet.test:50051"},
			[]string{"/address host-and-port"},
		},
		"no config map": {source.ConfigMap, source.Settings{}, []string{"/configMap required"}},
		"half a config map": {
			source.ConfigMap,
			source.Settings{
				ConfigMap: &source.ConfigMapRef{Namespace: "A", Name: ""},
			},
			[]string{"/configMap/namespace dns-1123-label", "/configMap/name required"},
		},
		"a secret's name": {
			source.Directory,
			source.Settings{
				Path: "/srv", Secrets: []string{"ok", "Not_Ok", "ok", "", strings.Repeat("a", 254)},
			},
			[]string{
				"/secrets/1 dns-1123-subdomain", "/secrets/2 unique", "/secrets/3 required",
				"/secrets/4 max-length",
			},
		},
		"too many secrets": {source.Directory, source.Settings{
			Path: "/srv", Secrets: make([]string, source.MaxSecrets+1),
		}, []string{"/secrets max-items"}},
		"too many mirrors": {source.Directory, source.Settings{
			Path: "/srv", Mirrors: make([]source.Mirror, source.MaxMirrors+1),
		}, []string{"/mirrors max-items"}},
		"a mapping to nothing": {
			source.Directory, mirrored(source.Mirror{Source: "r.test", Never: true}),
			[]string{"/mirrors/0/mirrors required"},
		},
		"a mapping of a scheme": {
			source.Directory, mirrored(
				source.Mirror{Source: "https://r.test", Mirrors: []string{"m.test/"}}),
			[]string{"/mirrors/0/source mirror", "/mirrors/0/mirrors/0 mirror"},
		},
		"a mapping to too many": {
			source.Directory, mirrored(
				source.Mirror{Source: "r.test", Mirrors: make([]string, source.MaxMirrors+1)}),
			[]string{"/mirrors/0/mirrors max-items"},
		},
		"a hasty poll": {source.Directory, source.Settings{Path: "/srv", Poll: "1s"}, []string{"/poll poll-interval"}},
		"no duration": {
			source.Directory,
			source.Settings{Path: "/srv", Timeout: "soon"},
			[]string{"/timeout duration"},
		},
		"no time": {
			source.Directory,
			source.Settings{Path: "/srv", Timeout: "0s"},
			[]string{"/timeout duration"},
		},
		"too much time": {
			source.Directory,
			source.Settings{Path: "/srv", Timeout: "2h"},
			[]string{"/timeout duration"},
		},
		"a mode": {source.Directory, source.Settings{Path: "/srv", Mode: "lax"}, []string{"/mode one-of"}},
		"display": {
			source.Directory,
			source.Settings{
				Path:    "/srv",
				Display: &source.Display{Publisher: long, Icon: &source.Icon{MediaType: "text/html"}},
			},
			[]string{"/display/publisher max-length", "/display/icon/mediatype icon", "/display/icon/base64data icon"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, v := range source.Check(c.typ, c.in) {
				got = append(got, v.Field+" "+v.Rule)
				if v.Message == "" || len(v.Message) > 1000 || strings.Contains(v.Message, "cret@") ||
					strings.Contains(v.Message, "user:") {
					t.Errorf("message of %s: %q", v.Field, v.Message)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPollInterval proves that an interval that cannot be used is replaced by 15 minutes and told (R-CAT-96).
func TestPollInterval(t *testing.T) {
	t.Parallel()
	for in, c := range map[string]struct {
		want     time.Duration
		replaced bool
	}{
		"":      {time.Hour, false},
		"30m":   {30 * time.Minute, false},
		"0s":    {0, false},
		"often": {15 * time.Minute, true},
		"15":    {15 * time.Minute, true},
		"-5m":   {15 * time.Minute, true},
		"1ms":   {15 * time.Minute, true},
	} {
		if got, replaced := source.PollInterval(in, time.Hour); got != c.want || replaced != c.replaced {
			t.Errorf("PollInterval(%q) = %s, %t; want %s, %t", in, got, replaced, c.want, c.replaced)
		}
	}
	for in, want := range map[string]time.Duration{
		"": source.DefaultTimeout, "soon": source.DefaultTimeout,
		"-1s": source.DefaultTimeout, "2h": source.DefaultTimeout, "90s": 90 * time.Second,
	} {
		if got := source.TimeoutOf(source.Settings{Timeout: in}); got != want {
			t.Errorf("TimeoutOf(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestDecode proves that settings from before this version are read.
func TestDecode(t *testing.T) {
	t.Parallel()
	s, err := source.Decode([]byte(`{"path":"/srv","somethingNew":1}`))
	if err != nil || s.Path != "/srv" {
		t.Errorf("Decode = %+v, %v", s, err)
	}
	if _, err := source.Decode([]byte("x")); err == nil {
		t.Error("no JSON is taken")
	}
}

// TestTemplate proves what a template resolves to for the versions that clusters report (R-CAT-92).
func TestTemplate(t *testing.T) {
	t.Parallel()
	const template = "registry.dock.test/ops/fleet:v{kube_major_version}.{kube_minor_version}"
	const patched = template + ".{kube_patch_version}"
	for _, c := range []struct{ template, version, want, fault string }{
		{template, "v1.33.4", "registry.dock.test/ops/fleet:v1.33", ""},
		{template, "1.33", "registry.dock.test/ops/fleet:v1.33", ""},
		{template, "v1.33+", "registry.dock.test/ops/fleet:v1.33", ""},
		{patched, "v1.33.4+k3s1", "registry.dock.test/ops/fleet:v1.33.4", ""},
		{patched, "v1.33.4-eks-aeac579", "registry.dock.test/ops/fleet:v1.33.4", ""},
		{
			"registry.dock.test/v{kube_minor_version}/f@sha256:" + strings.Repeat("b", 64), "v1.33.4",
			"registry.dock.test/v33/f@sha256:" + strings.Repeat("b", 64), "",
		},
		{"registry.dock.test/f:plain", "", "registry.dock.test/f:plain", ""},
		{patched, "v1.33", "", "does not say its patch"},
		{template, "", "", "cannot be read"},
		{template, "one", "", "cannot be read"},
		{"registry.dock.test/f:{kube_version}", "v1.33.4", "", "is unknown"},
		{"f:{kube_major_version}", "v1.33.4", "", "names no registry"},
	} {
		got, err := source.ResolveTemplate(c.template, c.version)
		if got != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("ResolveTemplate(%q, %q) = %q, %v; want %q, %q", c.template, c.version, got, err, c.want, c.fault)
		}
	}
	names, err := source.Variables(patched + "{kube_patch_version}")
	if diff := cmp.Diff([]string{source.VariableMajor, source.VariableMinor, source.VariablePatch},
		names); diff != "" || err != nil {
		t.Errorf("Variables: %v %s", err, diff)
	}
	for version, want := range map[string]string{"v1.33.4": "1.33", "1.34+": "1.34", "": ""} {
		if got, err := source.Variant(version); got != want || (err != nil) != (want == "") {
			if want != "" || err == nil {
				t.Errorf("Variant(%q) = %q, %v", version, got, err)
			}
		}
	}
}

// TestResolve proves the order of template and image, the fallback, and the stop where there is none (R-CAT-92,
// R-CAT-93).
func TestResolve(t *testing.T) {
	t.Parallel()
	const template, image = "r.test/f:v{kube_major_version}", "r.test/f:stable"
	for name, c := range map[string]struct {
		in      source.Settings
		version string
		image   string
		reason  string
		fails   bool
	}{
		"no template": {source.Settings{Image: image}, "v1.33.4", image, "", false},
		"the template goes before": {
			source.Settings{Image: image, Template: template},
			"v1.33.4", "r.test/f:v1",
			source.ReasonTemplatesResolved, false,
		},
		"the image stays": {
			source.Settings{Image: image, Template: template},
			"", image, source.ReasonUnableToResolve,
			false,
		},
		"neither": {source.Settings{Template: template}, "", "", source.ReasonUnableToResolve, true},
	} {
		got, err := source.Resolve(c.in, c.version)
		if got.Image != c.image || got.Reason != c.reason || errs.Is(err, errs.Invalid) != c.fails ||
			(got.Message != "") != (c.reason == source.ReasonUnableToResolve) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if !source.Templated(source.Settings{Template: template}) || source.Templated(source.Settings{Template: image}) ||
		source.Templated(source.Settings{Image: image}) {
		t.Error("Templated does not tell a template from an image")
	}
}

// TestCandidates proves the order in which mirrors are asked, and where a prefix ends.
func TestCandidates(t *testing.T) {
	t.Parallel()
	const sum = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	site := []source.Mirror{
		{Source: "quay.test", Mirrors: []string{"mirror.test:5000/quay"}},
		{Source: "quay.test/ops/fleet", Mirrors: []string{"near.test/fleet", "far.test/fleet"}},
		{Source: "closed.test/a:v1", Mirrors: []string{"mirror.test/a:v1"}, Never: true},
		{Source: "closed.test/only", Mirrors: nil, Never: true},
	}
	own := []source.Mirror{{Source: "quay.test/ops", Mirrors: []string{"own.test/ops"}}}
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"other.test/x:1", []string{"other.test/x:1"}},
		{"quay.test/x:1", []string{"mirror.test:5000/quay/x:1", "quay.test/x:1"}},
		{"quay.test:8443/x:1", []string{"quay.test:8443/x:1"}},
		{"quay.testing/x:1", []string{"quay.testing/x:1"}},
		{"quay.test/ops/fleet" + sum, []string{
			"own.test/ops/fleet" + sum, "near.test/fleet" + sum,
			"far.test/fleet" + sum, "mirror.test:5000/quay/ops/fleet" + sum, "quay.test/ops/fleet" + sum,
		}},
		{"quay.test/ops/fleets:1", []string{
			"own.test/ops/fleets:1", "mirror.test:5000/quay/ops/fleets:1",
			"quay.test/ops/fleets:1",
		}},
		{"closed.test/a:v1", []string{"mirror.test/a:v1"}},
		{"closed.test/a:v10", []string{"closed.test/a:v10"}},
	} {
		got, err := source.Candidates(c.in, own, site)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("Candidates(%s): %v %s", c.in, err, diff)
		}
	}
	if got, err := source.Candidates("closed.test/only:1", own, site); !errs.Is(err, errs.Invalid) {
		t.Errorf("a source that is never contacted and has no mirror: %v, %v", got, err)
	}
}

// TestReference proves that a reference is read and written again unchanged.
func TestReference(t *testing.T) {
	t.Parallel()
	sum := "sha256:" + strings.Repeat("a", 64)
	for in, want := range map[string]source.Reference{
		"r.test/a:v1":                   {Host: "r.test", Repository: "a", Tag: "v1"},
		"r.test:5000/a/b-c@" + sum:      {Host: "r.test:5000", Repository: "a/b-c", Digest: sum},
		"localhost/a__b:V_1.x-y@" + sum: {Host: "localhost", Repository: "a__b", Tag: "V_1.x-y", Digest: sum},
		"[::1]:5000/a.b:1":              {Host: "[::1]:5000", Repository: "a.b", Tag: "1"},
	} {
		got, err := source.ParseReference(in)
		if err != nil || got != want || got.String() != in {
			t.Errorf("ParseReference(%q) = %+v, %v", in, got, err)
		}
	}
}

// FuzzParseReference proves that what is read as a reference is written again unchanged, and that mirrors
// of it can be asked for.
func FuzzParseReference(f *testing.F) {
	for _, s := range []string{
		"r.test/a:v1", "r.test:5000/a/b@sha256:" + strings.Repeat("a", 64), "localhost/a__b:V_1",
		"[::1]:5000/a:1", "a/b", "r.test/A", "r.test/a:{kube_major_version}", strings.Repeat("\xff.", 300) + "/a",
	} {
		f.Add(s)
	}
	mirrors := []source.Mirror{{Source: "r.test", Mirrors: []string{"m.test/x"}}}
	f.Fuzz(func(t *testing.T, s string) {
		_, _ = source.Variables(s)
		r, err := source.ParseReference(s)
		if err != nil {
			if !errs.Is(err, errs.Invalid) || len(err.Error()) > 1500 {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if r.String() != s {
			t.Errorf("%q is written as %q", s, r)
		}
		all, err := source.Candidates(s, mirrors)
		if err != nil || all[len(all)-1] != s {
			t.Fatalf("Candidates(%q) = %v, %v", s, all, err)
		}
		for _, c := range all {
			if _, err := source.ParseReference(c); err != nil && len(s) < source.MaxReference/2 {
				t.Errorf("mirror %q of %q: %v", c, s, err)
			}
		}
	})
}

// TestShortURL proves that no credential and no signature is said, however a URL is broken.
func TestShortURL(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"https://host.test:8080/x.tar":                    "https://host.test:8080/x.tar",
		"https://host.test/x.tar?signature=secret#secret": "https://host.test/x.tar",
		"https://me:secret@host.test/x":                   "https://host.test/x",
		"https://me:sec/ret@host.test/x":                  "https://…@host.test/x",
		"https://me:sec?ret@host.test/x":                  "https://…",
		"https://me:sec#ret@host.test/x":                  "https://…",
		"https://host.test/x?signature=a@b":               "https://…",
		"https://a@secret@host.test/x":                    "https://host.test/x",
		"me:secret@host.test/x":                           "host.test/x",
		"git@host.test:ops/fleet.git":                     "host.test:ops/fleet.git",
		"me:secret@x://host.test/":                        "x://host.test/",
		"me:secret://x@host.test/":                        "…@host.test/",
		"https://host.test/" + strings.Repeat("x", 200):   "https://host.test/" + strings.Repeat("x", 102) + "…",
	} {
		if got := source.ShortURL(from); got != want {
			t.Errorf("ShortURL(%q) = %q, want %q", from, got, want)
		}
	}
}
