package load_test

import (
	"fmt"
	"testing/fstest"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
)

// ExampleLoad validates a catalog. It is read from any io/fs.FS. Err says whether it may be served; Findings say all
// that is wrong with it, and where.
func ExampleLoad() {
	files := fstest.MapFS{"catalog.yaml": {Data: []byte(`
schema: olm.package
name: harbor-master
defaultChannel: stable
---
schema: olm.channel
package: harbor-master
name: stable
entries:
- name: harbor-master.v1.0.0
- name: harbor-master.v1.1.0
  replaces: harbor-master.v1.0.0
---
schema: olm.bundle
package: harbor-master
name: harbor-master.v1.1.0
image: registry.example.com/harbor-master:v1.1.0
properties:
- type: olm.package
  value: {packageName: harbor-master, version: 1.1}
`)}}
	c, err := load.Load(files, load.Options{})
	if err != nil {
		fmt.Println(err) // the files cannot be read at all
		return
	}
	for _, f := range c.Findings {
		fmt.Println(f.Place(), f.Rule, f.Severity) // f.Message says what is wrong and what to do
	}
	fmt.Println("may be served:", c.Err() == nil)

	// Output:
	// catalog.yaml:10:3 R-CAT-30 error
	// catalog.yaml:20:10 R-CAT-25 error
	// may be served: false
}
