package httpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// checkTimeout bounds all readiness checks together; a kubelet's probe gives up after one second.
const checkTimeout = 900 * time.Millisecond

// Check is one condition of readiness: nil when the part can serve, else one sentence that says what it waits for.
type Check struct {
	Name  string
	Check func(ctx context.Context) error
	// Note, where set, is a sentence that people should see although the part can serve; "" for none.
	Note func(ctx context.Context) string
}

// readiness is the answer of /readyz.
type readiness struct {
	Ready  bool              `json:"ready"`
	Checks map[string]string `json:"checks,omitempty"`
}

// Ops serves /healthz (the process runs), /readyz (every check passes, with the reason of each that
// does not) and /metrics. Health and readiness are open, since probes have no token; where access asks for one, who
// does not show it learns whether the service is ready, and neither what is checked nor why it fails.
func Ops(access OpsAccess, metrics http.Handler, checks ...Check) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]bool{"healthy": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		state := runChecks(r.Context(), checks)
		status := http.StatusOK
		if !state.Ready {
			status = http.StatusServiceUnavailable
		}
		if !access.trusts(r) {
			state.Checks = nil
		}
		answer(w, status, state)
	})
	if metrics != nil {
		mux.Handle("GET /metrics", access.guard(metrics))
	}
	return mux
}

func runChecks(ctx context.Context, checks []Check) readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	state := readiness{Ready: true, Checks: make(map[string]string, len(checks))}
	for _, c := range checks {
		state.Checks[c.Name] = "ok"
		if err := c.Check(ctx); err != nil {
			state.Ready = false
			state.Checks[c.Name] = err.Error()
		} else if c.Note != nil {
			if note := c.Note(ctx); note != "" {
				state.Checks[c.Name] = "ok; " + note
			}
		}
	}
	return state
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A prober that has gone needs no answer.
	_ = json.NewEncoder(w).Encode(v)
}
