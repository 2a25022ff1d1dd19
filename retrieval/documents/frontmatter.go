package documents

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// frontMatter splits Markdown into the metadata in its front matter (YAML
// between two lines "---") and the rest. If there is none, or if it is not what
// it looks like, the rest is the whole text; the error says what is wrong.
func frontMatter(source string) (metadata map[string]string, body string, err error) {
	rest, ok := cutLine(source, "---")
	if !ok {
		return nil, source, nil
	}
	header := rest
	for length := 0; ; {
		line := rest
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			line = rest[:i+1]
		}
		if line == "" {
			return nil, source, nil // never closed: the first line is a rule
		}
		rest = rest[len(line):]
		if mark := strings.TrimRight(line, " \t\n"); mark == "---" || mark == "..." {
			header = header[:length]
			break
		}
		length += len(line)
	}
	var root yaml.Node
	// The line end stands for the first line, so that errors name the right one.
	if err := yaml.Unmarshal([]byte("\n"+header), &root); err != nil {
		return nil, source, fmt.Errorf("front matter kept as text: it is not valid YAML: %w", err)
	}
	if len(root.Content) == 0 {
		return nil, rest, nil
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return nil, source, nil // text between two rules
	}
	metadata = map[string]string{}
	flatten(metadata, "", root.Content[0])
	return metadata, rest, nil
}

func cutLine(source, mark string) (rest string, ok bool) {
	line, rest, ok := strings.Cut(source, "\n")
	return rest, ok && strings.TrimRight(line, " \t") == mark
}

// flatten writes the values of a YAML node into metadata as they stand in the
// file: lists of plain values joined by ", ", other values under dotted keys.
func flatten(metadata map[string]string, key string, n *yaml.Node) {
	join := func(part string) string {
		if key == "" {
			return part
		}
		return key + "." + part
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			flatten(metadata, join(n.Content[i].Value), n.Content[i+1])
		}
	case yaml.SequenceNode:
		var values []string
		for i, item := range n.Content {
			if item.Kind == yaml.ScalarNode {
				values = append(values, item.Value)
			} else {
				flatten(metadata, join(strconv.Itoa(i+1)), item)
			}
		}
		if len(values) > 0 {
			metadata[key] = strings.Join(values, ", ")
		}
	case yaml.AliasNode:
		if n.Alias.Kind == yaml.ScalarNode { // others could grow without end
			metadata[key] = n.Alias.Value
		}
	case yaml.ScalarNode:
		if n.Tag != "!!null" {
			metadata[key] = n.Value
		}
	}
}
