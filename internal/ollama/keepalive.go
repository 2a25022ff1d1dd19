package ollama

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ollama/ollama/api"
)

// ParseKeepAlive reads how long a server is to keep a model loaded after a
// request: seconds (300), a duration (5m, 1h30m), 0 to unload it at once, or -1
// (any negative one) to keep it for good. "" is nil: the server's own default.
func ParseKeepAlive(s string) (*api.Duration, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil, nil
	}
	var d time.Duration
	if seconds, err := strconv.ParseInt(s, 10, 64); err == nil {
		switch {
		case seconds < 0:
			d = -1
		case seconds > math.MaxInt64/int64(time.Second):
			return nil, fmt.Errorf("keep-alive %q is too long; -1 keeps the model loaded for good", s)
		default:
			d = time.Duration(seconds) * time.Second
		}
	} else if d, err = time.ParseDuration(s); err != nil {
		return nil, fmt.Errorf("keep-alive %q cannot be read; write seconds (300), a duration (5m), 0 to unload the model at once, or -1 to keep it loaded", s)
	}
	return &api.Duration{Duration: d}, nil
}
