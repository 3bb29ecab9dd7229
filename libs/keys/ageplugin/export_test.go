package ageplugin

import "time"

// SetNow gives an identity another clock.
func SetNow(i *Identity, now func() time.Time) { i.now = now }
