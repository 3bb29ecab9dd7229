package command

import (
	"fmt"
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// UseText is when a break-glass token was used.
func UseText(use model.BreakGlassUse) string {
	word := "until"
	if use.Open {
		word = "goes on until"
	}
	return fmt.Sprintf("since %s, %s %s", use.Since.UTC().Format(time.RFC3339), word,
		use.Until.UTC().Format(time.RFC3339))
}

// TellBreakGlass says on standard error that the break-glass token is in use, or was a while ago; nil is neither.
func TellBreakGlass(a *Env, use *model.BreakGlassUse) error {
	if use == nil {
		return nil
	}
	verb := "was"
	if use.Open {
		verb = "is"
	}
	_, err := fmt.Fprintf(a.Err, "warning: the break-glass token %s in use %s; see chandler auth break-glass show\n", verb,
		UseText(*use))
	return err
}
