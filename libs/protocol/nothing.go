package protocol

// Nothing says whether nothing is wanted of the namespace any more: its operators are gone, and nobody asks for others.
func (s ScopePlans) Nothing() bool {
	return len(s.Plans) == 0 && len(s.Installed) == 0 && len(s.Removals) == 0 && s.OperatorGroups == 0 &&
		len(s.Subscriptions) == 0 && len(s.Waiting) == 0
}
