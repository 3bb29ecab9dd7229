package client

import "time"

// SetFirstWait sets how long a list is waited for, before one is asked for.
func (w *Watches) SetFirstWait(d time.Duration) { w.firstWait = d }
