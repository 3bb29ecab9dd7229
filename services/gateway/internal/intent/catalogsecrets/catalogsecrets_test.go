package catalogsecrets_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogsecrets"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/intenttest"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func token(value string) model.SetCatalogSecret {
	return model.SetCatalogSecret{Kind: source.Token, Value: json.RawMessage(`{"token": "` + value + `"}`)}
}

// TestIntents: R-DIS-4: a credential is stored encrypted and named by its commitment; bad ones, and those that cannot
// be encrypted, are refused; deleting erases it, in its own tenant alone.
func TestIntents(t *testing.T) {
	t.Parallel()
	e := intenttest.New(t)
	secrets, err := store.NewCatalogSecrets(e.Recipient)
	if err != nil {
		t.Fatal(err)
	}
	s := &catalogsecrets.Service{Units: e.Units, Secrets: secrets}
	set := func(name string, in model.SetCatalogSecret) error {
		_, err := s.Set(t.Context(), intenttest.Ann, name, in)
		return err
	}
	for name, err := range map[string]error{
		"a name that is none": set("No Name", token("t")),
		"a value of another kind": set("x", model.SetCatalogSecret{
			Kind: source.Basic, Value: json.RawMessage(`{"token": "t"}`),
		}),
		"no value": set("x", model.SetCatalogSecret{Kind: source.Token}),
	} {
		if !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none, err := store.NewCatalogSecrets("")
	if err != nil {
		t.Fatal(err)
	}
	keyless := &catalogsecrets.Service{Units: e.Units, Secrets: none}
	if _, err := keyless.Set(t.Context(), intenttest.Ann, "git", token("s3cr3t")); !errs.Is(err, errs.Unprocessable) {
		t.Errorf("an installation without a key: %v", err)
	}
	const stored = `select count(*) from gateway.catalog_secrets`
	if n := e.Count(stored); n != 0 {
		t.Fatalf("%d credentials that were refused are stored", n)
	}
	made, err := s.Set(t.Context(), intenttest.Ann, "git", token("s3cr3t"))
	if err != nil {
		t.Fatal(err)
	}
	if n := e.Count(stored+` where commitment = $1 and position('s3cr3t' in encode(ciphertext, 'escape')) = 0`,
		made.Commitment); n != 1 {
		t.Errorf("%d encrypted credentials with the commitment that was answered", n)
	}
	if _, err := s.Delete(t.Context(), intenttest.Eve, "git"); !errs.Is(err, errs.NotFound) {
		t.Errorf("another tenant deletes it: %v", err)
	}
	if n := e.Count(stored); n != 1 {
		t.Fatal("another tenant erased it")
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, "git"); err != nil || e.Count(stored) != 0 {
		t.Errorf("deleted: %v, %d are stored", err, e.Count(stored))
	}
	if _, err := s.Delete(t.Context(), intenttest.Ann, "git"); !errs.Is(err, errs.NotFound) {
		t.Errorf("deleted twice: %v", err)
	}
	want := []events.Type{events.CatalogSecretSet{}.EventType(), events.CatalogSecretDeleted{}.EventType()}
	if got := e.Events(intenttest.Ann, events.KindCatalogSecret, "git"); !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}
