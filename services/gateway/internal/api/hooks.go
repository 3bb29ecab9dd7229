package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// maxHookBody bounds what a registry or repository sends about a push; it is read for its signature alone. More
	// than httpserver.DefaultBodyLimit never comes this far.
	maxHookBody = 1 << 20
	// maxHookRequests bounds the requests that ask the database at a time, since anybody may send one; each does
	// so for some milliseconds.
	maxHookRequests = 16
	// hookPlaceWait is how long a request waits for such a place: many turns of the others.
	hookPlaceWait = 2 * time.Second
	// maxHookBodies bounds the bodies of one hook that are read at a time: a repository that sends several
	// pushes at once waits for none of them.
	maxHookBodies = 4
	// hookBodyTimeout bounds how long a sender may take for a body of some kilobytes.
	hookBodyTimeout = 5 * time.Second
)

// hookHandlers are the operations on hooks of catalogs, and take push notifications.
type hookHandlers struct {
	Deps

	pushes chan struct{} // one place for each notification that asks the database
	bodies readers       // of notifications
}

func newHookHandlers(d Deps) *hookHandlers {
	return &hookHandlers{Deps: d, pushes: make(chan struct{}, maxHookRequests)}
}

func (h *hookHandlers) register(a *API) {
	register(a, whereAsked(access.Create, access.Hooks),
		operation(http.MethodPost, "/catalogs/{catalog}/hook", "make-catalog-hook", tagCatalogs,
			"Give a catalog a hook for push notifications, or its hook another secret"), h.makeCatalogHook)
	register(a, whereAsked(access.Get, access.Hooks),
		operation(http.MethodGet, "/catalogs/{catalog}/hook", "get-catalog-hook", tagCatalogs,
			"Get the hook of a catalog, without its secret"), h.getCatalogHook)
	register(a, whereAsked(access.Delete, access.Hooks),
		operation(http.MethodDelete, "/catalogs/{catalog}/hook", "end-catalog-hook", tagCatalogs,
			"End the hook of a catalog"), h.endCatalogHook)
	push := &huma.Operation{
		Method: http.MethodPost, Path: pathHook, OperationID: "push-catalog", Tags: []string{tagCatalogs},
		Summary: "Report a push to a catalog's source",
		Description: "For registries and repositories. Needs the secret of the catalog's hook and nothing else: as " +
			"the key of an HMAC-SHA256 " +
			"of the body in X-Hub-Signature-256 (sha256=<hex>), or as it is in Authorization: Bearer or " +
			"X-Gitlab-Token. The body is not read. " +
			"Pushes of one moment become one poll of the source, and pushes without end one every ten seconds. " +
			"Parameters cluster and namespace name a cluster's own catalog, hook the hook: all are in the address " +
			"that was given with the " +
			"secret. Whatever is wrong with them, the answer is the same 401.",
		Security: []map[string][]string{{}}, MaxBodyBytes: maxHookBody,
		Parameters: []*huma.Param{
			{Name: "catalog", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "cluster", In: "query", Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "namespace", In: "query", Schema: &huma.Schema{Type: huma.TypeString}},
			{
				Name: "hook", In: "query", Schema: &huma.Schema{Type: huma.TypeString},
				Description: "Not needed with a bearer token or X-Gitlab-Token, which begin with it",
			},
			{
				Name: "Idempotency-Key", In: "header", Schema: &huma.Schema{Type: huma.TypeString},
				Description: "Not needed: pushes that are repeated become one poll",
			},
		},
		RequestBody: &huma.RequestBody{
			Description: "What happened, in the sender's own form", Content: map[string]*huma.MediaType{"*/*": {}},
		},
	}
	push.Responses = withProblems(map[string]*huma.Response{"202": {Description: "Accepted"}},
		a.huma.OpenAPI().Components, push, false)
	a.huma.OpenAPI().AddOperation(push)
}

const pathHook = "/hooks/catalogs/{catalog}"

// push takes a push notification. It stands outside what bearer tokens protect: the secret of the hook is
// its own, and lets nobody do anything else. Whatever is wrong with name, hook, secret or body, the answer is
// the same, so that nobody learns which catalogs there are.
func (h *hookHandlers) push(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	// A slow sender would hold a place.
	err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(hookBodyTimeout))
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		err = h.takePush(ctx, w, r)
	}
	if err != nil {
		w.Header().Set("Connection", "close") // or the server would wait for the rest of the body before it answers
		httpserver.NoteError(r.Context(), err)
		if errs.Is(err, errs.Unavailable) {
			w.Header().Set("Retry-After", "1")
		}
		httpserver.Problem(w, r, public(err))
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// maxProofChars bounds what a push notification proves itself by, before it is hashed.
const maxProofChars = 512

func (h *hookHandlers) takePush(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	name, ok := hookName(r)
	proof := cataloghook.Proof{Token: r.Header.Get("X-Gitlab-Token"), Signature: r.Header.Get("X-Hub-Signature-256")}
	if token, err := bearer(r); err == nil {
		proof.Token = token
	}
	if !ok || proof.Empty() || len(proof.Token) > maxProofChars || len(proof.Signature) > maxProofChars {
		return errRefusedPush
	}
	id := r.URL.Query().Get("hook")
	if id == "" {
		id = proof.ID()
	}
	hook, err := withPlace(ctx, h.pushes, func() (cataloghook.Hook,
		error,
	) {
		return h.Intents.CatalogHooks.Find(ctx, name, id, proof)
	})
	if err != nil {
		return err
	}
	var body []byte
	if proof.Signature != "" { // else the body says nothing that is needed
		if body, err = h.notification(w, r, id); err != nil {
			return err
		}
	}
	_, err = withPlace(ctx, h.pushes, func() (struct{},
		error,
	) {
		return struct{}{}, h.Intents.CatalogHooks.Push(ctx, hook, proof, body)
	})
	return err
}

var errRefusedPush = errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")

// withPlace does what needs the database while it holds one of the places for requests of anybody. What a
// sender can make last long is not done in one.
func withPlace[T any](ctx context.Context, places chan struct{}, do func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, hookPlaceWait)
	defer cancel()
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		return do()
	case <-ctx.Done():
		var none T
		return none, errs.New(errs.Unavailable, "too many notifications at a time; try again in a moment")
	}
}

// readers counts the bodies that are being read, by hook: whoever knows the address of one hook and sends
// slowly holds up that hook and no other.
type readers struct {
	mu sync.Mutex
	of map[string]int
}

// enter takes a place of a hook, and returns what gives it back; false where all are taken.
func (r *readers) enter(id string) (leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of[id] >= maxHookBodies {
		return nil, false
	}
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[id]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.of[id]--
		if r.of[id] == 0 {
			delete(r.of, id)
		}
	}, true
}

// notification reads what was sent, for its signature. Nobody has proved anything yet: what is wrong with a
// body is no other answer than what is wrong with a secret.
func (h *hookHandlers) notification(w http.ResponseWriter, r *http.Request, id string) ([]byte, error) {
	leave, ok := h.bodies.enter(id)
	if !ok {
		return nil, errs.New(errs.Unavailable, "too many notifications of this hook at a time; try again in a moment")
	}
	defer leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHookBody))
	if err != nil {
		return nil, errRefusedPush
	}
	return body, nil
}

// hookName reads the catalog of a request; false for what can be no name.
func hookName(r *http.Request) (catalog.Name, bool) {
	q := r.URL.Query()
	name := catalog.Name{Cluster: q.Get("cluster"), Namespace: q.Get("namespace"), Name: chi.URLParam(r, "catalog")}
	var v rule.Violations
	v.DNSSubdomainName("path.catalog", strings.TrimSpace(name.Name))
	if name.Cluster != "" {
		v.DNSLabelName("query.cluster", name.Cluster)
		v.DNSLabelName("query.namespace", name.Namespace)
	}
	return name, v.Err() == nil
}

func (h *hookHandlers) makeCatalogHook(
	ctx context.Context, who model.Caller, in *CatalogPath,
) (*output[model.CatalogHook], error) {
	return read(h.Intents.CatalogHooks.Make(ctx, who, in.name()))
}

func (h *hookHandlers) getCatalogHook(
	ctx context.Context, who model.Caller, in *CatalogPath,
) (*output[model.CatalogHook], error) {
	return read(h.Intents.CatalogHooks.Get(ctx, who, in.name()))
}

func (h *hookHandlers) endCatalogHook(ctx context.Context, who model.Caller, in *CatalogPath) (*struct{}, error) {
	if err := h.Intents.CatalogHooks.Delete(ctx, who, in.name()); err != nil {
		return nil, err
	}
	return &struct{}{}, nil
}
