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
		{"verb after a sentence start", "Oriane pushed the fix last night.", "oriane"},
		{"verb after an adverb", "Oriane never pushed it.", "oriane"},
		{"third person at a sentence start", "it rains. Zorblat drops the cookie.", "zorblat"},
		{"common word before a verb", "Traffic was bad. Setbacks can help.", ""},
		{"beside us at a sentence start", "Zorblat and I went home.", "zorblat"},
		{"ampersand at a sentence start", "Zorblat & Piet went home.", "zorblat|piet"},
		{"before used to", "Zorblat used to live there.", "zorblat"},
		{"before a contraction that tells the language", "Zorblat can't come.", "zorblat"},
		{"common word beside us", "Sunshine and I are friends.", ""},
		{"contraction", "That'll be fine. There've been two.", ""},
		{"interjection", "Mm, nice. Ooo, that is good.", ""},
		{"address", "Oriane, those lessons were good.", "oriane"},
		{"possessive at a sentence start", "Oriane's brother came.", "oriane"},
		{"possessive before two words", "Oriane's Green Fund grows.", "oriane|green fund"},
		{"list at a sentence start", "Oriane and Piet came.", "oriane|piet"},
		{"known at a sentence start", "Lisbon! So warm.", "lisbon"},
		{"command at a sentence start", "Remember Otto tomorrow.", "otto"},
		{"preposition at a sentence start", "Besides Italy, he saw Otto.", "italy|otto"},
		{"interjection at a sentence start", "Woohoo Otto!", "otto"},
		{"interjection and a command", "Oof, Go home to Otto.", "otto"},
		{"interjection and a name", "Oof, Otto came.", "otto"},
		{"verb after a pronoun", "I Guess Otto came.", "otto"},
		{"first name later", "we met Ivo Tann. Ivo was late.", "ivo tann"},
		{"quoted title", "we saw \"The Wind in the Willows\" today", "the wind in the willows"},
		{"one quoted word before by", "\"Brave\" by Oriane is good.", "brave|oriane"},
		{"of after an institution", "she works at the Bank of Ireland", "bank of ireland"},
		{"of after another word", "we saw Anna of Lyon", "anna|lyon"},
		{"particle", "we met Ludwig van Beethoven", "ludwig van beethoven"},
		{"initials", "a book by J. R. R. Tolkien", "j. r. r. tolkien"}, //nolint:dupword // initials repeat
		{"company suffix", "the head of Acme, Inc. came", "acme"},
		{"language by its name", "it is written in Go, R and D", "go|r|d"},
		{"name that is a verb", "Will will meet Anna.", "will|anna"},
		{"month after kin", "my aunt June came in June", "june"},
		{"lower-case product", "we use ripgrep, sqlite and make", "ripgrep|sqlite"},
		{"control", "click Save and choose Export", ""},
		{"people and languages", "I speak French and love Thai food", ""},
		{"jargon", "the PR adds a CSV for the CFO", ""},
		{"jargon of the network", "the OIDC login needs the old CA bundle", ""},
		{"flight number", "flight LH441 from JFK", "jfk"},
		{"adjective of a name", "a Windows-specific step", "windows"},
		{"dotted acronym", "U.S. sales grew", "u.s"},
		{"elided article", "il a vu le livre d'Emma et l'Oslo", "emma|oslo"},
		{"Spanish verb", "Oriane recorrió el parque con su perro", "oriane"},
		{"Spanish function word", "Ella tiene una casa en el centro de la ciudad", ""},
		{"English words do not rule Spanish", "el libro es para la clase de Will en la escuela", "will"},
		{"German nouns", "Der Kunde hat die Rechnung am Montag an Siemens geschickt.", "siemens"},
		{"German title", "Ich habe mit Frau Schröder über das Projekt gesprochen.", "schröder"},
		{"German compound", "Das ist der Entwurf für die Torvald Botanic Garden-Leitung.", "torvald botanic garden"},
		{"German preposition", "wir haben das Buch von Torvald und das Projekt", "torvald"},
		{"Latin word in Cyrillic", "Oriane представила новый дизайн для Botanic Garden.", "oriane|botanic garden"},
		{"script ends a name", "Консультация Oriane по проекту", "oriane"},
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
