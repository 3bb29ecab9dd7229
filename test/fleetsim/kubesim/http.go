package kubesim

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

var errModified = errors.New(
	"the object has been modified; please apply your changes to the latest version and try again")

// epochHeader is how the executor says in which epoch it writes.
func epochHeader() string {
	return http.CanonicalHeaderKey("Impersonate-Extra-" + clusteraccess.EpochExtra)
}

// ServeHTTP answers as the API server of the cluster.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, version.Info{
			Major: "1", Minor: strings.Split(c.Version, ".")[1], GitVersion: c.Version,
		})
	case parts[0] == "api" && len(parts) == 1:
		answer(w, http.StatusOK, metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"},
		})
	case parts[0] == "apis" && len(parts) == 1:
		c.mu.Lock()
		list := c.groups()
		c.mu.Unlock()
		answer(w, http.StatusOK, list)
	case parts[0] == "api":
		c.group(w, r, "", parts[1], parts[2:])
	case parts[0] == "apis" && len(parts) >= 3:
		c.group(w, r, parts[1], parts[2], parts[3:])
	default:
		fail(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
	}
}

// group answers what is asked of a group and version.
func (c *Cluster) group(w http.ResponseWriter, r *http.Request, group, version string, path []string) {
	if len(path) == 0 {
		c.mu.Lock()
		list := c.resources(group, version)
		c.mu.Unlock()
		if list == nil {
			fail(w, apierrors.NewNotFound(schema.GroupResource{Group: group}, version))
			return
		}
		answer(w, http.StatusOK, list)
		return
	}
	q := request{version: version, manager: r.URL.Query().Get("fieldManager")}
	q.epoch = r.Header.Get(epochHeader())
	if q.manager == "" {
		q.manager = managerOf(r.UserAgent())
	}
	q.dryRun = r.URL.Query().Get("dryRun") == metav1.DryRunAll
	q.force = r.URL.Query().Get("force") == "true"
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" && path[2] != "finalize" {
		q.at.namespace, path = path[1], path[2:]
	}
	if reviewed(w, r, group, path[0]) {
		return
	}
	c.mu.Lock()
	q.kind = c.kinds[schema.GroupResource{Group: group, Resource: path[0]}]
	c.mu.Unlock()
	if q.kind == nil || !slices.Contains(q.versions, version) {
		fail(w, apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: path[0]}, ""))
		return
	}
	if len(path) > 1 {
		q.at.name = path[1]
	}
	if len(path) > 2 {
		q.subresource = path[2]
	}
	c.object(w, r, &q)
}

// reviewed answers questions about rights: everybody may do everything.
func reviewed(w http.ResponseWriter, r *http.Request, group, resource string) bool {
	if group != "authorization.k8s.io" {
		return false
	}
	var body map[string]any
	raw, err := bodyOf(r)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return true
	}
	all := []any{"*"}
	body["status"] = map[string]any{"allowed": true}
	if resource == "selfsubjectrulesreviews" {
		body["status"] = map[string]any{
			"resourceRules":    []any{map[string]any{"verbs": all, "apiGroups": all, "resources": all}},
			"nonResourceRules": []any{}, "incomplete": false,
		}
	}
	answer(w, http.StatusCreated, body)
	return true
}

// object answers what is asked of objects of a kind.
func (c *Cluster) object(w http.ResponseWriter, r *http.Request, q *request) {
	body, err := bodyOf(r)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	watching := r.URL.Query().Get("watch")
	if r.Method == http.MethodGet && q.at.name == "" {
		if watching == "true" || watching == "1" {
			c.watch(w, r, q)
			return
		}
		c.list(w, r, q)
		return
	}
	c.mu.Lock()
	o, err := c.one(r, q, body)
	c.mu.Unlock()
	if err != nil {
		fail(w, err)
		return
	}
	code := http.StatusOK
	if r.Method == http.MethodPost {
		code = http.StatusCreated
	}
	answer(w, code, shown(r, q, o.Object))
}

// bodyOf is the body of a request as JSON. Typed clients send what Kubernetes itself has types for as Protobuf.
func bodyOf(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != runtime.ContentTypeProtobuf || len(body) == 0 {
		return body, err
	}
	o, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(o)
}

// one does a request about one object.
func (c *Cluster) one(r *http.Request, q *request, body []byte) (*unstructured.Unstructured, error) {
	switch r.Method {
	case http.MethodGet:
		if o := q.get(q.at); o != nil {
			return o, nil
		}
		return nil, apierrors.NewNotFound(q.resource(), q.at.name)
	case http.MethodPatch:
		return c.patch(q, types.PatchType(r.Header.Get("Content-Type")), body)
	case http.MethodDelete:
		var o metav1.DeleteOptions
		if len(body) > 0 {
			if err := json.Unmarshal(body, &o); err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
		}
		return c.delete(q, o)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &o.Object); err != nil {
		return nil, apierrors.NewBadRequest("the body is not JSON: " + err.Error())
	}
	if r.Method == http.MethodPut {
		return c.update(q, o)
	}
	return c.create(q, o)
}

// list answers a list, by pages where a limit is given.
func (c *Cluster) list(w http.ResponseWriter, r *http.Request, q *request) {
	chosen, err := selector(r.URL.Query())
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	from, _ := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("continue"))
	c.mu.Lock()
	list := map[string]any{"resourceVersion": versionText(c.version)}
	items := []any{}
	for _, at := range q.keys() {
		if q.at.namespace != "" && at.namespace != q.at.namespace || len(from) > 0 && at.String() <= string(from) {
			continue
		}
		o := q.get(at)
		if !chosen(o) {
			continue
		}
		if limit > 0 && len(items) == limit {
			last := items[limit-1].(map[string]any)
			u := unstructured.Unstructured{Object: last}
			list["continue"] = base64.RawURLEncoding.EncodeToString([]byte(key{u.GetNamespace(), u.GetName()}.String()))
			break
		}
		items = append(items, shown(r, q, o.Object))
	}
	c.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": schema.GroupVersion{Group: q.group, Version: q.version}.String(), "kind": q.kind.kind + "List",
		"metadata": list, "items": items,
	})
}

// selector is what chooses among objects.
func selector(q url.Values) (func(*unstructured.Unstructured) bool, error) {
	of, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	by, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(o *unstructured.Unstructured) bool {
		set := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
		return of.Matches(labels.Set(o.GetLabels())) && by.Matches(set)
	}, nil
}

// partial is the form in which metadata alone is asked for.
const partial = "as=PartialObjectMetadata"

// shown is an object in the version and form in which it is asked for.
func shown(r *http.Request, q *request, o map[string]any) map[string]any {
	if strings.Contains(r.Header.Get("Accept"), partial) {
		return map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o["metadata"],
		}
	}
	o["apiVersion"] = schema.GroupVersion{Group: q.group, Version: q.version}.String()
	return o
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(encode(body)) //nolint:gosec // it is JSON, and says so; who asked may be gone
}

func fail(w http.ResponseWriter, err error) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	status.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(status.ErrStatus.Code), status.ErrStatus)
}
