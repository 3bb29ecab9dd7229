package summary

// Has says whether there is a copy of a tenant.
func (c *Copies) Has(tenant string) bool {
	f := c.follower(tenant)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fleet != nil
}
