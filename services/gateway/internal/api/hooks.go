package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// maxHookBody bounds what a registry or repository tells of a push; it is read for its signature alone. More
	// than httpserver.DefaultBodyLimit never comes this far.
	maxHookBody = 1 << 20
	// maxHookRequests bounds the requests that are worked on at a time, since anybody may send one.
	maxHookRequests = 16
)

// HookWrites gives catalogs hooks and takes them away.
type HookWrites interface {
	MakeHook(ctx context.Context, who model.Caller, name catalog.Name) (model.CatalogHook, error)
	CatalogHook(ctx context.Context, who model.Caller, name catalog.Name) (model.CatalogHook, error)
	EndHook(ctx context.Context, who model.Caller, name catalog.Name) error
}

// Pushes takes what hooks are sent.
type Pushes interface {
	HookExists(ctx context.Context, name catalog.Name) (bool, error)
	Push(ctx context.Context, name catalog.Name, proof cataloghook.Proof, body []byte) error
}

func (a *API) hooks() {
	register(a, needWrite, operation(http.MethodPost, "/catalogs/{catalog}/hook", "make-catalog-hook", tagCatalogs,
		"Give a catalog a hook for push notifications, or its hook another secret"),
		func(ctx context.Context, who model.Caller, in *CatalogPath) (*output[model.CatalogHook], error) {
			return read(a.d.HookWrites.MakeHook(ctx, who, in.name()))
		})
	register(a, needRead, operation(http.MethodGet, "/catalogs/{catalog}/hook", "get-catalog-hook", tagCatalogs, "Get the hook of a catalog, without its secret"),
		func(ctx context.Context, who model.Caller, in *CatalogPath) (*output[model.CatalogHook], error) {
			return read(a.d.HookWrites.CatalogHook(ctx, who, in.name()))
		})
	register(a, needWrite, operation(http.MethodDelete, "/catalogs/{catalog}/hook", "end-catalog-hook", tagCatalogs, "End the hook of a catalog"),
		func(ctx context.Context, who model.Caller, in *CatalogPath) (*struct{}, error) {
			if err := a.d.HookWrites.EndHook(ctx, who, in.name()); err != nil {
				return nil, err
			}
			return &struct{}{}, nil
		})
	a.huma.OpenAPI().AddOperation(&huma.Operation{
		Method: http.MethodPost, Path: pathHook, OperationID: "push-catalog", Tags: []string{tagCatalogs},
		Summary: "Tell that something was pushed to a catalog's source",
		Description: "For registries and repositories. Needs the secret of the catalog's hook and nothing else: as the key of an HMAC-SHA256 " +
			"of the body in X-Hub-Signature-256 (sha256=<hex>), or as it is in Authorization: Bearer or X-Gitlab-Token. The body is not looked at. " +
			"Pushes of one moment become one look at the source, and pushes without end one every ten seconds. " +
			"Parameters cluster and namespace name a cluster's own catalog.",
		Security: []map[string][]string{{}},
		Parameters: []*huma.Param{
			{Name: "catalog", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "cluster", In: "query", Schema: &huma.Schema{Type: huma.TypeString}},
			{Name: "namespace", In: "query", Schema: &huma.Schema{Type: huma.TypeString}},
		},
		Responses: withProblems(map[string]*huma.Response{"202": {Description: "Accepted"}}, a.huma.OpenAPI().Components.Schemas, http.MethodPost),
	})
}

const pathHook = "/hooks/catalogs/{catalog}"

// push takes a push notification. It stands outside what bearer tokens protect: the secret of the hook is
// its own, and lets nobody do anything else. Whatever is wrong with name or secret, the answer is the same.
func (a *API) push(w http.ResponseWriter, r *http.Request) {
	select {
	case a.pushes <- struct{}{}:
		defer func() { <-a.pushes }()
	default:
		w.Header().Set("Retry-After", "1")
		httpserver.Problem(w, r, errs.New(errs.Unavailable, "too many notifications at a time; try again in a moment"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if err := a.takePush(ctx, w, r); err != nil {
		httpserver.NoteError(r.Context(), err)
		httpserver.Problem(w, r, public(err))
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

func (a *API) takePush(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	refused := errs.New(errs.Unauthenticated, "no hook of this catalog has this secret")
	name, ok := hookName(r)
	proof := cataloghook.Proof{Token: r.Header.Get("X-Gitlab-Token"), Signature: r.Header.Get("X-Hub-Signature-256")}
	if token, err := bearer(r); err == nil {
		proof.Token = token
	}
	if !ok || proof.Empty() || len(proof.Token) > maxTokenChars || len(proof.Signature) > maxTokenChars {
		return refused
	}
	there, err := a.d.Pushes.HookExists(ctx, name)
	if err != nil {
		return err
	}
	if !there {
		return refused
	}
	if proof.Signature == "" { // the body says nothing that is needed
		return a.d.Pushes.Push(ctx, name, proof, nil)
	}
	body, err := notification(w, r)
	if err != nil {
		return err
	}
	return a.d.Pushes.Push(ctx, name, proof, body)
}

// notification reads what was sent, for its signature.
func notification(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// A sender that dawdles would hold a place.
	if err := http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, errs.Wrap(errs.Internal, err, "bound the reading of a notification")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHookBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, errs.New(errs.TooLarge, "the notification is larger than %d bytes", maxHookBody)
	}
	if err != nil {
		return nil, errs.New(errs.Invalid, "the notification broke off")
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
