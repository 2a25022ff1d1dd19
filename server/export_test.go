package server

import "time"

// SetPatience changes how long a client may take nothing of a stream.
func SetPatience(d time.Duration) { patience = d }
