package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conversation groups the turns of one conversation, added in order, into
// exchanges: prompts in a row, then all of the answer up to the next prompt. An
// answer without a prompt stands alone, and so does each turn of RoleOther.
//
// An exchange has the id of its first turn, so that it keeps it while the answer
// grows. Turns that come without an id get one from the chain: the hash of all
// turns up to them. There an exchange has the id of its last turn, so that two
// conversations that begin alike are not one.
type conversation struct {
	f       *file
	session string
	placed  bool // as Capture.Placed
	// carry gives a record without a date that of the record before it, for
	// formats whose records are in order of time; date is that date, at first the
	// conversation's own.
	carry bool
	date  time.Time

	// turns, the parts of the last one's text if it is the assistant's, their
	// meta, line and size are those of the exchange in hand.
	turns  []Turn
	answer []string
	meta   map[string]any
	line   int
	size   int
	chain  [sha256.Size]byte

	// message is the assistant's message that answer[run:] are parts of.
	message string
	run     int

	// dropped is that of the record of the last turn.
	dropped int
	// answered says that the exchange in hand has an answer of which nothing is kept.
	answered bool
}

func (f *file) conversation(session string) *conversation {
	return &conversation{f: f, session: session, chain: sha256.Sum256([]byte("v1"))}
}

// after ends the exchange in hand if a record was too long since the last turn: it
// may have been the prompt to what comes next. dropped is that of the next turn's
// record. Formats whose records are turns call it for each.
func (c *conversation) after(dropped int) {
	if dropped != c.dropped {
		c.end()
		c.dropped = dropped
	}
}

// record is a conversation that is all in one record, of that id or none.
func (f *file) record(id string, line int) *conversation {
	c := f.conversation(id)
	if id == "" {
		c.session, c.placed = "L"+strconv.Itoa(line), true
	}
	return c
}

// at tells the date of a record of date t, which is zero if it has none. Formats
// with carry call it for each record in order, turn or not.
func (c *conversation) at(t time.Time) time.Time {
	if !t.IsZero() {
		c.date = t
	}
	if c.carry {
		return c.date
	}
	return t
}

// note adds a string to the meta of the exchange in hand, or of the next one; the
// first value of a key stays.
func (c *conversation) note(key, value string) {
	if c.meta[key] != nil {
		return
	}
	if value = Clean(value); value == "" {
		return
	}
	if c.meta == nil {
		c.meta = map[string]any{}
	}
	c.meta[key] = value
}

// add takes a turn whose ExternalID is the bare id, or empty in a format without
// ids. Records of the assistant in a row are one turn, joined by a line break,
// with the first one's id and date.
func (c *conversation) add(t Turn, line int) { c.part("", t, line) }

// part is add for a part of the assistant's message with that id. Programs that
// log an answer while it arrives log its parts again and again: one that begins
// with an earlier one of the same message replaces it.
func (c *conversation) part(message string, t Turn, line int) {
	t.Date = c.at(t.Date)
	if t.Text = Clean(t.Text); t.Text == "" {
		c.f.skip(skipEmpty)
		return
	}
	last := c.last()
	joins := last != nil && last.Role == RoleAssistant && t.Role == RoleAssistant
	if last != nil && !joins && (last.Role == RoleAssistant || last.Role == RoleOther || t.Role == RoleOther || c.answered && t.Role == RoleUser) {
		c.end()
	}
	same := message != "" && message == c.message
	earlier := -1
	if same {
		earlier = slices.IndexFunc(c.answer[c.run:], func(part string) bool { return strings.HasPrefix(t.Text, part) })
	}
	size := c.size + len(t.Text)
	if earlier >= 0 {
		size -= len(c.answer[c.run+earlier])
	}
	if size > c.f.im.o.MaxText {
		c.f.warn("text_too_long", line, "longer than the cap for one text, or makes its exchange so: dropped")
		// What follows is no answer to the prompt before, and no part of one that
		// was answered.
		if c.answered = t.Role == RoleAssistant; !c.answered {
			c.end()
		}
		return
	}
	c.size = size
	switch {
	case t.Role != RoleAssistant:
	case earlier >= 0:
		c.answer[c.run+earlier] = t.Text
	default:
		if !same {
			c.message, c.run = message, len(c.answer)
		}
		c.answer = append(c.answer, t.Text)
	}
	if joins {
		return
	}
	if t.ExternalID != "" {
		t.ExternalID = externalID(c.f.format.name, t.ExternalID)
	}
	t.Speaker = Clean(t.Speaker)
	if len(c.turns) == 0 {
		c.line = line
	}
	c.turns = append(c.turns, t)
}

func (c *conversation) last() *Turn {
	if len(c.turns) == 0 {
		return nil
	}
	return &c.turns[len(c.turns)-1]
}

// end emits the exchange in hand. The conversation may go on after it.
func (c *conversation) end() {
	if len(c.turns) == 0 {
		return
	}
	if len(c.answer) > 0 {
		c.last().Text = strings.Join(c.answer, "\n")
	}
	out := Capture{Date: c.turns[0].Date, Session: c.session, Placed: c.placed, Turns: c.turns, Meta: c.meta, Line: c.line}
	paragraphs := make([]string, len(c.turns))
	for i := range c.turns {
		t := &c.turns[i]
		chained := t.ExternalID == ""
		if chained {
			t.ExternalID = c.f.format.name + ":" + c.link(t)
		}
		if i == 0 || chained {
			out.ExternalID = t.ExternalID
		}
		out.TurnIDs = append(out.TurnIDs, t.ExternalID)
		paragraphs[i] = speaker(t) + ": " + t.Text
	}
	out.Complete = c.last().Role != RoleUser
	out.Text = strings.Join(paragraphs, "\n\n")
	c.turns, c.answer, c.meta, c.size, c.message, c.answered = nil, nil, nil, 0, "", false
	c.f.emit(out)
}

// link is the next id of the chain.
func (c *conversation) link(t *Turn) string {
	who := t.Role
	if who == RoleOther {
		who = t.Speaker
	}
	h := sha256.New()
	h.Write(c.chain[:])
	h.Write([]byte(who + "\x00" + t.Text))
	h.Sum(c.chain[:0])
	return hex.EncodeToString(c.chain[:16])
}

func speaker(t *Turn) string {
	switch t.Role {
	case RoleUser:
		return "User"
	case RoleAssistant:
		return "Assistant"
	default:
		return t.Speaker
	}
}
