package llm

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of chunks.
const (
	// maxChunks is how many requests a turn is worth.
	maxChunks = 8
	// minChunkTokens is the smallest piece a turn is split into: with less there
	// is not enough around a sentence to understand it.
	minChunkTokens = 500
	// maxOverlap is the longest paragraph that opens the next chunk once more, as
	// a part of a chunk.
	maxOverlap = 4
)

// Split cuts text into chunks of at most so many tokens, estimated as a third of
// its bytes. It cuts between messages if it can, else between paragraphs, outside
// of code fences if it can, else between lines or runes. A chunk begins with the
// last paragraph of the one before, and where it begins inside a message, with
// that message's label.
//
// Of a text longer than 8 chunks, the middle is left out, first that of its long
// paragraphs (the output of tools); omitted is the number of bytes that are in no
// chunk.
func Split(text string, tokens int) (chunks []string, omitted int) {
	limit := 3 * max(tokens, 1)
	if len(text) <= limit {
		return []string{text}, 0
	}
	blocks := blocksOf(text, limit/32)
	if len(text) > maxChunks*limit {
		blocks, omitted = shorten(blocks, limit)
	}
	var pieces []block
	for _, b := range blocks {
		pieces = append(pieces, b.cut(limit*2/3)...)
	}
	chunks = pack(pieces, limit)
	if len(chunks) <= maxChunks {
		return chunks, omitted
	}
	for _, chunk := range chunks[maxChunks/2 : len(chunks)-maxChunks/2] {
		omitted += len(chunk)
	}
	return append(chunks[:maxChunks/2:maxChunks/2], chunks[len(chunks)-maxChunks/2:]...), omitted
}

// block is a paragraph, or a code fence with all that is in it.
type block struct {
	text string
	// label is that of the message it belongs to, such as "User: ".
	label string
	// first is whether the message begins here.
	first bool
}

// blocksOf reads the paragraphs of a transcript. Neighbours that are shorter than
// grain are one block, so that there are never many.
func blocksOf(text string, grain int) []block {
	var out []block
	label := ""         // of the message at hand
	start, last := 0, 0 // of the paragraph, or fence, at hand, and of the last block
	for at, fenced := 0, false; at <= len(text); {
		end := len(text)
		if n := strings.Index(text[at:], "\n\n"); n >= 0 {
			end = at + n
		}
		if !fenced {
			start = at
		}
		if strings.Count(text[at:end], "```")%2 == 1 {
			fenced = !fenced
		}
		at = end + len("\n\n")
		if fenced && at <= len(text) {
			continue
		}
		own := labelOf(text[start:end])
		if own != "" {
			label = own
		}
		if n := len(out); n > 0 && end-start < grain && len(out[n-1].text) < grain {
			out[n-1].text = text[last:end]
			continue
		}
		last = start
		out = append(out, block{text[start:end], label, own != ""})
	}
	return out
}

// labelOf returns the label a paragraph begins with: a role or a name, a colon, a
// blank.
func labelOf(p string) string {
	const longest = 40
	i := strings.Index(p[:min(len(p), longest)], ": ")
	if i <= 0 || strings.ContainsAny(p[:i], "\n.,;!?\"`") || len(strings.Fields(p[:i])) > 3 || p[0] < 'A' || p[0] > 'Z' && p[0] < utf8.RuneSelf {
		return ""
	}
	return p[:i+2]
}

// shorten keeps head and tail of blocks that fill half a chunk and more.
func shorten(blocks []block, limit int) (out []block, omitted int) {
	for _, b := range blocks {
		if keep := limit / 4; len(b.text) > limit/2 {
			head, tail := runeStart(b.text, keep), runeStart(b.text, len(b.text)-keep)
			omitted += tail - head
			b.text = fmt.Sprintf("%s\n[%d bytes left out]\n%s", b.text[:head], tail-head, b.text[tail:])
		}
		out = append(out, b)
	}
	return out, omitted
}

// cut splits b into pieces of at most limit bytes, between lines if it can.
func (b block) cut(limit int) []block {
	var out []block
	for len(b.text) > limit {
		at := strings.LastIndexByte(b.text[:limit], '\n') + 1
		if at < limit/2 {
			at = max(1, runeStart(b.text, limit))
		}
		out = append(out, block{b.text[:at], b.label, b.first})
		b.text, b.first = b.text[at:], false
	}
	return append(out, b)
}

// pack fills chunks with blocks. It ends a chunk early, at the last message that
// began in its second half, rather than inside a message.
func pack(blocks []block, limit int) []string {
	var chunks []string
	for from := 0; from < len(blocks); {
		size, to, message := 0, from, 0
		if !blocks[from].first {
			size = len(blocks[from].label)
		}
		for ; to < len(blocks); to++ {
			if blocks[to].first && size > limit/2 {
				message = to
			}
			if size += len(blocks[to].text) + len("\n\n"); size > limit && to > from {
				break
			}
		}
		if to < len(blocks) && message > 0 {
			to = message
		}
		chunks = append(chunks, join(blocks[from:to]))
		if to == len(blocks) {
			break
		}
		if last := blocks[to-1]; to-1 > from && len(last.text) <= limit/maxOverlap {
			from = to - 1
		} else {
			from = to
		}
	}
	return chunks
}

func join(blocks []block) string {
	var b strings.Builder
	if !blocks[0].first {
		b.WriteString(blocks[0].label)
	}
	for i, bl := range blocks {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(bl.text)
	}
	return b.String()
}

// runeStart returns the start of the rune that holds byte i.
func runeStart(s string, i int) int {
	for i > 0 && i < len(s) && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}
