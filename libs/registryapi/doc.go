// Package registryapi is the wire form of api.Registry, the gRPC API of running catalog servers
// (R-CAT-70). registry.proto is the source; tools/proto makes the Go files of it. What the answers mean
// is in libs/source/registry, which reads them, and libs/source/registry/server, which gives them.
package registryapi
