package command

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/rules"
)

// Hint says on standard error how the rules are explained that a table names.
func (a *Env) Hint(named []string) error {
	hint := rules.Hint(strings.Join(named, " "))
	if hint == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.Err, hint)
	return err
}

const (
	// MaxTypos is how many letters of a name may be wrong for a suggestion.
	MaxTypos = 2
	// maxMeant bounds how many names are suggested.
	maxMeant = 3
)

// Closest are the known names that may be meant: those with the fewest typos, or that go on where the name ends.
func Closest(name string, known []string) []string {
	var meant []string
	least := MaxTypos
	for _, k := range known {
		d := typos(strings.ToLower(name), strings.ToLower(k))
		if len(name) > MaxTypos && strings.HasPrefix(k, name) {
			d = min(d, MaxTypos)
		}
		if d > least || d >= len(k) || d >= len(name) { // a name of two letters is not meant by any other of two
			continue
		}
		if d < least {
			least, meant = d, nil
		}
		meant = append(meant, k)
	}
	slices.Sort(meant)
	return meant[:min(maxMeant, len(meant))]
}

// typos is the least number of letters to add, leave out, replace or swap with the next that makes b of a.
func typos(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			other := 1
			if x[i-1] == y[j-1] {
				other = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+other)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}

// DidYouMean is the question behind a name that is not known; "" where nothing comes near it.
func DidYouMean(meant []string) string {
	if len(meant) == 0 {
		return ""
	}
	return ", did you mean " + strings.Join(meant, " or ") + "?"
}

// CheckCluster wants clusters that are known: a list of one that is not would be empty, as if it had nothing.
func CheckCluster(ctx context.Context, c *client.Client, names ...string) error {
	for _, name := range names {
		_, err := c.Cluster(ctx, name)
		if !client.IsStatus(err, http.StatusNotFound) {
			if err != nil {
				return err
			}
			continue
		}
		all, err := c.Clusters(ctx, client.Selection{})
		if err != nil {
			return err
		}
		known := make([]string, len(all))
		for i := range all {
			known[i] = all[i].Name
		}
		return &client.Problem{
			Status: http.StatusNotFound,
			Detail: fmt.Sprintf("there is no cluster %s%s", name, DidYouMean(Closest(name, known))),
		}
	}
	return nil
}

// OrNoCluster says that the cluster is not known where that is why something in it is not.
func OrNoCluster(ctx context.Context, c *client.Client, cluster string, err error) error {
	if cluster == "" || !client.IsStatus(err, http.StatusNotFound) {
		return err
	}
	if other := CheckCluster(ctx, c, cluster); client.IsStatus(other, http.StatusNotFound) {
		return other
	}
	return err
}
