package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/chandler-fleet/chandler/test/demo/internal/handover"
	"github.com/chandler-fleet/chandler/test/internal/proc"
	"github.com/chandler-fleet/chandler/test/stack"
	"github.com/chandler-fleet/chandler/test/testcluster"
)

// startSpokes starts the process that plays the simulated clusters. It is killed with this one.
func (k *keeper) startSpokes(s *stack.Stack) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.simulated, err = proc.Start(proc.Spec{
		Name: "simspokes", Path: filepath.Join(k.bin, "simspokes"), Dir: k.dir, Log: s.Log("simspokes"),
		Args: []string{"-clusters", strconv.Itoa(k.spokes), "-prefix", "berth", "-label", "coast=north"},
		Env:  append(os.Environ(), "CHANDLER_URL="+s.URL(), "CHANDLER_TOKEN="+s.Token()),
	})
	return err
}

// serveAgents does what people do on clusters for which the demo has a manifest, and what a kubelet does then: it
// applies the manifest, and runs the program of the pod. The nodes of these clusters run no containers. It ends with
// ctx, or when what it has started has ended.
func (k *keeper) serveAgents(ctx context.Context) error {
	started := map[string]bool{}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		for _, c := range k.clusters {
			manifest, err := os.ReadFile(filepath.Join(k.dir, handover.ManifestFile(c.Name())))
			if errors.Is(err, os.ErrNotExist) || started[c.Name()] {
				continue
			}
			if err == nil {
				started[c.Name()] = true
				err = k.startAgent(ctx, c, manifest)
			}
			if err != nil {
				return fmt.Errorf("the agent of %s: %w", c.Name(), err)
			}
		}
		if err := k.simulated.Failure(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (k *keeper) startAgent(ctx context.Context, c *testcluster.Cluster, manifest []byte) error {
	objects, err := documents(manifest)
	if err != nil {
		return err
	}
	if err := apply(ctx, c, objects); err != nil {
		return err
	}
	join, err := joinOf(objects)
	if err != nil {
		return err
	}
	return k.stack.LaunchAgent(stack.Agent{
		Name: "chandler-agent-" + c.Name(), Join: join, Kubeconfig: string(c.Kubeconfig()),
	})
}

// documents are the objects of a manifest.
func documents(manifest []byte) (objects []*unstructured.Unstructured, err error) {
	const buffer = 4 << 10
	reader := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), buffer)
	for {
		o := &unstructured.Unstructured{}
		if err := reader.Decode(o); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
}

// joinOf is the document by which the agent joins.
func joinOf(objects []*unstructured.Unstructured) (string, error) {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Secret" })
	if i < 0 {
		return "", errors.New("the manifest has no Secret")
	}
	var s corev1.Secret
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &s)
	if err == nil && len(s.Data["join.json"]) == 0 {
		err = errors.New("the Secret has no join.json")
	}
	return string(s.Data["join.json"]), err
}

// apply does what kubectl apply --server-side does.
func apply(ctx context.Context, c *testcluster.Cluster, objects []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	served, err := discovery.NewDiscoveryClientForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(served)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, o := range objects {
		m, err := mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			return err
		}
		_, err = client.Resource(m.Resource).Namespace(o.GetNamespace()).Apply(ctx, o.GetName(), o,
			metav1.ApplyOptions{FieldManager: "kubectl"})
		if err != nil {
			return err
		}
	}
	return nil
}
