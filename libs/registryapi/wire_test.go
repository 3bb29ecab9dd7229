package registryapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// wire is what servers and clients in use send to each other. A line here never changes.
const wire = `Channel: name=1 csvName=2 deprecation=3:Deprecation
PackageName: name=1
Package: name=1 channels=2:Channel* defaultChannelName=3 deprecation=4:Deprecation
GroupVersionKind: group=1 version=2 kind=3 plural=4
Dependency: type=1 value=2
Property: type=1 value=2
Bundle: csvName=1 packageName=2 channelName=3 csvJson=4 object=5* bundlePath=6 providedApis=7:GroupVersionKind* requiredApis=8:GroupVersionKind* version=9 skipRange=10 dependencies=11:Dependency* properties=12:Property* replaces=13 skips=14* deprecation=15:Deprecation
ChannelEntry: packageName=1 channelName=2 bundleName=3 replaces=4
ListPackageRequest:
ListBundlesRequest:
GetPackageRequest: name=1
GetBundleRequest: pkgName=1 channelName=2 csvName=3
GetBundleInChannelRequest: pkgName=1 channelName=2
GetAllReplacementsRequest: csvName=1
GetReplacementRequest: csvName=1 pkgName=2 channelName=3
GetAllProvidersRequest: group=1 version=2 kind=3 plural=4
GetLatestProvidersRequest: group=1 version=2 kind=3 plural=4
GetDefaultProviderRequest: group=1 version=2 kind=3 plural=4
Deprecation: message=1
ExperimentalListPackageCustomSchemasRequest: schema=1 packageName=2
api.Registry.ListPackages(ListPackageRequest) stream PackageName
api.Registry.GetPackage(GetPackageRequest) Package
api.Registry.GetBundle(GetBundleRequest) Bundle
api.Registry.GetBundleForChannel(GetBundleInChannelRequest) Bundle
api.Registry.GetChannelEntriesThatReplace(GetAllReplacementsRequest) stream ChannelEntry
api.Registry.GetBundleThatReplaces(GetReplacementRequest) Bundle
api.Registry.GetChannelEntriesThatProvide(GetAllProvidersRequest) stream ChannelEntry
api.Registry.GetLatestChannelEntriesThatProvide(GetLatestProvidersRequest) stream ChannelEntry
api.Registry.GetDefaultBundleThatProvides(GetDefaultProviderRequest) Bundle
api.Registry.ListBundles(ListBundlesRequest) stream Bundle
api.ExperimentalRegistry.ExperimentalListPackageCustomSchemas(ExperimentalListPackageCustomSchemasRequest) stream Struct
`

// TestWire: R-CAT-70, R-CAT-71.
func TestWire(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	messages := api.File_registry_proto.Messages()
	for i := range messages.Len() {
		m := messages.Get(i)
		fmt.Fprintf(&b, "%s:", m.Name())
		for j := range m.Fields().Len() {
			f := m.Fields().Get(j)
			fmt.Fprintf(&b, " %s=%d", f.Name(), f.Number())
			if f.Message() != nil {
				fmt.Fprintf(&b, ":%s", f.Message().Name())
			} else if f.Kind().String() != "string" {
				fmt.Fprintf(&b, ":%s", f.Kind())
			}
			if f.IsList() {
				b.WriteString("*")
			}
		}
		b.WriteString("\n")
	}
	services := api.File_registry_proto.Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			m := services.Get(i).Methods().Get(j)
			stream := ""
			if m.IsStreamingServer() {
				stream = "stream "
			}
			fmt.Fprintf(&b, "%s(%s) %s%s\n", m.FullName(), m.Input().Name(), stream, m.Output().Name())
		}
	}
	if d := cmp.Diff(wire, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
