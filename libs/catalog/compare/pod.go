package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Fields that ask nothing of anybody but the pod itself. What is neither here nor looked at below is Unknown: a
// release of Kubernetes brings fields that this one cannot judge.
var (
	quietPod = words(`containers initContainers ephemeralContainers volumes securityContext serviceAccountName
		serviceAccount affinity tolerations nodeSelector imagePullSecrets terminationGracePeriodSeconds
		activeDeadlineSeconds restartPolicy enableServiceLinks hostname subdomain setHostnameAsFQDN readinessGates
		topologySpreadConstraints preemptionPolicy overhead resources os shareProcessNamespace dnsPolicy dnsConfig
		hostAliases automountServiceAccountToken hostUsers hostPID hostIPC hostNetwork nodeName priorityClassName
		priority runtimeClassName schedulerName`)
	quietContainer = words(`name image command args workingDir env envFrom ports resources resizePolicy livenessProbe
		readinessProbe startupProbe lifecycle terminationMessagePath terminationMessagePolicy imagePullPolicy stdin
		stdinOnce tty volumeMounts volumeDevices restartPolicy securityContext`)
	quietSecurity = words(`privileged allowPrivilegeEscalation capabilities runAsUser runAsGroup runAsNonRoot
		readOnlyRootFilesystem seccompProfile appArmorProfile seLinuxOptions procMount windowsOptions fsGroup
		supplementalGroups supplementalGroupsPolicy fsGroupChangePolicy sysctls`)
	quietVolumes = words("emptyDir configMap downwardAPI ephemeral name")
)

// appArmorAnnotation is how pods chose a profile before Kubernetes had a field for it.
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

// networksAnnotation attaches a pod to networks beside that of the cluster.
const networksAnnotation = "k8s.v1.cni.cncf.io/networks"

// unconfined is the profile of no confinement, of seccomp and of AppArmor.
const unconfined = "unconfined"

// podReader reads what the pods of one object ask for.
type podReader struct {
	*demands
	object   string
	accounts map[string]bool // that the bundle brings
	secrets  map[string]bool // that the bundle brings
	// tokenless are accounts whose pods mount no token unless they ask for it.
	tokenless map[string]bool
}

func (r podReader) say(danger, format string, args ...any) {
	r.add(danger, r.object, fmt.Sprintf(format, args...))
}

// template reads a pod template; annotations are those that come from elsewhere.
func (r podReader) template(t fields, annotations map[string]string) {
	spec := t.object("spec")
	for name := range spec {
		if !quietPod[name] {
			r.say(Unknown, "field %s of the pod", name)
		}
	}
	for k, v := range t.object("metadata").object("annotations") {
		s, _ := v.(string)
		r.annotation(k, s)
	}
	for k, v := range annotations {
		r.annotation(k, v)
	}
	for _, ns := range []string{"hostPID", "hostIPC", "hostNetwork"} {
		if spec.is(ns, true) {
			r.say(HostNamespace, "%s", ns)
		}
	}
	if !spec.is("hostUsers", false) {
		r.say(GainsPrivileges, "its users are those of the node")
	}
	r.account(spec)
	r.placement(spec)
	for _, v := range spec.list("volumes") {
		r.volume(v)
	}
	for _, s := range spec.list("imagePullSecrets") {
		r.secret(s.text("name"), "imagePullSecrets")
	}
	pod := spec.object("securityContext")
	r.security(pod, "pod")
	for _, s := range pod.list("sysctls") {
		r.say(Sysctl, "%s=%s", s.text("name"), s.text("value"))
	}
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, c := range spec.list(list) {
			r.container(c, pod)
		}
	}
}

func (r podReader) annotation(key, value string) {
	switch {
	case strings.HasPrefix(key, appArmorAnnotation) && value == unconfined:
		r.say(AppArmorUnconfined, "%s", strings.TrimPrefix(key, appArmorAnnotation))
	case key == networksAnnotation:
		r.say(Network, "%s", value)
	}
}

// account is who the pods are. One that the bundle does not bring is a neighbour's: what it may do is not known.
func (r podReader) account(spec fields) {
	name := spec.text("serviceAccountName")
	if name == "" {
		name = spec.text("serviceAccount")
	}
	if name == "" {
		name = defaultAccount
	}
	r.add(AnotherAccount, r.object, name)
	if name != defaultAccount && !r.accounts[name] {
		r.say(ForeignAccount, "%s", name)
	}
	if spec.is("automountServiceAccountToken", true) ||
		!spec.has("automountServiceAccountToken") && !r.tokenless[name] {
		r.say(MountsToken, "of its account")
	}
}

// placement is where the pods run, and whom they push aside.
func (r podReader) placement(spec fields) {
	for field, danger := range map[string]string{
		"priorityClassName": Priority, "runtimeClassName": Runtime, "schedulerName": Runtime, "nodeName": ControlPlane,
	} {
		if v := spec.text(field); v != "" && v != "default-scheduler" {
			r.say(danger, "%s %s", field, v)
		}
	}
	if spec.has("priority") {
		r.say(Priority, "priority %v", spec["priority"])
	}
	for _, t := range spec.list("tolerations") {
		key, effect := t.text("key"), t.text("effect")
		if key == "" {
			key = "everything"
		}
		if v := t.text("value"); v != "" {
			key += "=" + v
		}
		if effect == "" {
			effect = "every effect"
		}
		r.say(Toleration, "%s: %s", key, effect)
	}
	for key := range spec.object("nodeSelector") {
		r.node(key, "nodeSelector")
	}
	r.affinity(spec.object("affinity").object("nodeAffinity"))
}

// affinity tells which nodes the pods must or would rather run on.
func (r podReader) affinity(node fields) {
	terms := node.object("requiredDuringSchedulingIgnoredDuringExecution").list("nodeSelectorTerms")
	for _, p := range node.list("preferredDuringSchedulingIgnoredDuringExecution") {
		terms = append(terms, p.object("preference"))
	}
	for _, term := range terms {
		for _, e := range term.list("matchExpressions") {
			if op := e.text("operator"); op != "NotIn" && op != "DoesNotExist" {
				r.node(e.text("key"), "nodeAffinity")
			}
		}
		for _, e := range term.list("matchFields") {
			r.say(ControlPlane, "nodeAffinity %s %v", e.text("key"), e["values"])
		}
	}
}

// node tells a choice of nodes of the control plane; others are of no account.
func (r podReader) node(label, of string) {
	if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok &&
		(role == "control-plane" || role == "master" || role == "etcd") {
		r.say(ControlPlane, "%s %s", of, label)
	}
}

func (r podReader) volume(v fields) {
	for kind := range v {
		o := v.object(kind)
		switch kind {
		case "hostPath":
			r.say(HostPath, "%s", o.text("path"))
		case "secret":
			r.secret(o.text("secretName"), "volume")
		case "projected":
			r.projected(o)
		case "image":
			r.image(o.text("reference"))
		case "persistentVolumeClaim":
			r.say(Volume, "claim %s", o.text("claimName"))
		default:
			if !quietVolumes[kind] {
				r.say(Volume, "%s %s", kind, compact(v[kind]))
			}
		}
	}
}

func (r podReader) projected(o fields) {
	quiet := words("configMap downwardAPI clusterTrustBundle")
	for _, s := range o.list("sources") {
		for kind := range s {
			switch {
			case kind == "secret":
				r.secret(s.object(kind).text("name"), "volume")
			case kind == "serviceAccountToken":
				r.say(MountsToken, "for audience %q", s.object(kind).text("audience"))
			case !quiet[kind]:
				r.say(Unknown, "projected volume of %s", kind)
			}
		}
	}
}

// secret tells one that is somebody else's, or made in the cluster.
func (r podReader) secret(name, by string) {
	if name != "" && !r.secrets[name] {
		r.say(UsesSecret, "%s (%s)", name, by)
	}
}

func (r podReader) container(c, pod fields) {
	name := c.text("name")
	for f := range c {
		if !quietContainer[f] {
			r.say(Unknown, "field %s of container %s", f, name)
		}
	}
	r.image(c.text("image"))
	for _, p := range c.list("ports") {
		if p.has("hostPort") && compact(p["hostPort"]) != "0" {
			r.say(HostPort, "%s", compact(p["hostPort"]))
		}
		if ip := p.text("hostIP"); ip != "" {
			r.say(HostPort, "on %s", ip)
		}
	}
	for _, e := range c.list("env") {
		r.secret(e.object("valueFrom").object("secretKeyRef").text("name"), "env")
	}
	for _, e := range c.list("envFrom") {
		r.secret(e.object("secretRef").text("name"), "env")
	}
	for _, m := range c.list("volumeMounts") {
		if p := m.text("mountPropagation"); p != "" && p != "None" {
			r.say(HostPath, "mount propagation %s at %s", p, m.text("mountPath"))
		}
	}
	life := c.object("lifecycle")
	for _, h := range []fields{
		c.object("livenessProbe"), c.object("readinessProbe"), c.object("startupProbe"), life.object("postStart"),
		life.object("preStop"),
	} {
		for _, kind := range []string{"httpGet", "tcpSocket"} {
			if host := h.object(kind).text("host"); host != "" {
				r.say(HostProbe, "%s", host)
			}
		}
	}
	own := c.object("securityContext")
	r.security(own, "container "+name)
	r.confinement(own, pod)
}

// security is what a security context asks for by itself.
func (r podReader) security(s fields, of string) {
	for f := range s {
		if !quietSecurity[f] && f != "" {
			r.say(Unknown, "field securityContext.%s of the %s", f, of)
		}
	}
	windows := s.object("windowsOptions")
	if s.is("privileged", true) || windows.is("hostProcess", true) {
		r.say(Privileged, "%s", of)
	}
	if compact(s["runAsUser"]) == "0" {
		r.say(RunsAsRoot, "%s: user 0", of)
	}
	for _, c := range s.object("capabilities").texts("add") {
		r.say(Capability, "%s: %s", of, c)
	}
	if strings.EqualFold(s.object("seccompProfile").text("type"), unconfined) {
		r.say(SeccompUnconfined, "%s", of)
	}
	if strings.EqualFold(s.object("appArmorProfile").text("type"), unconfined) {
		r.say(AppArmorUnconfined, "%s", of)
	}
	if o := s.object("seLinuxOptions"); len(o) > 0 {
		r.say(SELinux, "%s: %s", of, compact(o))
	}
	if p := s.text("procMount"); p != "" && p != "Default" {
		r.say(ProcMount, "%s: %s", of, p)
	}
}

// confinement is what a container may do because nothing forbids it: what held before and is gone is asked for. It is
// told of the object, whichever container it is.
func (r podReader) confinement(own, pod fields) {
	with := func(f string) any {
		if own.has(f) {
			return own[f]
		}
		return pod[f]
	}
	user := compact(with("runAsUser"))
	if with("runAsNonRoot") != true && (user == "null" || user == "0") {
		r.say(RunsAsRoot, "nothing forbids it")
	}
	if !own.is("allowPrivilegeEscalation", false) {
		r.say(GainsPrivileges, "nothing forbids it")
	}
	if !slices.Contains(own.object("capabilities").texts("drop"), "ALL") {
		r.say(Capability, "not all are dropped")
	}
	if with("seccompProfile") == nil {
		r.say(SeccompUnconfined, "no profile is named")
	}
}

// image tells the registry: who serves the programs. The defaults are those of the container runtimes.
func (r podReader) image(ref string) {
	if ref != "" {
		r.say(ImageRegistry, "%s", registryOf(ref))
	}
}

func registryOf(ref string) string {
	host, _, ok := strings.Cut(ref, "/")
	if !ok || host != "localhost" && !strings.ContainsAny(host, ".:") {
		return "docker.io"
	}
	return host
}

// digestOf tells long details apart.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	const enough = 6 // bytes
	return hex.EncodeToString(sum[:enough])
}
