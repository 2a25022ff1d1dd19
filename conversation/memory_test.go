package conversation_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/askback/askback/conversation"
	"github.com/askback/askback/conversation/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	storetest.Run(t, func(t *testing.T, o storetest.Options) conversation.Store {
		s := conversation.NewMemory()
		s.Wait, s.Queue = o.Wait, o.Queue
		return s
	})
}
