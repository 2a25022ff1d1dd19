package conversation_test

import (
	"strings"
	"testing"

	"github.com/askback/askback/conversation"
)

func TestCheckID(t *testing.T) {
	for id, says := range map[string]string{
		"a": "", "...": "", ".a": "", "a/..": "", "é ü": "",
		"": "empty", ".": "folder", "..": "folder", "a\nb": "control", "a\xff": "UTF-8", strings.Repeat("x", 1025): "1025 bytes",
	} {
		err := conversation.CheckID(id)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v, want %q", id, err, says)
		}
	}
	if err := (conversation.Request{Conversation: "a", Key: ".."}).Check(); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("a key that is a folder: %v", err)
	}
}
