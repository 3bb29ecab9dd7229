package api_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
)

// update rewrites the documents: go test ./services/gateway/internal/api -run TestOpenAPIDocument -update
var update = flag.Bool("update", false, "rewrite services/gateway/openapi.yaml and openapi-3.0.yaml")

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	a := api.New(api.Deps{})
	for path, write := range map[string]func() ([]byte, error){
		"../../openapi.yaml": a.OpenAPI, "../../openapi-3.0.yaml": a.OpenAPI30,
	} {
		got, err := write()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("services/gateway/%s is not what the code says; run this test with -update and look at the "+
				"difference", filepath.Base(path))
		}
	}
}
