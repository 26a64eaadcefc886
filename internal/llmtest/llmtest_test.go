package llmtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryReplyIsAScenario(t *testing.T) {
	t.Parallel()
	all, err := Scenarios()
	require.NoError(t, err)
	names := map[string]bool{}
	for _, s := range all {
		require.False(t, names[s.Name], "%s comes twice", s.Name)
		names[s.Name] = true
		require.NotNil(t, Named(s.Name))
	}
	for name := range replies {
		require.True(t, names[name], "%s is no scenario", name)
	}
}

func TestTurn(t *testing.T) {
	t.Parallel()
	r := Request{Body: map[string]any{"messages": []any{
		map[string]any{"role": "system", "content": "s"},
		map[string]any{"role": "user", "content": "Turn date: unknown\n=== turn N begins ===\na\n\nb\n=== turn N ends ===\n"},
	}}}
	require.Equal(t, "a\n\nb", r.Turn())
	require.Empty(t, Request{}.Turn())
}
