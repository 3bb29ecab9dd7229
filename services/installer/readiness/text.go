package readiness

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDetail bounds what is quoted of a cluster: it stands in the status of an object and on a terminal.
const maxDetail = 400

// pullFailed begins what a kubelet says of an image that it cannot pull.
const pullFailed = "Failed to pull image"

var (
	webhookDenied = regexp.MustCompile(`admission webhook "([^"]+)" denied the request`)
	webhookFailed = regexp.MustCompile(`failed calling webhook "([^"]+)"`)
	policyDenied  = regexp.MustCompile(`ValidatingAdmissionPolicy '[^']+' .*denied request`)
	overQuota     = regexp.MustCompile(`(exceeded|failed) quota: `)
	quotaUsed     = regexp.MustCompile(`, used: [^,:]+=[^:]*?(, limited: )`)
	overLimits    = regexp.MustCompile(
		`(maximum|minimum) [\w.\-/]+ (usage )?per (Container|Pod)|(limit to request ratio)`)
	forbiddenPod = regexp.MustCompile(`^pods "[^"]*" is forbidden: `)

	ipAddress = regexp.MustCompile(
		`\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b|\[[0-9a-fA-F:]*:[0-9a-fA-F:]*\](?::\d{1,5})?`)
	// what a program writes before or into each line, and what differs from try to try
	passing = regexp.MustCompile(`\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s*|` +
		`\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ |` +
		`"(?:ts|time|timestamp)":\s*(?:"[^"]*"|[0-9.eE+]+),?\s*|` +
		`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|` +
		`\b0x[0-9a-f]+\b`)
	white = regexp.MustCompile(`\s+`)
)

// Webhook reads a refusal of the API server: the name of the admission webhook that denied a request, or that
// could not be asked about it (failed); "" where no webhook is to blame.
func Webhook(message string) (name string, failed bool) {
	if m := webhookFailed.FindStringSubmatch(message); m != nil {
		return m[1], true
	}
	if m := webhookDenied.FindStringSubmatch(message); m != nil {
		return m[1], false
	}
	return "", false
}

// Denied reports a message that passes on a refusal by admission, whoever's.
func Denied(message string) bool {
	return webhookDenied.MatchString(message) || policyDenied.MatchString(message)
}

// refusal reads why the API server refuses the Pods of a Deployment.
func (s Observed) refusal(message string) Cause {
	text := s.stable(forbiddenPod.ReplaceAllString(message, ""))
	c := Cause{Reason: ReasonFailedCreate}
	name, failed := Webhook(message)
	switch {
	case failed:
		c.Reason, c.Webhook = ReasonWebhookFailed, name
	case Denied(message):
		c.Reason, c.Webhook = ReasonAdmissionDenied, name
	case strings.Contains(message, "violates PodSecurity"):
		c.Reason = ReasonPodSecurity
	case overQuota.MatchString(message):
		c.Reason, text = ReasonQuota, quotaUsed.ReplaceAllString(text, "$1")
	case overLimits.MatchString(message):
		c.Reason = ReasonLimits
	case strings.Contains(message, "error looking up service account"):
		c.Reason = ReasonNoAccount
	}
	c.Message = "its Pods are refused: " + text
	return c
}

// pullDetail is why an image cannot be pulled, "" where the message only repeats that.
func pullDetail(message string) string {
	if rest, ok := strings.CutPrefix(message, "Back-off pulling image "); ok {
		_, message, ok = strings.Cut(rest, ": ")
		if !ok {
			return ""
		}
	}
	for _, prefix := range []string{"ErrImagePull: ", "ImagePullBackOff: ", "rpc error: "} {
		message = strings.TrimPrefix(message, prefix)
	}
	if rest, ok := strings.CutPrefix(message, pullFailed+" "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			message = strings.TrimPrefix(after, "rpc error: ")
		}
	}
	if rest, ok := strings.CutPrefix(message, "code = "); ok {
		if _, after, ok := strings.Cut(rest, " desc = "); ok {
			message = after
		}
	}
	return message
}

// lastError is the line of a program's last output that says most: the last one that speaks of an error, else the last.
func lastError(output string) string {
	lines := slices.DeleteFunc(strings.Split(output, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
	for _, l := range slices.Backward(lines) {
		low := strings.ToLower(l)
		if strings.HasPrefix(low, "panic:") || strings.Contains(low, "error") || strings.Contains(low, "fatal") {
			return l
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// stable leaves out of a text what differs from Pod to Pod and from try to try, and bounds it.
func (s Observed) stable(text string) string {
	text = s.podNames().ReplaceAllString(text, s.Deployment.Name)
	for i := range s.ReplicaSets {
		text = strings.ReplaceAll(text, s.ReplicaSets[i].Name, s.Deployment.Name)
	}
	text = ipAddress.ReplaceAllStringFunc(text, func(a string) string {
		if s.inImage(a) {
			return a
		}
		return "(address)"
	})
	text = strings.TrimSpace(white.ReplaceAllString(passing.ReplaceAllString(text, ""), " "))
	if len(text) <= maxDetail {
		return text
	}
	cut := maxDetail
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// maxNameBase is how much of a prefix Kubernetes keeps when it draws a name.
const maxNameBase = 58

// podNames matches the names that Kubernetes draws for the Pods of the Deployment.
func (s Observed) podNames() *regexp.Regexp {
	name := s.Deployment.Name
	if len(name) >= maxNameBase {
		return regexp.MustCompile(regexp.QuoteMeta(name[:maxNameBase]) + `[a-z0-9-]*[a-z0-9]{5}\b`)
	}
	return regexp.MustCompile(regexp.QuoteMeta(name) + `-[a-z0-9]{6,10}-[a-z0-9]{5}\b`)
}

// inImage reports text that is part of the name of an image: that is what people know it by.
func (s Observed) inImage(text string) bool {
	spec := s.Deployment.Spec.Template.Spec
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		if strings.Contains(c.Image, text) {
			return true
		}
	}
	return false
}
