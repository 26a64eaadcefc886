package heuristic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A short turn that is all delight needs one marker more than another.
func TestSmallTalk(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"They signed up for it on Monday.", "decision"},
		{"They signed up for it on Monday!", "decision"},
		{"Hi, they signed up for it on Monday.", "decision"},
		{"They signed up for it on Monday, yay!", ""},
		{"Wow, they signed up for it on Monday.", ""},
		{"Wow, they signed up for it in Ghent on Monday.", "decision"},
		{"Wow. They signed up for it on Monday. The ones in the hall were older than the house and all of the trees.", "decision"},
		{"Ola: They signed up for it on Monday, yay!\n\nBo: They signed up for it on Tuesday.", "decision"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, kindsOf(Typed(tt.text)))
			kind, _ := Classify(tt.text)
			if tt.want == "" {
				require.Empty(t, kind)
			}
		})
	}
}
