package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/askback/askback/internal/edit"
)

// readSettings are the variables that are read beside those of the flags. Of
// these .env.example says what they do.
var readSettings = []string{
	"QDRANT_ADDR", "QDRANT_API_KEY", "QDRANT_TLS", "QDRANT_PLAINTEXT_KEY", "QDRANT_COLLECTION",
	"OPENAI_BASE_URL", "OPENAI_API_KEY", // by langchaingo
	"PGPASSWORD",                                                                                                     // by pgx
	"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", // with the other OTEL_ variables, by OpenTelemetry
	"NO_COLOR", // of terminals, by custom; TERM is no setting
}

// variables are the names of all that the program reads, in order.
func variables(model *kong.Application) []string {
	names := slices.Clone(readSettings)
	_ = kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			names = append(names, flag.Envs...)
		}
		return next(nil)
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// unknownSettings are the variables of an environment that look like settings of
// this program and are none, each with what it may have been meant to be, or "".
func unknownSettings(environ, known []string) map[string]string {
	unknown := map[string]string{}
	for _, setting := range environ {
		name, _, _ := strings.Cut(setting, "=")
		ours := strings.HasPrefix(name, "ASKBACK_") && !strings.HasPrefix(name, "ASKBACK_TEST_")
		// QDRANT__SERVICE__API_KEY and the like are the Qdrant server's own.
		theirs := strings.HasPrefix(name, "QDRANT_") && !strings.HasPrefix(name, "QDRANT__")
		if (ours || theirs) && !slices.Contains(known, name) {
			unknown[name] = nearest(name, known)
		}
	}
	return unknown
}

// nearest is the known name that a misspelt one is most like, or "".
func nearest(name string, known []string) string {
	best, most := "", max(2, len(name)/4)
	for _, k := range known {
		if d := edit.Distance([]byte(name), []byte(k), most); d <= most {
			best, most = k, d-1
		}
	}
	return best
}

// unknownSetting is what doctor says of a name.
func unknownSetting(name, meant string) (found, do string) {
	found, do = fmt.Sprintf("%s is no setting of this program, and does nothing", name), "remove it; .env.example has all that there are"
	if meant != "" {
		do = fmt.Sprintf("did you mean %s?", meant)
	}
	return found, do
}

// warnOfUnknown names what stands in .env and is no setting, such as a misspelt one.
func warnOfUnknown(w io.Writer, settings map[string]string, known []string) {
	environ := []string{}
	for name := range settings {
		environ = append(environ, name)
	}
	unknown := unknownSettings(environ, known)
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		found, do := unknownSetting(name, unknown[name])
		fmt.Fprintf(w, "askback: .env: %s; %s\n", found, do)
	}
}
