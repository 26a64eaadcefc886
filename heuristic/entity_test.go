package heuristic

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEntities(t *testing.T) {
	t.Parallel()
	fence := strings.Repeat("`", 3)
	tests := []struct{ name, text, want string }{
		{"one word", "we moved to Postgres", "postgres"},
		{"two words", "shopping on Black Friday again", "black friday"},
		{"weekday of a feast at a sentence start", "Black Friday is near.", "black friday"},
		{"common word at a sentence start", "Chose GitHub for it.", "github"},
		{"weekday alone", "see you on Friday, not Monday", ""},
		{"month alone", "it was cold in March", ""},
		{"weekday splits", "we saw Anna Friday", "anna"},
		{"possessive of every word", "we read Charlotte's Web", "charlotte web"},
		{"possessive at the end", "we met Grace's brother", "grace"},
		{"curly possessive", "we read Charlotte’s Web", "charlotte web"},
		{"sentence start alone", "Wobbler on the box.", ""},
		{"second sentence start alone", "it rains. Wobbler on the box.", ""},
		{"sentence start, two words", "Burning Man was fun.", "burning man"},
		{"sentence start, seen inside", "Wobbler on the box. we like Wobbler", "wobbler"},
		{"sentence start, seen inside before", "we like Wobbler. Wobbler on the box.", "wobbler"},
		{"own casing signal", "iPhone sales grew.", "iphone"},
		{"own digit", "Qwen3 is out.", "qwen3"},
		{"inner capital", "GitHub is down.", "github"},
		{"function word splits", "it was Anna And Bob", "anna|bob"},
		{"greeting splits", "it said Hello Anna", "anna"},
		{"comma splits", "with Miso, Pixel and Toast", "miso|pixel|toast"},
		{"number never starts", "we saw 42 Wallaby Way", "wallaby way"},
		{"number may follow", "it runs Postgres 16 there", "postgres 16"},
		{"single letter never starts", "take Plan B or B Plan", "plan b|plan"},
		{"accents", "we met Björk and Tomás", "björk|tomás"},
		{"apostrophe inside", "we met O'Brien", "o'brien"},
		{"curly apostrophe inside", "we met O’Brien", "o'brien"},
		{"hyphen inside", "we met Jean-Luc there", "jean-luc"},
		{"dot inside", "it needs Node.js now", "node.js"},
		{"title before", "ask Dr. Mbeki about it", "mbeki"},
		{"title at a sentence start", "Mr. Keller promised it.", "keller"},
		{"each once, in reading order", "met Zoe, Anna and Zoe", "zoe|anna"},
		{"script change", "we met Samsung에서 today", "samsung"},
		{"Cyrillic", "она живёт в Берлин сейчас", "берлин"},
		{"path", "edit src/Main/App.tsx now", ""},
		{"address", "see https://Example.com/Docs now", ""},
		{"handle", "ping @Maria now", ""},
		{"call", "it is UserService.findAll() there", ""},
		{"fence", fence + "\nclass Foo extends Bar\n" + fence, ""},
		{"log", "ERROR Failed to open Socket at Line 14", ""},
		{"heading", "## Known Issues", ""},
		{"table", "| Tool | Notes |\n| Vault | ok |", "vault"},
		{"speaker labels", "User: we met Anna\n\nAssistant: fine", "anna"},
		{"lower case", "pottery and the retry policy", ""},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, strings.Join(Entities(tt.text), "|"))
		})
	}
}

func TestEntitiesCap(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("we met ")
	for i := range MaxEntities + 1 {
		fmt.Fprintf(&b, "Anna%c, ", 'a'+i)
	}
	got := Entities(b.String())
	require.Len(t, got, MaxEntities)
	require.Equal(t, "annaa", got[0])
	require.Equal(t, "annal", got[MaxEntities-1])
}
