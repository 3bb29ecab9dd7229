package source

import (
	"regexp"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// The variables of a template (R-CAT-92): parts of the Kubernetes version of the cluster, not of the platform.
const (
	VariableMajor = "kube_major_version"
	VariableMinor = "kube_minor_version"
	VariablePatch = "kube_patch_version"
)

// The condition that shows the result of a template, and its reasons (R-CAT-93).
const (
	ConditionTemplates      = "TemplatesHaveResolved"
	ConditionImage          = "ResolvedImage"
	ReasonTemplatesResolved = "AllTemplatesResolved"
	ReasonUnableToResolve   = "UnableToResolve"
)

// reKubernetes takes v1.34.2, 1.34, v1.34.2+k3s1, v1.34.2-eks-1234 and the "34+" of some providers.
var reKubernetes = regexp.MustCompile(`^v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}))?(?:[-+].*)?$`)

// Variables returns the variables that a template names, each once and sorted. An unknown variable, or
// a brace without its other half, is an error.
func Variables(template string) ([]string, error) {
	var names []string
	_, err := expand(template, func(name string) (string, error) {
		names = append(names, name)
		return "", nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// ResolveTemplate puts the parts of a cluster's Kubernetes version into a template (R-CAT-92).
func ResolveTemplate(template, kubernetesVersion string) (string, error) {
	ref, err := expand(template, func(name string) (string, error) { return versionPart(kubernetesVersion, name) })
	if err != nil {
		return "", err
	}
	if _, err := ParseReference(ref); err != nil {
		return "", errs.Wrap(errs.Invalid, err, "template %q with Kubernetes %s", shorten(template),
			shorten(kubernetesVersion))
	}
	return ref, nil
}

// expand calls value for each variable.
func expand(template string, value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for rest := template; ; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			return b.String(), nil
		}
		end := strings.IndexByte(rest[i:], '}')
		if rest[i] == '}' || end < 0 {
			return "", errs.New(errs.Invalid, "template %q has a brace without its other half", shorten(template)).At(
				"", RuleTemplate)
		}
		name := rest[i+1 : i+end]
		if !slices.Contains([]string{VariableMajor, VariableMinor, VariablePatch}, name) {
			return "", errs.New(errs.Invalid,
				"template %q names the variable {%s}, which is unknown; known are {%s}, {%s} and {%s}",
				shorten(template), shorten(name), VariableMajor, VariableMinor, VariablePatch).At("", RuleTemplate)
		}
		v, err := value(name)
		if err != nil {
			return "", err
		}
		b.WriteString(rest[:i])
		b.WriteString(v)
		rest = rest[i+end+1:]
	}
}

func versionPart(version, variable string) (string, error) {
	m := reKubernetes.FindStringSubmatch(version)
	if m == nil {
		return "", errs.New(errs.Invalid, "Kubernetes version %q cannot be read; it looks like v1.34.2",
			shorten(version)).At("", RuleTemplate)
	}
	part := map[string]string{VariableMajor: m[1], VariableMinor: m[2], VariablePatch: m[3]}[variable]
	if part == "" {
		return "", errs.New(errs.Invalid, "Kubernetes version %q does not say its patch, which {%s} asks for",
			shorten(version), variable).At("", RuleTemplate)
	}
	return part, nil
}

// Variant names the variant of a templated catalog that a cluster uses: its Kubernetes version as
// major.minor, such as "1.34". There is one live revision per variant in use.
func Variant(kubernetesVersion string) (string, error) {
	major, err := versionPart(kubernetesVersion, VariableMajor)
	if err != nil {
		return "", err
	}
	minor, err := versionPart(kubernetesVersion, VariableMinor)
	return major + "." + minor, err
}

// Templated reports whether the content of an image source depends on the version of the cluster.
func Templated(s Settings) bool {
	names, err := Variables(s.Template)
	return err == nil && len(names) > 0
}

// Resolution is the image that settings mean for one version of Kubernetes.
type Resolution struct {
	Image string
	// Reason is ReasonTemplatesResolved, ReasonUnableToResolve, or "" for settings without a template.
	Reason string
	// Message says why a template did not resolve; Image is then the fallback.
	Message string
}

// Resolve chooses the image (R-CAT-92, R-CAT-93): the template where it resolves, else the image. An
// error, errs.Invalid, means that there is neither: the catalog stops until a person fixes it.
func Resolve(s Settings, kubernetesVersion string) (Resolution, error) {
	if s.Template == "" {
		return Resolution{Image: s.Image}, nil
	}
	ref, err := ResolveTemplate(s.Template, kubernetesVersion)
	switch {
	case err == nil:
		return Resolution{Image: ref, Reason: ReasonTemplatesResolved}, nil
	case s.Image != "":
		return Resolution{Image: s.Image, Reason: ReasonUnableToResolve, Message: err.Error()}, nil
	default:
		return Resolution{Reason: ReasonUnableToResolve, Message: err.Error()},
			errs.Wrap(errs.Invalid, err, "the template cannot be resolved and there is no image to fall back to")
	}
}
