package e2e

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bodies"
)

// planted are texts that a dump must not show, by where a person wrote them.
var planted = map[string]string{
	"the configuration of a subscription": "planted-config-6f2a91",
	"another configuration":               "planted-changed-b04c77",
	"the configuration of a preview":      "planted-preview-51de08",
	"a preview that was carried out":      "planted-applied-e9120d",
	"annotations of a subscription":       "planted-note-93ab4e",
	"annotations of a catalog":            "planted-remark-1c88f2",
	"annotations of a plan":               "planted-comment-77d0a5",
	"the reason of an approver":           "planted-reason-c04f6b",
	"the source of a catalog":             "planted-source-7c61f5",
}

// TestDumpShowsNoBodies is somebody who has a dump of the database after operators were installed with a configuration,
// one of them by a plan that a person approved with a reason, another rejected; configurations were changed, previewed
// and carried out: no table of any schema has what people wrote, in the clear, in hexadecimal or base64 digits, or
// packed.
func TestDumpShowsNoBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	catalog := filepath.Join(t.TempDir(), planted["the source of a catalog"])
	w.must(os.CopyFS(catalog, os.DirFS(example(t))))
	w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
		"name": "harbour", "source": map[string]any{"type": "directory", "path": catalog},
		"annotations": map[string]string{"remark": planted["annotations of a catalog"]},
	}, nil))
	w.catalogReady("harbour")
	w.group("secrets")
	in := configured("lighthouse", "Automatic", planted["the configuration of a subscription"])
	in["name"] = "light"
	in["annotations"] = map[string]string{"ticket": planted["annotations of a subscription"]}
	w.must(w.Post(w.ctx, scopePath("secrets", "subscriptions"), in, nil))
	w.succeeded("secrets", "lighthouse.v1.2.0")
	light := scopePath("secrets", "subscriptions/light")
	w.must(w.Do(w.ctx, "PUT", light, configured("lighthouse", "Automatic", planted["another configuration"]), nil))
	w.lit(planted["another configuration"])
	w.asked(planted["the configuration of a preview"])
	applied := w.asked(planted["a preview that was carried out"])
	w.answered(func() error { return w.Post(w.ctx, "/api/v1/previews/"+applied+"/apply", nil, nil) })
	w.lit(planted["a preview that was carried out"])
	w.reasoned("reasons")
	w.rejected("rejected")
	w.searched()
}

// configured is a subscription with a variable that has a value.
func configured(pkg, approval, value string) map[string]any {
	return map[string]any{
		"package": pkg, "catalog": "harbour", "approval": approval,
		"config": map[string]any{"env": []any{map[string]any{"name": "PASSWORD", "value": value}}},
	}
}

// lit waits until the operator of the namespace runs with a value: it has been through every part.
func (w *world) lit(value string) {
	w.t.Helper()
	w.eventually("the cluster has "+value, func() (string, bool) {
		o, err := w.clientset().AppsV1().Deployments("secrets").Get(w.ctx, "lighthouse-operator", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		text := fmt.Sprint(o.Spec.Template.Spec.Containers)
		return text, strings.Contains(text, value)
	})
}

// asked previews a change of the configuration, and returns the id of the preview.
func (w *world) asked(value string) string {
	w.t.Helper()
	var preview struct{ ID string }
	w.answered(func() error {
		return w.Post(w.ctx, "/api/v1/previews", map[string]any{"changes": []any{map[string]any{
			"subscription": map[string]any{
				"cluster": spoke, "namespace": "secrets", "name": "light", "action": "replace",
				"spec": configured("lighthouse", "Automatic", value),
			},
		}}}, &preview)
	})
	return preview.ID
}

// manual subscribes to an operator whose plan wants a person, and returns that.
func (w *world) manual(namespace string) plan {
	w.t.Helper()
	w.group(namespace)
	in := configured("lighthouse", "Manual", planted["the configuration of a subscription"])
	in["name"] = "light"
	w.must(w.Post(w.ctx, scopePath(namespace, "subscriptions"), in, nil))
	return w.waiting(namespace)
}

// reasoned approves a plan with a reason, notes something at it, and waits until it is carried out.
func (w *world) reasoned(namespace string) {
	w.t.Helper()
	p := w.manual(namespace)
	w.must(w.Do(w.ctx, "PUT", "/api/v1/installplans/"+p.ID+"/metadata", map[string]any{
		"annotations": map[string]string{"comment": planted["annotations of a plan"]},
	}, nil))
	w.must(w.Post(w.ctx, "/api/v1/installplans/"+p.ID+"/approve", map[string]any{
		"digest": p.Digest, "choices": []map[string]string{{
			"object": "ClusterServiceVersion/lighthouse.v1.2.0", "choice": "Allow", "finding": p.Digest,
			"reason": planted["the reason of an approver"],
		}},
	}, nil))
	w.succeeded(namespace, "lighthouse.v1.2.0")
}

// rejected has a person refuse a plan. Nobody can give a reason with that.
func (w *world) rejected(namespace string) {
	w.t.Helper()
	p := w.manual(namespace)
	w.must(w.Post(w.ctx, "/api/v1/installplans/"+p.ID+"/reject", map[string]any{"digest": p.Digest}, nil))
}

// stored fails where the database does not have what a dump could show: a search of nothing finds nothing.
func (w *world) stored(db *pgxpool.Pool) {
	w.t.Helper()
	for kind, atLeast := range map[bodies.Kind]int{
		bodies.Configuration: 5, bodies.Source: 1, bodies.Annotations: 3, bodies.Reason: 1, bodies.Question: 2,
	} {
		var sealed, open int
		w.must(db.QueryRow(w.ctx, `select count(*) filter (where key_id <> ''), count(*) filter (where key_id = '')
			from (select kind, key_id from gateway.bodies
			  union all select $2, key_id from gateway.previews) b where kind = $1`, kind, bodies.Question).
			Scan(&sealed, &open))
		if sealed < atLeast || open > 0 {
			w.t.Errorf("%s: %d rows are sealed, %d in the clear; want %d or more, and none", kind, sealed, open, atLeast)
		}
	}
}

// packed is what begins as zstd does, in the digits of a dump.
var packed = regexp.MustCompile(`28b52ffd[0-9a-f]+`)

// searched goes through every row of every table.
func (w *world) searched() {
	w.t.Helper()
	unpack, err := zstd.NewReader(nil)
	w.must(err)
	defer unpack.Close()
	db := w.database()
	w.stored(db)
	rows, err := db.Query(w.ctx, `select format('%I.%I', n.nspname, c.relname) from pg_class c
		join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'm')
		and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`)
	w.must(err)
	var tables []string
	for rows.Next() {
		var name string
		w.must(rows.Scan(&name))
		tables = append(tables, name)
	}
	w.must(rows.Err())
	total, opened := 0, 0
	for _, table := range tables {
		rows, err := db.Query(w.ctx, `select t::text from `+table+` t`)
		w.must(err)
		for rows.Next() {
			var text string
			w.must(rows.Scan(&text))
			total++
			all := []string{text}
			for _, digits := range packed.FindAllString(text, -1) {
				raw, err := hex.DecodeString(digits[:len(digits)&^1])
				w.must(err)
				if plain, err := unpack.DecodeAll(raw, nil); err == nil {
					opened++
					all = append(all, string(plain))
				}
			}
			for where, secret := range planted {
				for _, form := range forms(secret) {
					if strings.Contains(strings.Join(all, "\n"), form) {
						w.t.Errorf("%s shows %s: %.300s", table, where, text)
					}
				}
			}
		}
		w.must(rows.Err())
	}
	if total < 100 || opened == 0 {
		w.t.Errorf("%d rows were searched, %d packed documents among them: the search is wrong", total, opened)
	}
}

// forms are a text as it may lie in a column: bytes are hexadecimal digits there, and base64 has three alignments.
func forms(secret string) []string {
	list := []string{secret, hex.EncodeToString([]byte(secret))}
	for shift := range 3 {
		// What stands before and after changes the digits at both ends.
		digits := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret + "xx"))
		list = append(list, digits[4:len(digits)-8])
	}
	return list
}
