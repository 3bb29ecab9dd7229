package readmodel

// Args are the arguments of all conditions.
func (w *Where) Args() []any { return w.args }
