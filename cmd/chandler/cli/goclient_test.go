package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/client"
)

// goClient is a client of the running stack, behind a proxy that loses as many answers as it is told.
func goClient(t *testing.T, lose *atomic.Int32) *client.Client {
	t.Helper()
	target, err := url.Parse(stack.running.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(*http.Response) error {
		if lose.Add(-1) >= 0 {
			return errors.New("lost")
		}
		return nil
	}
	// The gateway has answered: what becomes of the answer is the fault. A connection that breaks would be opened again
	// by net/http.
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	c, err := client.New(client.Config{URL: s.URL, Token: stack.running.Token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testGoClient is libs/client against a gateway: what is written by hand there, and that the generated types take all
// that the gateway answers.
func testGoClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lose atomic.Int32
	c := goClient(t, &lose)

	who, err := c.WhoAmI(ctx)
	if err != nil || who.Actor == "" {
		t.Fatalf("WhoAmI: %+v, %v", who, err)
	}
	_, err = c.GetCluster(ctx, "nowhere", nil)
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusNotFound ||
		!strings.Contains(p.Type, "not-found") {
		t.Errorf("a cluster that is not there: %v", err)
	}

	// A POST whose answer is lost is carried out once.
	lose.Store(1)
	made, err := c.AddToken(ctx, client.AddToken{Name: "go-once", Role: client.AddTokenRoleViewer})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for token, err := range c.ListTokensAll(ctx, &client.ListTokensParams{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		if token.Name == "go-once" {
			ids = append(ids, token.ID)
		}
	}
	if len(ids) != 1 || ids[0] != made.ID {
		t.Errorf("tokens %v were made, want %s alone", ids, made.ID)
	}

	writeCatalog(ctx, t, c)
	followsRemoval(ctx, t, c, &lose)
	for name, read := range reads(c) {
		if err := read(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.RevokeToken(ctx, made.ID); err != nil {
		t.Error(err)
	}
}

// writeCatalog adds, reads, patches, replaces and removes, with the entity tags that this takes.
func writeCatalog(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	source := client.CatalogSource{Type: client.CatalogSourceTypeDirectory, Path: "/nowhere/goclient"}
	want := client.AddCatalog{Name: "go-client", Source: source}
	asked, err := c.AddCatalog(ctx, &client.AddCatalogParams{DryRun: true}, want)
	if err != nil || asked.Position != "" {
		t.Fatalf("a dry run: %+v, %v", asked, err)
	}
	added, err := c.AddCatalog(ctx, nil, want)
	if err != nil {
		t.Fatal(err)
	}
	var head http.Header
	read, err := c.GetCatalog(ctx, "go-client", &client.GetCatalogParams{MinPosition: added.Position},
		client.AnswerHeader(&head))
	if err != nil || read.Source.Path != source.Path {
		t.Fatalf("what was written: %+v, %v", read, err)
	}
	patched, err := c.PatchCatalog(ctx, "go-client", nil, map[string]any{"labels": map[string]any{"by": "go"}},
		client.IfMatch(head.Get("ETag")))
	if err != nil || patched.Labels["by"] != "go" {
		t.Errorf("a patch: %+v, %v", patched, err)
	}
	other := client.ChangeCatalog{Source: source}
	_, err = c.ChangeCatalog(ctx, "go-client", nil, other, client.IfMatch(head.Get("ETag")))
	if !client.IsStatus(err, http.StatusPreconditionFailed) {
		t.Errorf("a replacement of what changed meanwhile: %v", err)
	}
	if preview, err := c.RemoveCatalogDryRun(ctx, "go-client", nil); err != nil || preview.ID == "" {
		t.Errorf("what would come of its removal: %+v, %v", preview, err)
	}
	if _, err := c.RemoveCatalog(ctx, "go-client", nil); err != nil {
		t.Error(err)
	}
}

// followsRemoval reads events from the first of a catalog on, through a connection that breaks.
func followsRemoval(ctx context.Context, t *testing.T, c *client.Client, lose *atomic.Int32) {
	t.Helper()
	types := []string{"catalog.*"}
	page, err := c.ListEvents(ctx, &client.ListEventsParams{Type: types, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		t.Fatalf("events of catalogs: %+v, %v", page, err)
	}
	enough := errors.New("enough")
	lose.Store(1)
	lost := 0
	from := client.StreamEventsParams{Type: types, After: page.Items[0].Sequence}
	err = c.Follow(ctx, from, func(e client.Event) error {
		if e.Type == "catalog.removed.v1" {
			return enough
		}
		return nil
	}, func(error) { lost++ })
	if !errors.Is(err, enough) || lost != 1 {
		t.Errorf("Follow: %v after %d breaks; want the removal, after one", err, lost)
	}
}

// reads are the lists of the API, each decoded so that a field that its type lacks is an error.
func reads(c *client.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"access":           decodes[client.ListAccessEntry](c, client.NewListAccessRequest(nil)),
		"approvalpolicies": decodes[client.ListApprovalPolicy](c, client.NewListApprovalPoliciesRequest(nil)),
		"catalogs":         decodes[client.ListCatalog](c, client.NewListCatalogsRequest(nil)),
		"clusters":         decodes[client.ListCluster](c, client.NewListClustersRequest(nil)),
		"events":           decodes[client.EventPage](c, client.NewListEventsRequest(nil)),
		"fleet":            decodes[client.ListFleetSubscription](c, client.NewListFleetSubscriptionsRequest(nil)),
		"rollouts":         decodes[client.ListRollout](c, client.NewListRolloutsRequest(nil)),
		"installplans":     decodes[client.ListInstallPlan](c, client.NewListInstallplansRequest(nil)),
		"operatorgroups":   decodes[client.ListOperatorGroup](c, client.NewListAllOperatorgroupsRequest(nil)),
		"operators":        decodes[client.ListOperator](c, client.NewListOperatorsRequest(nil)),
		"packages":         decodes[client.FoundList](c, client.NewSearchPackagesRequest(nil)),
		"replicas":         decodes[client.ListReplica](c, client.NewListReplicasRequest()),
		"roles":            decodes[client.ListAccessRole](c, client.NewListRolesRequest(nil)),
		"subscriptions":    decodes[client.ListSubscription](c, client.NewListAllSubscriptionsRequest(nil)),
		"summary":          decodes[client.FleetSummary](c, client.NewSummarizeRequest(nil)),
		"tokens":           decodes[client.ListToken](c, client.NewListTokensRequest(nil)),
		"webhooks":         decodes[client.ListWebhook](c, client.NewListWebhooksRequest(nil)),
		"whoami":           decodes[client.WhoAmI](c, client.NewWhoAmIRequest()),
	}
}

func decodes[T any](c *client.Client, r client.Request) func(context.Context) error {
	return func(ctx context.Context) error {
		var raw json.RawMessage
		if err := c.Do(ctx, r, &raw); err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		var out T
		return d.Decode(&out)
	}
}
