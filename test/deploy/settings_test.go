package deploy_test

import (
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/chandler-fleet/chandler/libs/service"
	indexer "github.com/chandler-fleet/chandler/services/catalog-indexer/app"
	gateway "github.com/chandler-fleet/chandler/services/gateway/app"
	installer "github.com/chandler-fleet/chandler/services/installer/app"
	resolver "github.com/chandler-fleet/chandler/services/resolver/app"
)

// newConfig is the configuration of a service, as its main makes it.
func newConfig(t testing.TB, name string) service.Configurable {
	t.Helper()
	switch name {
	case "catalog-indexer":
		return &indexer.Config{}
	case "gateway":
		return &gateway.Config{}
	case "installer":
		return &installer.Config{}
	case "resolver":
		return &resolver.Config{}
	}
	t.Fatalf("no service %s", name)
	return nil
}

var variable = regexp.MustCompile(`CHANDLER_[A-Z_]+`)

// known are the variables that a service reads.
func known(t testing.TB, name string, cfg service.Configurable) map[string]bool {
	t.Helper()
	settings := service.NewSettings(name)
	cfg.Settings(settings)
	var usage strings.Builder
	if err := settings.Usage(&usage); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, v := range variable.FindAllString(usage.String(), -1) {
		all[v], all[v+"_FILE"] = true, true
	}
	return all
}

// load gives the variables to the service as its process would get them, and refuses those that it does not know.
func load(t testing.TB, name string, env map[string]string) *service.Config {
	t.Helper()
	cfg := newConfig(t, name)
	all := known(t, name, cfg)
	for v := range env {
		if strings.HasPrefix(v, "CHANDLER_") && !all[v] {
			t.Errorf("%s does not know the variable %s", name, v)
		}
	}
	settings := service.NewSettings(name)
	cfg.Settings(settings)
	if err := settings.Load(nil, func(v string) (string, bool) { value, ok := env[v]; return value, ok }); err != nil {
		t.Errorf("%s refuses its settings: %v", name, err)
	}
	return cfg.Base()
}

// check looks at the values that go wrong in deployments.
func check(t testing.TB, name string, cfg *service.Config, env map[string]string) {
	t.Helper()
	db, err := pgx.ParseConfig(strings.ReplaceAll(cfg.DatabaseURL, "&sslrootcert=/etc/chandler/database-ca/ca.crt", ""))
	if err != nil {
		t.Fatalf("%s: URL of the database: %v", name, err)
	}
	if want := "chandler_" + strings.ReplaceAll(name, "-", "_"); db.User != want || db.Database == "" || db.Host == "" {
		t.Errorf("%s connects as %q to %q on %q, want %q", name, db.User, db.Database, db.Host, want)
	}
	if env["PGPASSWORD"] == "" || env["PGPASSWORD"] != madeKeys(
		t)["CHANDLER_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"_PASSWORD"] {
		t.Errorf("%s has the password %q", name, env["PGPASSWORD"])
	}
	if nats, err := url.Parse(cfg.NATS.URL); err != nil || nats.Scheme != "nats" || nats.Port() != "4222" {
		t.Errorf("%s: URL of NATS is %q", name, cfg.NATS.URL)
	}
	if host, port, err := net.SplitHostPort(cfg.OpsListen); err != nil || port != "9090" || host != "" &&
		host != "0.0.0.0" {
		t.Errorf("%s: health and metrics at %q are not reached from outside the container", name, cfg.OpsListen)
	}
}

func TestServicesTakeTheSettingsOfTheChart(t *testing.T) {
	t.Parallel()
	for values, d := range deliveries(t) {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			for name, deployment := range d.deployments {
				pod := deployment.Spec.Template.Spec
				env := d.environment(t, pod.Containers[0], secretValue(t))
				cfg := load(t, name, mountFiles(t, pod, env))
				check(t, name, cfg, env)
				if grace := *pod.TerminationGracePeriodSeconds; cfg.Drain.Seconds() >= float64(grace) {
					t.Errorf("%s has %d s to stop and wants %s", name, grace, cfg.Drain)
				}
			}
		})
	}
}

// secretValue is what the Secret holds under a key.
func secretValue(t testing.TB) func(key string) string {
	t.Helper()
	keys := madeKeys(t)
	keys["CHANDLER_NATS_URL"] = "nats://nats.data.svc:4222"
	for _, name := range []string{"root.pem", "tls.crt", "tls.key"} {
		keys[name] = "a certificate, or its key"
	}
	keys["CHANDLER_OPS_TOKEN"] = "a-token-of-metrics"
	keys["CHANDLER_ADMIN_DATABASE_URL"] = "postgres://postgres:secret@postgres.data.svc/chandler"
	return func(key string) string {
		value, ok := keys[key]
		if !ok {
			t.Errorf("the chart asks for the key %s, which `chandler keys` does not make", key)
		}
		return value
	}
}

// mountFiles writes the files of Secrets as the kubelet would, and returns the variables with the paths where they now
// are.
func mountFiles(t testing.TB, pod corev1.PodSpec, env map[string]string) map[string]string {
	t.Helper()
	keys := secretValue(t)
	moved := maps.Clone(env)
	for _, m := range pod.Containers[0].VolumeMounts {
		for _, v := range pod.Volumes {
			if v.Name != m.Name || v.Secret == nil && v.Projected == nil || v.Name == "database-ca" {
				continue
			}
			dir := t.TempDir()
			for _, item := range items(v) {
				if err := os.WriteFile(filepath.Join(dir, item.Path), []byte(keys(item.Key)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for name, value := range moved {
				moved[name] = strings.Replace(value, m.MountPath+"/", dir+"/", 1)
			}
		}
	}
	return moved
}

// items are the keys of Secrets in a volume.
func items(v corev1.Volume) []corev1.KeyToPath {
	if v.Secret != nil {
		return v.Secret.Items
	}
	var all []corev1.KeyToPath
	for _, s := range v.Projected.Sources {
		if s.Secret != nil {
			all = append(all, s.Secret.Items...)
		}
	}
	return all
}

// composed is the part of docker-compose.yaml that matters here.
type composed struct {
	Services map[string]struct {
		Environment map[string]string `json:"environment"`
		Command     []string          `json:"command"`
	} `json:"services"`
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)(?::([-?+])([^}]*))?\}`)

// compose reads docker-compose.yaml with the secrets of `chandler keys`, and more, as its .env file.
func compose(t testing.TB, more map[string]string) composed {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), "docker-compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	keys := madeKeys(t)
	maps.Copy(keys, more)
	text := reference.ReplaceAllStringFunc(string(raw), func(whole string) string {
		m := reference.FindStringSubmatch(whole)
		switch value, ok := keys[m[1]]; {
		case m[2] == "+" && value == "":
			return ""
		case m[2] == "+":
			return m[3]
		case ok:
			return value
		case m[2] == "-":
			return m[3]
		default:
			t.Errorf("docker-compose.yaml needs %s, which `chandler keys` does not make", m[1])
			return ""
		}
	})
	var file composed
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestServicesTakeTheSettingsOfCompose(t *testing.T) {
	t.Parallel()
	file := compose(t, nil)
	for _, name := range services {
		env := file.Services[name].Environment
		check(t, name, load(t, name, env), env)
	}
}

// docs/deploy.md names every setting, beside the services that have it.
func TestEverySettingIsDocumented(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join(root(t), "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range services {
		for v := range known(t, name, newConfig(t, name)) {
			of := "(all|([a-z, -]+, )?" + name + "(, [a-z, -]+)?)"
			row := regexp.MustCompile("(?m)^\\|[^|]*`" + v + "`[^|]*\\| " + of + " \\|")
			if !strings.HasSuffix(v, "_FILE") && v != "CHANDLER_CONFIG" && !row.Match(document) {
				t.Errorf("docs/deploy.md has no row for %s of the service %s", v, name)
			}
		}
	}
}
