package objects

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/documents"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
)

// rewritable are the kinds whose documents chandler apply reads again.
var rewritable = []string{
	"catalog", "subscription", "operatorgroup", "installplan", "approvalpolicy", "operatorhub", "role", "rolebinding",
	kinds.KindFleetSubscription,
}

// whole reads an object as its document, with its entity tag where it has one.
func whole(ctx context.Context, c *client.Client, k kinds.Kind, ref client.Ref) (
	it printer.Item, text []byte, tag string, err error,
) {
	if !slices.Contains(rewritable, k.Singular()) {
		return it, nil, "", command.Usagef("%s cannot be changed like that", k.One())
	}
	if it, err = k.Get(ctx, c, ref); err != nil {
		return it, nil, "", k.Named(ctx, c, ref, err)
	}
	if v, ok := it.Value.(interface{ Tag() string }); ok {
		tag = v.Tag()
	}
	text, err = printer.YAML(k.Table(command.Scope{}), it)
	return it, text, tag, err
}

// replaceBy applies the one document of a text, if it is about the object of this name and nobody has changed that
// since it had the tag.
func replaceBy(ctx context.Context, c *client.Client, name string, text []byte, tag string) (result, error) {
	found, err := olm.Read(bytes.NewReader(text), name)
	if err != nil {
		return result{}, command.Refused(err)
	}
	olm.Complete(found)
	tasks := tasksOf(documents.Options{}, found)
	if len(tasks) != 1 || tasks[0].name != name {
		return result{}, command.Refused(fmt.Errorf("the document must be that of %s, under its name", name))
	}
	expecting := c.Expect(tag)
	r := carryOut(ctx, expecting, expecting, tasks[0])
	return r, r.err
}

// setFields changes labels or annotations of a document: nil removes one.
func setFields(text []byte, field string, changes map[string]*string, overwrite bool) ([]byte, error) {
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	values, _ := document[field].(map[string]any)
	if values == nil {
		values = map[string]any{}
	}
	for key, value := range changes {
		before, has := values[key]
		switch {
		case value == nil:
			delete(values, key)
		case has && before != *value && !overwrite:
			return nil, command.Refusedf("%s has the value %v already: use --overwrite to change it", key, before)
		default:
			values[key] = *value
		}
	}
	document[field] = values
	return yaml.Marshal(document)
}

// changeFields changes labels or annotations of an object. Where somebody else changes it at the same time, it is read
// and changed again: what is said here is about these keys alone.
func changeFields(ctx context.Context, c *client.Client, k kinds.Kind, ref client.Ref, field string,
	changes map[string]*string, overwrite bool,
) (name string, r result, err error) {
	for range maxSettled {
		it, text, tag, err := whole(ctx, c, k, ref)
		if err != nil {
			return "", result{}, err
		}
		name = it.Name
		if text, err = setFields(text, field, changes, overwrite); err != nil {
			return name, result{}, err
		}
		if r, err = replaceBy(ctx, c, name, text, tag); !client.IsStatus(err, http.StatusPreconditionFailed) {
			return name, r, err
		}
	}
	return name, result{}, r.err
}
