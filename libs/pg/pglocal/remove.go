package pglocal

import (
	"errors"
	"os"
)

// Remove stops the instance, if it runs, and removes its data.
func (s *Server) Remove() error {
	return errors.Join(s.Stop(), os.RemoveAll(s.dir), os.RemoveAll(s.socket))
}
