package render

import (
	"slices"
	"strconv"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// The install modes (R-CSV §6.6).
const (
	ModeOwn    = "OwnNamespace"
	ModeSingle = "SingleNamespace"
	ModeMulti  = "MultiNamespace"
	ModeAll    = "AllNamespaces"
)

// CheckInstallModes is the table of R-CSV-31: nil when the modes allow an operator in namespace own
// to serve targets, else an errs.Unprocessable with the table's message. A mode that is not listed is
// unsupported (R-CSV-30).
func CheckInstallModes(modes []bundle.InstallMode, own string, targets []string) error {
	if len(targets) == 0 {
		return modeError("operatorgroup has invalid selected namespaces, cannot configure to watch zero namespaces")
	}
	if slices.Contains(targets, "") {
		if len(targets) > 1 {
			return modeError(
				"operatorgroup has invalid selected namespaces, NamespaceAll found when |selected namespaces| > 1")
		}
		return need(modes, ModeAll, "all namespaces")
	}
	if len(targets) == 1 {
		if targets[0] == own {
			return need(modes, ModeOwn, "own namespace")
		}
		return need(modes, ModeSingle, "one namespace")
	}
	if err := need(modes, ModeMulti, strconv.Itoa(len(targets))+" namespaces"); err != nil {
		return err
	}
	if slices.Contains(targets, own) {
		return need(modes, ModeOwn, "own namespace")
	}
	return nil
}

// CheckKubernetes is nil when a cluster's version is not below the least that an operator runs on, else an
// errs.Unprocessable (R-CSV §6.4). It compares without the pre-release part, which distributions use for their own
// builds.
func CheckKubernetes(minimum, have string) error {
	if minimum == "" {
		return nil
	}
	want, err := semver.ParseTolerant(minimum)
	if err != nil {
		return errs.New(errs.Unprocessable, "minKubeVersion %s is not a version", minimum)
	}
	is, err := semver.ParseTolerant(have)
	if err != nil {
		return errs.New(errs.Unprocessable, "the cluster's version %s is not a version", have)
	}
	is.Pre, is.Build = nil, nil
	if is.LT(want) {
		return errs.New(errs.Unprocessable, "minKubeVersion %s is above the cluster's %s", minimum, is)
	}
	return nil
}

// DuplicateMode returns the first install mode that is listed twice, "" when none is.
func DuplicateMode(modes []bundle.InstallMode) string {
	seen := map[string]bool{}
	for _, m := range modes {
		if seen[m.Type] {
			return m.Type
		}
		seen[m.Type] = true
	}
	return ""
}

func need(modes []bundle.InstallMode, mode, watch string) error {
	for _, m := range modes {
		if m.Type == mode && m.Supported {
			return nil
		}
	}
	return modeError(mode + " InstallModeType not supported, cannot configure to watch " + watch)
}

func modeError(text string) error { return errs.New(errs.Unprocessable, "%s", text).At("", "R-CSV-31") }
