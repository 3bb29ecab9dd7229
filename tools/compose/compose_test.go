package compose_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const (
	root    = "../.."
	file    = root + "/docker-compose.yaml"
	overTLS = root + "/deploy/compose/tls.yaml" // on top of it, for who wants a port with TLS
	example = root + "/deploy/compose/.env.example"
)

// ours are the containers that hold a program of this repository.
var ours = []string{"catalog-indexer", "gateway", "installer", "migrate", "resolver"}

// load reads the file as docker compose does, with these variables and no others.
func load(t *testing.T, env map[string]string, over ...string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions(append([]string{file}, over...), cli.WithResolvedPaths(true), cli.WithConsistency(true))
	if err != nil {
		t.Fatal(err)
	}
	options.Environment = env
	return options.LoadProject(context.Background())
}

// filled is .env.example with a value for everything that has none.
func filled(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{}
	for name := range secrets(t) {
		env[name] = "filled-" + strings.ToLower(name)
	}
	return env
}

var assignment = regexp.MustCompile(`(?m)^(#?)(CHANDLER_[A-Z_]+)=(.*)$`)

// secrets are the variables without a value in .env.example.
func secrets(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for name, optional := range documented(t) {
		if !optional {
			all[name] = true
		}
	}
	return all
}

// documented are all variables of .env.example; true for those that have a default.
func documented(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, m := range assignment.FindAllStringSubmatch(string(raw), -1) {
		optional := m[1] == "#"
		if !optional && m[3] != "" {
			t.Errorf("%s has a value in %s: a secret that everybody can read", m[2], example)
		}
		all[m[2]] = optional
	}
	return all
}

func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, filled(t))
	if err != nil {
		t.Fatalf("docker-compose.yaml: %v", err)
	}
	return p
}

func TestHoldsTheWholeControlPlane(t *testing.T) {
	t.Parallel()
	want := append([]string{"nats", "postgres"}, ours...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(project(t).Services)); !slices.Equal(got, want) {
		t.Errorf("services are %v, want %v", got, want)
	}
}

// A copy of the example that nobody has filled in must not start anything.
func TestNoSecretHasADefault(t *testing.T) {
	t.Parallel()
	for name := range secrets(t) {
		for _, value := range []string{"unset", "empty"} {
			env := filled(t)
			delete(env, name)
			if value == "empty" {
				env[name] = ""
			}
			if _, err := load(t, env); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s is %s: want an error that names it, got %v", name, value, err)
			}
		}
	}
}

var reference = regexp.MustCompile(`\$\{([A-Z_]+)(:[-?][^}]*)?\}`)

func TestEveryVariableIsDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, m := range reference.FindAllStringSubmatch(string(raw), -1) {
		if m[2] == "" {
			t.Errorf("%s has neither a default nor a message for the case that it is not set", m[0])
		}
		used[m[1]] = strings.HasPrefix(m[2], ":-")
	}
	raw, err = os.ReadFile(overTLS)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range reference.FindAllStringSubmatch(string(raw), -1) {
		used[m[1]] = true // nobody has to set what only a file on top needs
	}
	if known := documented(t); !maps.Equal(used, known) {
		t.Errorf("variables used (true: with a default): %v\nin .env.example: %v", used, known)
	}
}

// The gateway's port with TLS is a file on top of the other, which asks for the folder that it mounts.
func TestPortWithTLS(t *testing.T) {
	t.Parallel()
	env := filled(t)
	if _, err := load(t, env, overTLS); err == nil || !strings.Contains(err.Error(), "CHANDLER_TLS") {
		t.Errorf("without a folder: want an error that names CHANDLER_TLS, got %v", err)
	}
	env["CHANDLER_TLS"] = "/etc/chandler-tls"
	p, err := load(t, env, overTLS)
	if err != nil {
		t.Fatal(err)
	}
	ports := p.Services["gateway"].Ports
	if !slices.ContainsFunc(ports, func(c types.ServicePortConfig) bool {
		return c.Target == 8443 && c.Published == "8443" && c.HostIP == "127.0.0.1"
	}) {
		t.Errorf("the gateway has ports %+v, want 8443 on loopback among them", ports)
	}
}

// Whatever waits for another container waits for a state that this one can reach.
func TestWaitingHasAnEnd(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			other := p.Services[on]
			switch d.Condition {
			case types.ServiceConditionHealthy:
				if other.HealthCheck == nil || len(other.HealthCheck.Test) == 0 {
					t.Errorf("%s waits until %s is healthy, which has no health check", name, on)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if other.Restart != types.RestartPolicyOnFailure {
					t.Errorf("%s waits for the end of %s, which is started again for ever (restart: %s)", name, on,
						other.Restart)
				}
			default:
				t.Errorf("%s waits for %s with the condition %s, which says nothing about readiness", name, on,
					d.Condition)
			}
		}
	}
}

func TestServicesWaitForTheMigration(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range ours {
		want := []string{"migrate", "nats", "postgres"}
		if name == "migrate" {
			want = []string{"postgres"}
		}
		if got := slices.Sorted(maps.Keys(p.Services[name].DependsOn)); !slices.Equal(got, want) {
			t.Errorf("%s waits for %v, want %v", name, got, want)
		}
	}
}

func TestOurContainersCanDoLittle(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range ours {
		s := p.Services[name]
		if !s.ReadOnly || s.Privileged || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 {
			t.Errorf("%s: read_only %t, privileged %t, cap_drop %v, cap_add %v", name, s.ReadOnly, s.Privileged,
				s.CapDrop, s.CapAdd)
		}
		if s.User != "65532:65532" || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: user %q, security_opt %v", name, s.User, s.SecurityOpt)
		}
		for _, v := range s.Volumes {
			if !v.ReadOnly {
				t.Errorf("%s may write to %s", name, v.Target)
			}
		}
	}
}

// One password for all would make four database roles pointless.
func TestServicesHaveRolesOfTheirOwn(t *testing.T) {
	t.Parallel()
	p := project(t)
	passwords := map[string]string{}
	for _, name := range ours {
		s := p.Services[name]
		url, password := value(s, "CHANDLER_DATABASE_URL"), value(s, "PGPASSWORD")
		role := "chandler_" + strings.ReplaceAll(name, "-", "_")
		if name == "migrate" {
			role = "postgres"
		}
		if !strings.HasPrefix(url, "postgres://"+role+"@postgres:5432/chandler") {
			t.Errorf("%s connects with %s", name, url)
		}
		if other := passwords[password]; password == "" || other != "" {
			t.Errorf("%s has the password %q, as %s", name, password, other)
		}
		passwords[password] = name
		if name != "migrate" && value(p.Services["migrate"], strings.ToUpper(role)+"_PASSWORD") != password {
			t.Errorf("the migration does not set the password of %s", name)
		}
	}
}

func value(s types.ServiceConfig, name string) string {
	if v := s.Environment[name]; v != nil {
		return *v
	}
	return ""
}

func TestOnlyTheGatewayIsReachedAndFromThisMachineOnly(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		_, outside := s.Networks["outside"]
		if want := name == "gateway" || name == "installer" || name == "catalog-indexer"; outside != want {
			t.Errorf("%s is in the network outside: %t, want %t", name, outside, want)
		}
		if name == "gateway" {
			if len(s.Ports) != 1 || s.Ports[0].HostIP != "127.0.0.1" || s.Ports[0].Target != 8080 {
				t.Errorf("ports of the gateway: %+v", s.Ports)
			}
			continue
		}
		if len(s.Ports) > 0 || s.NetworkMode != "" {
			t.Errorf("%s publishes %+v, network_mode %q", name, s.Ports, s.NetworkMode)
		}
	}
	if !p.Networks["inside"].Internal {
		t.Error("the network of Postgres and NATS leads outside")
	}
}

// The record outlives its container, and what is mounted from the repository is there.
func TestVolumes(t *testing.T) {
	t.Parallel()
	p := project(t)
	targets := map[string]string{"postgres": "/var/lib/postgresql/data", "nats": "/data"}
	for name, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume && v.Target == targets[name] {
				delete(targets, name)
			}
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			}
		}
	}
	if len(targets) > 0 {
		t.Errorf("without a named volume: %v", targets)
	}
}

func TestImagesAreBuiltByTheDockerfile(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range ours {
		s, program := p.Services[name], name
		if name == "migrate" {
			program = "chandler"
		}
		if s.Build == nil || s.Build.Args["SERVICE"] == nil || *s.Build.Args["SERVICE"] != program {
			t.Errorf("%s is not built with SERVICE=%s: %+v", name, program, s.Build)
			continue
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, "Dockerfile")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := "chandler/" + program + ":dev"; s.Image != want {
			t.Errorf("%s has the image %s, want %s", name, s.Image, want)
		}
	}
}

var natsRequirement = regexp.MustCompile(`github\.com/nats-io/nats-server/v2 v([0-9.]+)`)

func TestNATSIsTheReleaseThatIsTested(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(root + "/libs/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	m := natsRequirement.FindSubmatch(raw)
	if m == nil {
		t.Fatal("libs/go.mod does not require nats-server")
	}
	want := fmt.Sprintf("nats:%s-alpine", m[1])
	if got := project(t).Services["nats"].Image; got != want {
		t.Errorf("image is %s, the tests run %s", got, want)
	}
}
