package sat

// order is a heap of variables by activity, the most active first and the older one among equals. Activities
// are integers, so that no machine rounds differently.
type order struct {
	heap []Var
	bump uint64 // what a conflict adds to its variables; it grows, so that later conflicts count more
}

const (
	// ageing is the growth of the bump by each conflict: a part in 2^ageing.
	ageing = 4
	// activityLimit is where all activities are scaled down by activityScale bits.
	activityLimit = 1 << 60
	activityScale = 40
)

func (o *order) above(vars []variable, a, b Var) bool {
	if x, y := vars[a].activity, vars[b].activity; x != y {
		return x > y
	}
	return a < b
}

func (o *order) push(vars []variable, v Var) {
	o.heap = append(o.heap, v)
	o.up(vars, len(o.heap)-1)
}

// pop takes out the first variable; 0 where there is none.
func (o *order) pop(vars []variable) Var {
	if len(o.heap) == 0 {
		return 0
	}
	first, last := o.heap[0], o.heap[len(o.heap)-1]
	o.heap = o.heap[:len(o.heap)-1]
	vars[first].place = -1
	if len(o.heap) > 0 {
		o.heap[0] = last
		o.down(vars, 0)
	}
	return first
}

// raise notes that a variable took part in a conflict.
func (o *order) raise(vars []variable, v Var) {
	vars[v].activity += o.bump
	if vars[v].activity > activityLimit {
		o.scale(vars)
	}
	if at := vars[v].place; at >= 0 {
		o.up(vars, int(at))
	}
}

// age makes the next conflict count more than the last.
func (o *order) age() { o.bump += o.bump>>ageing + 1 }

// scale keeps the order but for ties that it makes, so the heap is built anew.
func (o *order) scale(vars []variable) {
	for i := range vars {
		vars[i].activity >>= activityScale
	}
	o.bump = o.bump>>activityScale + 1
	for i := len(o.heap)/2 - 1; i >= 0; i-- {
		o.down(vars, i)
	}
}

func (o *order) up(vars []variable, at int) {
	v := o.heap[at]
	for at > 0 {
		parent := (at - 1) / 2
		if !o.above(vars, v, o.heap[parent]) {
			break
		}
		o.set(vars, at, o.heap[parent])
		at = parent
	}
	o.set(vars, at, v)
}

func (o *order) down(vars []variable, at int) {
	v := o.heap[at]
	for {
		child := 2*at + 1
		if child >= len(o.heap) {
			break
		}
		if child+1 < len(o.heap) && o.above(vars, o.heap[child+1], o.heap[child]) {
			child++
		}
		if !o.above(vars, o.heap[child], v) {
			break
		}
		o.set(vars, at, o.heap[child])
		at = child
	}
	o.set(vars, at, v)
}

func (o *order) set(vars []variable, at int, v Var) {
	o.heap[at] = v
	vars[v].place = int32(at)
}
