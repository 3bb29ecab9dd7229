package command

import (
	"bufio"
	"fmt"
	"strings"
)

// Confirm asks a person whether to go on. On no terminal nobody can be asked: there what is in the way refuses, and
// tells the flag by which it is agreed to; where nothing is in the way, it goes on.
func (a *Env) Confirm(question, inTheWay, flag string) error {
	if !a.Terminal {
		if inTheWay == "" {
			return nil
		}
		return Refused(fmt.Errorf("%s: use %s to go on", inTheWay, flag))
	}
	if inTheWay != "" {
		question = strings.ToUpper(inTheWay[:1]) + inTheWay[1:] + ".\n" + question
	}
	if _, err := fmt.Fprint(a.Err, question+" [y/N] "); err != nil {
		return err
	}
	answer, err := bufio.NewReader(a.In).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	if err != nil {
		_, _ = fmt.Fprintln(a.Err) // the line of the question ends
	}
	return Refused(fmt.Errorf("nothing was done"))
}
