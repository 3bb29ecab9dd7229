package facts

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conditions returns the OperatorConditions of a namespace by name.
func (c *Cache) Conditions(ctx context.Context, namespace string) (map[string]*unstructured.Unstructured, error) {
	c.mu.Lock()
	note, ok := c.conditions[namespace]
	turn := c.turn
	c.mu.Unlock()
	if ok && c.now().Before(note.until) {
		return note.byName, nil
	}
	list, err := c.client.List(ctx, GVKCondition, namespace, "")
	if err != nil {
		return nil, err
	}
	note = conditionNote{byName: make(map[string]*unstructured.Unstructured, len(list)), until: c.now().Add(metFor)}
	for i := range list {
		note.byName[list[i].GetName()] = &list[i]
	}
	c.keep(turn, matter{namespace: namespace}, func() { c.conditions[namespace] = note })
	return note.byName, nil
}
