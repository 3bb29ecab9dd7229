package executorhost

// Clusters is how many executors run.
func (h *Host) Clusters() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.running)
}
