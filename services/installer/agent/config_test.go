package agent_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/agent"
)

// agentConfig is a document as the hub writes it.
const agentConfig = `{"version":"chandler.agent.v1","tenant":"default","cluster":"field-7",
	"clusterId":"5b5f3e0e-6d0a-5b5c-9d0e-1f1a6f0c9a11","installation":"0193e6a0-0000-7000-8000-000000000001",
	"hubKeys":["public:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="],
	"configsKey":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`

// TestSettings: an agent takes no database, and names the setting that it cannot run with; errors quote no secret.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		says string
	}{
		"nothing":     {nil, "CHANDLER_AGENT_CONFIG is not set"},
		"no document": {map[string]string{"CHANDLER_AGENT_CONFIG": "secret"}, "CHANDLER_AGENT_CONFIG: "},
		"no cluster":  {map[string]string{"CHANDLER_AGENT_CONFIG": agentConfig}, "CHANDLER_KUBECONFIG is not set"},
		"a bad cluster's": {
			map[string]string{"CHANDLER_AGENT_CONFIG": agentConfig, "CHANDLER_KUBECONFIG": "secret"},
			"CHANDLER_KUBECONFIG is not a",
		},
	} {
		var cfg agent.Config
		s := service.NewSettings("chandler-agent")
		cfg.Settings(s)
		err := s.Load(nil, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if err != nil {
			t.Fatal(err)
		}
		_, err = agent.New(t.Context(), cfg, &telemetry.Telemetry{Log: slog.New(slog.DiscardHandler)})
		if !errs.Is(err, errs.Invalid) || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := service.NewSettings("chandler-agent")
	new(agent.Config).Settings(s)
	if err := s.Load([]string{"--database-url=x"}, func(string) (string, bool) { return "", false }); err == nil {
		t.Error("an agent takes the URL of a database")
	}
}
