package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/chandler-fleet/chandler/libs/client"
)

// As docs/api.md has it.
func Example() {
	waiting := func(ctx context.Context) error {
		chandler, err := client.New(client.Config{
			URL: "https://chandler.example.com", Token: os.Getenv("CHANDLER_TOKEN"),
		})
		if err != nil {
			return err
		}
		params := &client.ListInstallplansParams{
			Cluster: "east-1", Phase: client.ListInstallplansParamsPhaseRequiresApproval,
		}
		for plan, err := range chandler.ListInstallplansAll(ctx, params) {
			if err != nil {
				return err // a *client.Problem, where the gateway said it
			}
			fmt.Println(plan.Name, plan.Digest)
		}
		return nil
	}
	_ = waiting
	// Output:
}
