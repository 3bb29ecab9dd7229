// Package receiver takes self-service actions of Port and events of Chandler. An action subscribes to an operator; its
// run is told by Chandler's events what became of that.
//
// Nothing is kept here. The run is a label of the subscription, so that after a restart the next event finds it again.
// Both sides may send a request several times: the run is the Idempotency-Key, and a report says how things are now.
package receiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chandler-fleet/chandler/libs/client"
)

const (
	// labelRun is the label of a subscription that names the run of Port which asked for it.
	labelRun = "port-run"
	// annotationBy names the person in Port who ran the action. It is shown, and gives no right.
	annotationBy = "port-run-by"
	// maxBody bounds a request. An event of Chandler has a few kilobytes; one of a large plan some hundred.
	maxBody = 1 << 20
	// answerTime bounds a request: Chandler waits ten seconds for an answer, Port as long.
	answerTime = 9 * time.Second
	// maxTold bounds how many runs are remembered as told. A run that is forgotten is told again.
	maxTold = 10_000
)

// Config is what the receiver is made of.
type Config struct {
	Chandler *client.Client
	// Pages is the address of Chandler for people, for links; "" makes none.
	Pages string
	// WebhookSecret is that of the webhook in Chandler, as it was shown once.
	WebhookSecret string
	// PortAPI is the address of Port's API. The client secret signs the actions of Port, too.
	PortAPI, PortClientID, PortClientSecret string
	Log                                     *slog.Logger
	Now                                     func() time.Time
}

type receiver struct {
	Config

	port *portClient

	// telling has one report at a time on its way, so that an older one does not overtake a newer.
	telling sync.Mutex
	told    map[string]report
}

// New returns the handler of POST /actions, for Port, and POST /events, for Chandler.
func New(conf Config) (http.Handler, error) {
	key, err := standardKey(conf.WebhookSecret)
	if err != nil {
		return nil, err
	}
	if conf.PortClientID == "" || conf.PortClientSecret == "" {
		return nil, errors.New("the id and the secret of a client of Port are needed")
	}
	r := &receiver{
		Config: conf, told: map[string]report{},
		port: &portClient{
			api: conf.PortAPI, id: conf.PortClientID, secret: conf.PortClientSecret, http: &http.Client{},
			now: conf.Now,
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /actions", r.taking(r.action, func(h http.Header, body []byte) error {
		return checkPort(conf.PortClientSecret, h, body, conf.Now())
	}))
	mux.HandleFunc("POST /events", r.taking(r.event, func(h http.Header, body []byte) error {
		return checkStandard(key, h, body, conf.Now())
	}))
	return mux, nil
}

// inputError is what nobody needs to send again.
type inputError struct{ error }

// taking reads a body, checks who has sent it, and answers. What failed on the way is answered 502: Chandler sends it
// again for three days.
func (r *receiver) taking(
	work func(context.Context, []byte) error, check func(http.Header, []byte) error,
) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), answerTime)
		defer cancel()
		body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
		if err != nil {
			http.Error(w, "the body cannot be read, or is too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err := check(req.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		err = work(ctx, body)
		wrong, isWrong := errors.AsType[inputError](err)
		switch {
		case isWrong:
			http.Error(w, wrong.Error(), http.StatusBadRequest)
		case err != nil:
			r.Log.ErrorContext(ctx, "a request was not worked on", "path", req.URL.Path, "error", err)
			http.Error(w, "it could not be worked on: send it again", http.StatusBadGateway)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}
}

// action is the body of the action in Port (action.json).
type action struct {
	Run       string `json:"run"`
	By        string `json:"by"`
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Package   string `json:"package"`
	Catalog   string `json:"catalog"`
	Channel   string `json:"channel"`
}

// runName are the ids that Port gives runs, and values of labels.
var runName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)

// action subscribes. What Chandler refuses ends the run with the reason; Port does not send an action again.
func (r *receiver) action(ctx context.Context, body []byte) error {
	var a action
	if err := json.Unmarshal(body, &a); err != nil {
		return inputError{fmt.Errorf("the body is not as action.json has it: %w", err)}
	}
	if !runName.MatchString(a.Run) {
		return inputError{fmt.Errorf("run is %q: want the id of a run, at most 63 letters and digits", a.Run)}
	}
	s, err := r.Chandler.CreateSubscription(ctx, a.Cluster, a.Namespace, nil, client.CreateSubscription{
		Name: a.Package, Package: a.Package, Catalog: a.Catalog, Channel: a.Channel,
		Labels: map[string]string{labelRun: a.Run}, Annotations: map[string]string{annotationBy: a.By},
	}, client.Key("port-"+a.Run))
	if err != nil {
		failed := report{Status: "FAILURE", StatusLabel: "Chandler did not subscribe", Summary: err.Error()}
		return errors.Join(r.tell(ctx, a.Run, failed), unlessRefused(err))
	}
	return r.look(ctx, a.Run, *s)
}

// unlessRefused is an error that is none of the caller's.
func unlessRefused(err error) error {
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status < http.StatusInternalServerError {
		return nil
	}
	return err
}

// event looks at what the runs of a namespace came to. The event itself is a hint: it may be an old one.
func (r *receiver) event(ctx context.Context, body []byte) error {
	var e struct {
		Subject  string `json:"subject"`
		Sequence string `json:"sequence"`
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return inputError{fmt.Errorf("the body is no CloudEvent: %w", err)}
	}
	cluster, rest, _ := strings.Cut(e.Subject, "/")
	namespace, _, inNamespace := strings.Cut(rest, "/")
	if !inNamespace || e.Sequence == "" { // such as a test of the webhook
		return nil
	}
	of := &client.ListSubscriptionsParams{Label: labelRun, MinPosition: e.Sequence}
	var failed []error
	for s, err := range r.Chandler.ListSubscriptionsAll(ctx, cluster, namespace, of) {
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		failed = append(failed, r.look(ctx, s.Labels[labelRun], s))
	}
	return errors.Join(failed...)
}

// look tells a run what its subscription has come to.
func (r *receiver) look(ctx context.Context, run string, s client.Subscription) error {
	r.telling.Lock()
	defer r.telling.Unlock()
	// The operation of the write that made the subscription has the place of its first event.
	op, err := r.Chandler.GetOperation(ctx, s.Stream+"@1")
	if err != nil {
		return err
	}
	return r.tellLocked(ctx, run, r.reportOf(s, *op))
}

// reportOf is a state of an operation as Port shows it.
func (r *receiver) reportOf(s client.Subscription, op client.Operation) report {
	out := report{StatusLabel: op.Reason}
	if r.Pages != "" {
		out.Link = strings.TrimRight(r.Pages, "/") + "/go/subscription/" + s.Cluster + "/" + s.Namespace + "/" + s.Name
	}
	switch op.State {
	case client.OperationSucceeded:
		out.Status, out.StatusLabel = "SUCCESS", s.Status.InstalledCSV+" runs"
	case client.OperationWaiting:
		out.StatusLabel = "waits for an approval in Chandler"
	default:
		if op.Over { // it failed, or somebody has asked for something else since
			out.Status, out.StatusLabel = "FAILURE", string(op.State)+": "+op.Reason
		}
	}
	return out
}

func (r *receiver) tell(ctx context.Context, run string, what report) error {
	r.telling.Lock()
	defer r.telling.Unlock()
	return r.tellLocked(ctx, run, what)
}

// tellLocked tells a run what it was not told before. A run that has ended takes nothing more.
func (r *receiver) tellLocked(ctx context.Context, run string, what report) error {
	if before, known := r.told[run]; known && (before == what || before.Status != "") {
		return nil
	}
	refused, err := r.port.tell(ctx, run, what)
	if err != nil {
		return err
	}
	if refused != "" {
		r.Log.WarnContext(ctx, "Port refuses a report", "run", run, "answer", refused)
	}
	if len(r.told) >= maxTold {
		clear(r.told)
	}
	r.told[run] = what
	return nil
}
