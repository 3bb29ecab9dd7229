package lint

import (
	"slices"
	"strings"
)

// removal is an API that Kubernetes serves no more.
type removal struct {
	apiVersion string
	kinds      []string // nil for all
	release    string
	instead    string
}

// removals are the APIs that Kubernetes 1.22, 1.25 and 1.26 removed.
func removals() []removal {
	return []removal{
		{"admissionregistration.k8s.io/v1beta1", nil, "1.22", "admissionregistration.k8s.io/v1"},
		{"apiextensions.k8s.io/v1beta1", nil, "1.22", "apiextensions.k8s.io/v1"},
		{"apiregistration.k8s.io/v1beta1", nil, "1.22", "apiregistration.k8s.io/v1"},
		{"authentication.k8s.io/v1beta1", []string{"TokenReview"}, "1.22", "authentication.k8s.io/v1"},
		{"authorization.k8s.io/v1beta1", nil, "1.22", "authorization.k8s.io/v1"},
		{"certificates.k8s.io/v1beta1", []string{"CertificateSigningRequest"}, "1.22", "certificates.k8s.io/v1"},
		{"coordination.k8s.io/v1beta1", []string{"Lease"}, "1.22", "coordination.k8s.io/v1"},
		{"extensions/v1beta1", []string{"Ingress"}, "1.22", "networking.k8s.io/v1"},
		{"networking.k8s.io/v1beta1", []string{"Ingress", "IngressClass"}, "1.22", "networking.k8s.io/v1"},
		{"rbac.authorization.k8s.io/v1beta1", nil, "1.22", "rbac.authorization.k8s.io/v1"},
		{"scheduling.k8s.io/v1beta1", nil, "1.22", "scheduling.k8s.io/v1"},
		{
			"storage.k8s.io/v1beta1",
			[]string{"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"},
			"1.22",
			"storage.k8s.io/v1",
		},
		{"batch/v1beta1", []string{"CronJob"}, "1.25", "batch/v1"},
		{"discovery.k8s.io/v1beta1", []string{"EndpointSlice"}, "1.25", "discovery.k8s.io/v1"},
		{"events.k8s.io/v1beta1", []string{"Event"}, "1.25", "events.k8s.io/v1"},
		{"autoscaling/v2beta1", nil, "1.25", "autoscaling/v2"},
		{"policy/v1beta1", []string{"PodDisruptionBudget"}, "1.25", "policy/v1"},
		{"policy/v1beta1", []string{"PodSecurityPolicy"}, "1.25", "pod security admission"},
		{"node.k8s.io/v1beta1", nil, "1.25", "node.k8s.io/v1"},
		{"autoscaling/v2beta2", nil, "1.26", "autoscaling/v2"},
		{"flowcontrol.apiserver.k8s.io/v1beta1", nil, "1.26", "flowcontrol.apiserver.k8s.io/v1"},
	}
}

// otherCheck holds APIs that Kubernetes has removed, and labels of platforms.
type otherCheck struct {
	in  *parsed
	out *report
	// platforms are those of images that the caller asked a registry for (Options).
	platforms map[string][]string
}

func (l otherCheck) run() {
	l.removedAPIs()
	l.platformLabels()
}

func (l otherCheck) removedAPIs() {
	for _, o := range l.in.objects {
		for _, r := range removals() {
			if o.apiVersion == r.apiVersion && (r.kinds == nil || slices.Contains(r.kinds, o.kind)) {
				l.out.warnf("other-removed-api", o.at("apiVersion"), "%s %s is of %s, which Kubernetes %s removed; use %s",
					o.kind, o.name, r.apiVersion, r.release, r.instead)
			}
		}
	}
}

const (
	labelArch = "operatorframework.io/arch."
	labelOS   = "operatorframework.io/os."
	supported = "supported"
)

// platformLabels holds the labels by which an operator is offered to clusters of some platforms alone:
// their form, and, of images whose platforms the caller knows, that they run there.
func (l otherCheck) platformLabels() {
	if l.in.csv == nil {
		return
	}
	var arches, systems []string
	for key, v := range l.in.csv.Labels {
		arch, isArch := strings.CutPrefix(key, labelArch)
		system, isOS := strings.CutPrefix(key, labelOS)
		at := l.in.csvObject.at("metadata", "labels", key)
		switch {
		case !isArch && !isOS:
			continue
		case v != supported:
			l.out.warnf("other-platforms", at, "the label %s is %q; write %q, or remove it", key, v, supported)
		case isArch:
			arches = append(arches, arch)
		default:
			systems = append(systems, system)
		}
	}
	if len(arches) == 0 {
		arches = []string{"amd64"} // what no label means
	}
	if len(systems) == 0 {
		systems = []string{"linux"}
	}
	slices.Sort(arches)
	slices.Sort(systems)
	for _, image := range l.images() {
		l.imagePlatforms(image, arches, systems)
	}
}

// images are those of the operator's own containers.
func (l otherCheck) images() []string {
	var out []string
	for _, d := range l.in.csv.Spec.Install.Spec.Deployments {
		spec, err := d.Typed()
		if err != nil {
			continue // practice-resources reports it
		}
		for _, c := range spec.Template.Spec.Containers {
			out = append(out, c.Image)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (l otherCheck) imagePlatforms(image string, arches, systems []string) {
	there, asked := l.platforms[image]
	if !asked {
		return
	}
	at := l.in.csvObject.at("metadata", "labels")
	var promised []string
	for _, system := range systems {
		for _, arch := range arches {
			p := system + "/" + arch
			promised = append(promised, p)
			if !slices.Contains(there, p) {
				l.out.warnf("other-platforms", at, "the labels promise %s, but the image %s does not run there: it has %s",
					p, image, strings.Join(there, ", "))
			}
		}
	}
	for _, p := range there {
		if !slices.Contains(promised, p) {
			l.out.warnf("other-platforms", at,
				"the image %s runs on %s, which no label says; add %s<arch>: %s and %s<os>: %s", image, p, labelArch,
				supported, labelOS, supported)
		}
	}
}
