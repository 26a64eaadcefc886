package transcript

import (
	"hash/maphash"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConversation(t *testing.T) {
	t.Parallel()

	user := func(id, text string) Turn { return Turn{ExternalID: id, Role: RoleUser, Text: text} }
	answer := func(id, text string) Turn { return Turn{ExternalID: id, Role: RoleAssistant, Text: text} }
	dated := func(turn Turn, d int) Turn {
		turn.Date = day(2026, 1, d)
		return turn
	}

	t.Run("with ids", func(t *testing.T) {
		t.Parallel()

		got, sum := converse(t, Options{}, func(c *conversation) {
			c.carry, c.date = true, day(2026, 1, 1)
			c.add(answer("0", "Welcome."), 1)
			c.add(user("1", "One. "), 2)
			c.add(user("2", " \n"), 3)
			c.add(dated(user("3", "Two."), 2), 4)
			c.add(dated(answer("4", "First."), 3), 5)
			c.add(dated(answer("5", "Second."), 4), 6)
			c.add(user("6", "Three."), 7)
		})
		require.Equal(t, []Capture{
			{
				ExternalID: "test:0", Text: "Assistant: Welcome.", Date: day(2026, 1, 1), TurnIDs: []string{"test:0"}, Complete: true, Line: 1,
				Turns: []Turn{{ExternalID: "test:0", Role: RoleAssistant, Text: "Welcome.", Date: day(2026, 1, 1)}},
			},
			{
				ExternalID: "test:1", Text: "User: One.\n\nUser: Two.\n\nAssistant: First.\nSecond.", Date: day(2026, 1, 1),
				TurnIDs: []string{"test:1", "test:3", "test:4"}, Complete: true, Line: 2,
				Turns: []Turn{
					{ExternalID: "test:1", Role: RoleUser, Text: "One.", Date: day(2026, 1, 1)},
					{ExternalID: "test:3", Role: RoleUser, Text: "Two.", Date: day(2026, 1, 2)},
					{ExternalID: "test:4", Role: RoleAssistant, Text: "First.\nSecond.", Date: day(2026, 1, 3)},
				},
			},
			{
				ExternalID: "test:6", Text: "User: Three.", Date: day(2026, 1, 4), TurnIDs: []string{"test:6"}, Line: 7,
				Turns: []Turn{{ExternalID: "test:6", Role: RoleUser, Text: "Three.", Date: day(2026, 1, 4)}},
			},
		}, got)
		require.Equal(t, map[string]int{"empty": 1}, sum.Skips)
	})

	t.Run("without ids", func(t *testing.T) {
		t.Parallel()

		short := func(c *conversation) {
			c.add(user("", "hi"), 1)
			c.add(answer("", "hello"), 2)
			c.add(user("", "rain?"), 3)
			c.add(answer("", "yes"), 4)
		}
		got, _ := converse(t, Options{}, short)
		require.Len(t, got, 2)
		for _, c := range got {
			require.Equal(t, c.TurnIDs[1], c.ExternalID)
		}

		grown, _ := converse(t, Options{}, func(c *conversation) {
			short(c)
			c.add(user("", "still?"), 5)
			c.add(answer("", "no"), 6)
		})
		require.Equal(t, got, grown[:2])

		other, _ := converse(t, Options{}, func(c *conversation) {
			c.add(user("", "hi"), 1)
			c.add(answer("", "good morning"), 2)
			c.add(user("", "rain?"), 3)
			c.add(answer("", "yes"), 4)
		})
		require.Equal(t, got[0].TurnIDs[0], other[0].TurnIDs[0])
		require.NotEqual(t, got[0].ExternalID, other[0].ExternalID)
		require.NotEqual(t, got[1].ExternalID, other[1].ExternalID)
	})

	t.Run("speakers", func(t *testing.T) {
		t.Parallel()

		got, _ := converse(t, Options{}, func(c *conversation) {
			c.add(Turn{Role: RoleOther, Speaker: " Ann", Text: "hi"}, 1)
			c.add(Turn{Role: RoleOther, Speaker: "Bo", Text: "hi"}, 2)
		})
		require.Equal(t, []string{"Ann: hi", "Bo: hi"}, texts(got))
		require.True(t, got[0].Complete)
		swapped, _ := converse(t, Options{}, func(c *conversation) {
			c.add(Turn{Role: RoleOther, Speaker: "Bo", Text: "hi"}, 1)
		})
		require.NotEqual(t, got[0].ExternalID, swapped[0].ExternalID)
	})

	t.Run("over the cap", func(t *testing.T) {
		t.Parallel()

		got, sum := converse(t, Options{MaxText: 10}, func(c *conversation) {
			c.add(user("1", "12345"), 1)
			c.add(answer("2", "123456"), 2)
			c.add(answer("3", "12345"), 3)
			c.add(user("4", strings.Repeat("x", 11)), 4)
			c.add(user("5", "0123456789"), 5)
		})
		require.Equal(t, []string{"User: 12345\n\nAssistant: 12345", "User: 0123456789"}, texts(got))
		require.Equal(t, []Problem{{File: "f", Code: "text_too_long", Line: 2}, {File: "f", Code: "text_too_long", Line: 4}}, places(sum.Warnings))
	})
}

// converse runs add on a conversation of a format called test.
func converse(t *testing.T, o Options, add func(*conversation)) ([]Capture, Summary) {
	t.Helper()
	var captures []Capture
	im := &importer{
		ctx: t.Context(), o: o.withDefaults(), seed: maphash.MakeSeed(), seen: map[uint64]digest{},
		sum: Summary{Skips: map[string]int{}},
		yield: func(c Capture) error {
			require.Equal(t, "test", c.Source)
			require.Equal(t, "s", c.Session)
			c.Source, c.Session, c.File = "", "", ""
			captures = append(captures, c)
			return nil
		},
	}
	f := &file{im: im, path: "f", format: &format{name: "test"}}
	c := f.conversation("s")
	add(c)
	c.end()
	return captures, im.sum
}
