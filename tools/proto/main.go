// Command proto generates Go code from a .proto file without protoc: the compiler is a Go module, and so
// are the two plugins, pinned in go.mod. It runs in its own module, outside the workspace.
//
//	go run . -dir ../../libs/registryapi -file registry.proto
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// outMode is of files that everybody may read.
const outMode = 0o644

func main() {
	dir := flag.String("dir", ".", "directory of the .proto file, where the Go files are written too")
	file := flag.String("file", "", "the .proto file")
	flag.Parse()
	if err := run(context.Background(), *dir, *file); err != nil {
		fmt.Fprintln(os.Stderr, "proto:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir, file string) error {
	request, err := compile(ctx, dir, file)
	if err != nil {
		return err
	}
	for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		answer, err := generate(ctx, plugin, request)
		if err != nil {
			return err
		}
		for _, f := range answer.GetFile() {
			if err := os.WriteFile(filepath.Join(dir, f.GetName()), []byte(f.GetContent()), outMode); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile makes the request that protoc would hand to a plugin.
func compile(ctx context.Context, dir, file string) ([]byte, error) {
	c := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{dir}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := c.Compile(ctx, file)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{FileToGenerate: []string{file},
		Parameter: proto.String("paths=source_relative")}
	seen := map[string]bool{}
	for _, f := range files {
		request.ProtoFile = withImports(request.ProtoFile, seen, f)
	}
	return proto.Marshal(request)
}

// withImports adds a file behind everything that it imports.
func withImports(list []*descriptorpb.FileDescriptorProto, seen map[string]bool,
	f linker.File) []*descriptorpb.FileDescriptorProto {
	if seen[f.Path()] {
		return list
	}
	seen[f.Path()] = true
	imports := f.Imports()
	for i := range imports.Len() {
		list = withImports(list, seen, f.FindImportByPath(imports.Get(i).Path()))
	}
	return append(list, protoutil.ProtoFromFileDescriptor(protoreflect.FileDescriptor(f)))
}

// generate runs one plugin.
func generate(ctx context.Context, plugin string, request []byte) (*pluginpb.CodeGeneratorResponse, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", plugin) //nolint:gosec // one of the two names in run
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	answer := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(out, answer); err != nil {
		return nil, fmt.Errorf("%s: %w", plugin, err)
	}
	if answer.Error != nil {
		return nil, errors.New(answer.GetError())
	}
	return answer, nil
}
