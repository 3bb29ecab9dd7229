package api_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/internal/api"
)

// update rewrites the golden file: go test ./services/gateway/internal/api -run TestOpenAPIDocument -update
var update = flag.Bool("update", false, "rewrite services/gateway/openapi.yaml")

const golden = "../../openapi.yaml"

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	got, err := api.New(api.Deps{}).OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error(
			"services/gateway/openapi.yaml is not what the code says; run this test with -update and look at the " +
				"difference")
	}
}
