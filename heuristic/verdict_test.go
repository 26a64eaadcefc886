package heuristic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A statement without a cue is a fact by what can be checked in it, in English.
func TestCuelessFacts(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"English", "The mill in Ghent was in use in 1912.", "fact"},
		{"a single thing to check", "The mill in Ghent was in use at the time.", ""},
		{"asked", "The mill in Ghent was in use in 1912?", ""},
		{"denied", "The mill in Ghent was not in use in 1912.", ""},
		{"German", "Das Team hat 2020 in Berlin angefangen und will 2024 wachsen.", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, kindsOf(Typed(tt.text)))
		})
	}
}

// A statement that names nothing it speaks of needs one marker more.
func TestAnaphora(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"The cluster consists of old grey nodes.", "fact"},
		{"It consists of old grey nodes.", ""},
		{"This consists of old grey nodes.", ""},
		{"That consists of old grey nodes.", ""},
		{"And that consists of old grey nodes.", ""},
		{"It consists of three old grey nodes.", "fact"},
		{"It consists of old grey nodes because they are cheap.", "fact"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, kindsOf(Typed(tt.text)))
		})
	}
}
