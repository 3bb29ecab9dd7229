package readmodel

import (
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// fieldTerm is one requirement of a field selector.
type fieldTerm struct {
	field, value string
	not          bool
}

// parseFields reads a field selector as Kubernetes does: terms with =, == and !=, all of which must hold.
func parseFields(selector string) ([]fieldTerm, error) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return nil, badField("this is no field selector of Kubernetes: %s", err)
	}
	requirements := parsed.Requirements()
	if len(requirements) > maxRequirements {
		return nil, badField("the field selector has %d terms, %d are allowed", len(requirements), maxRequirements)
	}
	terms := make([]fieldTerm, len(requirements))
	for i, r := range requirements {
		terms[i] = fieldTerm{field: r.Field, value: r.Value, not: r.Operator == selection.NotEquals}
	}
	return terms, nil
}
