package certs

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

var gvkService = schema.GroupVersionKind{Version: "v1", Kind: "Service"}

// APIs asks the cluster for the API services that an operator of a namespace owns.
type APIs struct {
	Client       *kube.Epoch
	Namespace    string
	Certificates map[string]Kept
	Now          time.Time
	// Running is set while the pods that serve them run.
	Running bool
}

// Judge notes what is the matter with the API services of an operator. They are looked at anew each time: few have any.
func (q APIs) Judge(ctx context.Context, c bundle.CSV, out *csv.Serving) error {
	targets := map[string]bundle.APIDescription{}
	for _, a := range c.Spec.APIServices.Owned {
		targets[a.Version+"."+a.Group] = a
	}
	texts := map[*string][]string{}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		v, err := q.judge(ctx, name, targets[name])
		if err != nil {
			return err
		}
		for into, text := range map[*string]string{
			&out.ObjectsWrong: v.Wrong, &out.Waiting: v.Waiting,
			&out.Broken: v.Broken,
		} {
			if text != "" {
				texts[into] = append(texts[into], text)
			}
		}
	}
	for into, list := range texts {
		*into = strings.Join(list, "; ")
	}
	return nil
}

func (q APIs) judge(ctx context.Context, name string, a bundle.APIDescription) (Verdict, error) {
	service := render.ServiceName(a.DeploymentName)
	found, err := q.Client.Get(ctx, render.GVKAPIService, "", name)
	if err != nil {
		return Verdict{}, err
	}
	have, err := readAPI(name, found)
	if err != nil {
		return Verdict{}, err
	}
	behind, err := q.Client.Get(ctx, gvkService, q.Namespace, service)
	if err != nil {
		return Verdict{}, err
	}
	have.ServiceFound = behind != nil
	return Judge(q.Now, have, Want{
		CA: q.Certificates[render.SecretName(service)].CA, Target: target(q.Namespace, service, a.Port()),
		Running: q.Running,
	}), nil
}

// readAPI reads an APIService; nil is one that is not there.
func readAPI(name string, o *unstructured.Unstructured) (API, error) {
	a := API{Name: name}
	if o == nil || o.GetDeletionTimestamp() != nil {
		return a, nil
	}
	a.Found = true
	var body struct {
		Spec struct {
			CABundle []byte `json:"caBundle"`
			Service  *struct {
				Namespace string `json:"namespace"`
				Name      string `json:"name"`
				Port      int32  `json:"port"`
			} `json:"service"`
		} `json:"spec"`
		Status struct {
			Conditions []struct {
				Type    string    `json:"type"`
				Status  string    `json:"status"`
				Message string    `json:"message"`
				Since   time.Time `json:"lastTransitionTime"`
			} `json:"conditions"`
		} `json:"status"`
	}
	if err := kube.Decode(o, &body); err != nil {
		return a, errs.Wrap(errs.Invalid, err, "APIService %s", name)
	}
	a.CA = body.Spec.CABundle
	if s := body.Spec.Service; s != nil {
		a.Target = target(s.Namespace, s.Name, s.Port)
	}
	for _, c := range body.Status.Conditions {
		if c.Type == "Available" {
			a.Available, a.Message, a.Since = c.Status == "True", c.Message, c.Since
		}
	}
	return a, nil
}

// target names the Service and port that an API service leads to.
func target(ns, service string, port int32) string {
	return net.JoinHostPort(ns+"/"+service, strconv.Itoa(int(port)))
}
