package heuristic

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotes(t *testing.T) {
	t.Parallel()
	const (
		first   = "The second kiln stood by the old door for most of the day with its lid on."
		second  = "Wanda fired all of the large bowls in it on Tuesday."
		third   = "Wanda fired all of the large bowls that were on the shelf."
		thought = "I think the blue glaze goes with the shape of the tall vases by the door."
		support = "Glazes of that sort hide the throwing rings because they run."
	)
	tests := []struct{ name, text, kind, content string }{
		{"sentences that show too little alone", first + " " + second, "fact", first + " " + second},
		{"no more than two of them", first + " " + second + " Then it was cold again.", "fact", first + " " + second},
		{"what opens it and states nothing", "Clay, glaze, gas. " + first + " " + second, "fact", first + " " + second},
		{"a detail between them", first + " Red brick, old door. " + second, "fact", first + " Red brick, old door. " + second},
		{"a detail that tells when", first + " Lid on until Tuesday noon. " + third, "fact", first + " Lid on until Tuesday noon. " + third},
		{"one sentence", second, "", ""},
		{"two short ones", "The kiln was hot. " + second, "", ""},
		{"speaks to somebody", first + " " + second + " As you know.", "", ""},
		{"asks", first + " " + second + " And the lid?", "", ""},
		{"exclaims", first + " Wanda fired all of the large bowls in it on Tuesday!", "", ""},
		{"delighted", first + " " + second + " The bowls are gorgeous.", "", ""},
		{"a doubt between them", first + " Perhaps the brick was wet. " + second, "", ""},
		{"nothing concrete", "The second kiln stood by our old door for most of the day with its lid on. " + third, "", ""},
		{"small stories", "I painted it behind there and it was fine. I painted it over there by the lake too.", "", ""},
		{"a request over it", first + " " + second + " Translate this.", "", ""},
		{"beside a list", first + " " + second + "\n\n- bricks\n- gas", "", ""},
		{"the assistant's", "User: and then\n\nAssistant: " + first + " " + second, "", ""},
		{"each turn for itself", "Ola: " + first + " " + second + "\n\nBo: wow!", "fact", first + " " + second},
		{"beside a memory", "We picked the red glaze because of its price. " + first + " " + second, "decision", "We picked the red glaze because of its price."},
		{"an opinion that more is said for", thought + " " + support, "preference", thought + " " + support},
		{"a thought alone", thought, "", ""},
		{"a thought in doubt", "I think the blue glaze perhaps goes with the tall vases by the door. " + support, "", ""},
		{"a thought of what to do", "I think the vases should go to the yard with all of the old bowls. " + support, "", ""},
		{"a thought about us", "I think we ran out of the blue glaze for the tall vases by the door. " + support, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Typed(tt.text)
			require.Equal(t, tt.kind, kindsOf(got))
			if tt.kind != "" {
				require.Equal(t, tt.content, got[0].Content)
			}
		})
	}
}
