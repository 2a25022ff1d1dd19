package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/joho/godotenv"
)

// readEnv gives the settings of a .env file.
func readEnv(text string) (map[string]string, error) {
	settings, err := godotenv.Unmarshal(text)
	if _, nameless := settings[""]; err == nil && nameless {
		return nil, errors.New("a value without a name")
	}
	return settings, err
}

// envFault is why a .env file cannot be read, by the line where the fault begins. What
// the reader of the file says quotes the rest of it, secrets included, and is not passed on.
func envFault(text string, err error) error {
	lines := strings.SplitAfter(text, "\n")
	n := len(lines) - 1
	for ; n > 0; n-- { // the longest beginning that can be read
		if _, err := readEnv(strings.Join(lines[:n], "")); err == nil {
			break
		}
	}
	for n < len(lines)-1 {
		if line := strings.TrimSpace(lines[n]); line != "" && line[0] != '#' {
			break
		}
		n++
	}
	if strings.HasPrefix(err.Error(), "unterminated") {
		return fmt.Errorf("line %d: a quote is opened and not closed", n+1)
	}
	return fmt.Errorf("line %d is no setting; write NAME='value', or begin it with #", n+1)
}

// pitfall is a line of a .env file whose value is not read as it was written,
// or differently by different programs. The value itself is never told.
type pitfall struct {
	line          int
	name, why, do string
}

var assignment = regexp.MustCompile(`^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*[=:]\s*(.*)$`)

// envPitfalls looks for values that lose a part: $ begins a variable and # may
// begin a comment, unless the value stands in single quotes.
func envPitfalls(text string) []pitfall {
	var out []pitfall
	quoted := byte(0) // inside a value of several lines
	for i, line := range strings.Split(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if quoted != 0 {
			if strings.IndexByte(line, quoted) >= 0 {
				quoted = 0
			}
			continue
		}
		m := assignment.FindStringSubmatch(line)
		if m == nil || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		warn := func(why, do string) { out = append(out, pitfall{i + 1, m[1], why, do}) }
		value := strings.TrimSpace(m[2])
		single := m[1] + "='…', in single quotes, keeps it as it is"
		if value == "" {
			continue
		}
		switch first := value[0]; {
		case first == '\'' || first == '"':
			end := closing(value, first)
			if end < 0 {
				quoted = first
			}
			if first == '"' && hasDollar(value) {
				warn("$ in double quotes is read as a variable", single)
			}
		case hasDollar(value) && strings.Contains(value, "#"):
			warn("an unquoted $ is read as a variable and # may begin a comment: a part of the value is lost", single)
		case hasDollar(value):
			warn("an unquoted $ is read as a variable: a part of the value is lost", single)
		case strings.Contains(value, "#") && !strings.HasPrefix(value, "#") && !strings.Contains(value, " #"):
			warn("an unquoted # may begin a comment: a part of the value may be lost", single)
		case strings.ContainsAny(value, "“”‘’"):
			warn("typographic quotes are a part of the value", "write ' or \" instead")
		}
	}
	return out
}

// closing is where the quote that a value begins with ends, or -1.
func closing(value string, quote byte) int {
	for i := 1; i < len(value); i++ {
		if value[i] == '\\' && quote == '"' {
			i++
			continue
		}
		if value[i] == quote {
			return i
		}
	}
	return -1
}

// hasDollar reports whether a value has a $ that is not escaped.
func hasDollar(value string) bool {
	for i := range len(value) {
		if value[i] == '$' && (i == 0 || value[i-1] != '\\') {
			return true
		}
	}
	return false
}
