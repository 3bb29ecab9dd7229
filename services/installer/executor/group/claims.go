package group

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/render"
)

// Claims say which operator provides which API for its group (R-OG-20, R-OG §7.7). The record of a claim is the
// annotation olm.providedAPIs of the InstalledOperator; here they are together, so that two operators that come at the
// same time cannot both have one.
type Claims struct {
	mu      sync.Mutex
	groups  map[string]operatorgroup.Standing // by namespace; Provided only of static groups
	claimed map[string]map[string][]string    // by namespace and ClusterServiceVersion
	refused map[string]bool                   // namespaces with an operator that was refused
	loaded  bool
	loading *loading // while somebody loads
}

// loading is one attempt to load, which all who need it wait for.
type loading struct {
	done chan struct{}
	err  error // once done
}

// NewClaims returns claims that Load fills.
func NewClaims() *Claims {
	return &Claims{
		groups: map[string]operatorgroup.Standing{}, claimed: map[string]map[string][]string{},
		refused: map[string]bool{},
	}
}

// Claim is one that the cluster holds.
type Claim struct {
	Namespace, CSV string
	APIs           []string
}

// Load takes the groups and claims of the whole cluster, once; read is not called again after it succeeded, nor by two
// at a time: those who come meanwhile share its outcome.
func (c *Claims) Load(read func() ([]operatorgroup.Standing, []Claim, error)) error {
	c.mu.Lock()
	l, loaded := c.loading, c.loaded
	first := !loaded && l == nil
	if first {
		l = &loading{done: make(chan struct{}), err: errs.New(errs.Internal, "the claims of the cluster were not read")}
		c.loading = l
	}
	c.mu.Unlock()
	if loaded {
		return nil
	}
	if first {
		c.load(l, read)
	}
	<-l.done
	return l.err
}

func (c *Claims) load(l *loading, read func() ([]operatorgroup.Standing, []Claim, error)) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.loading = nil
		close(l.done) // also after a panic
	}()
	standings, claims, err := read()
	if l.err = err; err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range standings {
		c.groups[s.Namespace] = s
	}
	for _, k := range claims {
		c.claim(k.Namespace, k.CSV, k.APIs)
	}
	c.loaded = true
}

// StoodBefore is the group of a namespace as the annotations of an operator tell it (R-OG §7.3): what holds while the
// namespace has several.
func StoodBefore(namespace string, annotations map[string]string) operatorgroup.Standing {
	return operatorgroup.Standing{
		Group:   operatorgroup.Group{Namespace: namespace, Name: annotations[render.AnnotationOperatorGroup]},
		Targets: strings.Split(annotations[render.AnnotationTargetNamespaces], ","),
	}
}

func (c *Claims) claim(namespace, csv string, apis []string) {
	if len(apis) == 0 {
		return
	}
	if c.claimed[namespace] == nil {
		c.claimed[namespace] = map[string][]string{}
	}
	c.claimed[namespace][csv] = apis
}

// Stand notes the group of a namespace as it is now; nil where there is none. While there are several it is not called:
// what the group was goes on to stand against others. It returns the namespaces that
// wait for what another gives up, where this may have been such a thing.
func (c *Claims) Stand(namespace string, s *operatorgroup.Standing) (wake []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	have, known := c.groups[namespace]
	switch {
	case s == nil && !known, s != nil && known && same(have, *s):
		return nil
	case s == nil:
		delete(c.groups, namespace)
	default:
		c.groups[namespace] = *s
	}
	return c.waiting()
}

func same(a, b operatorgroup.Standing) bool {
	return a.Name == b.Name && a.ID == b.ID && slices.Equal(a.Targets, b.Targets) &&
		slices.Equal(a.Provided, b.Provided) &&
		a.Spec.StaticProvidedAPIs == b.Spec.StaticProvidedAPIs
}

// Keep drops the claims of a namespace that nobody holds any more. It returns the namespaces that wait for what is free
// now, and the APIs that nobody in the cluster provides any more (R-OG-37).
func (c *Claims) Keep(namespace string, lives func(csv string) bool) (wake, free []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var dropped []string
	for csv, apis := range c.claimed[namespace] {
		if !lives(csv) {
			dropped = append(dropped, apis...)
			delete(c.claimed[namespace], csv)
		}
	}
	if len(dropped) == 0 {
		return nil, nil
	}
	slices.Sort(dropped)
	for _, api := range slices.Compact(dropped) {
		if !c.provides(api) {
			free = append(free, api)
		}
	}
	return c.waiting(), free
}

func (c *Claims) waiting() []string { return slices.Sorted(maps.Keys(c.refused)) }

func (c *Claims) provides(api string) bool {
	for _, of := range c.claimed {
		for _, apis := range of {
			if slices.Contains(apis, api) {
				return true
			}
		}
	}
	return false
}

// Provides reports whether any operator of the cluster provides an API.
func (c *Claims) Provides(api string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.provides(api)
}

// Settle judges the APIs of one member of a namespace's group and does what the table of R-OG §7.7 asks for, until it
// says that the member may go on or not. wake are the namespaces that wait for what was given up with it.
func (c *Claims) Settle(namespace, csv string, apis []string) (v operatorgroup.Verdict, wake []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v = operatorgroup.Judge(c.standing(namespace), apis, c.rivals(namespace, apis))
	withdrawn := v.Action == operatorgroup.Withdraw
	if withdrawn {
		c.withdraw(namespace, apis)
		v = operatorgroup.Judge(c.standing(namespace), apis, c.rivals(namespace, apis))
	}
	if v.Action != operatorgroup.Refuse {
		c.claim(namespace, csv, apis)
		return v, nil
	}
	if _, had := c.claimed[namespace][csv]; had || withdrawn {
		delete(c.claimed[namespace], csv)
		wake = c.waiting()
	}
	c.refused[namespace] = true
	return v, wake
}

// Content says that no operator of a namespace is refused any more.
func (c *Claims) Content(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.refused, namespace)
}

func (c *Claims) withdraw(namespace string, apis []string) {
	for csv, have := range c.claimed[namespace] {
		rest := slices.DeleteFunc(slices.Clone(have), func(a string) bool { return slices.Contains(apis, a) })
		if len(rest) == 0 {
			delete(c.claimed[namespace], csv)
			continue
		}
		c.claimed[namespace][csv] = rest
	}
}

// standing is a namespace's group with what it provides now.
func (c *Claims) standing(namespace string) operatorgroup.Standing {
	s := c.groups[namespace]
	if s.Namespace == "" {
		s.Namespace = namespace
	}
	if s.Spec.StaticProvidedAPIs {
		return s
	}
	s.Provided = nil
	for _, apis := range c.claimed[namespace] {
		s.Provided = append(s.Provided, apis...)
	}
	slices.Sort(s.Provided)
	s.Provided = slices.Compact(s.Provided)
	return s
}

// rivals are the groups of other namespaces that provide any of the APIs, in the order of their namespaces.
func (c *Claims) rivals(namespace string, apis []string) []operatorgroup.Standing {
	var out []operatorgroup.Standing
	for _, ns := range slices.Sorted(maps.Keys(c.groups)) {
		if ns == namespace {
			continue
		}
		s := c.standing(ns)
		if slices.ContainsFunc(apis, func(a string) bool { return slices.Contains(s.Provided, a) }) {
			out = append(out, s)
		}
	}
	return out
}

// Of is what one operator has claimed, sorted.
func (c *Claims) Of(namespace, csv string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.claimed[namespace][csv])
}

// Provided is what the group of a namespace provides, sorted.
func (c *Claims) Provided(namespace string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing(namespace).Provided
}
